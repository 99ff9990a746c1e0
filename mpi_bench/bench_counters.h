/*
 * bench_counters.h: what flash says it did, through the MPI tool interface.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef BENCH_COUNTERS_H
#define BENCH_COUNTERS_H

#include <stdbool.h>

/* Of this process, since bench_counters_open(). All zero where flash is not loaded. */
typedef struct bench_counters {
    unsigned long long ring, pairwise, shm, recdbl, fallback; /* calls, by algorithm */
    unsigned long long wakeups;                               /* of the progress thread */
    unsigned long long switches; /* of its context, by the kernel's count */
    double thread_seconds;       /* CPU time of the progress thread */
} bench_counters_t;

/* Between MPI_Init() and MPI_Finalize(), both. */
void bench_counters_open(void);
void bench_counters_close(void);

/* Reading `switches`, if wanted, is files' reading: brief calls behind it take longer. */
bench_counters_t bench_counters_read(bool switches);

#endif /* BENCH_COUNTERS_H */
