/*
 * coll_flash_operation.h: an operation as an MPI request, and the calls that start one; see
 * coll_flash.h for what is where.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef COLL_FLASH_OPERATION_H
#define COLL_FLASH_OPERATION_H

#include "coll_flash.h"

struct flash_fallback; /* see mpix_flash_fallback_operation.h */
struct flash_stager;   /* see flash_stager.h */
struct flash_stager_order;

/* ---------------------------------------------------------------- requests */

/* A user's callbacks, with what they are told about the pieces. */
typedef struct mca_coll_flash_compute {
    MPIX_Flash_compute_fn *produce; /* or NULL; an allgather's: the own block alone */
    void *produce_arg;
    MPIX_Flash_compute_fn *consume; /* or NULL; a reduce-scatter's: the own block alone */
    void *consume_arg;
    int pieces;
    MPI_Count row;
    bool on_stream; /* it leaves work in `stream` */
    void *stream;
    bool merge; /* they take several ranks' blocks at a time */
} mca_coll_flash_compute_t;

/*
 * Which operation of its communicator a call starts, and the settings that hold for it: the
 * communicator's at that time, or those that a persistent request has kept from when it was made.
 */
typedef struct mca_coll_flash_ticket {
    uint32_t sequence;
    const mca_coll_flash_settings_t *settings;
} mca_coll_flash_ticket_t;

/* A part of each kind of request, see coll_flash_debt.c. */
typedef struct mca_coll_flash_debt {
    struct mca_coll_flash_debt *next;
    ompi_request_t *request;
    void (*free_it)(ompi_request_t *request);
} mca_coll_flash_debt_t;

/* What each message of coll_flash_rounds.c begins with; as long as what follows it is aligned. */
typedef struct mca_coll_flash_doubling_header {
    uint64_t mark;    /* FLASH_ROUND_MARK */
    uint32_t spoiled; /* nothing follows, by the fault of that rank */
    uint32_t blame;
} mca_coll_flash_doubling_header_t;

/* Ranks that disagree about sizes may find Open MPI's own messages, where they expect one of these. */
#define FLASH_ROUND_MARK UINT64_C(0x666c6173685f7264)

/* An operation in rounds; see there. */
typedef struct mca_coll_flash_doubling {
    struct mca_coll_flash_request *next; /* of those under way */
    bool listed;                         /* it is one of them: its message may move it on */
    int tag;
    uint32_t round;
    ompi_request_t *sending, *receiving; /* NULL: done, or Open MPI calls when it is */
    bool arrived;                        /* what the round receives, in this way: */
    int error;
    size_t length;
    char *memory; /* owned, or NULL; of `blocks`, `out` and `in` */
    char *blocks;
    mca_coll_flash_doubling_header_t *out, *in;
    mca_coll_flash_doubling_header_t alone;  /* what is sent where there are no blocks */
    mca_coll_flash_doubling_header_t header; /* what the next message begins with */
    int status;
    uint32_t blamed;
    uint32_t watched, watches; /* what the latest watch has found, and how many found it so */
} mca_coll_flash_doubling_t;

/*
 * An operation as the MPI layer sees it. Made from a free list, filled in by the files that
 * know the operations, handed to mca_coll_flash_request_start().
 */
typedef struct mca_coll_flash_request {
    ompi_coll_base_nbc_request_t super;
    mca_coll_flash_debt_t debt;
    atomic_int state;           /* who recycles it, see coll_flash_request.c */
    ompi_request_t *persistent; /* the one that completes when this one is recycled, or NULL */
    mca_coll_flash_module_t *module;
    uint32_t sequence;    /* which operation of the communicator */
    size_t segment_bytes; /* this and what follows: of its ticket */
    uint32_t depth, sends;
    size_t pinned_bytes;
    size_t read_above; /* of FLASH_ON_BOARD: longer blocks are read where they are */
    int known_error;   /* from the start; or MPI_SUCCESS */
    bool told_stuck;   /* the lock of what it is under way in orders it */
    bool refused;      /* see mca_coll_flash_request_refuse() */
    bool apart;        /* a thread of flash's makes its callbacks */
    flash_kind_t kind;
    mca_coll_flash_compute_t compute; /* without callbacks: a plain call */
    MPI_Datatype datatype;
    MPI_Datatype sendtype;       /* of what is produced; NULL: the same */
    MPI_Op op;                   /* NULL: no reduction */
    size_t *counts;              /* blocks, if unequal; owned */
    ptrdiff_t *displs;           /* owned */
    void *scratch;               /* owned: packed blocks, or the result of a call in place */
    struct flash_stager *stager; /* owned: of buffers in a device's memory; or NULL */
    /* What comes before the callback for a piece: puts it where the user looks for it; or NULL. */
    int (*prepare)(const struct mca_coll_flash_request *request, const flash_piece_t *piece,
                   void **elements);
    /* What remains to be done, in an application thread, when the ring is complete; or NULL. */
    int (*finish)(struct mca_coll_flash_request *request);
    struct {
        void *recvbuf;
        MPI_Datatype recvtype;
        char *packed;              /* the blocks, in `scratch` */
        flash_counts_t recvcounts; /* likewise; NULL: equal blocks of recvcount */
        flash_displs_t displs;
        flash_count_t recvcount;
        size_t own_bytes;
    } deferred; /* arguments of `finish` */
    /* While it waits for its number, see coll_flash_number.c, or lock; in rounds, all the time. */
    flash_op_params_t waiting;
    flash_board_op_t board;                      /* of FLASH_ON_BOARD */
    mca_coll_flash_doubling_t doubling;          /* of FLASH_IN_ROUNDS */
    struct mca_coll_flash_request *next_arrived; /* likewise, see coll_flash_board_calls.c */
} mca_coll_flash_request_t;

OBJ_CLASS_DECLARATION(mca_coll_flash_request_t);

int mca_coll_flash_requests_init(void);
void mca_coll_flash_requests_fini(void);

/* From here on: operations over the communicator's board, which needs no numbers, for messages. */
#define FLASH_ON_BOARD  (2 * FLASH_CALL_SEQUENCES)
/* Not numbered at all: operations in rounds, coll_flash_doubling.c. */
#define FLASH_IN_ROUNDS (2 * FLASH_ON_BOARD)
/* The next operation of a communicator: whoever calls takes part in it, or fails. */
mca_coll_flash_ticket_t mca_coll_flash_next_ticket(mca_coll_flash_module_t *module);
/* Likewise of a plain call that goes over a board or in rounds. */
mca_coll_flash_ticket_t mca_coll_flash_plain_ticket(mca_coll_flash_module_t *module,
                                                    mca_coll_flash_path_t path);
/*
 * What is to become of such a call, on all ranks, where this one cannot begin it because of `error`:
 * that, now or of the request.
 */
int mca_coll_flash_plain_refuse(mca_coll_flash_module_t *module, flash_kind_t kind,
                                mca_coll_flash_path_t path, int error, ompi_request_t **request);
/* Before the limit is agreed on; false: there is no memory. */
bool mca_coll_flash_rounds_open(void);
void mca_coll_flash_rounds_close(void);
/* Where one cannot even have a request: what comes behind it stays in step; the others wait. */
void mca_coll_flash_doubling_skip(mca_coll_flash_module_t *module);
/* Starts a request's operation in rounds, or refuses it if params->element is 0. */
void mca_coll_flash_doubling_begin(mca_coll_flash_request_t *request,
                                   const flash_op_params_t *params);
/* Moves them on, and completes requests. Returns 0 if nothing happened. */
int mca_coll_flash_doublings_progress(void);
/* Whether there are any. */
bool mca_coll_flash_doublings_busy(void);
/*
 * See mca_coll_flash_job_watch(): those that are silent; of several that wait for one rank of a
 * communicator, the one that has waited longest. Does not wait for their lock: without it, it finds none.
 */
size_t mca_coll_flash_doublings_watch(flash_silence_t *silences, size_t most,
                                      void (*found)(void *arg, size_t k,
                                                    const flash_silence_t *silence),
                                      void *arg);
/*
 * Takes the request's number. False if an operation 8192 calls older still has it: then the request
 * waits, with a copy of `params`.
 */
bool mca_coll_flash_number_take_or_wait(mca_coll_flash_request_t *request,
                                        const flash_op_params_t *params);
/* Gives it back. The request that has waited for it, has it now and is to be started, or NULL. */
mca_coll_flash_request_t *mca_coll_flash_number_leave(const mca_coll_flash_request_t *request);
/* What the first operation of a kind on a communicator, and of the process, needs. */
int mca_coll_flash_prepare(mca_coll_flash_module_t *module, flash_kind_t kind);
/* NULL if there is no memory. */
mca_coll_flash_request_t *mca_coll_flash_request_new(mca_coll_flash_module_t *module,
                                                     mca_coll_flash_ticket_t ticket,
                                                     flash_kind_t kind);
/* Room for unequal blocks: the request's counts and displs, to be filled in. */
int mca_coll_flash_request_blocks(mca_coll_flash_request_t *request, flash_blocks_t *blocks);
/*
 * Starts the ring that `params` describes but for peers, tags, depth and callback, which come from
 * the module and the request. If that fails, as mca_coll_flash_request_refuse().
 */
int mca_coll_flash_request_start(mca_coll_flash_request_t *request, flash_op_params_t *params,
                                 ompi_request_t **started);
/* Completes one that was started; what flash_op_t says of its end. */
void mca_coll_flash_request_ended(mca_coll_flash_request_t *request, int status, uint32_t blamed,
                                  bool haunted);
/*
 * Instead of starting it: tells the other ranks that this one cannot take part, and has the request
 * end with `error` when that is done. If not even that is possible, returns the error, and the
 * request is gone.
 */
int mca_coll_flash_request_refuse(mca_coll_flash_request_t *request, int error,
                                  ompi_request_t **started);
/* The callback of opal_progress(). */
int mca_coll_flash_progress_all(void);
/* Now and then, while operations are in flight: looks for neighbours that have fallen silent. */
void mca_coll_flash_watch(void);
/*
 * For the function that frees a request: whether it has failed. Then this thread's next operation
 * frees it, by free_it().
 */
bool mca_coll_flash_owes(ompi_request_t *request, mca_coll_flash_debt_t *debt,
                         void (*free_it)(ompi_request_t *request));
/* Frees those of this thread. */
void mca_coll_flash_settle(void);
/* The MPI error code of a status of flash's. */
int mca_coll_flash_error(int status);

/* MPI_SUCCESS, or MPI_ERR_BUFFER: there is none. */
int mca_coll_flash_check_buffer(const void *address);
/* Whether it is a device's, so that the host must not touch it. */
bool mca_coll_flash_is_far(const void *address);
/* MPI_ERR_BUFFER, which this explains; of a type with gaps in such memory, for one. */
int mca_coll_flash_refuse_device(const char *reason);
int mca_coll_flash_refuse_gaps(void);
/*
 * Of buffers in such memory; NULL: not, or none. With `produces`, what the request's callback
 * produces is, too; with `awaits`, what it has written, wherever that is, is there when its stream
 * is done. MPI_SUCCESS, or an error that is explained.
 */
int mca_coll_flash_stage(mca_coll_flash_request_t *request, const void *input, const void *output,
                         bool produces, bool awaits);
/* Of a reduction that is staged: has the device add, if it can. Before the request is started. */
void mca_coll_flash_add_far(const mca_coll_flash_request_t *request, const void *input,
                            const void *output);
/* The kernel that does the same, of flash_gpu.h's; false: none does. */
bool mca_coll_flash_kernel_of(MPI_Op op, MPI_Datatype datatype, flash_gpu_operator_t *operation,
                              flash_gpu_type_t *type);
/* A callback has returned with that error, and left work in its stream. For flash_callback_fn. */
int mca_coll_flash_await_stream(const mca_coll_flash_request_t *request, const flash_piece_t *piece,
                                int error);
/* What copies to and from these. The same. */
int mca_coll_flash_open_stager(const void *input, const void *output,
                               const struct flash_stager_order *order,
                               struct flash_stager **stager);
/* Of one that is staged: completes the parameters. MPI_SUCCESS or MPI_ERR_NO_MEM. */
int mca_coll_flash_find_scratch(const mca_coll_flash_request_t *request, flash_op_params_t *params);
/* Copies a result to the memory of such an operation, or another one's. */
int mca_coll_flash_copy_back(const mca_coll_flash_request_t *request, void *to, const void *from,
                             size_t size);
void mca_coll_flash_tell_device_failed(void);

/* -------------------------------------------------------------- operations */

/*
 * MPI_Iallgather(v), and with `compute` the extension's. recvcounts == NULL: equal blocks of
 * recvcount.
 */
int mca_coll_flash_start_allgather(mca_coll_flash_module_t *module, mca_coll_flash_ticket_t ticket,
                                   const void *sendbuf, flash_count_t sendcount,
                                   MPI_Datatype sendtype, void *recvbuf, flash_count_t recvcount,
                                   flash_counts_t recvcounts, flash_displs_t displs,
                                   MPI_Datatype recvtype, const mca_coll_flash_compute_t *compute,
                                   ompi_request_t **request);

/* By which schedule the operation of that number goes, on all ranks. */
flash_kind_t mca_coll_flash_reduce_scatter_kind(const mca_coll_flash_module_t *module,
                                                const mca_coll_flash_settings_t *settings);
/* MPI_Ireduce_scatter(_block), and with `compute` (and no sendbuf) the extension's, by a ring. */
int mca_coll_flash_start_reduce_scatter(mca_coll_flash_module_t *module,
                                        mca_coll_flash_ticket_t ticket, const void *sendbuf,
                                        void *recvbuf, flash_count_t recvcount,
                                        flash_counts_t recvcounts, MPI_Datatype datatype, MPI_Op op,
                                        const mca_coll_flash_compute_t *compute,
                                        mca_coll_flash_path_t path, ompi_request_t **request);

/* MPIX_Flash_type(), but for the error handler. */
int mca_coll_flash_halves_type(int which, MPI_Datatype *type);
/* On such a type: puts its own operation in the place of MPI's. MPI_SUCCESS or MPI_ERR_OP. */
int mca_coll_flash_halves_op(MPI_Datatype datatype, MPI_Op *op);
/* Whether an operation is one of these; then any thread may run it, and a device's kernel does the
 * same. */
bool mca_coll_flash_halves_find(MPI_Op op, flash_gpu_operator_t *operation, flash_gpu_type_t *type);
/* If the operation is one of them and rounds: how a direct reduce-scatter rounds once. */
void mca_coll_flash_halves_widen(MPI_Op op, flash_op_params_t *params);

/* What a reduction is of. */
void mca_coll_flash_reduce_by(mca_coll_flash_request_t *request, MPI_Datatype datatype, MPI_Op op,
                              flash_op_params_t *params);

/* MPIX_Iallreduce_compute. */
int mca_coll_flash_start_allreduce(mca_coll_flash_module_t *module, mca_coll_flash_ticket_t ticket,
                                   void *recvbuf, flash_count_t count, MPI_Datatype datatype,
                                   MPI_Op op, const mca_coll_flash_compute_t *compute,
                                   ompi_request_t **request);
/* Which of `count` elements are the block of a rank. */
flash_range_t mca_coll_flash_allreduce_block(size_t count, size_t row, int ranks, int rank);

/* An all-to-all's, both of whose types have no gaps and the same size. */
typedef struct mca_coll_flash_alltoall {
    void *sendbuf;
    flash_count_t sendcount;
    flash_counts_t sendcounts; /* NULL: equal blocks of sendcount */
    flash_displs_t sdispls;
    MPI_Datatype sendtype;
    void *recvbuf;
    flash_count_t recvcount;
    flash_counts_t recvcounts; /* NULL: of recvcount */
    flash_displs_t rdispls;
    MPI_Datatype recvtype;
} mca_coll_flash_alltoall_t;

/* MPIX_Ialltoall(v)_compute. */
int mca_coll_flash_start_alltoall(mca_coll_flash_module_t *module, mca_coll_flash_ticket_t ticket,
                                  const mca_coll_flash_alltoall_t *arguments,
                                  const mca_coll_flash_compute_t *compute,
                                  ompi_request_t **request);
/* Whether its ranks are few enough for each to exchange with all others. */
bool mca_coll_flash_may_exchange(ompi_communicator_t *comm);
/* Why there cannot be one. */
mca_coll_flash_obstacle_t mca_coll_flash_alltoall_obstacle(ompi_communicator_t *comm);
/* MPI_SUCCESS, or MPI_ERR_TRUNCATE: what this rank has for itself does not fit. */
int mca_coll_flash_alltoall_fits(const mca_coll_flash_alltoall_t *arguments,
                                 ompi_communicator_t *comm);

/* The arguments of a call, as MPI gives them. */
typedef struct mca_coll_flash_arguments {
    const void *sendbuf;
    flash_count_t sendcount;
    MPI_Datatype sendtype; /* not used in place, nor by reductions */
    void *recvbuf;
    flash_count_t recvcount;
    flash_counts_t recvcounts; /* NULL: equal blocks of recvcount */
    flash_displs_t displs;
    MPI_Datatype recvtype;
    MPI_Op op; /* NULL: an allgather */
} mca_coll_flash_arguments_t;

/* Where the first data of a receive side begins; NULL: there is none. */
const void *mca_coll_flash_first_data(const void *recvbuf, flash_count_t recvcount,
                                      flash_counts_t recvcounts, flash_displs_t displs,
                                      MPI_Datatype recvtype, int blocks);
/*
 * Before a call goes to another module, or a board: puts copies in host memory in the place of
 * buffers in a device's, where that would touch them. NULL: there are none. MPI_SUCCESS, or an error
 * that is explained; then the call is not made. `order`: what comes first, or NULL.
 */
int mca_coll_flash_mirror(mca_coll_flash_arguments_t *arguments, ompi_communicator_t *comm,
                          mca_coll_flash_path_t path, const struct flash_stager_order *order,
                          struct flash_fallback **mirrored);
/* After it: *request stands for the call and for copying its result back. Returns `error`. */
int mca_coll_flash_mirror_started(struct flash_fallback *mirrored, int error,
                                  ompi_request_t **request);

/* Starts a plain call on one of flash's paths, or passes it on to the module below. */
typedef int mca_coll_flash_start_fn(mca_coll_flash_module_t *module, mca_coll_flash_ticket_t ticket,
                                    const mca_coll_flash_arguments_t *arguments,
                                    mca_coll_flash_path_t path, ompi_request_t **request);
typedef int mca_coll_flash_pass_on_fn(mca_coll_flash_module_t *module,
                                      const mca_coll_flash_arguments_t *arguments,
                                      ompi_request_t **request);
/*
 * A plain call whose path only the processor's memory can take: with copies, as above, in the place of
 * buffers in a device's memory, which stand in *arguments from then on.
 */
int mca_coll_flash_start_mirrored(mca_coll_flash_module_t *module, flash_kind_t kind,
                                  mca_coll_flash_arguments_t *arguments, mca_coll_flash_path_t path,
                                  mca_coll_flash_start_fn *start,
                                  mca_coll_flash_pass_on_fn *pass_on, ompi_request_t **request);

/* Once, before threads make persistent requests at a time. */
void mca_coll_flash_persistent_init(void);
/* Why the next persistent request cannot be a ring's. */
mca_coll_flash_obstacle_t mca_coll_flash_persistent_obstacle(const mca_coll_flash_module_t *module);
/* An inactive request, each start of which calls one of the functions above. */
int mca_coll_flash_persistent_new(mca_coll_flash_module_t *module,
                                  const mca_coll_flash_arguments_t *arguments,
                                  ompi_request_t **request);
/* Has another module make such a request, by a function like this one. */
typedef int mca_coll_flash_init_fn(mca_coll_flash_module_t *module,
                                   const mca_coll_flash_arguments_t *arguments,
                                   struct ompi_info_t *info, ompi_request_t **request);
/*
 * A request of the module below, by `init`; of buffers in a device's memory, which that would touch,
 * one that copies them in each of its rounds.
 */
int mca_coll_flash_persistent_below(mca_coll_flash_module_t *module,
                                    const mca_coll_flash_arguments_t *arguments,
                                    mca_coll_flash_init_fn *init, struct ompi_info_t *info,
                                    ompi_request_t **request);
/* Of a persistent request, one of whose rounds has come to its end. */
void mca_coll_flash_persistent_complete(ompi_request_t *request, int error);

/* No gap in an element or between two: a ring carries all that lies in their extent. */
bool mca_coll_flash_is_solid(MPI_Datatype type);
/* Whether a callback may write an allgather's own block where it is sent from. */
bool mca_coll_flash_may_write_own(const void *sendbuf, MPI_Datatype sendtype,
                                  MPI_Datatype recvtype);

/* Why a ring cannot reduce with `op` on `datatype`. */
mca_coll_flash_obstacle_t mca_coll_flash_reduce_obstacle(MPI_Datatype datatype, MPI_Op op);

/* The functions that the module takes over. */
int mca_coll_flash_iallgather(const void *sendbuf, flash_count_t sendcount, MPI_Datatype sendtype,
                              void *recvbuf, flash_count_t recvcount, MPI_Datatype recvtype,
                              ompi_communicator_t *comm, ompi_request_t **request,
                              mca_coll_base_module_t *module);
int mca_coll_flash_iallgatherv(const void *sendbuf, flash_count_t sendcount, MPI_Datatype sendtype,
                               void *recvbuf, flash_counts_t recvcounts, flash_displs_t displs,
                               MPI_Datatype recvtype, ompi_communicator_t *comm,
                               ompi_request_t **request, mca_coll_base_module_t *module);
int mca_coll_flash_ireduce_scatter(const void *sendbuf, void *recvbuf, flash_counts_t recvcounts,
                                   MPI_Datatype datatype, MPI_Op op, ompi_communicator_t *comm,
                                   ompi_request_t **request, mca_coll_base_module_t *module);
int mca_coll_flash_ireduce_scatter_block(const void *sendbuf, void *recvbuf,
                                         flash_count_t recvcount, MPI_Datatype datatype, MPI_Op op,
                                         ompi_communicator_t *comm, ompi_request_t **request,
                                         mca_coll_base_module_t *module);
int mca_coll_flash_allgather_init(const void *sendbuf, flash_count_t sendcount,
                                  MPI_Datatype sendtype, void *recvbuf, flash_count_t recvcount,
                                  MPI_Datatype recvtype, ompi_communicator_t *comm,
                                  struct ompi_info_t *info, ompi_request_t **request,
                                  mca_coll_base_module_t *module);
int mca_coll_flash_allgatherv_init(const void *sendbuf, flash_count_t sendcount,
                                   MPI_Datatype sendtype, void *recvbuf, flash_counts_t recvcounts,
                                   flash_displs_t displs, MPI_Datatype recvtype,
                                   ompi_communicator_t *comm, struct ompi_info_t *info,
                                   ompi_request_t **request, mca_coll_base_module_t *module);
int mca_coll_flash_reduce_scatter_init(const void *sendbuf, void *recvbuf,
                                       flash_counts_t recvcounts, MPI_Datatype datatype, MPI_Op op,
                                       ompi_communicator_t *comm, struct ompi_info_t *info,
                                       ompi_request_t **request, mca_coll_base_module_t *module);
int mca_coll_flash_reduce_scatter_block_init(const void *sendbuf, void *recvbuf,
                                             flash_count_t recvcount, MPI_Datatype datatype,
                                             MPI_Op op, ompi_communicator_t *comm,
                                             struct ompi_info_t *info, ompi_request_t **request,
                                             mca_coll_base_module_t *module);

#if FLASH_LARGE_COUNTS
/* In place of these, see coll_flash_ompi6.c. */
#define FLASH_LARGE(name) \
    __typeof__(*(mca_coll_base_module_##name##_fn_t) NULL) mca_coll_flash_large_##name
FLASH_LARGE(iallgather);
FLASH_LARGE(iallgatherv);
FLASH_LARGE(ireduce_scatter);
FLASH_LARGE(ireduce_scatter_block);
FLASH_LARGE(allgather_init);
FLASH_LARGE(allgatherv_init);
FLASH_LARGE(reduce_scatter_init);
FLASH_LARGE(reduce_scatter_block_init);
int mca_coll_flash_give_back(mca_coll_base_module_t *module, ompi_communicator_t *comm);
#endif

#endif /* COLL_FLASH_OPERATION_H */
