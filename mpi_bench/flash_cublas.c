/*
 * flash_cublas.c: allgather + GEMM and GEMM + reduce-scatter on CUDA devices, by cuBLASLt.
 *
 * Side by side in one run, interleaved: the call and then the whole product (or the other way
 * round), and the extension, whose callbacks leave the product's pieces in a stream; besides,
 * either part alone. What FLUX (arXiv 2406.06858) calls overlap efficiency, E, is the part of the
 * time beyond the product's that the extension saves. The call and the product in pieces together
 * take no less than the longer one: that bounds E.
 *
 *   mpirun --mca coll flash flash_cublas -m 8192 -n 4096 -k 4096 -t bf16
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <mpix_flash_cublas.h>
#include "cublas_bench.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_device.h"
#include "keep_libraries.h"

enum { CHECKED = 64 };

/* ------------------------------------------------------------------------- cases */

static void begin_product(MPIX_Flash_cublas_gemm *gemm, const MPIX_Flash_block *block)
{
    if (MPIX_Flash_cublas_consume(block, gemm) != MPI_SUCCESS) {
        MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    }
}

/* All rows at once, as if they were a block of one rank. */
static void multiply(cublas_bench_t *bench)
{
    MPIX_Flash_block block = {.pieces = 1,
                              .ranks = 1,
                              .count = (MPI_Count) bench->options.m * bench->options.k,
                              .datatype = MPI_FLOAT,
                              .data = bench->a,
                              .on_stream = 1};

    begin_product(&bench->whole, &block);
    bench_device_wait();
}

/*
 * The same, cut as callbacks see it: each block of all ranks' in pieces of whole rows, the longer
 * ones first. Nobody waits in between.
 */
static void multiply_split(cublas_bench_t *bench, int pieces)
{
    MPI_Count k = bench->options.k, rows = bench->rows;

    pieces = pieces < bench->rows ? pieces : bench->rows;
    for (int rank = 0; rank < bench->nranks; rank++) {
        MPI_Count row = 0;

        for (int piece = 0; piece < pieces; piece++) {
            MPI_Count count = rows / pieces + (piece < rows % pieces);
            MPIX_Flash_block block = {.rank = rank,
                                      .piece = piece,
                                      .pieces = pieces,
                                      .ranks = 1,
                                      .displ = rank * rows * k,
                                      .offset = row * k,
                                      .count = count * k,
                                      .datatype = MPI_FLOAT,
                                      .on_stream = 1};

            block.data = (char *) bench->a + (size_t) (block.displ + block.offset) * bench->element;
            begin_product(&bench->in_pieces, &block);
            row += count;
        }
    }
    bench_device_wait();
}

static void gather(cublas_bench_t *bench)
{
    int count = bench->rows * bench->options.k * (int) bench->element;
    MPI_Request request;

    MPI_Iallgather(bench->own, count, MPI_BYTE, bench->a, count, MPI_BYTE, MPI_COMM_WORLD,
                   &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void scatter(cublas_bench_t *bench)
{
    MPI_Request request;

    MPI_Ireduce_scatter_block(bench->c, bench->product, bench->rows * bench->options.n, MPI_FLOAT,
                              MPI_SUM, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void overlap(cublas_bench_t *bench, bool gathers, int pieces)
{
    MPI_Request request;

    if (gathers) {
        MPIX_Flash_cublas_iallgather_gemm(bench->own, bench->rows, bench->a, &bench->in_pieces,
                                          pieces, NULL, MPI_COMM_WORLD, &request);
    } else {
        MPIX_Flash_cublas_igemm_reduce_scatter(&bench->in_pieces, bench->rows, bench->product,
                                               pieces, NULL, MPI_COMM_WORLD, &request);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    bench_device_wait();
}

static void run_case(cublas_bench_t *bench, bool gathers, int pieces, int which)
{
    if (which == TOGETHER) {
        overlap(bench, gathers, pieces);
        return;
    }
    if (which == SPLIT) {
        multiply_split(bench, pieces);
        return;
    }
    if (gathers && which != PRODUCT) {
        gather(bench);
    }
    if (which != CALL) {
        multiply(bench);
    }
    if (!gathers && which != PRODUCT) {
        scatter(bench);
    }
}

/* ------------------------------------------------------------------------ results */

/* An element of a product of that row of all, by that rank's columns. */
static double product_of(const cublas_bench_t *bench, size_t row, size_t column, int rank)
{
    size_t k = (size_t) bench->options.k, n = (size_t) bench->options.n;
    size_t rows = (size_t) bench->rows;
    double sum = 0;

    for (size_t i = 0; i < k; i++) {
        sum += cublas_element(row % rows * k + i, (int) (row / rows)) *
               cublas_element(i * n + column, cublas_seed_of_columns(rank));
    }
    return sum;
}

/* This rank's results, of `rows` rows: whether all are numbers, and some of them the host's. */
static bool is_right(const cublas_bench_t *bench, bool gathers, const float *result, size_t rows)
{
    size_t n = (size_t) bench->options.n;

    for (size_t at = 0; at < rows * n; at++) {
        if (isnan(result[at])) {
            return false;
        }
    }
    for (size_t k = 0; k < CHECKED; k++) {
        size_t at = (rows * n - 1) * k / (CHECKED - 1), row = at / n, column = at % n;
        double expected = 0;

        if (gathers) {
            expected = product_of(bench, row, column, bench->rank);
        }
        for (int rank = 0; !gathers && rank < bench->nranks; rank++) {
            expected += product_of(bench, row + (size_t) bench->rank * rows, column, rank);
        }
        if ((double) result[at] != expected) {
            return false;
        }
    }
    return true;
}

/* Nothing that a case writes, or that communication brings to it, is there before it runs: a block
   that is missing, or late, leaves no right result. */
static void run_afresh(cublas_bench_t *bench, bool gathers, int pieces, int which)
{
    const cublas_options_t *options = &bench->options;
    size_t n = (size_t) options->n;

    if (gathers) {
        cublas_fill_with_nan(bench->a, (size_t) options->m * (size_t) options->k * bench->element);
    }
    cublas_fill_with_nan(bench->c, (size_t) options->m * n * sizeof(float));
    cublas_fill_with_nan(bench->product, (size_t) bench->rows * n * sizeof(float));
    MPI_Barrier(MPI_COMM_WORLD);
    run_case(bench, gathers, pieces, which);
}

/* Whether the extension's results are the others', bit by bit, and right. */
static bool agree(cublas_bench_t *bench, bool gathers, int pieces)
{
    size_t rows = (size_t) (gathers ? bench->options.m : bench->rows);
    size_t bytes = rows * (size_t) bench->options.n * sizeof(float);
    const void *result = gathers ? bench->c : bench->product;
    float *apart = malloc(bytes), *together = malloc(bytes);
    int same, all;

    if (apart == NULL || together == NULL) {
        MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    }
    cublas_fill(bench, cublas_write_integer);
    run_afresh(bench, gathers, pieces, APART);
    bench_device_read(apart, result, bytes);
    run_afresh(bench, gathers, pieces, TOGETHER);
    bench_device_read(together, result, bytes);
    same = memcmp(apart, together, bytes) == 0 && is_right(bench, gathers, together, rows);
    MPI_Allreduce(&same, &all, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    free(apart);
    free(together);
    return all;
}

/* ------------------------------------------------------------------------- times */

static void measure(cublas_bench_t *bench, bool gathers, int pieces)
{
    int iterations = bench->options.iterations, which, i;
    double *samples = malloc((size_t) (CASES * iterations) * sizeof(*samples));

    if (samples == NULL) {
        MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    }
    cublas_fill(bench, cublas_write_real);
    for (i = -bench->options.warmup; i < iterations; i++) {
        for (which = 0; which < CASES; which++) {
            double seconds, longest;

            MPI_Barrier(MPI_COMM_WORLD);
            seconds = bench_now();
            run_case(bench, gathers, pieces, which);
            seconds = bench_now() - seconds;
            MPI_Allreduce(&seconds, &longest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
            if (i >= 0) {
                samples[which * iterations + i] = 1e3 * longest;
            }
        }
    }
    for (which = 0; which < CASES; which++) {
        bench->times[which] = bench_stats(samples + which * iterations, iterations);
    }
    free(samples);
}

/* Of two times, the first of which is the longer one; NAN: their quartiles overlap. */
static double difference(const bench_stats_t *longer, const bench_stats_t *shorter)
{
    return longer->lower > shorter->upper ? longer->median - shorter->median : (double) NAN;
}

static void print_ratio(double ratio)
{
    if (isfinite(ratio)) {
        printf(" %6.3f", ratio);
    } else {
        printf(" %6s", "-");
    }
}

static void print_row(const cublas_bench_t *bench, bool gathers, int pieces, bool right)
{
    const cublas_options_t *options = &bench->options;
    const bench_stats_t *t = bench->times;
    const bench_stats_t *longest = t[CALL].median > t[SPLIT].median ? &t[CALL] : &t[SPLIT];
    double beyond = difference(&t[APART], &t[PRODUCT]), hidden = difference(&t[APART], longest);
    double saved = t[APART].median - t[TOGETHER].median, spread = 0;

    printf("%s %s %5dx%5dx%5d %2d", gathers ? "AG" : "RS", cublas_type_name(options), options->m,
           options->n, options->k, pieces);
    for (int which = 0; which < CASES; which++) {
        printf(" %8.2f", t[which].median);
        spread = fmax(spread, (t[which].upper - t[which].lower) / t[which].median);
    }
    printf(" %4.0f", 100 * spread);
    print_ratio(saved / beyond);
    print_ratio(hidden / beyond);
    print_ratio(saved / hidden);
    printf("  %s\n# quartiles", right ? "results agree" : "WRONG RESULTS");
    for (int which = 0; which < CASES; which++) {
        printf("  %.2f %.2f", t[which].lower, t[which].upper);
    }
    printf("\n");
    fflush(stdout);
}

/* A row of the table. */
static void report(cublas_bench_t *bench, bool gathers, int pieces, bool right)
{
    measure(bench, gathers, pieces);
    if (bench->rank == 0) {
        print_row(bench, gathers, pieces, right);
    }
}

static bool report_all(cublas_bench_t *bench)
{
    const cublas_options_t *options = &bench->options;
    bool all_right = true;

    if (bench->rank == 0) {
        printf("# %2d ranks,  m x  n x  k,  p %8s %8s %8s %8s %8s %4s %6s %6s %6s\n", bench->nranks,
               "T_gemm", "T_split", "T_comm", "T_apart", "T_tog.", "IQR%", "E", "bound", "E/b.");
    }
    for (int k = 0; k < options->runs; k++) {
        for (int gathers = 1; gathers >= 0; gathers--) {
            if (gathers ? options->gathers : options->scatters) {
                bool right = agree(bench, gathers, options->pieces[k]);

                report(bench, gathers, options->pieces[k], right);
                all_right = all_right && right;
            }
        }
    }
    return all_right;
}

static int run(int argc, char **argv)
{
    cublas_bench_t bench = {.rank = 0};
    int parsed = BENCH_RUN, got, all;
    bool right;

    MPI_Comm_rank(MPI_COMM_WORLD, &bench.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &bench.nranks);
    if (bench.rank == 0) {
        parsed = (int) cublas_read_options(argc, argv, bench.nranks, &bench.options);
    }
    MPI_Bcast(&parsed, 1, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Bcast(&bench.options, (int) sizeof(bench.options), MPI_BYTE, 0, MPI_COMM_WORLD);
    if (parsed != BENCH_RUN) {
        return parsed == BENCH_HELP ? EXIT_SUCCESS : EXIT_FAILURE;
    }
    got = bench_device_open("flash_cublas", bench.rank) && cublas_make(&bench);
    MPI_Allreduce(&got, &all, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    if (!all) {
        fprintf(stderr, "%s", got ? "" : "flash_cublas: no such matrices on this device\n");
        return EXIT_FAILURE;
    }
    right = report_all(&bench);
    cublas_unmake(&bench);
    return right ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    int status;

    MPI_Init(&argc, &argv);
    status = run(argc, argv);
    MPI_Finalize();
    return status;
}
