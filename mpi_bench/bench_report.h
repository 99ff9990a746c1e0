/*
 * bench_report.h: results for people (a table) and for programs (JSON).
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include <stdio.h>

#include "bench_measure.h"

/* What is the same for all results of a run. */
typedef struct bench_environment {
    const bench_options_t *options;
    int hosts, nranks;
    bool flash_active;       /* flash serves the communicator of the rows named so */
    bool own_is_flash;       /* flash serves Open MPI's own rows, too, against their purpose */
    bool threads_set;        /* --threads had an effect */
    double idle_cpu_seconds; /* CPU time in an idle second after the last operation */
} bench_environment_t;

/* The tables of one operation and the sentence that sums them up. */
void bench_report_result(FILE *file, const bench_environment_t *environment,
                         const bench_result_t *result);

/* What concerns the whole run, below the last table. */
void bench_report_end(FILE *file, const bench_environment_t *environment,
                      const bench_result_t *results, int count);

void bench_report_json(FILE *file, const bench_environment_t *environment,
                       const bench_result_t *results, int count);

#endif /* BENCH_REPORT_H */
