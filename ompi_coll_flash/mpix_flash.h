/*
 * mpix_flash.h: collectives that compute while they communicate.
 *
 * An allgather that hands each block to the caller as it arrives, a reduce-scatter that asks
 * the caller for each block just before it is needed, an allreduce and an all-to-all that do both.
 * The data moves in point-to-point steps while the caller's function computes, so that the
 * communication costs no time of its own as long as a step's transfer is shorter than a step's
 * computation. The schedules are Flash-AG, Flash-RS and Flash-A2A of CommFuse/FlashOverlap
 * (arXiv 2604.24013).
 *
 * Link with -lmpix_flash and run with `mpirun --mca coll flash`. If flash is installed outside of
 * Open MPI's component folder, name both folders, too: `--mca opal_mca_base_component_path
 * PREFIX/lib/openmpi:FOLDER`, where `ompi_info --path pkglibdir` prints FOLDER. Where the component
 * is not selected, or does not serve a communicator, every call below still gives the same result:
 * it runs the plain MPI collective, calls back for what is produced before it, and for what is
 * consumed after it. MPIX_Flash_active() tells which of the two a communicator has.
 *
 * A call with a communicator is made while MPI is there: between MPI_Init and MPI_Finalize, or,
 * with one of a session's, while that is open. Elsewhere it ends the program, and says so, as MPI's
 * own do.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef MPIX_FLASH_H
#define MPIX_FLASH_H

#include <stddef.h>

#include <mpi.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Names a piece that is pending (MPIX_FLASH_PENDING below). A value, to be copied. */
typedef struct MPIX_Flash_handle {
    void *operation;
    MPI_Count piece;
} MPIX_Flash_handle;

/*
 * One piece of one rank's block: what a compute callback is asked to work on.
 *
 * A block is what one rank contributes to an allgather, what one rank receives from a
 * reduce-scatter, what one rank sends to another in an all-to-all, or a part of an allreduce. A
 * piece is a contiguous range of a block: the whole block by default, less when the caller asks for
 * several pieces (MPIX_Flash_hints). An empty block has no pieces.
 *
 * The structure is valid during the callback only. Callbacks read it and never write it.
 */
typedef struct MPIX_Flash_block {
    int rank;              /* whose block, as a rank of the communicator; one that an all-to-all
                              produces: whom it goes to */
    int piece, pieces;     /* which piece of the block, 0 <= piece < pieces */
    int ranks;             /* how many ranks' blocks these are: 1, or with MPIX_Flash_hints' `merge`
                              those of all, from rank 0's on */
    MPI_Count displ;       /* where the block begins, in elements: as displs says, or behind the
                              blocks of the ranks before; of several blocks: the first that is
                              not empty */
    MPI_Count offset;      /* where the piece begins in the block, in elements */
    MPI_Count count;       /* the length of the piece, in elements, at least 1 */
    MPI_Datatype datatype; /* the type of an element */
    void *data;            /* the first element of the piece; next to it come the others, by the
                              type's extent. A consumer's: in the memory of the buffer that it
                              lies in, of a CUDA device's too. An allgather's or all-to-all's
                              producer: likewise. A reduction's: in host memory, or with a stream,
                              in that of the stream's device */
    int on_stream;         /* these two are MPIX_Flash_hints': is there a stream, and which */
    void *stream;
    MPIX_Flash_handle handle; /* for a callback that returns MPIX_FLASH_PENDING */
} MPIX_Flash_block;

/*
 * What a compute callback returns that has begun its piece's computation and not finished it: an
 * accelerator, a thread pool or a task runtime works on. The caller copies block->handle, and
 * says by MPIX_Flash_complete() when it is done, from then on or already before the callback has
 * returned. block->data stays valid until then. Meanwhile the callbacks of the next pieces are
 * called, in order, as far as there is data to consume, or memory for what is produced
 * (a reduction's: one piece more than a block has), so that an accelerator finds its next piece
 * waiting. At most 64 of a request are pending at a time, and where flash does not serve the
 * communicator that is the only limit. Pieces may complete in any order. A request completes when
 * all of its pending pieces have been completed: the caller is to complete each of them even if no
 * further callback comes, as after an error.
 *
 * Where flash does not serve the communicator (MPIX_Flash_active()), the call that starts an
 * operation waits for all pieces that are produced before it returns: another thread has to
 * complete them.
 *
 *   static int produce(const MPIX_Flash_block *block, void *arg)
 *   {
 *       enqueue(arg, block->rank, block->offset, block->count, block->data, block->handle);
 *       return MPIX_FLASH_PENDING;
 *   }
 *   ... and where that has been computed, in whatever thread:
 *   MPIX_Flash_complete(handle, MPI_SUCCESS);
 */
#define MPIX_FLASH_PENDING (-0x464c)

/*
 * A compute callback. Returns MPI_SUCCESS, MPIX_FLASH_PENDING, or an MPI error code that the
 * request will carry.
 *
 * Thread: called only by an application thread that is inside an MPI call (or a call of this
 * header) and makes progress there, normally the MPI_Wait or MPI_Test on the request; never by
 * flash's progress thread. Under MPI_THREAD_MULTIPLE it may be any thread that progresses MPI.
 * Callbacks of one request are called one at a time, and callbacks do not nest: an MPI call made
 * inside a callback progresses communication, but runs no further callback. (One exception: where
 * flash does not serve the communicator, see MPIX_Flash_active(), the call that starts an operation
 * produces what there is to produce, wherever it stands.)
 *
 * With the info key mpix_flash_callback_thread (below), a thread of flash's calls them instead, as
 * soon as there is something to compute, while the application is in MPI or not: one thread for the
 * process, in which those callbacks are made one at a time, beside callbacks of other communicators
 * and users' reductions in application threads. Data moves meanwhile as ever: without a progress
 * thread (coll_flash_progress), in MPI calls, and once after each callback. The thread runs where
 * the one may that made the first such call; a thread that waits in MPI polls, and if they share a
 * core, takes a part of it. It takes no signals but those of faults of its own. If the operation's
 * buffers are a device's, or its producer writes to a stream's, that device is the current one;
 * otherwise a callback makes one current itself. What the application wrote before it started the
 * request, the callback sees; what the callback wrote, whoever has waited for the request. A
 * program with such callbacks has two threads: MPI_THREAD_FUNNELED, at least, is the level for it,
 * which is not checked.
 * Where no ring serves a call (its operation is not commutative, say, or the communicator has one
 * rank), an application thread calls them as ever: wait for the request, by MPI, not for callbacks.
 *
 * A callback may call MPI, in that thread at MPI_THREAD_MULTIPLE alone. It must not wait for its
 * own request, nor for one that depends on a callback that cannot be made before it returns, here
 * or on another rank: of flash's thread, that is all of them. In an application thread, at any
 * level above MPI_THREAD_SINGLE, it must not wait at all: calls of Open MPI's that do (MPI_Wait,
 * MPI_Recv, blocking collectives) may never return there, since Open MPI's waiting does not nest
 * then. MPI_Test, called until it is done, does not wait.
 *
 * An error return stops further callbacks of this request on this rank. The communication is
 * still carried through on every rank, and the communicator stays usable. The request of this
 * rank completes with the returned code (a negative one counts as MPI_ERR_OTHER), and what its
 * buffers hold is undefined. Where other ranks' results lack what this one was to produce, their
 * requests complete with MPI_ERR_OTHER.
 */
typedef int MPIX_Flash_compute_fn(const MPIX_Flash_block *block, void *arg);

/*
 * Completes a piece whose callback returned, or will return, MPIX_FLASH_PENDING. To be called once
 * for each.
 *
 * handle    block->handle of that callback.
 * error     MPI_SUCCESS, or an MPI error code: as if the callback had returned it; a negative
 *           number counts as MPI_ERR_OTHER. A callback that is about to be made is still made. When
 *           a piece that is produced fails, those after it are lost as well, pending ones too.
 *
 * Thread: any, at any level of MPI_Init_thread, also one that runs functions for an accelerator's
 * driver: it calls no MPI, and waits for nothing. Not a signal handler. What was written to
 * block->data before, by this thread or by one that this thread waited for, is seen by the
 * operation. Returns MPI_ERR_ARG, and calls no error handler, if handle.operation is NULL or, as
 * long as the operation is under way, if the piece is not pending. Else MPI_SUCCESS. Any other
 * handle than one of a callback of an operation that is under way is erroneous.
 */
int MPIX_Flash_complete(MPIX_Flash_handle handle, int error);

/*
 * What the caller may fix about an operation. Pass NULL for the defaults, or a structure that began
 * as MPIX_FLASH_HINTS_INIT. `pieces`, `row` and `merge` must be equal on all ranks of the
 * communicator; the stream is each rank's own, and ranks with and without one go together. Read
 * during the call only. `size` lets later versions of the library add fields.
 *
 * With `on_stream`, an operation takes its place in the order of `stream`, and neither the caller
 * nor its callbacks wait for the device:
 * - Buffers in the memory of a CUDA device are read and written after what the stream holds when
 *   the call is made. (Others are not: managed memory is the host's here.)
 * - A callback enqueues its computation on the stream (block->stream) and returns MPI_SUCCESS. Of
 *   what a producer wrote, nothing departs before what the stream holds by then is done; a
 *   reduction's block->data is memory of the stream's device, which other streams may use once they
 *   have waited for this one. Where the stream fails, the request does, as if the callback had
 *   returned MPI_ERR_OTHER.
 * - When the request is complete, what is enqueued on the stream from then on sees the result. What
 *   consumers have enqueued may still be running: buffers are to be used again in the stream's
 *   order, or after waiting for it.
 * A callback that returns MPIX_FLASH_PENDING or works without the stream may do so here, too; then
 * it is done when it says so. The stream must not be destroyed before the request is complete, nor
 * be captured into a graph meanwhile, and has the device of the buffers: else MPI_ERR_OTHER at
 * completion, and the driver's word for it is printed. It is not cudaStreamPerThread, which is
 * another one in each thread.
 *
 * Where flash does not serve the communicator, the result is the same, but the call that starts the
 * operation waits for the stream.
 *
 * `own` is a second callback of an allgather or a reduce-scatter, for each piece of this rank's own
 * block, in order, and each rank's own affair (the other calls take two by themselves, and refuse
 * it):
 * - An allgather's produces the block, before it is sent, and before it is consumed: block->data
 *   lies in the send buffer, or with MPI_IN_PLACE in the receive buffer, and is written to, in
 *   elements of recvtype. What is produced leaves while the rest is computed. Neither of the two
 *   types may have gaps: else MPI_ERR_TYPE at completion. With it, the operation's other callback
 *   may be NULL. An error return counts as a producer's.
 * - A reduce-scatter's is given the block once it is reduced, in the receive buffer, and may change
 *   it (a bias, a residual, a norm of its rows). Every callback that produces has been made by
 *   then, and what is given is done; pieces behind it may still be pending.
 * Where flash does not serve the communicator, an allgather's own block is produced inside the
 * call, which waits for what is pending of it, as a reduce-scatter's does.
 *
 * `merge` is for small operations: what is computed block by block may take longer than at once by
 * more than the transfer that it hides. With it, and where the ring does not cost least of the
 * algorithms by messages (coll_flash_costs; with coll_flash_algorithm: where that is fallback), an
 * allgather or a reduce-scatter is served as where flash does not serve the communicator, and all
 * that this header says of that holds, though MPIX_Flash_active() does not tell: what is produced,
 * by `own` too, is produced inside the call that starts the operation, which waits for what is
 * pending of it, or for the stream. (Ranks with and without `merge` would wait for each other.)
 * There, and in any call where flash does not serve the communicator or the operation, a callback
 * is made once for all ranks' blocks: block->ranks is their number, block->count their elements
 * together, block->piece 0 of 1. But for each piece, as without `merge`, where these do not lie one
 * behind another in the order of the ranks, as those of calls without displs do, or where one in
 * front of others ends in a broken row. `own` is called for each piece in any case.
 */
typedef struct MPIX_Flash_hints {
    size_t size;   /* sizeof(MPIX_Flash_hints) */
    int pieces;    /* pieces to a block, at most 4096; 1: whole blocks; 0: as the communicator's
                      info keys say, else 1 */
    MPI_Count row; /* elements that are never separated: each piece is a whole number of rows
                      (the last one of a block may end in a broken row). 0 or 1: any element */
    int on_stream; /* whether there is a stream: 0 or 1 */
    void *stream;  /* a cudaStream_t or CUstream, the default one (0) included */
    MPIX_Flash_compute_fn *own; /* NULL: none */
    void *own_arg;
    int merge; /* whether callbacks take several ranks' blocks at a time: 0 or 1 */
} MPIX_Flash_hints;

#define MPIX_FLASH_HINTS_INIT                                  \
    {                                                          \
        sizeof(MPIX_Flash_hints), 0, 0, 0, NULL, NULL, NULL, 0 \
    }

/*
 * Info keys. What MPI_Comm_set_info or MPI_Comm_dup_with_info (MPI 3.1, section 6.4.4) say of a
 * communicator that flash serves holds for the calls that come after, standard ones and those of
 * this header, until it is changed. Values are decimal numbers, or words, and equal on all ranks
 * where nothing else is said.
 *
 * mpix_flash_pieces         pieces to a block, 1 to 4096, for calls whose hints do not say
 * mpix_flash_segment_bytes  what travels at a time, 64 and more, or 0 for flash's own choice, as
 *                           the parameter coll_flash_segment_bytes
 * mpix_flash_algorithm      which algorithm serves standard calls, "auto", "ring", "pairwise",
 *                           "recdbl", "shm" or "fallback", as the parameter coll_flash_algorithm
 * mpix_flash_blocking       "auto", "yes" or "no": whether flash serves MPI_Allgather(v),
 *                           MPI_Reduce_scatter(_block), MPI_Allreduce, MPI_Alltoall(v) and
 *                           MPI_Bcast, too, as the parameter coll_flash_blocking
 * mpix_flash_on_node        "true": "auto" may choose the ring where all ranks share a node;
 *                           "false": not, as the parameter coll_flash_on_node
 * mpix_flash_shm            "auto", "copy", "read" or "no", as the parameter coll_flash_shm; of no
 *                           effect where MPI_Init found that shared memory cannot be used. Where
 *                           the parameter is "copy", or MPI_Init found that ranks may not read each
 *                           other's memory, no block is read, whatever the key says
 * mpix_flash_segment_window, mpix_flash_max_sends, mpix_flash_pinned_bytes
 *                           as the parameters. Each rank's own affair
 * mpix_flash_callback_thread  "true": compute callbacks are called by a thread of flash's, see
 *                           MPIX_Flash_compute_fn, for which they must have been written; "false":
 *                           by the application's; as coll_flash_callback_thread. Each rank's own
 *                           affair
 *
 * A value that cannot be is ignored, which is said: what held before still holds, though
 * MPI_Comm_get_info then does not show it. Segments and pieces that differ between ranks fail like
 * sizes that do; with algorithms, mpix_flash_blocking, or hints' `merge`, that differ, some ranks would use one
 * algorithm and others wait for them in another. A persistent request keeps the keys that held when
 * it was made, since ranks start it at times of their own. Open MPI 4.1 hands keys on to a new
 * communicator in MPI_Comm_dup_with_info alone, not in MPI_Comm_dup, _idup, _split or _create.
 */

/*
 * Floating-point numbers of 16 bits, as datatypes: bfloat16 and IEEE 754's binary16.
 *
 * type      the handle, the same in each call. It is the library's, must not be freed, and lasts
 *           until MPI_Finalize; size, extent and alignment are 2 bytes.
 *
 * All of MPI that moves data takes it. The reductions of this header take MPI_SUM, MPI_PROD,
 * MPI_MAX and MPI_MIN on it, or a user's operation, else MPI_ERR_OP; MPI's own reductions take a
 * user's operation alone. Each result of two numbers is made in single precision and rounded to the
 * nearest, of two to the even one: a ring of N ranks rounds N - 1 times. A pairwise reduce-scatter
 * (mpix_flash_algorithm) adds and multiplies in single precision throughout, and rounds once; on
 * more than 4096 ranks, and where no ring serves the communicator, there is none.
 *
 * Local; between MPI_Init and MPI_Finalize, any thread that may call MPI. Errors, through the error
 * handler of MPI_COMM_WORLD: MPI_ERR_ARG (no such type, or type is NULL), MPI_ERR_NO_MEM. Before
 * and behind these, in sessions alone for instance: MPI_ERR_OTHER, and no handler is called.
 */
enum { MPIX_FLASH_BF16 = 1, MPIX_FLASH_FP16 = 2 };
int MPIX_Flash_type(int which, MPI_Datatype *type);

/*
 * Whether flash's rings serve the calls of this header on `comm` (*flag = 1), or the plain
 * collectives do (*flag = 0: the component is not selected, the communicator has one rank, spans
 * several jobs, or UCX was not usable on some rank). Local; any thread that may call MPI.
 * MPI_Init settles this if a program of the job is linked with this library. If it is loaded later,
 * and with the parameter coll_flash_setup = call, the first call on a communicator waits until all its
 * ranks have made it, and 1 may become 0 with that call; coll_flash_setup = init has MPI_Init settle it.
 * Errors: MPI_ERR_COMM, MPI_ERR_ARG (flag is NULL).
 */
int MPIX_Flash_active(MPI_Comm comm, int *flag);

/*
 * Explains which algorithm serves a standard call, and what the call costs by each algorithm.
 *
 * call      "allgather", for MPI_Iallgather(v), "reduce_scatter", for
 *           MPI_Ireduce_scatter(_block), "allreduce", "alltoall", "bcast" or "reduce", for
 *           MPI_Iallreduce, MPI_Ialltoall, MPI_Ibcast and MPI_Ireduce, "gather" or "scatter", for
 *           MPI_Igather and MPI_Iscatter; or "blocking_" and one of the first five, for the
 *           blocking call
 * bytes     the size of all ranks' blocks together, or of the vector of an allreduce, a broadcast
 *           or a reduce
 * ranks     of the communicator, from 2 to 2097152; this job need not have as many
 * node      not 0: all ranks share a node
 * text      OUT: lines that end in a newline, one for each algorithm, with `node` one that says
 *           whether the ring may serve there, of a blocking call one with coll_flash_blocking, of
 *           "alltoall", "gather", "scatter" and "blocking_alltoall" one that says which blocks of
 *           MPI_Ialltoallv, MPI_Igatherv, MPI_Iscatterv and MPI_Alltoallv go by the ring, if any
 *           do, and last, one for the choice; ended by a null character
 * size      of text, in characters; 512 are enough
 *
 * The costs are microseconds that the application loses to the call (coll_flash_costs); the
 * built-in ones of networks are for comparison, and no times. The parameters are those of this job,
 * and what its ranks have agreed on; info keys do not count. Where flash does not serve
 * MPI_COMM_WORLD, as in a job of one rank, the choice is the fallback. Local; any thread may call
 * it, between MPI_Init and MPI_Finalize, else MPI_ERR_OTHER. Errors: MPI_ERR_ARG, MPI_ERR_NO_MEM,
 * and MPI_ERR_TRUNCATE where the text is longer than `size`; the error handler of MPI_COMM_WORLD is
 * called.
 */
int MPIX_Flash_explain(const char *call, MPI_Count bytes, int ranks, int node, char *text,
                       int size);

/*
 * MPI_Iallgather (MPI 3.1, section 5.12.5) with a consumer: calls `consume` once for each piece
 * of each block, this rank's own block first, then the others' as they come around the ring, each
 * as soon as it has arrived. How the ranks stand in the ring depends on where they run
 * (coll_flash_ring_order), and is the same in each call on `comm`.
 *
 * sendbuf   sendcount elements of sendtype, or MPI_IN_PLACE (the own block then lies in recvbuf
 *           already). Must not change before the request is complete, but by hints->own. Either
 *           buffer may be in host memory or, where a ring serves `comm` and the types have no gaps,
 *           in that of a CUDA device, which the application has waited for, but by hints->stream:
 *           only what cudaMemcpy() and cudaMemset() still do to the buffer when they have
 *           returned comes first by itself.
 *           Not from within a callback of the driver's, which forbids all that flash would do
 *           there.
 * recvbuf   room for recvcount elements of recvtype for each rank, in rank order. Not to be
 *           touched before the request is complete, except by `consume` for its piece.
 * recvtype  any type, as sendtype; ranks may describe the same data by different ones. Its size,
 *           and recvcount, are equal on all ranks: blocks are cut by elements. Blocks of elements
 *           without data are empty. Unless an element lies at its address without gaps, as long as
 *           its extent, the ring gathers into memory of its own, as much as all blocks have data,
 *           and each piece is unpacked before its callback.
 * consume   may be NULL with hints->own. block->data is the piece inside recvbuf, as an address
 *           that goes with recvtype; for the own block, if recvtype has no gaps, it may lie in
 *           sendbuf. The callback must not change it.
 * hints     see MPIX_Flash_hints; may be NULL.
 * request   completed by MPI_Wait, MPI_Test and their kin, after the last callback.
 *
 * Collective over `comm`, non-blocking: calls `consume` from later MPI calls only (but see
 * mpix_flash_callback_thread), and moves the data meanwhile. (Where flash does not serve `comm` and
 * there is no memory, it waits for the others before it returns MPI_ERR_NO_MEM.) Ordered with the
 * other collectives of `comm` as MPI demands. Errors, through the error handler of `comm`:
 * MPI_ERR_COMM (null, freed or inter-communicator), MPI_ERR_ARG (request is NULL, or consume
 * without hints->own, hints malformed), MPI_ERR_COUNT, MPI_ERR_TYPE, MPI_ERR_BUFFER (MPI_IN_PLACE
 * for recvbuf), MPI_ERR_NO_MEM; at completion MPI_ERR_BUFFER (where a ring serves `comm`: NULL for
 * a buffer that is not empty, or a CUDA device's memory with a type that has gaps, or without a
 * plugin for it, and then nothing of it is touched; the other ranks get MPI_ERR_OTHER),
 * MPI_ERR_TRUNCATE (sizes disagree between ranks), MPI_ERR_OTHER (the transport failed),
 * MPI_ERR_NO_MEM (there is none for the operation, or no thread for its callbacks; likewise), or
 * what `consume` returned.
 */
int MPIX_Iallgather_compute(const void *sendbuf, int sendcount, MPI_Datatype sendtype,
                            void *recvbuf, int recvcount, MPI_Datatype recvtype,
                            MPIX_Flash_compute_fn *consume, void *arg,
                            const MPIX_Flash_hints *hints, MPI_Comm comm, MPI_Request *request);

/*
 * The same for blocks of unequal length, as MPI_Iallgatherv: rank i's block is recvcounts[i]
 * elements at element displs[i] of recvbuf. Both arrays hold one entry for each rank and must not
 * change before the request is complete.
 */
int MPIX_Iallgatherv_compute(const void *sendbuf, int sendcount, MPI_Datatype sendtype,
                             void *recvbuf, const int recvcounts[], const int displs[],
                             MPI_Datatype recvtype, MPIX_Flash_compute_fn *consume, void *arg,
                             const MPIX_Flash_hints *hints, MPI_Comm comm, MPI_Request *request);

/*
 * MPI_Ireduce_scatter_block (MPI 3.1, section 5.12.8) with a producer: instead of a send buffer
 * that holds this rank's contribution to every block, calls `produce` for each piece of each
 * block just before it is needed; the full contribution never exists in memory. The own block
 * comes last, so that no communication follows the last computation.
 *
 * produce   writes this rank's contribution to the piece, block->count elements, into block->data
 *           (uninitialised memory of the library's, aligned as the datatype needs; to 64 bytes
 *           where the ring is used).
 *
 * recvbuf   room for recvcount elements of datatype: receives the reduction of all ranks'
 *           contributions to this rank's block. Not to be touched before the request is complete.
 *
 * datatype  any type, the same on all ranks.
 *
 * op        an operation that is defined for the type: else MPI_ERR_OP (see also
 *           MPIX_Flash_type()). Non-commutative ones, and user-defined ones on types with gaps,
 *           work without flash's rings. A ring adds a block in the order in which the ranks stand
 *           in it, from the right neighbour of the block's rank on to that rank itself: the same
 *           bits in each run with the same mapping, and with any mapping where
 *           coll_flash_ring_order is rank. User-defined ones are called in application threads
 *           alone, inside MPI calls: without any, their ring waits.
 *
 * The rest as for MPIX_Iallgather_compute. Where flash does not serve the communicator, `produce`
 * is called for all blocks inside this call, which then waits for those that are pending: what
 * completes them must not need this thread.
 */
int MPIX_Ireduce_scatter_block_compute(MPIX_Flash_compute_fn *produce, void *arg,
                                       const MPIX_Flash_hints *hints, void *recvbuf, int recvcount,
                                       MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
                                       MPI_Request *request);

/*
 * The same for blocks of unequal length, as MPI_Ireduce_scatter: rank i's block has recvcounts[i]
 * elements; recvcounts is equal on all ranks and must not change before the request is complete.
 */
int MPIX_Ireduce_scatter_compute(MPIX_Flash_compute_fn *produce, void *arg,
                                 const MPIX_Flash_hints *hints, void *recvbuf,
                                 const int recvcounts[], MPI_Datatype datatype, MPI_Op op,
                                 MPI_Comm comm, MPI_Request *request);

/*
 * MPI_Iallreduce (MPI 3.1, section 5.12.7) with a producer, as the calls above, and a consumer: a
 * reduce-scatter whose sums go around the ring once more. The vector of `count` elements is cut
 * into as many blocks as there are ranks, nearly equal and of whole rows (hints->row); a block's
 * rank says no more than who has its sum first. The sums of what has been added up travel under the
 * additions of the rest, and the first half of the transfer hides behind `produce`, the second one
 * behind `consume`.
 *
 * produce   as of MPIX_Ireduce_scatter_block_compute, for each piece of each block: block->displ +
 *           block->offset is the piece's place in the vector. This rank's own block comes last.
 * consume   may be NULL. Called, behind all calls of `produce`, for each piece of the result as
 *           soon as it is there, this rank's own block first. block->data is the piece inside
 *           recvbuf. It must not change it: it may still be on its way to another rank.
 * hints     see MPIX_Flash_hints; may be NULL. Not its `own`.
 * recvbuf   room for count elements of datatype, in host memory or in that of a CUDA device (where
 *           a ring serves `comm` and `op`; else MPI_ERR_BUFFER at completion, on the other ranks
 *           MPI_ERR_OTHER). Not to be touched before the request is complete.
 * count, datatype, op   equal on all ranks; as of MPIX_Ireduce_scatter_block_compute. By a ring,
 *           all ranks have the same bits as result.
 *
 * Thread, order, errors: as of MPIX_Ireduce_scatter_block_compute. An error of a producer's reaches
 * all ranks, one of a consumer's none. (Where no ring serves it and a rank has no memory, that one
 * returns MPI_ERR_NO_MEM, and the others wait: as of a reduce-scatter.)
 */
int MPIX_Iallreduce_compute(MPIX_Flash_compute_fn *produce, void *produce_arg,
                            MPIX_Flash_compute_fn *consume, void *consume_arg,
                            const MPIX_Flash_hints *hints, void *recvbuf, int count,
                            MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, MPI_Request *request);

/*
 * MPI_Ialltoall (MPI 3.1, section 5.12.6) with a producer and a consumer: each block goes straight
 * to its receiver once it has been produced, to the ranks in turn as they stand in the ring from
 * the right neighbour on, so that they do not all send to one; and what has arrived is consumed
 * meanwhile. Each rank connects to all others with the first call on a communicator (without memory
 * for that, the job ends; whom it cannot connect to counts as lost, and the call ends with an error
 * that names it).
 *
 * sendbuf   sendcount elements of sendtype for each rank, in rank order. `produce` writes to it;
 *           nobody else may before the request is complete. Not MPI_IN_PLACE.
 * recvbuf   room for recvcount elements of recvtype from each rank, in rank order; does not overlap
 *           sendbuf. Not to be touched before the request is complete, except by `consume` for its
 *           piece. Either buffer may be in host memory or, where a ring serves `comm`, in that of a
 *           CUDA device (else MPI_ERR_BUFFER at completion, on the other ranks MPI_ERR_OTHER).
 * sendtype, recvtype   types without gaps, of one size, which is equal on all ranks, as are
 *           sendcount and recvcount, and the two to each other: blocks are cut by elements.
 * produce   writes the piece, block->count elements of sendtype for block->rank, to block->data,
 *           which lies in sendbuf. NULL: what is to be sent is there already. Called for the blocks
 *           in the order in which they leave, this rank's own one last.
 * consume   may be NULL if `produce` is not. Called, behind all calls of `produce`, for each piece
 *           that has come from block->rank, in the order of the ring, this rank's own block first.
 *           block->data lies in recvbuf; the own block's may lie in sendbuf. The callback must not
 *           change it.
 * hints     see MPIX_Flash_hints; may be NULL. Not its `own`.
 *
 * Thread, order, errors: as of MPIX_Iallgather_compute, and in the call MPI_ERR_TYPE (a type with
 * gaps, or of another size than the other); at completion MPI_ERR_TRUNCATE also where what a rank
 * has for itself is not as long as what it has room for (the others get MPI_ERR_OTHER).
 * An error of a producer's reaches the ranks whose blocks have not left, and may reach all through
 * them, one of a consumer's none.
 * A communicator of more than 4096 ranks takes the plain MPI_Ialltoall, which reaches no device's
 * memory here.
 */
int MPIX_Ialltoall_compute(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
                           int recvcount, MPI_Datatype recvtype, MPIX_Flash_compute_fn *produce,
                           void *produce_arg, MPIX_Flash_compute_fn *consume, void *consume_arg,
                           const MPIX_Flash_hints *hints, MPI_Comm comm, MPI_Request *request);

/*
 * The same for blocks of unequal length, as MPI_Ialltoallv: sendcounts[i] elements at element
 * sdispls[i] of sendbuf go to rank i, recvcounts[i] at rdispls[i] of recvbuf come from there, as
 * many as that rank sends. The arrays must not change before the request is complete.
 */
int MPIX_Ialltoallv_compute(const void *sendbuf, const int sendcounts[], const int sdispls[],
                            MPI_Datatype sendtype, void *recvbuf, const int recvcounts[],
                            const int rdispls[], MPI_Datatype recvtype,
                            MPIX_Flash_compute_fn *produce, void *produce_arg,
                            MPIX_Flash_compute_fn *consume, void *consume_arg,
                            const MPIX_Flash_hints *hints, MPI_Comm comm, MPI_Request *request);

/*
 * The blocking forms: the call above, then MPI_Wait. Callbacks run during the call. Errors of
 * the call and of the request are both returned through the error handler of `comm`, which is told
 * the names of these two.
 */
int MPIX_Allgather_compute(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
                           int recvcount, MPI_Datatype recvtype, MPIX_Flash_compute_fn *consume,
                           void *arg, const MPIX_Flash_hints *hints, MPI_Comm comm);
int MPIX_Allgatherv_compute(const void *sendbuf, int sendcount, MPI_Datatype sendtype,
                            void *recvbuf, const int recvcounts[], const int displs[],
                            MPI_Datatype recvtype, MPIX_Flash_compute_fn *consume, void *arg,
                            const MPIX_Flash_hints *hints, MPI_Comm comm);
int MPIX_Reduce_scatter_block_compute(MPIX_Flash_compute_fn *produce, void *arg,
                                      const MPIX_Flash_hints *hints, void *recvbuf, int recvcount,
                                      MPI_Datatype datatype, MPI_Op op, MPI_Comm comm);
int MPIX_Reduce_scatter_compute(MPIX_Flash_compute_fn *produce, void *arg,
                                const MPIX_Flash_hints *hints, void *recvbuf,
                                const int recvcounts[], MPI_Datatype datatype, MPI_Op op,
                                MPI_Comm comm);
int MPIX_Allreduce_compute(MPIX_Flash_compute_fn *produce, void *produce_arg,
                           MPIX_Flash_compute_fn *consume, void *consume_arg,
                           const MPIX_Flash_hints *hints, void *recvbuf, int count,
                           MPI_Datatype datatype, MPI_Op op, MPI_Comm comm);
int MPIX_Alltoall_compute(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
                          int recvcount, MPI_Datatype recvtype, MPIX_Flash_compute_fn *produce,
                          void *produce_arg, MPIX_Flash_compute_fn *consume, void *consume_arg,
                          const MPIX_Flash_hints *hints, MPI_Comm comm);
int MPIX_Alltoallv_compute(const void *sendbuf, const int sendcounts[], const int sdispls[],
                           MPI_Datatype sendtype, void *recvbuf, const int recvcounts[],
                           const int rdispls[], MPI_Datatype recvtype,
                           MPIX_Flash_compute_fn *produce, void *produce_arg,
                           MPIX_Flash_compute_fn *consume, void *consume_arg,
                           const MPIX_Flash_hints *hints, MPI_Comm comm);

#ifdef __cplusplus
}
#endif

#endif /* MPIX_FLASH_H */
