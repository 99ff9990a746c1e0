/*
 * own_operation.h: operations with a callback for the own block. Their callbacks check what they
 * see.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef OWN_OPERATION_H
#define OWN_OPERATION_H

#include <stdbool.h>
#include <stdint.h>

#include <mpix_flash.h>

#include "late.h"

/* What is chosen of an operation. */
typedef struct shape {
    int count, pieces, row;
    bool unequal; /* a block of rank r has r elements more, each third has none */
    bool in_place;
    bool pends;    /* pieces are completed before their callback returns */
    bool consumes; /* an allgather's other callback is there */
    bool late;     /* pieces are completed by another thread, the latest first */
    bool some;     /* a reduce-scatter's own callback is there on ranks of odd numbers alone */
    int fail_call; /* of the own callback, from 1 on, on rank 0; 0: none */
} shape_t;

typedef struct run {
    shape_t shape;
    int *counts, *displs;
    int64_t *send, *recv;
    int own_calls, other_calls;
    MPI_Count own_seen; /* elements */
    int64_t salt;       /* of the values: no two runs have the same */
    late_t late;
    bool out_of_turn;
} run_t;

/* An error class that no library returns here. */
enum { FAILED = MPI_ERR_KEYVAL };

void own_make(run_t *run, const shape_t *shape);
/*
 * An allgather whose own block's callback is own_produce(), a reduce-scatter whose is own_finish().
 */
int own_start_allgather(run_t *run, MPI_Comm comm, MPI_Request *request);
int own_start_reduce_scatter(run_t *run, MPI_Comm comm, MPI_Request *request);
/* check()s the result. */
void own_check_allgather(const run_t *run);
void own_free(run_t *run);
/* All of this on MPI_COMM_WORLD, with a wait, and what the callbacks have seen. */
void own_one(bool gather, const shape_t *shape);

/* For calls of a case's own: what those of a run give, with that callback for the own block. */
MPIX_Flash_hints own_hints(run_t *run, MPIX_Flash_compute_fn *own);
/* The callbacks; `arg` is the run. own_consume() takes an allgather's other blocks. */
MPIX_Flash_compute_fn own_produce, own_finish, own_consume;

#endif /* OWN_OPERATION_H */
