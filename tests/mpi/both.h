/*
 * both.h: allreduces and all-to-alls whose callbacks produce and consume, and check what they see.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef BOTH_H
#define BOTH_H

#include <stdbool.h>
#include <stdint.h>

#include <mpix_flash.h>

#include "late.h"

/* What a callback fails with: an error class that no library returns here. */
enum { BOTH_FAILED = MPI_ERR_KEYVAL };

/* What is chosen of an operation. */
typedef struct both_shape {
    bool reduces; /* an allreduce; else an all-to-all */
    int count;    /* of the vector, or of a block */
    int pieces, row;
    bool unequal;                   /* blocks */
    bool produces, consumes;        /* an allreduce always produces */
    bool pends;                     /* pieces are completed before their callback returns */
    bool late;                      /* or by another thread, the latest first */
    int fail_produce, fail_consume; /* which call fails on rank 0, from 1 on; 0: none */
} both_shape_t;

typedef struct both_run {
    both_shape_t shape;
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
} both_run_t;

void both_make(both_run_t *run, const both_shape_t *shape, MPI_Comm comm);
int both_start(both_run_t *run, MPI_Request *request);
/* check()s the result, and that each element was produced and consumed once. */
void both_check(const both_run_t *run);
void both_free(both_run_t *run);
/* All of this, and a wait. */
void both_one(const both_shape_t *shape, MPI_Comm comm);

/* Their callbacks; `arg` is the run. */
MPIX_Flash_compute_fn both_produce, both_consume;

#endif /* BOTH_H */
