/*
 * flash_tcp.c: what TCP takes from a computation on the same core.
 *
 * Every rank sends what a ring sends, (N - 1) blocks to its right neighbour: through a plain socket
 * that a thread serves, one poll() for whatever comes, and by the collectives. How much that is
 * more than with nothing to move, medians both, is told four ways:
 *
 *   alone      the time until it is done, waited for at once
 *   cpu        what getrusage() counts while the process sleeps. It does not count what the kernel
 *              does while no process runs: much of TCP, in the interrupts of an idle core
 *   loop       by how much a loop is late that needs no memory: all that the core does for it
 *   products   by how much products of matrices are late: that, and what it does to caches
 *
 *   tests/cluster/hosts -n 2 -c --mca coll flash -- flash_tcp [-m MIB OF A BLOCK] [-i ITERATIONS]
 *       [-a] [-f]
 *
 * -a: alone, and no other way; -f: comma-separated values. Loop, products and sleep last half as
 * long again as the slowest of the three alone.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cblas.h>
#include <mpi.h>

#include "bench_job.h"
#include "bench_parse.h"
#include "bench_stats.h"
#include "tcp_ring.h"

enum { NOTHING, SOCKET, ALLGATHER, REDUCE_SCATTER, MOVERS };
enum { ALONE, CPU, LOOP, PRODUCTS, WAYS };
enum { WIDTH = 512, TURNS = 1 << 20, MAX_ITERATIONS = 10000 };

static const char *const movers[MOVERS] = {"nothing", "a plain socket", "MPI_Iallgather",
                                           "MPI_Ireduce_scatter_block"};
static const char *const ways[WAYS] = {"alone", "cpu", "loop", "products"};

/* OpenBLAS has it, other implementations of <cblas.h> have not: hence weak. */
void openblas_set_num_threads(int threads) __attribute__((weak));

typedef struct bench {
    int rank, size, mib, iterations;
    int ways;              /* of WAYS */
    bool csv, served;      /* by flash, on all ranks */
    double seconds;        /* of a computation, about */
    int products, loops;   /* that take so long */
    double *a, *b, *c;     /* of WIDTH x WIDTH */
    char *one, *all, *sum; /* a block; one for each rank; a block */
    size_t block;          /* bytes */
    tcp_ring_t ring;
} bench_t;

static void *allocate(size_t size)
{
    void *memory = malloc(size);

    if (memory == NULL) {
        fprintf(stderr, "flash_tcp: out of memory: give -m a smaller number\n");
        MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
        abort();
    }
    /* No page is new when time is taken; doubles are ordinary numbers. */
    memset(memory, 0x3f, size);
    return memory;
}

static void multiply(const bench_t *bench, int products)
{
    for (int i = 0; i < products; i++) {
        cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, WIDTH, WIDTH, WIDTH, 1.0, bench->a,
                    WIDTH, bench->b, WIDTH, 0.0, bench->c, WIDTH);
    }
}

/* Turns that a compiler leaves as they are. */
static void loop(int loops)
{
    static volatile uint32_t seed = 1;
    uint32_t value = seed;

    for (int i = 0; i < loops; i++) {
        for (int k = 0; k < TURNS; k++) {
            value = value * 1664525 + 1013904223;
        }
    }
    seed = value;
}

static void compute(const bench_t *bench, int way)
{
    switch (way) {
    case CPU:
        bench_sleep_until(bench_now() + bench->seconds);
        break;
    case LOOP:
        loop(bench->loops);
        break;
    case PRODUCTS:
        multiply(bench, bench->products);
        break;
    default:
        break;
    }
}

static void begin(bench_t *bench, int mover, MPI_Request *request)
{
    int doubles = (int) (bench->block / sizeof(double));

    *request = MPI_REQUEST_NULL;
    if (mover == SOCKET) {
        tcp_ring_begin(&bench->ring);
    } else if (mover == ALLGATHER) {
        MPI_Iallgather(bench->one, doubles, MPI_DOUBLE, bench->all, doubles, MPI_DOUBLE,
                       MPI_COMM_WORLD, request);
    } else if (mover == REDUCE_SCATTER) {
        MPI_Ireduce_scatter_block(bench->all, bench->sum, doubles, MPI_DOUBLE, MPI_SUM,
                                  MPI_COMM_WORLD, request);
    }
}

/* Seconds, of the clock or of the CPU. */
static double run(bench_t *bench, int mover, int way)
{
    MPI_Request request;
    double start;

    MPI_Barrier(MPI_COMM_WORLD);
    start = way == CPU ? bench_cpu_time() : bench_now();
    begin(bench, mover, &request);
    compute(bench, way);
    if (mover == SOCKET) {
        tcp_ring_wait(&bench->ring);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    return (way == CPU ? bench_cpu_time() : bench_now()) - start;
}

static int repetitions(double seconds, double each)
{
    return 1 + (int) (seconds / each);
}

/* How long to compute, by the slowest rank, and how much that is, alone. */
static void calibrate(bench_t *bench)
{
    double start, alone, seconds = 0;
    int counts[2];

    for (int mover = SOCKET; mover < MOVERS; mover++) {
        run(bench, mover, ALONE); /* connects, and finds its buffers */
        alone = run(bench, mover, ALONE);
        seconds = alone > seconds ? alone : seconds;
    }
    MPI_Allreduce(&seconds, &bench->seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    bench->seconds *= 1.5;
    multiply(bench, 4); /* wakes the core up */
    start = bench_now();
    multiply(bench, 4);
    counts[0] = repetitions(bench->seconds, (bench_now() - start) / 4);
    start = bench_now();
    loop(8);
    counts[1] = repetitions(bench->seconds, (bench_now() - start) / 8);
    MPI_Allreduce(MPI_IN_PLACE, counts, 2, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    bench->products = counts[0];
    bench->loops = counts[1];
}

static void print_header(const bench_t *bench)
{
    if (bench->csv) {
        printf("mover,served,ranks,bytes");
    } else {
        printf("%zu bytes to the right neighbour, %d ranks, collectives by %s; ms more than with "
               "nothing to\nmove, medians of %d iterations of the slowest rank\n%-26s",
               bench->ring.total, bench->size, bench->served ? "flash" : "Open MPI's own component",
               bench->iterations, "");
    }
    for (int way = 0; way < bench->ways; way++) {
        printf(bench->csv ? ",%s_ms" : " %9s", ways[way]);
    }
    printf("\n");
}

/* Each way, how much more than with nothing to move. */
static void print_mover(const bench_t *bench, const char *name, const double more[WAYS])
{
    if (bench->csv) {
        printf("%s,%d,%d,%zu", name, bench->served, bench->size, bench->ring.total);
    } else {
        printf("%-26s", name);
    }
    for (int way = 0; way < bench->ways; way++) {
        printf(bench->csv ? ",%.3f" : " %9.2f", 1e3 * more[way]);
    }
    printf("\n");
}

/* `seconds`: of each mover, of each way, the iterations. */
static void report(const bench_t *bench, double *seconds)
{
    double medians[MOVERS][WAYS];

    for (int mover = 0; mover < MOVERS; mover++) {
        for (int way = 0; way < bench->ways; way++, seconds += bench->iterations) {
            medians[mover][way] = bench_stats(seconds, bench->iterations).median;
        }
    }
    print_header(bench);
    for (int mover = SOCKET; mover < MOVERS; mover++) {
        for (int way = 0; way < bench->ways; way++) {
            medians[mover][way] -= medians[NOTHING][way];
        }
        print_mover(bench, movers[mover], medians[mover]);
    }
}

/* They take turns; of each iteration the slowest rank counts. The first is not measured. */
static void measure(bench_t *bench)
{
    int count = MOVERS * bench->ways * bench->iterations;
    double *all = allocate((size_t) count * sizeof(*all));
    double seconds;

    for (int i = -1; i < bench->iterations; i++) {
        for (int way = 0; way < bench->ways; way++) {
            for (int mover = 0; mover < MOVERS; mover++) {
                seconds = run(bench, mover, way);
                if (i >= 0) {
                    all[(mover * bench->ways + way) * bench->iterations + i] = seconds;
                }
            }
        }
    }
    MPI_Reduce(bench->rank == 0 ? MPI_IN_PLACE : all, all, count, MPI_DOUBLE, MPI_MAX, 0,
               MPI_COMM_WORLD);
    if (bench->rank == 0) {
        report(bench, all);
    }
    free(all);
}

static double number_of(int rank)
{
    return rank + 1;
}

static void fill(const bench_t *bench)
{
    double *one = (void *) bench->one;

    for (size_t i = 0; i < bench->block / sizeof(*one); i++) {
        one[i] = number_of(bench->rank);
    }
}

/* What the last collectives left, on all ranks: each rank's block, and of all that are this one's
   the sum. */
static bool right(const bench_t *bench)
{
    const double *all = (const void *) bench->all, *sum = (const void *) bench->sum;
    size_t doubles = bench->block / sizeof(double);
    int good = 1;

    for (size_t i = 0; i < (size_t) bench->size * doubles; i++) {
        good = good && all[i] == number_of((int) (i / doubles));
    }
    for (size_t i = 0; i < doubles; i++) {
        good = good && sum[i] == bench->size * number_of(bench->rank);
    }
    MPI_Allreduce(MPI_IN_PLACE, &good, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    if (!good && bench->rank == 0) {
        fprintf(stderr, "flash_tcp: wrong results\n");
    }
    return good;
}

/* False if it cannot be run so, which rank 0 says. */
static bool parse(int argc, char **argv, bench_t *bench)
{
    bool good = true;
    int option;

    opterr = 0;
    while (good && (option = getopt(argc, argv, "m:i:af")) != -1) {
        good = option == 'm'   ? bench_parse_int(optarg, 1, 1024, &bench->mib)
               : option == 'i' ? bench_parse_int(optarg, 1, MAX_ITERATIONS, &bench->iterations)
                               : option == 'a' || option == 'f';
        bench->ways = option == 'a' ? ALONE + 1 : bench->ways;
        bench->csv = bench->csv || option == 'f';
    }
    good = good && optind == argc && bench->size > 1;
    if (!good && bench->rank == 0) {
        fprintf(stderr,
                "usage: mpirun -n 2 (or more) flash_tcp [-m MIB OF A BLOCK, 1 to 1024] "
                "[-i ITERATIONS, 1 to %d] [-a] [-f]\n"
                "  -a: alone only; -f: comma-separated values\n",
                MAX_ITERATIONS);
    }
    return good;
}

int main(int argc, char **argv)
{
    static bench_t bench = {.mib = 16, .iterations = 20, .ways = WAYS}; /* see tcp_ring_open() */
    int level;
    bool good;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &bench.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &bench.size);
    good = parse(argc, argv, &bench);
    if (good) {
        bench.block = (size_t) bench.mib << 20;
        bench.one = allocate(bench.block);
        bench.sum = allocate(bench.block);
        bench.all = allocate(bench.block * (size_t) bench.size);
        bench.a = allocate(WIDTH * WIDTH * sizeof(double));
        bench.b = allocate(WIDTH * WIDTH * sizeof(double));
        bench.c = allocate(WIDTH * WIDTH * sizeof(double));
        if (openblas_set_num_threads != NULL) {
            openblas_set_num_threads(1); /* the core that is asked about */
        }
        bench.served = bench_served(MPI_COMM_WORLD, true);
        fill(&bench);
        tcp_ring_open(&bench.ring, bench.one, bench.all, bench.block);
        if (bench.ways > ALONE + 1) {
            calibrate(&bench);
        }
        measure(&bench);
        good = right(&bench);
        free(bench.c);
        free(bench.b);
        free(bench.a);
        free(bench.all);
        free(bench.sum);
        free(bench.one);
    }
    MPI_Finalize();
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
