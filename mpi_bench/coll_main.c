/*
 * coll_main.c: the thirteen programs flash_iallgather, flash_iallgatherv, flash_ireduce_scatter,
 * flash_ireduce_scatter_block, flash_iallreduce, flash_ialltoall, flash_ialltoallv, flash_ibcast,
 * flash_ireduce, flash_igather, flash_igatherv, flash_iscatter and flash_iscatterv: a collective alone
 * and under computation, as the OSU benchmarks measure it, on flash and on Open MPI's own component in
 * one run.
 *
 *   mpirun --mca coll flash flash_iallgather -m 64K:4M
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <limits.h>
#include <stdlib.h>

#include "bench_device.h"
#include "bench_file.h"
#include "bench_job.h"
#include "coll_compute.h"
#include "coll_report.h"

/* Rank 0 reads the command line and opens the file for all: no rank can go its own way. */
static bench_parsed_t read_options(int argc, char **argv, int rank, coll_options_t *options,
                                   FILE **csv)
{
    int parsed = BENCH_RUN;

    *csv = NULL;
    if (rank == 0) {
        parsed = (int) coll_options_parse(argc, argv, options);
    }
    if (rank == 0 && parsed == BENCH_RUN &&
        !bench_file_open(coll_operation.program, "--csv", options->csv, csv)) {
        parsed = BENCH_BAD;
    }
    MPI_Bcast(&parsed, 1, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Bcast(options, (int) sizeof(*options), MPI_BYTE, 0, MPI_COMM_WORLD);
    return (bench_parsed_t) parsed;
}

static void free_data(coll_data_t data[], int sides)
{
    while (sides-- > 0) {
        coll_data_free(&data[sides]);
    }
}

/* False, and none is left: there is no memory for all sides. */
static bool allocate(coll_data_t data[], const coll_options_t *options)
{
    int side;

    for (side = 0; side < coll_sides(options); side++) {
        if (!coll_data_init(&data[side], options->max_bytes, options->device,
                            (size_t) options->offset)) {
            free_data(data, side);
            return false;
        }
    }
    return true;
}

static bool get_data(coll_data_t data[], const coll_options_t *options, int rank)
{
    int got, all, nranks;

    MPI_Comm_size(MPI_COMM_WORLD, &nranks);
    if (!coll_operation.reduces && options->max_bytes > (size_t) (INT_MAX / nranks)) {
        if (rank == 0) {
            fprintf(stderr,
                    "%s: %d blocks of %zu bytes are more than an integer can count: give -m "
                    "a size of up to %d\n",
                    coll_operation.program, nranks, options->max_bytes, INT_MAX / nranks);
        }
        return false;
    }
    got = !options->device || bench_device_open(coll_operation.program, rank);
    MPI_Allreduce(&got, &all, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    if (!all) {
        return false;
    }
    got = allocate(data, options);
    MPI_Allreduce(&got, &all, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    if (!all && rank == 0) {
        fprintf(stderr,
                "%s: no memory for messages of %zu bytes: give -m a smaller size, or --no-own\n",
                coll_operation.program, options->max_bytes);
    }
    if (got && !all) {
        free_data(data, coll_sides(options));
    }
    return all;
}

/* False if the size has no element for each rank. */
static bool shape(coll_data_t data[], int sides, size_t bytes)
{
    int side;

    for (side = 0; side < sides; side++) {
        if (!coll_data_shape(&data[side], bytes)) {
            return false;
        }
        coll_data_fill(&data[side], 0);
    }
    return true;
}

/* For flash's calls: with segments of so many bytes. */
static MPI_Comm with_segments(int bytes)
{
    char text[16];
    MPI_Info info;
    MPI_Comm comm;

    snprintf(text, sizeof(text), "%d", bytes);
    MPI_Info_create(&info);
    MPI_Info_set(info, "mpix_flash_segment_bytes", text);
    MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &comm);
    MPI_Info_free(&info);
    return comm;
}

/* All sizes. Returns the number of wrong results. */
static long run_sizes(const coll_job_t *job, coll_data_t data[], MPI_Comm flash, MPI_Comm own,
                      FILE *table, FILE *csv)
{
    const coll_options_t *options = job->options;
    bool warm = false;
    long wrong = 0;
    size_t bytes;

    for (bytes = options->min_bytes; bytes <= options->max_bytes;
         bytes *= (size_t) options->times) {
        coll_row_t row = {.bytes = bytes};

        if (!shape(data, coll_sides(options), bytes)) {
            continue;
        }
        if (!warm) {
            coll_warm_up(data, options, flash, own);
            warm = true;
        }
        coll_measure(data, options, flash, own, &row);
        wrong += row.wrong;
        coll_report_row(table, csv, job, &row);
    }
    return wrong;
}

/* Returns the number of wrong results. */
static long run(const coll_options_t *options, int rank, coll_data_t data[], FILE *csv)
{
    FILE *table = rank != 0 ? NULL : csv == stdout ? stderr : stdout;
    MPI_Comm own = bench_own_communicator(MPI_COMM_WORLD);
    coll_job_t job = {.options = options};
    long wrong = 0;

    MPI_Comm_size(MPI_COMM_WORLD, &job.nranks);
    job.hosts = bench_count_hosts(rank, &job.least_ranks);
    job.flash_serves = bench_served(MPI_COMM_WORLD, true);
    job.own_is_flash = bench_served(own, false);
    coll_report_head(table, csv, &job);
    if (options->nsegments == 0) {
        wrong = run_sizes(&job, data, MPI_COMM_WORLD, own, table, csv);
    }
    for (int k = 0; k < options->nsegments; k++) {
        MPI_Comm flash = with_segments(options->segments[k]);

        job.segment = options->segments[k];
        coll_report_segment(table, &job);
        wrong += run_sizes(&job, data, flash, own, table, csv);
        MPI_Comm_free(&flash);
    }
    if (table != NULL) {
        coll_report_end(table, &job, wrong);
    }
    MPI_Comm_free(&own);
    return wrong;
}

/* Everything between MPI_Init and MPI_Finalize. Returns the exit status. */
static int bench(int argc, char **argv)
{
    coll_options_t options;
    bench_parsed_t parsed;
    coll_data_t data[COLL_SIDES];
    int rank;
    FILE *csv;
    long wrong;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    parsed = read_options(argc, argv, rank, &options, &csv);
    if (parsed != BENCH_RUN) {
        return parsed == BENCH_BAD ? EXIT_FAILURE : EXIT_SUCCESS;
    }
    if (!get_data(data, &options, rank)) {
        return EXIT_FAILURE;
    }
    bench_sleep_precisely();
    coll_compute_calibrate();
    bench_counters_open();
    wrong = run(&options, rank, data, csv);
    bench_counters_close();
    free_data(data, coll_sides(&options));
    if (!bench_file_close(coll_operation.program, options.csv, csv)) {
        return EXIT_FAILURE;
    }
    return wrong == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    int level, status;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
    status = bench(argc, argv);
    MPI_Finalize();
    return status;
}
