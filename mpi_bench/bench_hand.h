/*
 * bench_hand.h: the ring as an application writes it by itself, with MPI_Isend and MPI_Irecv.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef BENCH_HAND_H
#define BENCH_HAND_H

#include "bench_variants.h"

/* In whole blocks; while an accelerator computes one, the host waits in MPI for the next. */
void bench_hand_allgather(bench_problem_t *problem, const bench_case_t *bench_case);
void bench_hand_reduce_scatter(bench_problem_t *problem, const bench_case_t *bench_case);

#endif /* BENCH_HAND_H */
