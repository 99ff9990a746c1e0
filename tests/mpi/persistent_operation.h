/*
 * persistent_operation.h: a persistent request of one of flash's operations, with its arguments,
 * and what each of its starts must give.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef PERSISTENT_OPERATION_H
#define PERSISTENT_OPERATION_H

#include "device.h"
#include "mpitest.h"
#include "persistent.h"

enum {
    ALLGATHER,
    ALLGATHERV,
    REDUCE_SCATTER,
    REDUCE_SCATTER_BLOCK,
    ALLREDUCE,
    ALLTOALL,
    ALLTOALLV,
    KINDS
};

/* One request, with its arguments. Blocks of int64_t. */
typedef struct operation {
    MPI_Request request;
    MPI_Comm comm;
    int kind, rank, size;
    bool in_place;
    MPI_Op op; /* that adds; NULL: MPI_SUM */
    place_t send_place, recv_place;
    int *counts, *displs; /* in the receive buffer of an allgather, or in the operands */
    int length;           /* of the longer buffer */
    int64_t *send, *recv, *wanted;
    buffer_t sent,
        received; /* the call's, of the same content, if these are not in the host's memory */
} operation_t;

/* Blocks of `count`, or unequal ones around it. `operation` owns its memory. */
void operation_make(operation_t *operation, MPI_Comm comm, int kind, bool in_place, int count);
/* The same of what `like` says of the communicator, kind, place and operator. */
void operation_make_like(operation_t *operation, const operation_t *like, int count);

/* New data for the next start, and what must have become of the receive buffer after it. */
void operation_fill(operation_t *operation, int round);

/* Whether it has, before the operation is known to be complete. MPI says nothing about operands
   that an operation in place leaves behind. */
bool operation_has_arrived(const operation_t *operation);
void operation_verify(const operation_t *operation, int round);

/* Fills, starts, waits, verifies. */
void operation_run(operation_t *operation, int round);

void operation_free_memory(operation_t *operation); /* not the request */
void operation_free(operation_t *operation);

#endif /* PERSISTENT_OPERATION_H */
