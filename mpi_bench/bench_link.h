/*
 * bench_link.h: how long a block takes on the wire.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef BENCH_LINK_H
#define BENCH_LINK_H

#include "bench_measure.h"

/*
 * From the rate of the link if it is known: rate x (MTU - 52) / (MTU + 14) is what is left of it
 * for payload. Else measured by a ring of MPI_Sendrecv. The same on all ranks; collective.
 */
bench_link_t bench_link_find(const bench_problem_t *problem, MPI_Comm comm);

#endif /* BENCH_LINK_H */
