/*
 * bench_stats.c: clocks, and the median and quartiles of what they said.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "bench_stats.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

double bench_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double) now.tv_sec + 1e-9 * (double) now.tv_nsec;
}

static double seconds(struct timeval time)
{
    return (double) time.tv_sec + 1e-6 * (double) time.tv_usec;
}

double bench_cpu_time(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

void bench_sleep_until(double deadline)
{
    struct timespec until;

    until.tv_sec = (time_t) deadline;
    until.tv_nsec = (long) (1e9 * (deadline - (double) until.tv_sec));
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR) {
    }
}

void bench_sleep_precisely(void)
{
#ifdef PR_SET_TIMERSLACK
    prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
#endif
}

static int compare(const void *left, const void *right)
{
    double a = *(const double *) left;
    double b = *(const double *) right;

    return (a > b) - (a < b);
}

bench_stats_t bench_stats(double *samples, int count)
{
    qsort(samples, (size_t) count, sizeof(*samples), compare);
    return (bench_stats_t){.min = samples[0],
                           .lower = samples[(count - 1) / 4],
                           .median = 0.5 * (samples[(count - 1) / 2] + samples[count / 2]),
                           .upper = samples[count - 1 - (count - 1) / 4],
                           .max = samples[count - 1]};
}
