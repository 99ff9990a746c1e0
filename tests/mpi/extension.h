/*
 * extension.h: one call of <mpix_flash.h>, watched: every callback's arguments, order and data, and
 * what the buffers hold in the end.
 *
 * FLASH_TEST_CALLBACK_THREAD=1 in the environment: flash's thread makes the callbacks, where flash
 * serves.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef EXTENSION_H
#define EXTENSION_H

#include <pthread.h>

#include <mpix_flash.h>

#include "mpitest.h"
#include "turns.h"

typedef enum watch_kind { WATCH_ALLGATHER, WATCH_REDUCE_SCATTER, WATCH_KINDS } watch_kind_t;

struct watch;

/* What a test chooses; zero is a good default for all but `count`. */
typedef struct watch_options {
    int count;       /* elements to a block */
    bool unequal;    /* the v forms, with empty blocks; allgather: permuted, with gaps between */
    bool in_place;   /* allgather only */
    int pieces, row; /* hints; pieces 0 and row 0: no hints */
    unsigned salt;   /* other values may have another one */
    bool on_callback_thread; /* flash's thread makes the callbacks, as in the environment */
    /* Called inside each callback, after its arguments have been checked. */
    void (*hook)(void *arg, int call);
    void *hook_arg;
    /* Does, or has somebody do, what the callback is for, and says what that returns. */
    int (*defer)(void *arg, struct watch *watch, const MPIX_Flash_block *block);
    void *defer_arg;
    /* The call, counted from 1, that fails with `fail_error`; 0: none. */
    int fail_call, fail_error;
} watch_options_t;

/* Elements are int64_t; a reduction is a sum. */
typedef struct watch {
    watch_kind_t kind;
    watch_options_t options;
    MPI_Comm comm;
    int rank, size;
    int *counts, *displs; /* of each block, in elements; displs: allgather only */
    int64_t *send, *recv; /* recv: guards at both ends and between blocks */
    size_t recv_elements;
    /* What the callbacks have seen. */
    pthread_t thread;
    /* They are not made in `thread`, which starts the call and waits for it. */
    bool on_callback_thread;
    bool inside, failed;
    bool misaligned; /* some whole block to produce did not begin at a multiple of 64 bytes */
    turns_t done;
    int calls, piece;
    MPI_Count offset; /* in the block of the latest call */
    int block;        /* which that is, if it is not done; else -1 */
} watch_t;

void watch_init(watch_t *watch, watch_kind_t kind, MPI_Comm comm, const watch_options_t *options);
void watch_free(watch_t *watch);

/* Both return what the call returns. */
int watch_start(watch_t *watch, MPI_Request *request);
int watch_blocking(watch_t *watch);

/* What a callback is for. Any thread. */
void watch_compute(struct watch *watch, const MPIX_Flash_block *block);

/* After completion: whether this rank's result is as it must be; no check() of its own. */
bool watch_result_is_right(const watch_t *watch);
/* Whether nothing outside of the blocks has changed. */
bool watch_guards_are_intact(const watch_t *watch);
/* check()s those, and that all callbacks were called. `what` names the call. */
void watch_check(const watch_t *watch, const char *what);

/* watch_init, watch_start, MPI_Wait, watch_check, watch_free. */
void watch_one(watch_kind_t kind, MPI_Comm comm, const watch_options_t *options, const char *what);

/* How many callbacks there are. */
int watch_expected_calls(const watch_t *watch);

#endif /* EXTENSION_H */
