/*
 * random_ops.h: random collective calls, checked against what they must give, byte by byte.
 *
 *   random_ops.c        options, threads, what is said when something is wrong
 *   random_progress.c   how far it is, and what memory it has
 *   random_sequence.c   one thread's calls: communicators that come and go, other traffic
 *   random_pending.c    calls under way, and the ways to complete them
 *   random_operation.c  what all calls share: what is drawn, memory with guards, pieces
 *   random_paths.c      which way the calls took
 *   random_gather.c     allgathers and all-to-alls
 *   random_rooted.c     broadcasts, gathers and scatters
 *   random_reduce.c     reduce-scatters, allreduces and reduces
 *
 * Everything that is drawn is a function of the seed, the thread and the operation's number (of the
 * epoch, for communicators), so that a run may begin anywhere. What must be alike on all ranks is
 * drawn from one stream, what each rank chooses for itself from another.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef RANDOM_OPS_H
#define RANDOM_OPS_H

#include <mpix_flash.h>

#include "../unit/prng.h"
#include "persistent.h"
#include "reduction.h"
#include "turns.h"
#include "typed.h"

enum {
    RANDOM_EPOCH = 64, /* operations between two changes of communicators */
    RANDOM_SLOTS = 6,  /* communicators of a thread; slot 0 is never freed */
    RANDOM_DEPTH = 30  /* operations under way, at most */
};

typedef struct options {
    uint64_t seed, first, operations;
    int threads;
    size_t most;       /* bytes of a block, at most */
    unsigned patience; /* seconds without an operation that are a hang; 0: no limit */
    bool watch_memory;
} options_t;

extern options_t options;

/* What draws are for, apart from ranks: see stream(). */
enum { FOR_ALL = 1000, FOR_BLOCK = 2000, FOR_EPOCH = 3000, FOR_SLOT = 4000, FOR_ROOT = 5000 };

typedef struct operation operation_t;

typedef struct slot {
    MPI_Comm comm; /* MPI_COMM_NULL: this rank is not in it */
    int rank, size;
    bool active; /* MPIX_Flash_active() */
} slot_t;

typedef struct sequence {
    int thread;
    MPI_Comm home; /* of all processes, this thread's own */
    slot_t slots[RANDOM_SLOTS];
    uint64_t number;   /* of the operation it is at */
    const char *doing; /* for who asks where it hangs */
    operation_t *pending[RANDOM_DEPTH];
    MPI_Request requests[RANDOM_DEPTH]; /* of `pending` */
    int count;
} sequence_t;

/* Memory that MPI sees a part of, and what all of it must hold in the end. */
typedef struct image {
    unsigned char *memory, *wanted, *buffer; /* buffer: the address MPI gets */
    size_t bytes;
} image_t;

/* What the callbacks of an operation have done. */
typedef struct pieces {
    MPIX_Flash_hints hints;
    bool hinted, inside;
    turns_t done;
    int block, piece; /* block: that of the latest call, if it is not done; else -1 */
    MPI_Count offset; /* in it */
} pieces_t;

struct operation {
    sequence_t *sequence;
    uint64_t number, own; /* own: this rank's stream */
    const slot_t *slot;
    MPI_Comm comm; /* MPI_COMM_NULL once it has been freed */
    int rank, size;
    unsigned salt; /* tells its data from others' */
    const char *name;
    bool gathers, compute, unequal, blocking, free_early;
    bool in_place;   /* equal on all ranks, but for a reduce, a gather or a scatter: its root's */
    bool everywhere; /* an allreduce, whose vector is all blocks */
    bool exchanges;  /* an all-to-all: it gathers others on each rank */
    bool shared;     /* of unequal blocks, some of which may fall back */
    bool rooted;     /* a broadcast, of one block, or a reduce, whose vector is all blocks, */
    bool collects;   /* or a gather, */
    bool deals;      /* or a scatter, */
    int root;        /* from or to that rank */
    bool persistent;
    int starts;    /* of a persistent request: all but the last are waited for at once */
    bool ring;     /* flash serves it, */
    bool pairwise; /* because it may go pairwise */
    bool recdbl;   /* or because it may go by recursive doubling */
    bool unseen;   /* flash leaves it alone, and does not count it */
    int *blocks;   /* length of each rank's, in units (gathers) or elements; equal on all ranks */
    int *counts;   /* the same in elements of the receive type, or of that of a scatter's root */
    int *displs;   /* gathers */
    int *sent_counts;  /* an all-to-all's of unequal blocks, with their places behind them */
    MPI_Datatype type; /* of the result, which may have been freed since */
    int type_size;
    image_t send, recv;
    pieces_t pieces;
    typed_t send_type, recv_type; /* gathers */
    reduction_t reduction;        /* the others */
};

/* ----------------------------------------------------------------- random_ops.c */

/* Says what is wrong with which operation, how to see it again, and ends the job. */
__attribute__((noreturn, format(printf, 3, 4))) void fail(const sequence_t *sequence,
                                                          uint64_t number, const char *text, ...);
/* fail() unless an MPI call returned MPI_SUCCESS. */
void must(int error, const sequence_t *sequence, uint64_t number, const char *what);

/* ------------------------------------------------------------- random_progress.c */

void begin_progress(void);
/* For the first thread, with so many operations posted: puts off the alarm, and watches memory. */
void show_progress(const sequence_t *sequence, uint64_t done);

/* ------------------------------------------------------------- random_sequence.c */

void run_sequence(sequence_t *sequence);

/* -------------------------------------------------------------- random_pending.c */

void add_pending(operation_t *operation, MPI_Request request);
/* Completes some until `most` or fewer are left, in an order and way of this rank's. */
void complete_pending(sequence_t *sequence, int most, uint64_t *own);
/*
 * What has to be complete before `comm` is freed, and more if that is drawn. Then nothing refers
 * to `comm` any more.
 */
void detach_pending(sequence_t *sequence, MPI_Comm comm, uint64_t *own);

/* ------------------------------------------------------------ random_operation.c */

/* The draws of a thread about operation or epoch `number` for a purpose, or for a rank. */
uint64_t stream(int thread, uint64_t number, int purpose);

/* Draws a call on a communicator, and makes it. MPI_REQUEST_NULL in *request: it is complete. */
operation_t *post_operation(sequence_t *sequence, const slot_t *slot, MPI_Request *request);
/* Checks all that a completed operation left, and frees it. */
void finish_operation(operation_t *operation);

/* blocks[] of at most so many: equal, or each its own; some of them, or all, empty. */
void draw_blocks(operation_t *operation, uint64_t *all, size_t most);
/* Whether flash serves a plain call of that size; half of it counts where it is an allgather. */
bool takes_ring(const operation_t *operation, size_t bytes);
/* Whether a reduce-scatter of so many bytes, too small for a ring, is served all the same. */
bool goes_pairwise(const operation_t *operation, size_t bytes);
bool goes_recdbl(const operation_t *operation, size_t bytes);
/* Whether, with `ring` known, it may be a persistent request. */
bool may_persist(const operation_t *operation);

void make_image(image_t *image, size_t before, size_t bytes, size_t after, unsigned salt);
/* fail() unless the image is as wanted. */
void check_image(const operation_t *operation, const image_t *image, const char *name);
void free_image(image_t *image);

/* For callbacks: checks that `block` comes in turn, steps on, and calls MPI at times. */
void check_piece(operation_t *operation, const MPIX_Flash_block *block);
void check_pieces_complete(const operation_t *operation);
const MPIX_Flash_hints *hints_of(const operation_t *operation);

/* --------------------------------------------------------------- random_paths.c */

/* Whether flash serves communicators of so many ranks. */
bool is_served(int size);
/* Before the first call. */
void count_paths(void);
/* Counts a call, once `ring` is drawn. */
void expect_path(const operation_t *operation);
/* With all calls of all threads done: fail() unless they took the ways that were expected. */
void check_paths(const sequence_t *sequence);

/* --------------------------------------------------------------- random_later.c */

/* Does what a callback is for, or has it done later, and returns what the callback is to return. */
typedef void later_fn(operation_t *operation, const MPIX_Flash_block *block);
int now_or_later(operation_t *operation, const MPIX_Flash_block *block, later_fn *work);
/* Before MPI_Finalize, with no operation left. */
void end_later(void);

/* --------------------------------------- random_gather.c, random_rooted.c, random_reduce.c */

void draw_gather(operation_t *operation, uint64_t *all);
int start_gather(operation_t *operation, MPI_Request *request);
void check_gather(operation_t *operation);
void free_gather_types(operation_t *operation);
/* Of a call that falls back, or of a block of one. */
void shorten_blocks(operation_t *operation, size_t unit);
void shorten_block(operation_t *operation, int block, size_t unit);
/*
 * displs[] of blocks of counts[] elements, in an order of this rank's, with room between some of them,
 * counted from any element of the buffer. Returns the number of elements; *origin: how many lie before
 * the buffer's address.
 */
size_t place_blocks(operation_t *operation, int *origin);
/* The same of equal blocks, one after another. */
size_t place_in_a_row(operation_t *operation);

/* Of draw_gather() and start_gather(): of a unit of so many bytes. */
void draw_with_root(operation_t *operation, size_t unit);
int start_with_root(operation_t *operation, MPI_Request *request);

void draw_reduce(operation_t *operation, uint64_t *all);
int start_reduce(operation_t *operation, MPI_Request *request);
void check_reduce(operation_t *operation);
void free_reduce_types(operation_t *operation);

#endif /* RANDOM_OPS_H */
