/*
 * chain.h: what test_bcast, test_reduce and test_gather share: ranks that lack a buffer.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef CHAIN_H
#define CHAIN_H

#include "mpitest.h"

/* A call with that root. `lacks`: this rank passes NULL for what it must have. */
typedef int chain_start_fn(int root, int count, bool lacks, MPI_Comm comm, MPI_Request *request);
/* Whether this rank's result is right, of a call in which all is well for it. */
typedef bool chain_right_fn(int root, int count);

/*
 * Each rank lacks its buffer in a call to each root. That rank ends with MPI_ERR_BUFFER, and each
 * other one without an error, with a right result, or with MPI_ERR_OTHER. `misses`: how many of these
 * calls must fail on other ranks, all told; those on ranks between may fail as well (`may`).
 */
void chain_refuse(const char *name, int count, chain_start_fn *start, chain_right_fn *right,
                  int misses, bool may);

#endif /* CHAIN_H */
