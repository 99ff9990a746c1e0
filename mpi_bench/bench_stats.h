/*
 * bench_stats.h: clocks, and the median and quartiles of what they said.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef BENCH_STATS_H
#define BENCH_STATS_H

typedef struct bench_stats {
    double min, lower, median, upper, max; /* lower, upper: the quartiles */
} bench_stats_t;

/* Seconds of a clock that never jumps. */
double bench_now(void);

/* Seconds of CPU time that all threads of this process have used, user and system together. */
double bench_cpu_time(void);

/* Sleeps until bench_now() says `deadline`. Returns at once if that is past. */
void bench_sleep_until(double deadline);

/* Lets sleeps end on time: the kernel's default is to be up to 50 us late on purpose. */
void bench_sleep_precisely(void);

/* Of `count` samples, at least 1. Their order changes. */
bench_stats_t bench_stats(double *samples, int count);

#endif /* BENCH_STATS_H */
