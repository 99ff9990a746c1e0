/*
 * bench_measure.c: runs all cases of a problem in turn, and works out the metrics.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "bench_measure.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench_link.h"

/* What a run of all cases writes. The samples of case i begin at i x iterations. */
typedef struct bench_series {
    bench_problem_t *problem;
    bench_check_t check;
    bench_case_t cases[BENCH_MAX_CASES];
    int ncases;
    double *times, *cpus;
    long wrong;
    double begun, told; /* for the progress line */
} bench_series_t;

/* A line a second, from a few seconds on. */
static void tell_progress(bench_series_t *series, int pass, int passes)
{
    const double patience = 3, interval = 1;
    double now = bench_now();
    bool terminal = isatty(STDERR_FILENO);

    if (series->problem->rank != 0 || !series->problem->options->progress ||
        now - series->begun < patience || now - series->told < interval) {
        return;
    }
    series->told = now;
    fprintf(stderr, "%sflash_gemm: %s, round %d of %d%s", terminal ? "\r" : "",
            series->problem->allgather ? "AG+GEMM" : "GEMM+RS", pass + 1, passes,
            terminal ? "   " : "\n");
    fflush(stderr);
}

static void measure_case(bench_series_t *series, int index, int pass)
{
    const bench_options_t *options = series->problem->options;
    const bench_case_t *bench_case = &series->cases[index];
    int iteration = pass - options->warmup;
    double *times = &series->times[index * options->iterations];
    double *cpus = &series->cpus[index * options->iterations];
    bool check =
        options->check && (pass == 0 || iteration == 0 || iteration == options->iterations - 1);
    double start, cpu;

    if (check) {
        bench_problem_poison(series->problem);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    cpu = bench_cpu_time();
    start = bench_now();
    bench_case->run(series->problem, bench_case);
    bench_compute_finish(series->problem);
    if (iteration >= 0) { /* earlier ones warm up */
        times[iteration] = bench_now() - start;
        cpus[iteration] = bench_cpu_time() - cpu;
    }
    if (check) {
        MPI_Barrier(MPI_COMM_WORLD); /* the check of one must not disturb the others' timing */
        series->wrong += !bench_variants_check(&series->check, bench_case);
    }
}

/* The cases take turns, so that a disturbance meets all of them, and each begins a round once. */
static void measure_all(bench_series_t *series)
{
    const bench_options_t *options = series->problem->options;
    int passes = options->warmup + options->iterations;
    int pass, i;

    series->begun = bench_now();
    for (pass = 0; pass < passes; pass++) {
        for (i = 0; i < series->ncases; i++) {
            measure_case(series, (i + pass) % series->ncases, pass);
            tell_progress(series, pass, passes);
        }
    }
    if (series->told > 0 && isatty(STDERR_FILENO)) {
        fputc('\n', stderr);
    }
}

/* Gathers the maximum over ranks of every sample on rank 0. */
static void reduce_samples(bench_series_t *series)
{
    int count = series->ncases * series->problem->options->iterations;
    bool root = series->problem->rank == 0;

    MPI_Reduce(root ? MPI_IN_PLACE : series->times, series->times, count, MPI_DOUBLE, MPI_MAX, 0,
               MPI_COMM_WORLD);
    MPI_Reduce(root ? MPI_IN_PLACE : series->cpus, series->cpus, count, MPI_DOUBLE, MPI_MAX, 0,
               MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, &series->wrong, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
}

static double *copy_samples(const double *samples, int count)
{
    double *copy = bench_alloc((size_t) count, sizeof(*copy));

    memcpy(copy, samples, (size_t) count * sizeof(*copy));
    return copy;
}

/* Medians first: the metrics of a case refer to those of others. */
static void take_samples(const bench_series_t *series, bench_result_t *result)
{
    int iterations = series->problem->options->iterations;
    bench_measured_t *measured;
    int i;

    result->ncases = series->ncases;
    for (i = 0; i < series->ncases; i++) {
        measured = &result->cases[i];
        measured->what = series->cases[i];
        measured->times = copy_samples(&series->times[i * iterations], iterations);
        measured->cpus = copy_samples(&series->cpus[i * iterations], iterations);
        measured->time = bench_stats(&series->times[i * iterations], iterations);
        measured->cpu = bench_stats(&series->cpus[i * iterations], iterations);
    }
}

static double median_of(const bench_result_t *result, const char *name)
{
    return bench_result_find(result, name)->time.median;
}

static void work_out_ring(bench_result_t *result)
{
    const bench_problem_t *problem = &result->problem;
    double longer;

    result->block_compute = median_of(result, "T_split") / problem->nranks;
    result->addition = problem->allgather ? 0 : median_of(result, "t_add");
    longer = result->block_compute > result->link.block_seconds ? result->block_compute
                                                                : result->link.block_seconds;
    result->ring = result->block_compute + (problem->nranks - 1) * longer + result->addition;
}

static void work_out_metrics(bench_result_t *result)
{
    double computation = median_of(result, "T_comp");
    double communication = median_of(result, "T_comm");
    double blocking = median_of(result, "blocking") - computation;
    double wire = (result->problem.nranks - 1) * result->link.block_seconds;
    double alone;
    bench_measured_t *measured;
    int i;

    work_out_ring(result);
    for (i = 0; i < result->ncases; i++) {
        measured = &result->cases[i];
        measured->exposed = measured->exposed_percent = measured->wire_percent = NAN;
        measured->e_overlap = measured->over_ring = measured->osu_overlap = NAN;
        if (measured->what.kind == BENCH_ALONE) {
            continue;
        }
        measured->exposed = measured->time.median - computation;
        measured->exposed_percent = 100 * measured->exposed / communication;
        measured->wire_percent = 100 * measured->exposed / wire;
        measured->e_overlap = 1 - measured->exposed / blocking;
        measured->over_ring = measured->time.median / result->ring;
        if (measured->what.kind == BENCH_PLAIN) {
            alone = median_of(result, strstr(measured->what.name, "flash") != NULL
                                          ? "T_comm flash"
                                          : "T_comm nonblocking");
            measured->osu_overlap = 100 - 100 * measured->exposed / alone;
            measured->osu_overlap = measured->osu_overlap > 0 ? measured->osu_overlap : 0;
        }
    }
}

const bench_measured_t *bench_result_find(const bench_result_t *result, const char *name)
{
    int i;

    for (i = 0; i < result->ncases; i++) {
        if (strcmp(result->cases[i].what.name, name) == 0) {
            return &result->cases[i];
        }
    }
    return NULL;
}

/* The time that stands for the computation of a row. Equal on all ranks, as the link is. */
static void set_row_seconds(bench_problem_t *problem, const bench_link_t *link)
{
    const double default_ratio = 2;
    const bench_options_t *options = problem->options;
    double ratio = options->compute_ratio > 0 ? options->compute_ratio : default_ratio;
    double block = options->block_time > 0 ? options->block_time : ratio * link->block_seconds;

    problem->row_seconds = options->offload ? block / problem->blocks.max_rows : 0;
}

void bench_measure(bench_problem_t *problem, MPI_Comm own, MPI_Comm flash, bench_result_t *result)
{
    size_t iterations = (size_t) problem->options->iterations;
    bench_series_t series = {.problem = problem};

    bench_problem_init(problem);
    bench_check_init(&series.check, problem);
    *result = (bench_result_t){.link = bench_link_find(problem, own)};
    set_row_seconds(problem, &result->link);
    series.ncases = bench_variants_list(problem, own, flash, series.cases);
    series.times = bench_alloc((size_t) series.ncases * iterations, sizeof(double));
    series.cpus = bench_alloc((size_t) series.ncases * iterations, sizeof(double));
    measure_all(&series);
    reduce_samples(&series);
    result->problem = *problem;
    result->wrong = series.wrong;
    result->block_bytes = (size_t) problem->blocks.max_rows * (size_t) problem->row * problem->size;
    if (problem->rank == 0) {
        take_samples(&series, result);
        work_out_metrics(result);
    }
    free(series.times);
    free(series.cpus);
    bench_check_free(&series.check);
}

void bench_result_free(bench_result_t *result)
{
    int i;

    for (i = 0; i < result->ncases; i++) {
        free(result->cases[i].times);
        free(result->cases[i].cpus);
    }
    result->ncases = 0;
}
