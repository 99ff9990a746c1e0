/*
 * merge_operation.h: operations whose callbacks may take all ranks' blocks at once. Their callbacks
 * check what they are given.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef MERGE_OPERATION_H
#define MERGE_OPERATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <mpix_flash.h>

#include "late.h"

typedef enum call { ALLGATHER, REDUCE_SCATTER, ALLREDUCE, ALLTOALL, CALLS } call_t;

/* Where the blocks of a call with counts are. */
typedef enum layout { EQUAL, UNEQUAL, BACKWARDS, LAYOUTS } layout_t;

/* What is chosen of an operation. */
typedef struct shape {
    call_t call;
    layout_t layout;  /* UNEQUAL: some empty; BACKWARDS: the last rank's comes first */
    int count;        /* elements to a block, about */
    bool in_place;    /* an allgather's */
    bool pends, late; /* pieces are completed inside their callbacks, or by another thread */
    bool owns;        /* the own block has a callback, too */
    bool in_order;    /* a reduction's operation is not commutative */
    bool fails;       /* rank 0's callback does */
    int row;
} shape_t;

typedef struct run {
    shape_t shape;
    int *counts, *displs, all;
    int64_t *send, *recv, salt;
    bool merged[2];    /* what is produced, and what is consumed */
    MPI_Count seen[2]; /* elements; [1]: consumed */
    int calls[2], own_calls;
    late_t late;
    bool wrong;
} run_t;

/* An error class that no library returns here. */
enum { FAILED = MPI_ERR_KEYVAL };

extern MPI_Op merge_in_order; /* a sum that must not be reordered, as far as MPI knows */

/* Whether that many bytes are merged where hints say that they may be. */
bool merge_pays(call_t call, size_t bytes);
bool merge_is_served(const run_t *run);

void merge_make(run_t *run, const shape_t *shape); /* buffers, and which callbacks are merged */
int merge_start(run_t *run, MPI_Comm comm, MPI_Request *request);
/* An allgather with other hints than those of its shape. */
int merge_start_gather(run_t *run, const MPIX_Flash_hints *hints, MPI_Comm comm,
                       MPI_Request *request);
/* check()s what the callbacks have been given. */
void merge_check_calls(const run_t *run);
void merge_free(run_t *run);
/* All of this on MPI_COMM_WORLD, a wait, and what the buffers hold then. */
void merge_one(const shape_t *shape);

#endif /* MERGE_OPERATION_H */
