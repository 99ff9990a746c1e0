/*
 * requests.h: what the files of test_requests share.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef REQUESTS_H
#define REQUESTS_H

#include <stdint.h>

#include "mpitest.h"

enum { MANY = 60, COUNT = 400 };

/* An allgather, reduce-scatter, allreduce or all-to-all of int64_t. The number tells operations apart. */
typedef struct operation {
    MPI_Comm comm;
    int number, rank, size;
    int64_t *send, *recv;
    int *counts, *displs; /* an all-to-all's with counts; else NULL */
} operation_t;

/* requests_operation.c */
void requests_post(operation_t *operation, MPI_Comm comm, int number, MPI_Request *request);
/* Whether the result is there, before the operation is known to be complete. */
bool requests_has_arrived(const operation_t *operation);
/* Once it is complete: check()s the result. */
void requests_finish(operation_t *operation, const char *what);

/* requests_completion.c: completes so many requests, MANY at most. */
typedef void requests_complete_fn(MPI_Request requests[], int count);
requests_complete_fn requests_wait; /* one by one, in another order on each rank */
enum { REQUESTS_WAYS = 6 };
extern requests_complete_fn *const requests_ways[REQUESTS_WAYS]; /* all of them */

/* requests_freed.c: cases. */
void requests_free_active(void);
void requests_free_types(void);
void requests_free_communicators(void);
void requests_come_and_go(void);
void requests_leak(void);

#endif /* REQUESTS_H */
