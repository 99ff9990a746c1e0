/*
 * coll_measure.c: see coll_measure.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "coll_measure.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "coll_compute.h"

/* What is timed in an iteration. */
enum { ALONE, OVERALL, START, COMPUTE, TEST, WAIT, FLOOR, TIMES };

enum { MIN_ITERATIONS = 10, MAX_ITERATIONS = 1000, FIRST_CALLS = 6 };

#define WARM_UP_SECONDS 0.3

typedef struct coll_series {
    coll_data_t *data; /* by side */
    const coll_options_t *options;
    MPI_Comm comms[COLL_SIDES];
    int nsides, iterations, round;
    double compute[COLL_SIDES]; /* seconds of computation that a side is to hide */
    double *samples;            /* of a side: TIMES times `iterations` */
    bench_counters_t flash;     /* in the calls that coll_row_t says */
    long wrong;
} coll_series_t;

static double *sample(const coll_series_t *series, int side, int time, int iteration)
{
    return &series->samples[(side * TIMES + time) * series->iterations + iteration];
}

/* A computation in as many parts as there are calls of MPI_Test between them, and one more. */
static void compute_and_test(const coll_series_t *series, double seconds, MPI_Request *request,
                             double times[TIMES])
{
    int parts = series->options->tests + 1, done = 0, i;
    double start;

    for (i = 0; i < parts; i++) {
        coll_compute(seconds / parts, series->options->compute);
        if (request != NULL && i + 1 < parts) {
            start = bench_now();
            MPI_Test(request, &done, MPI_STATUS_IGNORE);
            times[TEST] += bench_now() - start;
        }
    }
}

static void run_alone(const coll_series_t *series, int side, double times[TIMES])
{
    MPI_Request request;
    double start;

    MPI_Barrier(MPI_COMM_WORLD);
    start = bench_now();
    if (side == COLL_BLOCKING || (side == COLL_FLASH && series->options->blocking)) {
        coll_operation.block(&series->data[side], series->comms[side]);
    } else {
        coll_operation.start(&series->data[side], series->comms[side], &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    times[ALONE] = bench_now() - start;
}

/* The computation under a call that moves nothing; then Open MPI looks for messages, as a wait does. */
static double run_floor(const coll_series_t *series, int side, double times[TIMES])
{
    MPI_Request request;
    double start;
    int found;

    MPI_Barrier(MPI_COMM_WORLD);
    start = bench_now();
    MPI_Isend(NULL, 0, MPI_BYTE, MPI_PROC_NULL, 0, series->comms[side], &request);
    compute_and_test(series, series->compute[side], NULL, times);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, series->comms[side], &found, MPI_STATUS_IGNORE);
    return bench_now() - start;
}

/* Nothing is computed under a blocking call, but its memory is to be in the caches here as well. */
static void run_computing(const coll_series_t *series, int side, double times[TIMES])
{
    MPI_Request request;
    double start, started, computed;

    if (side == COLL_BLOCKING) {
        run_alone(series, side, times);
        return;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    start = bench_now();
    compute_and_test(series, series->compute[side], NULL, times);
    times[COMPUTE] = bench_now() - start;
    MPI_Barrier(MPI_COMM_WORLD);
    start = bench_now();
    coll_operation.start(&series->data[side], series->comms[side], &request);
    started = bench_now();
    compute_and_test(series, series->compute[side], &request, times);
    computed = bench_now();
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    times[OVERALL] = bench_now() - start;
    times[START] = started - start;
    times[WAIT] = bench_now() - computed;
}

/* Adds what happened between two readings. */
static void count(bench_counters_t *sum, bench_counters_t before, bench_counters_t after)
{
    sum->ring += after.ring - before.ring;
    sum->pairwise += after.pairwise - before.pairwise;
    sum->shm += after.shm - before.shm;
    sum->recdbl += after.recdbl - before.recdbl;
    sum->fallback += after.fallback - before.fallback;
    sum->wakeups += after.wakeups - before.wakeups;
    sum->switches += after.switches - before.switches;
    sum->thread_seconds += after.thread_seconds - before.thread_seconds;
}

typedef void (*run_t)(const coll_series_t *series, int side, double times[TIMES]);

/* Those that coll_row_t says are counted. */
static bool is_counted(const coll_series_t *series, run_t run)
{
    return run == (series->options->alone ? run_alone : run_computing);
}

/* Negative iterations warm up; the first and the last one are checked. */
static void run_one(coll_series_t *series, run_t run, int side, int iteration)
{
    bool check = series->options->check &&
                 (iteration == 0 || iteration == series->iterations - 1 || iteration == -1);
    bool counted = is_counted(series, run);
    bool switches = counted && series->options->compute == COLL_SLEEP;
    bench_counters_t before = bench_counters_read(switches), after;
    double times[TIMES] = {0};
    int time;

    if (check) {
        coll_data_fill(&series->data[side], ++series->round);
    }
    run(series, side, times);
    after = bench_counters_read(switches);
    if (series->options->floor && side == COLL_FLASH && run == run_computing) {
        times[FLOOR] = run_floor(series, side, times);
    }
    if (side == COLL_FLASH && iteration >= 0 && counted) {
        count(&series->flash, before, after);
    }
    if (check) {
        MPI_Barrier(MPI_COMM_WORLD); /* the check of one must not disturb the others' timing */
        series->wrong += !coll_data_check(&series->data[side], series->round);
    }
    for (time = 0; iteration >= 0 && time < TIMES; time++) {
        if (times[time] > 0) {
            *sample(series, side, time, iteration) = times[time];
        }
    }
}

/*
 * Sides take turns, forwards and backwards, so that none always comes after the same other: what
 * one leaves behind (a thread that looks once more, a link that has sent less than it may) meets
 * all.
 */
static void run_all(coll_series_t *series, run_t run)
{
    int nsides = series->nsides;
    int i, side, turn;

    for (i = -series->options->warmup; i < series->iterations; i++) {
        turn = i + series->options->warmup;
        for (side = 0; side < nsides; side++) {
            run_one(series, run, ((turn % 2 == 0 ? side : nsides - side) + turn / 2) % nsides, i);
        }
    }
}

static bench_stats_t stats_of(const coll_series_t *series, int side, int time)
{
    double *samples = sample(series, side, time, 0);

    MPI_Allreduce(MPI_IN_PLACE, samples, series->iterations, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return bench_stats(samples, series->iterations);
}

/*
 * As many as fit in the time: a call alone, one under a computation that takes as long, and that.
 * First calls connect, map and touch what later ones find: after a few, one tells.
 */
static int choose_iterations(coll_series_t *series)
{
    const double overhead = 20e-6;
    double times[TIMES] = {0}, fit;
    int side, call;

    if (series->options->iterations > 0) {
        return series->options->iterations;
    }
    for (fit = 0, side = 0; side < series->nsides; side++) {
        for (call = 0; call < FIRST_CALLS; call++) {
            run_alone(series, side, times);
        }
        fit += (series->options->floor ? 5 : 4) * times[ALONE] + overhead;
    }
    fit = series->options->seconds / fit;
    fit = fit < MIN_ITERATIONS ? MIN_ITERATIONS : fit > MAX_ITERATIONS ? MAX_ITERATIONS : fit;
    MPI_Allreduce(MPI_IN_PLACE, &fit, 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
    return (int) fit;
}

static void measure_computing(coll_series_t *series, coll_row_t *row)
{
    int computing = series->nsides < COLL_BLOCKING ? series->nsides : COLL_BLOCKING;
    int side;

    run_all(series, run_computing);
    for (side = 0; side < computing; side++) {
        row->times[side].overall = stats_of(series, side, OVERALL);
        row->times[side].start = stats_of(series, side, START);
        row->times[side].compute = stats_of(series, side, COMPUTE);
        row->times[side].test = stats_of(series, side, TEST);
        row->times[side].wait = stats_of(series, side, WAIT);
        row->times[side].floor = stats_of(series, side, FLOOR);
    }
}

static void run_series(coll_series_t *series, coll_row_t *row)
{
    static const bench_stats_t none = {NAN, NAN, NAN, NAN, NAN};
    int side;

    run_all(series, run_alone);
    for (side = 0; side < series->nsides; side++) {
        coll_times_t *times = &row->times[side];

        times->alone = stats_of(series, side, ALONE);
        times->overall = times->start = times->compute = times->test = times->wait = none;
        times->floor = none;
        series->compute[side] =
            series->options->ratio *
            row->times[series->options->same_work ? COLL_FLASH : side].alone.median;
    }
    if (!series->options->alone) {
        measure_computing(series, row);
    }
    row->flash = series->flash;
}

int coll_sides(const coll_options_t *options)
{
    return options->own ? COLL_SIDES : 1;
}

/* What a measurement begins with. */
static coll_series_t series_of(coll_data_t data[], const coll_options_t *options, MPI_Comm flash,
                               MPI_Comm own)
{
    return (coll_series_t){.data = data,
                           .options = options,
                           .comms = {flash, own, own},
                           .nsides = coll_sides(options)};
}

void coll_warm_up(coll_data_t data[], const coll_options_t *options, MPI_Comm flash, MPI_Comm own)
{
    coll_series_t series = series_of(data, options, flash, own);
    double times[TIMES] = {0}, began = bench_now(), elapsed;
    int side;

    do {
        for (side = 0; side < series.nsides; side++) {
            run_alone(&series, side, times);
        }
        elapsed = bench_now() - began;
        MPI_Bcast(&elapsed, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    } while (elapsed < WARM_UP_SECONDS);
}

void coll_measure(coll_data_t data[], const coll_options_t *options, MPI_Comm flash, MPI_Comm own,
                  coll_row_t *row)
{
    coll_series_t series = series_of(data, options, flash, own);

    series.iterations = choose_iterations(&series);
    series.samples =
        calloc((size_t) (COLL_SIDES * TIMES) * (size_t) series.iterations, sizeof(*series.samples));
    if (series.samples == NULL) {
        fprintf(stderr, "%s: no memory for %d iterations: give -i a smaller number\n",
                coll_operation.program, series.iterations);
        MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    }
    run_series(&series, row);
    MPI_Allreduce(MPI_IN_PLACE, &series.wrong, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    row->iterations = series.iterations;
    row->total_bytes = (size_t) data->total * data->size;
    row->wrong = series.wrong;
    free(series.samples);
}

double coll_overlap(const coll_times_t *times)
{
    return 100 - 100 * (times->overall.median - times->compute.median) / times->alone.median;
}
