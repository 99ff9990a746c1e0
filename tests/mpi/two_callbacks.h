/*
 * two_callbacks.h: allreduces and all-to-alls whose callbacks produce and consume, and check what
 * they see.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef TWO_CALLBACKS_H
#define TWO_CALLBACKS_H

#include <stdbool.h>
#include <stdint.h>

#include <mpix_flash.h>

#include "late.h"

/* What a callback fails with: an error class that no library returns here. */
enum { TWO_CALLBACKS_FAILED = MPI_ERR_KEYVAL };

/* What is chosen of an operation. */
typedef struct two_callbacks_shape {
    bool reduces; /* an allreduce; else an all-to-all */
    int count;    /* of the vector, or of a block */
    int pieces, row;
    bool unequal;                   /* blocks */
    bool produces, consumes;        /* an allreduce always produces */
    bool pends;                     /* pieces are completed before their callback returns */
    bool late;                      /* or by another thread, the latest first */
    int fail_produce, fail_consume; /* which call fails on rank 0, from 1 on; 0: none */
} two_callbacks_shape_t;

typedef struct two_callbacks_run {
    two_callbacks_shape_t shape;
    MPI_Comm comm;
    int rank, size;
    int *sendcounts, *recvcounts, *sdispls, *rdispls;
    int64_t *send, *recv;
    unsigned char *produced, *consumed; /* how often, by place in the vector or the buffers */
    size_t to_produce, to_consume;      /* elements */
    int produce_calls, consume_calls;
    bool own_produced, own_consumed, wrong;
    int64_t salt; /* of the values: no two runs have the same */
    late_t late;
} two_callbacks_run_t;

void two_callbacks_make(two_callbacks_run_t *run, const two_callbacks_shape_t *shape,
                        MPI_Comm comm);
int two_callbacks_start(two_callbacks_run_t *run, MPI_Request *request);
/* check()s the result, and that each element was produced and consumed once. */
void two_callbacks_check(const two_callbacks_run_t *run);
void two_callbacks_free(two_callbacks_run_t *run);
/* All of this, and a wait. */
void two_callbacks_one(const two_callbacks_shape_t *shape, MPI_Comm comm);

/* Their callbacks; `arg` is the run. */
MPIX_Flash_compute_fn two_callbacks_produce, two_callbacks_consume;

#endif /* TWO_CALLBACKS_H */
