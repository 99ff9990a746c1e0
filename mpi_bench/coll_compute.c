/*
 * coll_compute.c: see coll_compute.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "coll_compute.h"

#include <mpi.h>

#include "bench_stats.h"

enum { ROUNDS = 15, CALIBRATION_LOOPS = 4000000, CLOCK_LOOPS = 2000 };

static double loops_per_second;

/* Needs the core, and nothing but registers. */
static void work(double loops)
{
    volatile double result;
    double x = 1;

    for (; loops > 0; loops--) {
        x = x * 0.999999 + 1e-6;
    }
    result = x;
    (void) result;
}

void coll_compute_calibrate(void)
{
    double samples[ROUNDS], start;
    int i;

    for (i = 0; i < ROUNDS; i++) {
        MPI_Barrier(MPI_COMM_WORLD);
        start = bench_now();
        work(CALIBRATION_LOOPS);
        samples[i] = bench_now() - start;
    }
    MPI_Allreduce(MPI_IN_PLACE, samples, ROUNDS, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    loops_per_second = CALIBRATION_LOOPS / bench_stats(samples, ROUNDS).median;
}

void coll_compute(double seconds, coll_compute_kind_t kind)
{
    double end = bench_now() + seconds;

    switch (kind) {
    case COLL_WORK:
        work(seconds * loops_per_second);
        break;
    case COLL_CLOCK:
        while (bench_now() < end) {
            work(CLOCK_LOOPS);
        }
        break;
    case COLL_SLEEP:
        bench_sleep_until(end);
        break;
    }
}
