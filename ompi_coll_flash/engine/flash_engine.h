/*
 * flash_engine.h: the ring engine. Knows no MPI and no UCX.
 *
 * An operation is one Flash-AG, say, on one rank: a state machine over a schedule
 * (flash_schedule.h) that turns arrivals into departures. Each segment goes its way through
 *
 *   AG   [receive] -> [send on] -> done; meanwhile the own block is copied to its place
 *   RS   [receive] -> [wait for the local contribution] -> [combine] -> [send on] -> done
 *   allreduce: as RS, and once all is added, as AG
 *   A2A  [wait for the local contribution] -> [send] -> done, and [receive] -> done
 *   pairwise reduce-scatter: as A2A, but [receive] -> [wait for its turn] -> [combine] -> done
 *   broadcast: as AG, and reduce: as RS, in one step
 *   gather, scatter: as A2A; the root has one of the two for each other rank, they have the other
 *
 * where the first step of a ring has nothing to receive and the last nothing to send, and the same
 * is so of the first and the last rank of a chain. A window of segments is under way at a time,
 * receives posted ahead.
 *
 * The engine only moves data by itself. Everything that takes time is *work* that it hands out:
 * copies to any thread, combining too, or to application threads alone where it is code of the
 * user's, the user's callbacks to application threads or to one that is there for them. Work runs
 * outside the lock, so that data keeps moving under it:
 *
 *   while (flash_engine_take(engine, kinds, &work)) {
 *       unlock; status = flash_work_run(&work); lock;
 *       flash_engine_finish(&work, status);
 *   }
 *
 * Locking: the caller holds one lock around every function here but flash_work_run(), and around
 * all of the transport's functions. The engine has no thread and no lock of its own; every field
 * of its structures is ordered by that lock.
 *
 * Errors: an operation that fails still carries the ring through, so that no other rank waits for
 * it; its status says what went wrong first. What it can no longer compute it sends marked as
 * poisoned, with the number of the rank that failed, and ranks whose result would contain that end
 * with FLASH_ERR_PEER. A neighbour that is lost fails all that is exchanged with it
 * (flash_transport.h), so that the ring comes to its end without it.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef FLASH_ENGINE_H
#define FLASH_ENGINE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/flash_flow.h"
#include "engine/flash_meter.h"
#include "engine/flash_schedule.h"
#include "engine/flash_trace.h"
#include "engine/flash_transport.h"

typedef struct flash_engine flash_engine_t;
typedef struct flash_op flash_op_t;

/*
 * Low bits of a message's tag, filled in by the engine: step, segment, and two marks that
 * matching ignores. The bits above FLASH_TAG_SHIFT name the operation and come from the caller.
 * Steps and segments are counted modulo their width: receives are posted in order, and equal tags
 * match in order.
 */
#define FLASH_TAG_LAST      UINT64_C(1) /* the last segment of its step */
#define FLASH_TAG_POISONED  UINT64_C(2) /* the content is not to be trusted */
#define FLASH_TAG_MARKS     (FLASH_TAG_LAST | FLASH_TAG_POISONED)
#define FLASH_TAG_SEG_BITS  11
#define FLASH_TAG_STEP_BITS 12
#define FLASH_TAG_SHIFT     (2 + FLASH_TAG_SEG_BITS + FLASH_TAG_STEP_BITS)

/* What a callback is called for. Lengths in elements. */
typedef struct flash_piece {
    uint32_t block, piece, pieces;
    ptrdiff_t displ; /* where the block begins */
    size_t offset, count;
    void *data;
    bool produces;  /* for `produce`; else for `consume` */
    bool on_device; /* in flash_op_params_t's `pieces` */
    flash_op_t *op; /* with `number`, for flash_engine_end_pending() */
    uint64_t number;
} flash_piece_t;

/*
 * FLASH_OK, an MPI error code of the user's, or FLASH_PENDING: the piece is not done, the callback
 * of the next one may be called, and flash_engine_end_pending() will say when it is.
 */
typedef int flash_callback_fn(void *arg, const flash_piece_t *piece);
#define FLASH_PENDING     INT_MIN
#define FLASH_MAX_PENDING 64 /* then callbacks wait for the oldest of an operation's */

/* A piece's place in a mask: from the oldest that is not done on there are FLASH_MAX_PENDING. */
static inline uint64_t flash_pending_bit(uint64_t number)
{
    return UINT64_C(1) << number % FLASH_MAX_PENDING;
}

/* Who exchanges with all has neighbours to the left and to the right at each distance. */
typedef struct flash_pair {
    flash_peer_t *left, *right;
    uint64_t recv_tag, send_tag; /* to be completed by the parameters' */
} flash_pair_t;

/* inout[k] = in[k] op inout[k] for `count` elements. FLASH_OK or an MPI error code. */
typedef int flash_combine_fn(void *arg, const void *in, void *inout, size_t count);

struct flash_work;
typedef int flash_begin_fn(void *arg, const struct flash_work *work);
#define FLASH_LATER (INT_MIN + 1)

typedef struct flash_op_params {
    flash_schedule_t schedule; /* copied; its arrays must outlive the operation */
    size_t element;            /* bytes of an element */
    flash_peer_t *left, *right;
    /*
     * What names the operation in the messages from the left and in those to the right: each
     * rank's send_tag is its right neighbour's recv_tag. The low FLASH_TAG_SHIFT bits are 0.
     */
    uint64_t recv_tag, send_tag;
    /*
     * A2A, pairwise: the neighbours at distances 1 to nranks - 1, in place of `left` and `right`;
     * the caller's. The tags are completed by the bits of `recv_tag` and `send_tag`. Peers need be
     * there that a step exchanges with: those that have been given are not written again, the others
     * may be while the operation runs.
     */
    const flash_pair_t *pairs;
    /*
     * Segments under way at a time, at least. The engine takes more where the ring needs it:
     * one block's segments and one, so that a rank that cannot send can still receive and the
     * ring never locks up; twice that with a callback, so that one block arrives while the sums
     * of the one before it leave. A2A, pairwise: a block's segments each way. A chain never locks
     * up, since its last rank waits for nobody to take anything: it has two, of which one comes
     * while the other leaves. Nor does a gather or a scatter: others than the root have two, too. The
     * root has two blocks' segments, so that a rank which is late keeps one other rank's block at
     * least from waiting for it.
     */
    uint32_t depth;
    uint32_t sends; /* messages on their way to the right at a time; 0: no limit */
    flash_flow_t
        *flow;      /* whose limit holds beside that, and which outlives the operation; or NULL */
    bool no_wakeup; /* until its application waits for it: see flash_progress_start_op() */

    /*
     * The transport reads and writes no memory of the user's: each segment of the input is copied
     * to the scratch before it is used, and what arrives is copied from there to the output.
     */
    bool stage_in, stage_out;
    /*
     * Of a reduction, both of them staged: the sums are made by `begin`, without copying what is
     * local first. Not of a pairwise one.
     */
    bool combine_on_device;
    /*
     * Staged: at most so many bytes of scratch, but three segments at least; 0: what the window
     * takes. With less than that the operation is *bounded*: what has arrived and is to be sent on
     * stays in device memory until its turn comes, in the output or `store` (flash_op_bounce.c).
     * Not of a pairwise one, nor with device scratch.
     */
    size_t bound;
    void *store;   /* then: of flash_op_store_size() bytes, of the device */
    void *scratch; /* of flash_op_scratch_size() bytes; NULL: ordinary memory of the engine's */
    /* A device's, which the transport reaches, and the processor does not. Not of a pairwise one.
       */
    bool scratch_on_device;
    /* Then: of flash_op_failed_ranks_size() bytes that both reach. */
    uint32_t *failed_ranks;
    /* Of a reduction that produces, staged in: where to, of flash_op_pieces_size() bytes. */
    void *pieces;
    /*
     * Begins works that copy, and sums in device memory, without the lock; NULL: whoever takes one
     * copies by itself. Returns FLASH_LATER if flash_engine_finish() will be called for it, before
     * that or after; else as flash_work_run().
     */
    flash_begin_fn *begin;
    void *begin_arg;

    /*
     * AG: the own block; the engine copies it to its place in the output unless it lies there.
     * RS, allreduce: the contributions to all blocks, placed as blocks.displs says; not used if
     * they are produced.
     * A2A: the base of all blocks that go out, placed as out.displs says; the own one is copied.
     * Broadcast: the block, which is the output, too. Reduce: the contribution. Gather: as AG.
     * Scatter: the base of all blocks, placed as blocks.displs says, at the root alone, which copies
     * its own block unless the output is that.
     */
    const void *input;
    /* AG, broadcast: it is no good; the other ranks are told so, and their operations fail. */
    bool poisoned;
    /*
     * AG, allreduce, A2A: the base of all blocks, placed as blocks.displs says.
     * RS: the own block's result. Broadcast: the block. Reduce: the result, at the root alone.
     * Gather: as AG, at the root alone. Scatter: the own block.
     * Must not overlap the input, but for AG's, a gather's or a scatter's own block, a broadcast's,
     * and the result of an allreduce or a reduce without callbacks, which may be the input.
     */
    void *output;

    flash_combine_fn *combine; /* of a reduction */
    void *combine_arg;
    /*
     * Pairwise: sums are made in elements of so many bytes, which `widen` makes of what arrives
     * first and `narrow` ends; then `combine` adds to them what is not wide. 0: in elements as they
     * are.
     */
    size_t wide;
    flash_combine_fn *widen, *narrow;
    bool combine_is_users; /* for application threads alone */

    /*
     * Called for each piece that this rank contributes (AG: of its own block), in the order of
     * FLASH_PRODUCED, and ahead of all calls of `consume`: writes it to piece->data. AG, A2A: in
     * the input. RS, allreduce: in the engine's memory, or in `pieces`. NULL for none.
     */
    flash_callback_fn *produce;
    void *produce_arg;
    /*
     * Called for each piece of the results (RS: of the own block), in the order of FLASH_CONSUMED,
     * once it is there, and where it is this rank's, produced. RS: may change it. NULL for none.
     */
    flash_callback_fn *consume;
    void *consume_arg;

    bool on_callback_thread; /* its callbacks are FLASH_WORK_CALLBACK_ON_THREAD */

    void *user; /* for flash_op_user() */
} flash_op_params_t;

/* Makes an engine over `transport`, which outlives it. NULL if there is no memory. */
flash_engine_t *flash_engine_create(flash_transport_t *transport);
/* Frees it. No operation may exist, and the transport must be gone if it has lost a peer. */
void flash_engine_destroy(flash_engine_t *engine);

/* Up to how many bytes an operation's scratch memory is kept for the next ones. Any time, under the
 * lock. */
void flash_engine_keep(flash_engine_t *engine, size_t bytes);

/* Notes in `trace` all that operations do; it outlives the engine. Before the first of them. */
void flash_engine_set_trace(flash_engine_t *engine, flash_trace_t *trace);
/* NULL for none. */
flash_trace_t *flash_engine_trace(const flash_engine_t *engine);

/*
 * Whether what leaves is copied from the input to the scratch first, or what comes is copied from
 * there to the output. The root of a gather sends nothing, and its own block is copied without the
 * scratch; the root of a scatter receives nothing.
 */
bool flash_op_stages(const flash_op_params_t *params, bool in);
/* Bytes of scratch memory that an operation will use. */
size_t flash_op_scratch_size(const flash_op_params_t *params);
/* Bytes of device memory beside that: sums of a bounded reduction that wait to be sent. */
size_t flash_op_store_size(const flash_op_params_t *params);
/* Of a reduction that produces: bytes that it will write to, of the scratch or apart. */
size_t flash_op_pieces_size(const flash_op_params_t *params);
/* Bytes for what poisoned messages say, where the scratch is in device memory. */
size_t flash_op_failed_ranks_size(const flash_op_params_t *params);
/* Allocates an operation, all the memory it will need included. FLASH_ERR_NO_MEMORY or FLASH_OK. */
int flash_op_create(flash_engine_t *engine, const flash_op_params_t *params, flash_op_t **op);
/* Hands it to the engine: the next flash_engine_progress() posts the first receives and sends. */
void flash_op_start(flash_op_t *op);
/* As its parameters said. */
bool flash_op_needs_no_wakeup(const flash_op_t *op);
/*
 * Of one that has completed: whether it has a root, and the transport may still have some of what this rank
 * has sent. Of others that is mostly seen out while they wait for what they receive.
 */
bool flash_op_has_tail(const flash_op_t *op);
/*
 * Takes part in an operation that this rank cannot perform, with memory set aside for it, so that
 * the others need not wait: their operations end with FLASH_ERR_PEER and name this rank. Of the
 * parameters it uses the kind, the ranks, the steps taken, the neighbours, the tags and the user:
 * with one, it completes like any other operation, with FLASH_ERR_NO_MEMORY; without, nothing is reported. The
 * operation's tags are not to be used again but for another refusal by this rank, once it has
 * ended: a neighbour may still have receives for the messages that did not come. False if
 * FLASH_REFUSALS are under way and there is no memory for another: then the others wait.
 */
bool flash_engine_refuse(flash_engine_t *engine, const flash_op_params_t *params);
#define FLASH_REFUSALS 32
void *flash_op_user(const flash_op_t *op);
/* Bytes of an element. */
size_t flash_op_element(const flash_op_t *op);
/* Bytes that it holds. */
size_t flash_op_memory(const flash_op_t *op);
/* Of a completed operation: FLASH_OK, one of FLASH_ERR_*, or an MPI error code of a callback. */
int flash_op_status(const flash_op_t *op);
/* Of one that failed: the rank, of the schedule, that failed; FLASH_NOBODY if unknown. */
uint32_t flash_op_failed_rank(const flash_op_t *op);
#define FLASH_NOBODY UINT32_MAX
/*
 * Whether a lost peer's messages may still read and write its memory, the user's included, until
 * the transport is gone.
 */
bool flash_op_has_orphans(const flash_op_t *op);
/* Frees an operation that is completed, or was never started. */
void flash_op_destroy(flash_op_t *op);

/* Progresses the transport and acts on what happened. Returns 0 if nothing did. */
unsigned flash_engine_progress(flash_engine_t *engine);

/* Started operations that have not completed. */
size_t flash_engine_active(const flash_engine_t *engine);
/* Whether none runs, refusals included. */
bool flash_engine_is_idle(const flash_engine_t *engine);
/* Whether an operation has ended, refusals included, since this was last asked. */
bool flash_engine_take_ended(flash_engine_t *engine);
/* How long that was so, once it is switched on. */
flash_meter_t *flash_engine_meter(flash_engine_t *engine);
/* Takes the oldest operation that completed since; NULL if none has. */
flash_op_t *flash_engine_completed(flash_engine_t *engine);

/* An operation on which nothing has happened for a while, and the message that it waits for. */
typedef struct flash_silence {
    void *user;       /* the operation's */
    uint32_t watches; /* how many in a row found it like this */
    bool not_oldest;  /* the message is not what keeps the operation, but one behind that */
    flash_peer_t *peer;
    uint32_t rank;                 /* of the peer in the ring */
    bool sending;                  /* the peer is to accept a message; else, to send one */
    uint32_t step, block, segment; /* of the message */
    uint32_t steps;                /* of the operation */
} flash_silence_t;

/*
 * Finds neighbours that operations have waited for, and for nothing else, since the last watch: the
 * oldest operation of each. Behind them, those that later messages of these operations wait for:
 * who has gone may be one of them, and all others alive. To be called from time to time. Returns
 * how many there are, at most `most`.
 */
size_t flash_engine_watch(flash_engine_t *engine, flash_silence_t *silences, size_t most);

enum flash_work_kind {
    FLASH_WORK_COMBINE = 1,       /* for any thread */
    FLASH_WORK_CALLBACK = 2,      /* for application threads, never inside another callback */
    FLASH_WORK_USERS_COMBINE = 4, /* for application threads */
    FLASH_WORK_COPY = 8,      /* the own block, a segment's length at a time: nobody waits for it */
    FLASH_WORK_STAGE_IN = 16, /* a segment, from the user's memory to the scratch */
    /* Or back. Of an operation that is bounded, either way: what the output has is staged out, what
       the input or the store has is staged in. */
    FLASH_WORK_STAGE_OUT = 32,
    FLASH_WORK_STAGE = FLASH_WORK_STAGE_IN | FLASH_WORK_STAGE_OUT,
    FLASH_WORK_CALLBACK_ON_THREAD = 64, /* for the thread that is there for it */
    FLASH_WORK_CALLBACKS = FLASH_WORK_CALLBACK | FLASH_WORK_CALLBACK_ON_THREAD
};

/* Something to run outside the lock. The fields are the engine's. */
typedef struct flash_work {
    enum flash_work_kind kind;
    flash_op_t *op;
    struct flash_slot *slot; /* combine, stage: the segment */
    const void *in;          /* combine, copy, stage: what to add or copy */
    void *inout;             /* where to */
    void *out;               /* combine, device or ending: where the sum goes; else as `inout` */
    bool begins, ends;       /* combine, of wide elements: the first, the last */
    size_t count;            /* elements to add */
    size_t size;             /* bytes to copy */
    flash_piece_t piece;     /* callback: its argument */
    uint64_t taken_at;       /* of flash_trace_clock() */
} flash_work_t;

/*
 * Takes a piece of work of one of `kinds` (a mask), if there is any: staging first, combining
 * before callbacks, copies last.
 */
bool flash_engine_take(flash_engine_t *engine, unsigned kinds, flash_work_t *work);
/* Whether a callback of that kind is to be had, or was until a moment ago. */
bool flash_engine_calls_back(const flash_engine_t *engine, enum flash_work_kind kind);
/*
 * Runs it, without the lock. Returns its status, for flash_engine_finish(), or FLASH_LATER: then it
 * was begun, in the way of the parameters, and the operation may be gone.
 */
int flash_work_run(const flash_work_t *work);
/* Takes note of it; what follows from it happens in the next flash_engine_progress(). */
void flash_engine_finish(const flash_work_t *work, int status);
/*
 * A piece of a callback that returned FLASH_PENDING, or will, is done: FLASH_OK or an MPI error
 * code. False if it was not pending. The operation may be gone when the lock is.
 */
bool flash_engine_end_pending(flash_op_t *op, uint64_t number, int status);
/*
 * Without the lock: whether that piece is pending, and nobody has claimed it before. Who has, and
 * nobody else, says later that it is done. The operation is there until then.
 */
bool flash_engine_claim_pending(flash_op_t *op, uint64_t number);

#endif /* FLASH_ENGINE_H */
