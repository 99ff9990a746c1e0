/*
 * flash_startup.c: what MPI_Init, and behind it the first of each of some calls, costs a program that
 * does not know flash: time, processor time, and memory that the process has for itself. startup.py
 * compares jobs with and without flash by it.
 *
 *   flash_startup [BYTES]     of a block (default 65536)
 *
 * Lines of CSV: what was called; how many milliseconds it took on the slowest rank; milliseconds of
 * processor time, and KiB that only this process has, since the process began, of the mean rank. The
 * calls' own buffers are left out.
 *
 * Not linked with libmpix_flash: flash does more in MPI_Init of programs that are.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <mpi.h>

#include "keep_libraries.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

static int rank, size, count; /* of elements in a block */
static int *sent, *received;  /* a block for each rank */

static void begin_iallgather(MPI_Request *request)
{
    MPI_Iallgather(sent, count, MPI_INT, received, count, MPI_INT, MPI_COMM_WORLD, request);
}

static void begin_ireduce_scatter(MPI_Request *request)
{
    MPI_Ireduce_scatter_block(sent, received, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD, request);
}

static void begin_ialltoall(MPI_Request *request)
{
    MPI_Ialltoall(sent, count, MPI_INT, received, count, MPI_INT, MPI_COMM_WORLD, request);
}

static void begin_barrier(MPI_Request *request)
{
    MPI_Barrier(MPI_COMM_WORLD);
    *request = MPI_REQUEST_NULL;
}

static const struct step {
    const char *name;
    void (*begin)(MPI_Request *request);
} steps[] = {{"MPI_Init", NULL},
             {"MPI_Barrier", begin_barrier},
             {"MPI_Iallgather", begin_iallgather},
             {"MPI_Ireduce_scatter_block", begin_ireduce_scatter},
             {"MPI_Ialltoall", begin_ialltoall}};

typedef struct cost {
    double ms, cpu_ms, private_kib;
} cost_t;

static double clock_ms(clockid_t clock)
{
    struct timespec time;

    clock_gettime(clock, &time);
    return 1e3 * (double) time.tv_sec + 1e-6 * (double) time.tv_nsec;
}

/* As the kernel counts it: pages that no other process maps. */
static double private_kib(void)
{
    FILE *file = fopen("/proc/self/smaps_rollup", "r");
    char line[256];
    long sum = 0, kib;

    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        if (sscanf(line, "Private_Clean: %ld", &kib) == 1 ||
            sscanf(line, "Private_Dirty: %ld", &kib) == 1) {
            sum += kib;
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return (double) sum;
}

static int *get_blocks(void)
{
    size_t bytes = (size_t) size * (size_t) count * sizeof(int);
    int *blocks = malloc(bytes);

    if (blocks == NULL) {
        fprintf(stderr, "flash_startup: no memory\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return memset(blocks, 0, bytes);
}

static void take(const struct step *step, cost_t *cost)
{
    double began = clock_ms(CLOCK_MONOTONIC);
    MPI_Request request;

    step->begin(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    cost->ms = clock_ms(CLOCK_MONOTONIC) - began;
    cost->cpu_ms = clock_ms(CLOCK_PROCESS_CPUTIME_ID);
    cost->private_kib = private_kib();
}

static void report(const cost_t *costs)
{
    if (rank == 0) {
        printf("call,ms,cpu_ms,private_kib\n");
    }
    for (size_t k = 0; k < LENGTH(steps); k++) {
        double slowest = 0, own[2] = {costs[k].cpu_ms, costs[k].private_kib}, sums[2];

        MPI_Reduce(&costs[k].ms, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
        MPI_Reduce(own, sums, 2, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
        if (rank == 0) {
            printf("%s,%.2f,%.2f,%.0f\n", steps[k].name, slowest, sums[0] / size, sums[1] / size);
        }
    }
}

int main(int argc, char **argv)
{
    cost_t costs[LENGTH(steps)];
    double began = clock_ms(CLOCK_MONOTONIC), buffers;
    long bytes = argc > 1 ? strtol(argv[1], NULL, 10) : 65536;

    MPI_Init(&argc, &argv);
    costs[0] = (cost_t){.ms = clock_ms(CLOCK_MONOTONIC) - began,
                        .cpu_ms = clock_ms(CLOCK_PROCESS_CPUTIME_ID),
                        .private_kib = private_kib()};
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (bytes < (long) sizeof(int) || bytes > (1L << 24)) {
        fprintf(stderr, "flash_startup: %ld bytes: give 4 to 16777216\n", bytes);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    count = (int) (bytes / (long) sizeof(int));
    sent = get_blocks();
    received = get_blocks();
    buffers = private_kib() - costs[0].private_kib;
    for (size_t k = 1; k < LENGTH(steps); k++) {
        take(&steps[k], &costs[k]);
        costs[k].private_kib -= buffers;
    }
    report(costs);
    free(sent);
    free(received);
    MPI_Finalize();
    return 0;
}
