/*
 * flash_op.h: the engine's own view of an operation and its segments.
 *
 * The files that share it, each of which calls those before it alone, but for three pairs:
 *
 *   flash_cursor.c         the order of an operation's segments and pieces
 *   flash_op_size.c        how many segments are under way, and how long they are
 *   flash_op_state.c       what changes without consequences
 *   flash_op_bounce.c      how little pinned memory does
 *   flash_op_places.c      where its data is; with flash_op_calls.c, its callbacks
 *   flash_queue.c          which operations have something to do
 *   flash_flow.c           what the operations of a communicator have in flight together
 *   flash_slot_tags.c      the names of messages; flash_slot_word.c, which wait for their receiver
 *   flash_slot_failure.c   what becomes of one whose content is lost
 *   flash_slot.c           its path; with flash_slot_staging.c, its copies
 *   flash_op.c             an operation's memory, beginning and end
 *   flash_work.c, flash_engine_watch.c, flash_engine.c with flash_refuse.c: all operations
 *
 * All of it but `claims` is ordered by the engine's lock, see flash_engine.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef FLASH_OP_H
#define FLASH_OP_H

#include "engine/flash_engine.h"
#include "engine/flash_flow.h"
#include "engine/flash_pool.h"
#include "engine/flash_trace.h"

#include <stdatomic.h>
#include <sys/queue.h>

typedef enum flash_slot_state {
    FLASH_SLOT_DONE,      /* free, or until the slots before it are done too */
    FLASH_SLOT_RECEIVING, /* the receive is posted */
    FLASH_SLOT_WAITING,   /* for the local contribution; in op->waiting */
    FLASH_SLOT_COMBINING, /* RS: in op->combining, or taken as work */
    FLASH_SLOT_KEPT,      /* bounded: complete at its home, or local; to be copied, then sent */
    FLASH_SLOT_DEPARTING, /* ready to be sent */
    FLASH_SLOT_SENDING    /* the send is posted */
} flash_slot_state_t;

/* A copy between the user's memory and the scratch, beside all else that happens to a segment. */
typedef enum flash_staging {
    FLASH_STAGING_NONE,
    FLASH_STAGING_IN, /* in op->staging, or taken as work */
    FLASH_STAGING_OUT,
    FLASH_STAGING_FAILED_RANK, /* what a poisoned message says, from device scratch; no more goes on */
    FLASH_STAGING_KEEP,  /* bounded: from where it arrived to its home; nothing else goes on */
    FLASH_STAGING_DEPART /* bounded: from its home to where it is sent from; likewise */
} flash_staging_t;

/*
 * What a segment borrows pinned memory for, of an operation that is bounded; apart from each other.
 */
typedef enum flash_bounce {
    FLASH_BOUNCE_ARRIVAL,   /* to be received to */
    FLASH_BOUNCE_DEPARTURE, /* to be sent from */
    FLASH_BOUNCE_LOCAL,     /* what the host adds to the segment */
    FLASH_BOUNCES
} flash_bounce_t;

/* One segment under way. Slots form a ring buffer: segment number n lives in slot n % depth. */
typedef struct flash_slot {
    flash_transfer_t transfer; /* the receive, later the send; first, so that it is the slot */
    flash_op_t *op;
    struct flash_slot *next; /* in whichever of the operation's other queues the slot is */
    STAILQ_ENTRY(flash_slot) next_staging;
    flash_slot_state_t state;
    uint32_t step, block, segment;
    uint32_t overrun; /* messages beyond the step's expected last one */
    flash_staging_t staging;
    bool staged_in;      /* the local contribution is in the scratch */
    flash_step_t way;    /* of its step */
    bool posted;         /* the transfer is under way */
    bool beginning;      /* and the transport's function that begins it has not returned */
    uint64_t posted_at;  /* of flash_trace_clock() */
    flash_range_t range; /* of the block */
    uint64_t piece;      /* of a contribution: its piece, counted over the whole operation */
    bool last_of_step, last_of_piece;
    size_t before;        /* of a send that waits for the word: bytes that leave before it */
    bool poisoned;        /* the content is lost: what is sent is the failed rank, and marked */
    bool sent_again;      /* the first send failed */
    uint32_t failed_rank; /* of a poisoned one: the rank whose fault it is, or FLASH_NOBODY */
    bool ready; /* a result is there; of another one, the local contribution is used up, if any */
    char *data; /* where it arrives and, but of one that adds, is added to: its place in the output,
                   or the scratch; at last, where the result is */
    char *local; /* the local contribution */
    /* Bounded: the device memory that it stays in while it waits to be sent, or is sent from; NULL:
       it is not in device memory. */
    char *home;
    uint32_t bounce[FLASH_BOUNCES]; /* what it has borrowed: a number from 1 on; 0: nothing */
    int status;                     /* of the transfer that is done, with its tag and length */
    uint64_t tag;
    size_t length;
} flash_slot_t;

/* Of a segment to which contributions are added, one after another, in the order of the ring. */
typedef struct flash_sum {
    uint32_t added;
    flash_slot_t *early; /* those that are there before their turn, in any order */
} flash_sum_t;

/* Numbers in an operation's `bounces`. */
typedef struct flash_stack {
    uint32_t first, count;
} flash_stack_t;

typedef struct flash_slot_queue {
    flash_slot_t *head, **tail;
} flash_slot_queue_t;

/* A place in one of the orders in which an operation handles segments or pieces. */
typedef struct flash_cursor {
    flash_walk_t walk;
    uint32_t at;    /* the walk's length: past the end */
    uint32_t index; /* segment or piece of the block */
    uint32_t block;
    flash_split_t split; /* of the block */
} flash_cursor_t;

struct flash_op {
    flash_engine_t *engine;
    flash_op_params_t params;
    flash_op_t *next_running;   /* in engine->running */
    flash_op_t *next_completed; /* in engine->completed */
    flash_op_t *next_dirty;     /* in engine->dirty */
    flash_op_t *next_combine;   /* in engine->combine, ->users_combine or ->copy */
    flash_op_t *next_callback;  /* in engine->callback or ->callback_on_thread */
    flash_op_t *next_staging;   /* in engine->staging */
    bool in_running, in_dirty, in_combine, in_callback, in_staging, in_completed;

    uint32_t depth;
    flash_slot_t *slots;
    /* Of a reduction, or staged: a segment for each slot. Of a reduction, staged in: one more for
       each, for what is local. If it produces, else: the produced pieces. Then the sum. */
    void *scratch;
    size_t scratch_size;
    size_t segment_bytes, piece_bytes; /* strides in the scratch */
    bool bounded;                      /* flash_op_is_bounded(), of its parameters */
    uint32_t *bounces;                 /* numbers of the scratch's segments: FLASH_BOUNCES stacks */
    flash_stack_t free_bounces[FLASH_BOUNCES]; /* in there: what nobody has borrowed */
    void *near; /* bounded: memory that the processor alone has to reach */
    size_t near_size;
    char *store; /* bounded, of a reduction: a segment for each slot, for sums that are sent on */
    /* Of a pairwise reduce-scatter: where what arrives is added up; NULL: in the output. */
    char *sum;
    flash_sum_t *sums;        /* of each segment of the own block */
    flash_sum_t sum_one;      /* of a refusal: for its one empty segment */
    bool sum_poisoned;        /* something that was to be added is lost */
    uint32_t sum_failed_rank; /* and whose fault that is */

    flash_cursor_t open;      /* the next segment to put under way */
    uint64_t open_piece;      /* pieces of contributions in the steps before */
    bool open_step_ended;     /* the step it is in has fewer messages than expected */
    uint64_t opened, retired; /* segments */
    uint64_t next_stage;      /* segments before the first one that may yet have to be staged in */
    uint64_t next_departure;  /* bounded: segments before the first one that is not copied to where
                                 it is sent from, if it has to be */
    uint64_t next_send;       /* segments before the first one that is not sent */
    uint32_t sending, heard;  /* sends under way; the step, and one, of the latest word */
    size_t leaving;           /* bytes of those that leave, since the last that waits for it */
    size_t bytes_in_flight;   /* of these, as the flow counts them */
    bool blocked;             /* by older operations of the flow */
    bool left;                /* a send was done before its receiver matched it */
    TAILQ_ENTRY(flash_op) next_in_flow;
    uint64_t ready_slots; /* segments before the first one that is not ready */

    uint64_t ready;           /* pieces whose segments are all ready, the own ones of an
                                 allgather, an all-to-all or a broadcast included */
    flash_cursor_t produce;   /* the next piece to produce */
    flash_cursor_t consume;   /* and to consume */
    uint64_t produced_pieces; /* in all, with a callback for them */
    uint64_t consumed_pieces;
    uint64_t other_pieces; /* of a reduction: of all blocks but the own one */
    uint64_t begun;        /* callbacks, of both kinds: see flash_op_calls.c */
    uint64_t called;       /* callbacks before the first one that is not done */
    uint64_t undone, done; /* pieces from there on, a bit for each: see flash_pending_bit() */
    /* Not ordered by the lock: a piece's number and one, from before its callback is made until
       whoever completes it takes it away; 0: none. In the place of flash_pending_bit(). */
    _Atomic uint64_t claims[FLASH_MAX_PENDING];
    uint32_t produce_buffers; /* of a reduction: pieces that may be produced and not used up */
    bool calling;             /* a callback is taken as work */
    bool stopped;             /* no further callbacks */

    flash_slot_queue_t events;                            /* transfers done, not yet acted on */
    flash_slot_queue_t waiting;                           /* for the local contribution */
    flash_slot_queue_t combining;                         /* for a thread that combines */
    STAILQ_HEAD(flash_staging_queue, flash_slot) staging; /* for a thread that copies */
    size_t uncopied;  /* elements at the own block's end that nobody has taken to its place */
    unsigned held;    /* works taken and not finished */
    bool refused;     /* one of engine->refusals, and in use: what it sends is poisoned */
    bool has_orphans; /* a lost peer's message may still touch its memory, see flash_op_destroy() */
    int status;
    uint32_t failed_rank; /* for the status */
    uint64_t events_had;  /* how often something happened to it */
    uint64_t events_seen; /* by the last watch */
    uint32_t watches;     /* since something happened */
    uint64_t number;      /* among the engine's operations */
    uint64_t started_at;  /* of flash_trace_clock() */
};

typedef struct flash_op_queue {
    flash_op_t *head, **tail;
} flash_op_queue_t;
typedef struct flash_refusal flash_refusal_t;

struct flash_engine {
    flash_transport_t *transport;
    flash_pool_t pool;
    flash_trace_t *trace; /* NULL for none */
    uint64_t started;     /* operations, ever */
    size_t active;        /* operations that are running */
    bool ended;           /* an operation has, since flash_engine_take_ended() */
    flash_meter_t meter;
    flash_op_queue_t running;            /* started and not completed */
    flash_op_t *orphaned;                /* destroyed by their users, through next_running */
    flash_op_queue_t dirty;              /* with events */
    flash_op_queue_t combine;            /* with segments to combine */
    flash_op_queue_t users_combine;      /* likewise, by the user's code */
    flash_op_queue_t copy;               /* with a part of the own block to copy */
    flash_op_queue_t callback;           /* with a piece to call back for */
    flash_op_queue_t callback_on_thread; /* likewise, in the callback thread */
    flash_op_queue_t staging;            /* with a segment to copy to or from the scratch */
    flash_op_queue_t completed;          /* not yet fetched */
    flash_refusal_t *refusals;           /* FLASH_REFUSALS of them, or more */
};

/* flash_queue.c */
void flash_engine_touch(flash_op_t *op);                       /* the operation has events */
void flash_engine_offer(flash_op_t *op);                       /* the operation may have work */
void flash_op_note_ready(flash_op_t *op);                      /* after slot->ready became true */
void flash_op_added(flash_op_t *op, const flash_slot_t *slot); /* the next one may add */
/* With a trace: notes a span that ends now, of an operation's; the times are filled in. */
void flash_engine_note(const flash_op_t *op, uint64_t begin, flash_trace_span_t span);

/* flash_refuse.c */
/* NULL if there is no memory. */
flash_refusal_t *flash_refusals_create(flash_transport_t *transport);
void flash_refusals_free(flash_refusal_t *refusals);

/* flash_cursor.c */
bool flash_cursor_at_end(const flash_op_t *op, const flash_cursor_t *cursor);
void flash_cursor_init(const flash_op_t *op, flash_cursor_t *cursor, flash_walk_t walk);
void flash_cursor_next_block(const flash_op_t *op, flash_cursor_t *cursor);
/* Of a cursor over pieces: moves past empty blocks, which have none. */
void flash_cursor_find_piece(const flash_op_t *op, flash_cursor_t *cursor);

/* flash_op_state.c */
uint32_t flash_op_own_rank(const flash_op_t *op);
void flash_op_fail(flash_op_t *op, int status, uint32_t failed_rank);
void flash_slot_queue_init(flash_slot_queue_t *queue);
void flash_slot_queue_push(flash_slot_queue_t *queue, flash_slot_t *slot);
flash_slot_t *flash_slot_queue_pop(flash_slot_queue_t *queue);
/* Moves a segment on to a state that may follow its own. */
void flash_slot_enter(flash_slot_t *slot, flash_slot_state_t state);
/* Of one that adds: whether it is next; that it has to wait. */
bool flash_op_is_turn(const flash_op_t *op, const flash_slot_t *slot);
void flash_op_keep_early(flash_op_t *op, flash_slot_t *slot);

/* flash_op_size.c */
/* How many segments are under way at a time, and the bytes that the scratch has for each. */
uint32_t flash_op_window(const flash_op_params_t *params);
size_t flash_op_segment_bytes(const flash_op_params_t *params);
/* How many messages are. */
uint32_t flash_op_sends_at_a_time(const flash_op_params_t *params);
/* Elements of an own block that are copied at a time. */
size_t flash_op_copied_elements(const flash_op_params_t *params);
/* To whole cache lines. */
static inline size_t flash_op_align(size_t size)
{
    return (size + 63) / 64 * 64;
}

/* flash_op.c */
/* Whether somebody takes it when it has completed. */
static inline bool flash_op_has_user(const flash_op_t *op)
{
    return !op->refused || op->params.user != NULL;
}
static inline bool flash_op_reduces(const flash_op_params_t *params)
{
    return flash_schedule_reduces(params->schedule.kind);
}
/* Whether an allreduce, or a reduce at its root, has its results where its contributions were: it has
   no callbacks. */
static inline bool flash_op_sums_on_input(const flash_op_params_t *params)
{
    flash_kind_t kind = params->schedule.kind;

    return (kind == FLASH_ALLREDUCE || kind == FLASH_REDUCE) && params->produce == NULL &&
           params->consume == NULL && params->input == params->output;
}
/* Whether a callback writes what it contributes to memory of the engine's. */
static inline bool flash_op_lends(const flash_op_params_t *params)
{
    return flash_op_reduces(params) && params->produce != NULL;
}
/* Of what this rank contributes to the block of its own; of a chain, of the one block. */
static inline flash_split_t flash_op_own_split(const flash_op_params_t *params)
{
    const flash_schedule_t *schedule = &params->schedule;

    return flash_schedule_split(schedule, flash_schedule_own_input(schedule));
}
/* Bytes of an element of what is being added up. */
static inline size_t flash_op_summed_element(const flash_op_params_t *params)
{
    return params->wide > 0 ? params->wide : params->element;
}
/* Of memory that is all zeros. `slots`: params->depth, or more if the ring needs more. */
void flash_op_init(flash_op_t *op, flash_engine_t *engine, const flash_op_params_t *params,
                   flash_slot_t *slots);
/* How many segments have a sum that is kept while others add to it. */
uint32_t flash_op_summed_segments(const flash_op_params_t *params);
void flash_op_free(flash_op_t *op);

/* flash_op_bounce.c */
/* Whether the scratch is smaller than the window, which would take so many bytes. */
bool flash_op_is_bounded(const flash_op_params_t *params, size_t bytes);
/*
 * Bounded: whether the host adds where segments arrive; how many bounce segments there are, and
 * their bytes; bytes for sums that are sent on, in ordinary memory or on the device.
 */
bool flash_op_adds_in_bounces(const flash_op_params_t *params);
size_t flash_op_bounce_size(const flash_op_params_t *params);
uint32_t flash_op_bounce_segments(const flash_op_params_t *params);
size_t flash_op_near_store_size(const flash_op_params_t *params);
size_t flash_op_device_store_size(const flash_op_params_t *params);
/* Fills in `bounces`. */
void flash_op_init_bounces(flash_op_t *op);
/* Whether a segment may be put under way: there is memory for it to arrive at. */
bool flash_op_may_open(const flash_op_t *op);
/* NULL: there is none left. */
char *flash_slot_borrow(flash_slot_t *slot, flash_bounce_t what);
/* Gives it back, if it has it. */
void flash_slot_give_back(flash_slot_t *slot, flash_bounce_t what);

/* flash_slot_staging.c */
/* Has what is kept copied to where it is sent from, in the order of the ring. */
void flash_op_depart(flash_op_t *op);

/* flash_op_places.c */
/* The address of an element of a block that begins at `displ`. */
static inline char *flash_op_at(const flash_op_t *op, const void *base, ptrdiff_t displ,
                                size_t offset)
{
    return (char *) base + (displ + (ptrdiff_t) offset) * (ptrdiff_t) op->params.element;
}
/* The blocks of the input, and of the output: AG's input and RS's output are one block each. */
char *flash_op_input_block(const flash_op_t *op, uint32_t block);
char *flash_op_output_block(const flash_op_t *op, uint32_t block);
/* Whether the own block need not be copied to its place. */
bool flash_op_is_in_place(const flash_op_t *op);
/* Where a produced piece is written to. */
char *flash_op_produce_buffer(const flash_op_t *op, uint64_t piece);
/* Fills in where a segment's data is, and what is local of it. */
void flash_op_place(flash_op_t *op, flash_slot_t *slot);
/* Of one that adds: whether it adds nothing: it is first, and has come to where the sum is. */
bool flash_op_begins_in_place(const flash_op_t *op, const flash_slot_t *slot);
/*
 * Of a reduction in place, the step that completes the sum of the own block: whether the partial sum
 * arrives at the scratch, and is added to what is local, which the result replaces. Elsewhere the
 * contribution is added to what has arrived.
 */
bool flash_op_arrives_apart(const flash_op_t *op, const flash_slot_t *slot);
/* Whether a sum is made right where the user has it. */
bool flash_op_sums_in_place(const flash_op_t *op, const flash_slot_t *slot);
/* What is to be added up for a segment, and where. */
void flash_op_take_sum(const flash_op_t *op, const flash_slot_t *slot, flash_work_t *work);
/* Once that is done: the segment is where the sum is. */
void flash_op_place_sum(flash_slot_t *slot);
/* Whether a part of the own block is there and not in its place. */
bool flash_op_may_copy(const flash_op_t *op);
/* Takes the next such part, of a segment's length at most, to be copied to its place. */
void flash_op_take_copy(flash_op_t *op, flash_work_t *work);
/* Whether what is local of a segment is first copied to the scratch. */
bool flash_slot_needs_staging_in(const flash_slot_t *slot);
/* With device scratch: where what a poisoned message says is to be copied to. */
uint32_t *flash_op_failed_rank_place(const flash_op_t *op, const flash_slot_t *slot);
/* Takes the next segment that is to be copied to the scratch, or from there. */
void flash_op_take_staging(flash_op_t *op, flash_work_t *work);

/* flash_op_calls.c */
bool flash_op_wants_callback(const flash_op_t *op);
void flash_op_take_callback(flash_op_t *op, flash_piece_t *piece);
bool flash_op_end_piece(flash_op_t *op, uint64_t number, int status);
/* Whether what a segment contributes has been produced, if it has to be. */
bool flash_op_is_produced(const flash_op_t *op, const flash_slot_t *slot);
/* Of one that is not: whether it may yet be, though no further callbacks are made. */
bool flash_op_may_be_produced(const flash_op_t *op, const flash_slot_t *slot);
/* Whether there is none left to make, nor one to end. */
bool flash_op_has_called(const flash_op_t *op);
/* Whether what is local of a segment is where it is sent from, or added from, or never will be. */
bool flash_op_has_local(const flash_op_t *op, const flash_slot_t *slot);
/* How many elements of what is to be copied there are. */
size_t flash_op_own_produced(const flash_op_t *op);

#endif /* FLASH_OP_H */
