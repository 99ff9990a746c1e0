/*
 * flash_gemm.c: how much of a collective hides under a matrix product.
 *
 * Measures AG+GEMM and GEMM+RS with flash and with Open MPI's own collectives in the same run. An
 * ordinary user's program: it knows <mpi.h>, <mpix_flash.h> and <cblas.h> only.
 *
 *   mpirun --mca coll flash flash_gemm --bytes=8M --compute=offload --link-rate=250M
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <stdlib.h>

#include "bench_file.h"
#include "bench_job.h"
#include "bench_report.h"

enum { MAX_RESULTS = 2 };

/* Rank 0 reads the command line for all: no rank can go its own way. */
static bench_parsed_t read_options(int argc, char **argv, int rank, bench_options_t *options)
{
    int parsed = BENCH_RUN;

    if (rank == 0) {
        parsed = (int) bench_options_parse(argc, argv, options);
    }
    MPI_Bcast(&parsed, 1, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Bcast(options, (int) sizeof(*options), MPI_BYTE, 0, MPI_COMM_WORLD);
    return (bench_parsed_t) parsed;
}

/* Opens the file before the measurement, which may take long, and not after it. */
static bool open_json(const bench_options_t *options, int rank, FILE **file)
{
    int opened = 1;

    *file = NULL;
    if (rank == 0) {
        opened = bench_file_open("flash_gemm", "--json", options->json, file);
    }
    MPI_Bcast(&opened, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return opened != 0;
}

/* The CPU time that some rank uses in a second in which the application does nothing. */
static double measure_idle(void)
{
    double cpu, start;

    MPI_Barrier(MPI_COMM_WORLD);
    cpu = bench_cpu_time();
    start = bench_now();
    bench_sleep_until(start + 1);
    cpu = (bench_cpu_time() - cpu) / (bench_now() - start);
    MPI_Allreduce(MPI_IN_PLACE, &cpu, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return cpu;
}

/* Gives every problem its shape before the first is measured. False if one cannot have it. */
static bool shape_problems(const bench_options_t *options, int rank,
                           bench_problem_t problems[MAX_RESULTS], int *count)
{
    const char *misfit;
    int i;

    *count = 0;
    for (i = 0; i < MAX_RESULTS; i++) {
        if (i == 0 ? !options->allgather : !options->reduce_scatter) {
            continue;
        }
        misfit = bench_problem_shape(&problems[*count], options, i == 0, MPI_COMM_WORLD);
        if (misfit != NULL) {
            if (rank == 0) {
                fprintf(stderr, "flash_gemm: %s\n", misfit);
            }
            return false;
        }
        (*count)++;
    }
    return true;
}

/* Measures and reports all problems. Returns the number of failed checks. */
static long run(bench_problem_t *problems, int count, int rank, bench_environment_t *environment,
                FILE *json)
{
    FILE *table = json == stdout ? stderr : stdout;
    bench_result_t results[MAX_RESULTS];
    MPI_Comm own = bench_own_communicator(MPI_COMM_WORLD);
    long wrong = 0;
    int i;

    for (i = 0; i < count; i++) {
        bench_measure(&problems[i], own, MPI_COMM_WORLD, &results[i]);
        wrong += results[i].wrong;
        /* Asked after use: flash may find out late that it cannot serve a communicator. */
        environment->flash_active = bench_served(MPI_COMM_WORLD, true);
        environment->own_is_flash = bench_served(own, false);
        if (rank == 0) {
            bench_report_result(table, environment, &results[i]);
        }
    }
    environment->idle_cpu_seconds = measure_idle();
    if (rank == 0) {
        bench_report_end(table, environment, results, count);
    }
    if (json != NULL) {
        bench_report_json(json, environment, results, count);
    }
    for (i = 0; i < count; i++) {
        bench_result_free(&results[i]);
        bench_problem_free(&problems[i]);
    }
    MPI_Comm_free(&own);
    return wrong;
}

/* Everything between MPI_Init and MPI_Finalize. Returns the exit status. */
static int bench(int argc, char **argv)
{
    bench_environment_t environment = {0};
    bench_problem_t problems[MAX_RESULTS];
    bench_options_t options;
    bench_parsed_t parsed;
    int rank, count, least;
    FILE *json;
    long wrong;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    parsed = read_options(argc, argv, rank, &options);
    if (parsed != BENCH_RUN) {
        return parsed == BENCH_BAD ? EXIT_FAILURE : EXIT_SUCCESS;
    }
    if (!shape_problems(&options, rank, problems, &count) || !open_json(&options, rank, &json)) {
        return EXIT_FAILURE;
    }
    environment.options = &options;
    environment.hosts = bench_count_hosts(rank, &least);
    MPI_Comm_size(MPI_COMM_WORLD, &environment.nranks);
    environment.threads_set = bench_compute_threads(options.threads);
    bench_sleep_precisely();
    wrong = run(problems, count, rank, &environment, json);
    if (!bench_file_close("flash_gemm", options.json, json)) {
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
