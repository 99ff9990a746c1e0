/*
 * bench_measure.h: runs all cases of a problem in turn, and works out the metrics.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include "bench_stats.h"
#include "bench_variants.h"

/* How long a block takes on the wire. */
typedef struct bench_link {
    const char *source;   /* "measured", or where the rate was given */
    double rate, payload; /* bytes per second with and without headers; 0 if not known */
    int mtu;
    double block_seconds;
} bench_link_t;

/* The metrics, as their authors define them. Times in seconds; NAN for what a case has not. */
typedef struct bench_measured {
    bench_case_t what;
    bench_stats_t time, cpu; /* of the maximum over ranks, over the iterations */
    double *times, *cpus;    /* each iteration's maximum over ranks, in order */
    double exposed;          /* ECT: T_total - T_comp */
    double exposed_percent;  /* of T_comm, the blocking collective of Open MPI alone */
    double wire_percent;     /* ECT of (N - 1) t_c, the least that the link takes */
    double e_overlap;        /* 1 - ECT / ECT(blocking); not clamped */
    double over_ring;        /* T_total / T_ring */
    double osu_overlap;      /* plain calls: max(0, 100 - 100 (T_overall - T_cpu) / T_comm), % */
} bench_measured_t;

typedef struct bench_result {
    bench_problem_t problem; /* its shape; the buffers are the caller's and may be gone */
    bench_link_t link;
    size_t block_bytes;                      /* of the largest block */
    double block_compute;                    /* t_g */
    double addition;                         /* t_add; 0 for AG */
    double ring;                             /* T_ring */
    bench_measured_t cases[BENCH_MAX_CASES]; /* on rank 0 */
    int ncases;
    long wrong; /* checks that failed, on all ranks */
} bench_result_t;

/*
 * Measures a problem that has a shape. Collective over both communicators; `own` is not served by
 * flash, `flash` is. Metrics are on rank 0 only.
 */
void bench_measure(bench_problem_t *problem, MPI_Comm own, MPI_Comm flash, bench_result_t *result);
void bench_result_free(bench_result_t *result);

/* The case of that name. */
const bench_measured_t *bench_result_find(const bench_result_t *result, const char *name);

#endif /* BENCH_MEASURE_H */
