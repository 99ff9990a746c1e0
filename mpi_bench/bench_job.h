/*
 * bench_job.h: what a benchmark wants to know of its job. All of these are collective over
 * MPI_COMM_WORLD.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef BENCH_JOB_H
#define BENCH_JOB_H

#include <stdbool.h>

#include <mpi.h>

/* A duplicate with Open MPI's own collectives, even under --mca coll flash. */
MPI_Comm bench_own_communicator(MPI_Comm comm);

/* Whether flash serves a communicator on all ranks (all), or on any. */
bool bench_served(MPI_Comm comm, bool all);

/* How many hosts MPI_COMM_WORLD is on; *least: the ranks of the one that has the fewest. */
int bench_count_hosts(int rank, int *least);

#endif /* BENCH_JOB_H */
