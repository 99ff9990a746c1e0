/*
 * aftermath.h: communicators whose errors are counted, and whether they are usable after one.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef AFTERMATH_H
#define AFTERMATH_H

#include <mpi.h>

/* A duplicate of MPI_COMM_WORLD with counting_handler(). MPI_COMM_WORLD's errors are fatal. */
MPI_Comm make_counted_comm(void);

/* check()s that the next operations give right results, and no error. */
void next_works(MPI_Comm comm, const char *what);

#endif /* AFTERMATH_H */
