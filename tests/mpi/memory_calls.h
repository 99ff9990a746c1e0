/*
 * memory_calls.h: the calls of flash's operations, in all their forms, as those need memory.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef MEMORY_CALLS_H
#define MEMORY_CALLS_H

#include "mpitest.h"

typedef struct memory_call {
    const char *name;
    /* Returns what the call returns; MPI_REQUEST_NULL where it is a blocking one. */
    int (*start)(MPI_Comm comm, MPI_Request *request);
    bool reduces;
} memory_call_t;

#define MEMORY_PLAIN      22 /* those that any rank refuses by itself */
#define MEMORY_PERSISTENT 7  /* the request is made, and not started */
extern const memory_call_t memory_plain[MEMORY_PLAIN], memory_persistent[MEMORY_PERSISTENT];
/* The last of them, the extension's, take plain collectives where flash is not used. */
#define MEMORY_FALLBACK 6
#define memory_fallback (&memory_plain[MEMORY_PLAIN - MEMORY_FALLBACK])
/* Reductions that do so where it is used. */
#define MEMORY_NO_RING  2
extern const memory_call_t memory_no_ring[MEMORY_NO_RING];

/* Buffers and types for blocks of so many elements. */
void memory_calls_begin(int block);
void memory_calls_end(void);

/* Makes flash forget the scratch memory that it keeps, so that each operation needs some. */
void memory_calls_use_up_pool(MPI_Comm comm);

#endif /* MEMORY_CALLS_H */
