/*
 * blocking_call.h: a blocking call of each kind that flash serves, and what it must give.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef BLOCKING_CALL_H
#define BLOCKING_CALL_H

#include <stdint.h>

#include <mpi.h>

/* Elements of a block, MPI_INT64_T; and kinds of calls, of which the first two gather
   and the last one is an allreduce. */
enum { COUNT = 3000, BLOCKING_ALLTOALLV = 5, KINDS = 8 };

extern const char *const blocking_names[KINDS];

/* An allreduce, and a broadcast, is of as many elements as all ranks' blocks. */
typedef struct call {
    int kind, rank, ranks;
    MPI_Comm comm;
    int *counts, *displs;
    int64_t *send, *recv;
} call_t;

void blocking_make(call_t *call, int kind, MPI_Comm comm);
/* `own`: elements that a gather sends of its own. The error. */
int blocking_run(const call_t *call, int own);
/* check()s the result. */
void blocking_check(const call_t *call);
void blocking_free(call_t *call);

/* All of it. */
void blocking_once(int kind, MPI_Comm comm);

#endif /* BLOCKING_CALL_H */
