/*
 * sizes_call.h: calls whose ranks need not agree about sizes, and what their buffers hold.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef SIZES_CALL_H
#define SIZES_CALL_H

#include <stdbool.h>
#include <stdint.h>

#include <mpi.h>

/* Elements before, between and behind blocks. */
enum { GUARD = 8 };
static const int64_t CANARY = 0x5a5a5a5a5a5a5a5a;

typedef enum kind {
    ALLGATHER,
    ALLGATHERV,
    REDUCE_SCATTER_BLOCK,
    REDUCE_SCATTER,
    ALLREDUCE, /* of one block's length */
    ALLTOALL,
    KINDS
} kind_t;
typedef enum form { PLAIN, PERSISTENT, COMPUTE, FORMS } form_t;

/* A call as this rank sees it. */
typedef struct call {
    kind_t kind;
    form_t form;
    MPI_Comm comm;
    MPI_Request request;
    int *counts, *displs; /* displs: in recv for allgathers, in send for reduce-scatters */
    int64_t *send, *recv; /* recv: GUARD elements before its buffer */
    int length;           /* of recv */
} call_t;

/*
 * Its buffers. Rank 0 takes the blocks, or only that of rank 1, for `odd` elements long, all others
 * for `count`.
 */
void sizes_make(call_t *call, int count, int odd, bool one);
void sizes_free(call_t *call);

/* Makes the request; starts it, if that is left to do, and waits. Both return an error. */
int sizes_begin(call_t *call);
int sizes_end(call_t *call);

/* Whether the receive buffer holds the result, and what lies around its blocks is as it was. */
bool sizes_are_right(const call_t *call);
bool sizes_guards_are_intact(const call_t *call);

#endif /* SIZES_CALL_H */
