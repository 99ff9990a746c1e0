/*
 * layer_bench.c: see layer_bench.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "layer_bench.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <mpix_flash.h>

#include "bench_file.h"
#include "bench_job.h"
#include "bench_stats.h"
#include "layer_options.h"
#include "layer_wire.h"

/* Of single precision, through two products: what rounding makes of it is some 1e-6; of bfloat16
 * between them, some 1e-3. */
#define MOST_ERROR      1e-4
#define MOST_HALF_ERROR 2e-2

enum { MOST_WAYS = 4 + 2 * LAYER_MAX_SLICINGS + LAYER_MAX_VARIANTS };

typedef struct measured {
    layer_way_t way;
    char name[32];
    double *times[LAYER_MAX_PHASES]; /* of each iteration: this rank's, then the maximum */
    double median[LAYER_MAX_PHASES];
    double error;
} measured_t;

typedef struct bench {
    layer_t layer;
    layer_device_t device;
    layer_wire_t wire;
    layer_settings_t settings;
    void *state;
    measured_t ways[MOST_WAYS];
    int count;
} bench_t;

void *layer_must_have(void *memory)
{
    if (memory == NULL) {
        fprintf(stderr, "%s: out of memory: give fewer tokens\n", layer_workload.program);
        MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    }
    return memory;
}

void *layer_alloc(size_t count, size_t size)
{
    return layer_must_have(calloc(count + 1, size));
}

/* A few rounds of a mixing function (SplitMix64). */
float layer_value(unsigned matrix, size_t row, size_t column)
{
    uint64_t x = ((uint64_t) matrix << 56) ^ ((uint64_t) row << 28) ^ (uint64_t) column;

    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    x ^= x >> 31;
    return (float) ((double) (x >> 40) / (double) (1 << 23) - 1);
}

static void add_way(bench_t *bench, layer_kind_t kind, int slices, MPI_Comm comm, const char *name)
{
    measured_t *made = &bench->ways[bench->count++];

    made->way = (layer_way_t){.kind = kind, .slices = slices, .comm = comm};
    snprintf(made->name, sizeof(made->name), kind == LAYER_SLICED ? "%s-%d" : "%s", name, slices);
    for (int phase = 0; phase < layer_workload.phases; phase++) {
        made->times[phase] =
            layer_alloc((size_t) bench->settings.options.iterations, sizeof(double));
    }
}

static void add_slicings(bench_t *bench, MPI_Comm comm, const char *name)
{
    const layer_settings_t *settings = &bench->settings;

    for (int k = 0; k < settings->nslicings; k++) {
        if (settings->slicings[k] <= bench->layer.rows) {
            add_way(bench, LAYER_SLICED, settings->slicings[k], comm, name);
        }
    }
}

static void list_ways(bench_t *bench, MPI_Comm own)
{
    add_way(bench, LAYER_COMPUTATION, 1, MPI_COMM_NULL, "computation");
    add_way(bench, LAYER_BLOCKING, 1, own, "no overlap");
    if (!layer_workload.exchanges) { /* flash has no plain all-to-all */
        add_way(bench, LAYER_WAITING, 1, MPI_COMM_WORLD, "no overlap ring");
    }
    add_way(bench, LAYER_NONBLOCKING, 1, own, "nonblocking");
    add_slicings(bench, own, "sliced");
    if (!layer_workload.exchanges) {
        add_slicings(bench, MPI_COMM_WORLD, "sliced ring");
    }
    for (int k = 0; k < LAYER_MAX_VARIANTS; k++) {
        const char *name = layer_workload.flash_variants[k];

        if (name != NULL || k == 0) {
            add_way(bench, LAYER_FLASH, 1, MPI_COMM_WORLD, name == NULL ? "flash" : name);
            bench->ways[bench->count - 1].way.variant = k;
        }
    }
}

static void run_once(bench_t *bench, measured_t *measured, int iteration)
{
    for (int phase = 0; phase < layer_workload.phases; phase++) {
        double begun;

        MPI_Barrier(MPI_COMM_WORLD);
        begun = bench_now();
        layer_workload.run(bench->state, &measured->way, phase);
        layer_finish(&bench->device);
        if (iteration >= 0) {
            measured->times[phase][iteration] = bench_now() - begun;
        }
    }
}

/* Each way once, on buffers that were made unusable. Without arithmetic there is nothing to check.
 */
static void check_all(bench_t *bench)
{
    for (int k = 0; k < bench->count; k++) {
        measured_t *measured = &bench->ways[k];

        layer_workload.prepare(bench->state, &measured->way);
        layer_upload(&bench->device, NULL);
        layer_wire_spoil(&bench->layer);
        run_once(bench, measured, -1);
        layer_download(&bench->device);
        if (measured->way.kind != LAYER_COMPUTATION && !bench->device.offload) {
            measured->error = layer_workload.error(bench->state, &measured->way);
        }
        if (isnan(measured->error)) {
            measured->error = INFINITY; /* MPI_MAX need not know NAN */
        }
        MPI_Allreduce(MPI_IN_PLACE, &measured->error, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    }
}

/* In turn, so that a disturbance meets all of them. */
static void measure_all(bench_t *bench)
{
    const layer_options_t *options = &bench->settings.options;
    double told = bench_now();

    for (int pass = -options->warmup; pass < options->iterations; pass++) {
        for (int k = 0; k < bench->count; k++) {
            int turn = (k + pass + options->warmup) % bench->count;

            run_once(bench, &bench->ways[turn], pass);
        }
        if (bench->layer.rank == 0 && bench_now() - told > 3) {
            told = bench_now();
            fprintf(stderr, "%s: iteration %d of %d\n", layer_workload.program,
                    pass + options->warmup + 1, options->warmup + options->iterations);
        }
    }
    for (int k = 0; k < bench->count; k++) {
        for (int phase = 0; phase < layer_workload.phases; phase++) {
            double *times = bench->ways[k].times[phase];

            MPI_Allreduce(MPI_IN_PLACE, times, options->iterations, MPI_DOUBLE, MPI_MAX,
                          MPI_COMM_WORLD);
            bench->ways[k].median[phase] = bench_stats(times, options->iterations).median;
        }
    }
}

/* ----------------------------------------------------------------------- report */

/* Of a phase, or of all together (phase -1). */
static double time_of(const measured_t *measured, int phase)
{
    double sum = 0;

    for (int k = 0; k < layer_workload.phases; k++) {
        sum += phase < 0 || phase == k ? measured->median[k] : 0;
    }
    return sum;
}

/* What is exposed without overlap, by Open MPI's calls or by flash's: the less. */
static double unhidden_of(const bench_t *bench, int phase)
{
    double least = INFINITY;

    for (int k = 0; k < bench->count; k++) {
        layer_kind_t kind = bench->ways[k].way.kind;
        double time = time_of(&bench->ways[k], phase);

        if ((kind == LAYER_BLOCKING || kind == LAYER_WAITING) && time < least) {
            least = time;
        }
    }
    return least - time_of(&bench->ways[0], phase);
}

static void report_phase(const bench_t *bench, int phase, FILE *csv)
{
    const char *name = phase >= 0                   ? layer_workload.phase_names[phase]
                       : layer_workload.phases == 2 ? "both"
                                                    : "all";
    double computation = time_of(&bench->ways[0], phase);
    double unhidden = unhidden_of(bench, phase);

    printf("\n%s: computation %.3f ms\n%-16s %12s %12s %12s %10s\n", name, 1e3 * computation,
           "variant", "total ms", "exposed ms", "exposed %", "E_overlap");
    for (int k = 1; k < bench->count; k++) {
        const measured_t *measured = &bench->ways[k];
        double total = time_of(measured, phase), exposed = total - computation;

        printf("%-16s %12.3f %12.3f %12.2f %10.4f\n", measured->name, 1e3 * total, 1e3 * exposed,
               100 * exposed / unhidden, 1 - exposed / unhidden);
        if (csv != NULL) {
            fprintf(csv, "%s,%s,%s,%.9f,%.9f,%.9f,%g\n", layer_workload.program, name,
                    measured->name, computation, total, exposed, measured->error);
        }
    }
}

static void report(const bench_t *bench, int hosts, bool served, FILE *csv)
{
    static const char *const computes[] = {[LAYER_BLAS] = "BLAS",
                                           [LAYER_OFFLOAD] = "an accelerator's time",
                                           [LAYER_CUBLAS] = "cuBLAS"};
    const layer_options_t *options = &bench->settings.options;
    char rate[48] = "";

    if (options->compute == LAYER_OFFLOAD) {
        snprintf(rate, sizeof(rate), ", %g Gflop/s", 1e-9 * options->rate);
    }
    printf("%s: %d ranks, %d hosts, tokens x hidden x %s = %d x %d x %d%s, %s, %s%s\n",
           layer_workload.title, bench->layer.nranks, hosts,
           layer_workload.has_heads ? "heads" : "inner", options->tokens, options->hidden,
           layer_workload.has_heads ? options->heads : options->inner,
           options->causal ? ", causal" : "", options->half ? "bf16" : "fp32",
           computes[options->compute], rate);
    if (!served) {
        printf("flash does not serve this job: its rows are Open MPI's\n");
    }
    if (csv != NULL) {
        fprintf(csv, "program,phase,variant,computation_s,total_s,exposed_s,error\n");
    }
    for (int phase = 0; phase < layer_workload.phases; phase++) {
        report_phase(bench, phase, csv);
    }
    if (layer_workload.phases > 1) {
        report_phase(bench, -1, csv);
    }
    printf("exposed %%: of what no overlap exposes, at best; E_overlap = 1 - exposed / that\n");
}

/* How many ways have wrong results. */
static int report_errors(const bench_t *bench)
{
    double worst = 0, allowed = bench->layer.wire->half ? MOST_HALF_ERROR : MOST_ERROR;
    int wrong = 0;

    for (int k = 1; k < bench->count; k++) {
        bool is_wrong = !(bench->ways[k].error <= allowed);

        wrong += is_wrong;
        worst = bench->ways[k].error > worst ? bench->ways[k].error : worst;
        if (is_wrong && bench->layer.rank == 0) {
            fprintf(stderr, "%s: %s is wrong: error %g\n", layer_workload.program,
                    bench->ways[k].name, bench->ways[k].error);
        }
    }
    if (bench->layer.rank == 0 && wrong == 0) {
        if (bench->device.offload) {
            printf("results: none, an accelerator's time computes nothing\n");
        } else {
            printf("results: right, relative error at most %.1e (allowed %.0e)\n", worst, allowed);
        }
    }
    return wrong;
}

/* -------------------------------------------------------------------------- run */

static bool open_device(bench_t *bench)
{
    const layer_options_t *options = &bench->settings.options;
    int opened = layer_device_open(&bench->device, layer_workload.program, bench->layer.rank,
                                   options->compute, options->rate, options->half);

    bench->layer.device = &bench->device;
    MPI_Allreduce(MPI_IN_PLACE, &opened, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    return opened != 0;
}

static int run(const layer_settings_t *settings, FILE *csv)
{
    bench_t bench = {.settings = *settings};
    MPI_Comm own;
    int hosts, least, wrong;
    bool served;

    MPI_Comm_rank(MPI_COMM_WORLD, &bench.layer.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &bench.layer.nranks);
    if (!open_device(&bench)) {
        return EXIT_FAILURE;
    }
    own = bench_own_communicator(MPI_COMM_WORLD);
    bench.layer.rows = layer_workload.block_rows(&settings->options, bench.layer.nranks);
    bench.layer.pieces = settings->options.pieces;
    layer_wire_open(&bench.wire, settings->options.half);
    bench.layer.wire = &bench.wire;
    bench.state = layer_workload.make(&bench.layer, &settings->options);
    hosts = bench_count_hosts(bench.layer.rank, &least);
    list_ways(&bench, own);
    check_all(&bench);
    layer_workload.prepare(bench.state, &bench.ways[0].way); /* numbers, whoever reads them */
    layer_upload(&bench.device, NULL);
    measure_all(&bench);
    served = bench_served(MPI_COMM_WORLD, true);
    if (bench.layer.rank == 0) {
        report(&bench, hosts, served, csv);
    }
    wrong = report_errors(&bench);
    for (int k = 0; k < bench.count; k++) {
        for (int phase = 0; phase < layer_workload.phases; phase++) {
            free(bench.ways[k].times[phase]);
        }
    }
    layer_workload.free(bench.state);
    layer_wire_close(&bench.wire, &bench.device);
    layer_device_close(&bench.device);
    MPI_Comm_free(&own);
    return wrong == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* Rank 0 reads the command line, and opens what is to be written, for all. */
static bool begin(int argc, char **argv, layer_settings_t *settings, FILE **csv, int *status)
{
    int rank, nranks, parsed = BENCH_RUN;

    *csv = NULL;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &nranks);
    if (rank == 0) {
        parsed = (int) layer_options_parse(layer_workload.program, argc, argv, nranks, settings);
        if (parsed == BENCH_RUN &&
            !bench_file_open(layer_workload.program, "--csv", settings->csv, csv)) {
            parsed = BENCH_BAD;
        }
    }
    MPI_Bcast(&parsed, 1, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Bcast(settings, (int) sizeof(*settings), MPI_BYTE, 0, MPI_COMM_WORLD);
    *status = parsed == BENCH_BAD ? EXIT_FAILURE : EXIT_SUCCESS;
    return parsed == BENCH_RUN;
}

int main(int argc, char **argv)
{
    layer_settings_t settings;
    int level, status;
    FILE *csv;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
    bench_sleep_precisely();
    if (begin(argc, argv, &settings, &csv, &status)) {
        status = run(&settings, csv);
        if (!bench_file_close(layer_workload.program, settings.csv, csv)) {
            status = EXIT_FAILURE;
        }
    }
    MPI_Finalize();
    return status;
}
