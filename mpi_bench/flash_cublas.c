/*
 * flash_cublas.c: allgather + GEMM and GEMM + reduce-scatter on CUDA devices, by cuBLASLt.
 *
 * Side by side in one run, interleaved: the call and then the whole product (or the other way
 * round), and the extension, whose callbacks leave the product's pieces in a stream; besides,
 * either part alone. What FLUX (arXiv 2406.06858) calls overlap efficiency, E, is the part of the
 * time beyond the product's that the extension saves. The two parts together take no less than the
 * longer one, so that E is at most T_gemm / T_comm where the product is the shorter one.
 *
 *   mpirun --mca coll flash flash_cublas -m 8192 -n 4096 -k 4096 -t bf16
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <mpix_flash_cublas.h>

#include <getopt.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_device.h"
#include "bench_parse.h"
#include "bench_stats.h"

enum { PRODUCT, CALL, APART, TOGETHER, CASES };
enum { MOST_PIECES = 4096, MOST_RUNS = 8, CHECKED = 64 };

typedef struct options {
    int m, n, k, iterations, warmup;
    int pieces[MOST_RUNS], runs; /* as many runs as there are numbers of pieces */
    bool gathers, scatters;
    cudaDataType_t type;
    cublasComputeType_t compute;
} options_t;

typedef struct bench {
    options_t options;
    int rank, nranks, rows;           /* of a block */
    void *a, *b, *c, *own, *product;  /* own: a block of the one, product: of the other */
    size_t element;                   /* bytes */
    MPIX_Flash_cublas_gemm whole;     /* in one piece */
    MPIX_Flash_cublas_gemm in_pieces; /* as the extension asks for it */
} bench_t;

static const char help[] =
    "Times an allgather and a product, and a product and a reduce-scatter, on CUDA devices.\n"
    "\n"
    "  -m ROWS        of the product, on all ranks together (default 4096)\n"
    "  -n COLUMNS     of the product on each rank (default 2048)\n"
    "  -k LENGTH      of its sums on each rank (default 2048)\n"
    "  -t TYPE        of the factors: fp32, tf32, fp16, bf16 (default fp32); sums in fp32\n"
    "  -c CALL        allgather, reduce_scatter or both (default both)\n"
    "  -p PIECES[,PIECES]...  of a block (default 1), a run for each\n"
    "  -i ITERATIONS  (default 20)\n"
    "  -x WARMUP      (default 3)\n"
    "\n"
    "All times are medians over the iterations of the maximum over ranks, in ms: of the product "
    "alone\n"
    "(T_gemm), of the call alone (T_comm), of one after the other (T_apart), and by the extension\n"
    "(T_together). E: the part of the time beyond the product's that the extension saves (FLUX,\n"
    "arXiv 2406.06858); bound: the most that E can be, min(1, T_gemm / T_comm). Results are "
    "checked\n"
    "once, before: all of the extension's against those of the call and the product, and some of "
    "them\n"
    "against sums that the host makes.\n";

/* --------------------------------------------------------------------- options */

static const struct {
    const char *name;
    cudaDataType_t type;
    cublasComputeType_t compute;
} types[] = {{"fp32", CUDA_R_32F, CUBLAS_COMPUTE_32F},
             {"tf32", CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32},
             {"fp16", CUDA_R_16F, CUBLAS_COMPUTE_32F},
             {"bf16", CUDA_R_16BF, CUBLAS_COMPUTE_32F}};

static const char *type_name(const options_t *options)
{
    size_t i = 0;

    while (types[i].type != options->type || types[i].compute != options->compute) {
        i++;
    }
    return types[i].name;
}

static bool read_type(const char *text, options_t *options)
{
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        if (strcmp(text, types[i].name) == 0) {
            options->type = types[i].type;
            options->compute = types[i].compute;
            return true;
        }
    }
    return false;
}

static bool read_call(const char *text, options_t *options)
{
    bool both = strcmp(text, "both") == 0;

    options->gathers = both || strcmp(text, "allgather") == 0;
    options->scatters = both || strcmp(text, "reduce_scatter") == 0;
    return options->gathers || options->scatters;
}

static bool read_pieces(char *list, options_t *options)
{
    options->runs = 0;
    for (char *word = strtok(list, ","); word != NULL; word = strtok(NULL, ",")) {
        if (options->runs == MOST_RUNS ||
            !bench_parse_int(word, 1, MOST_PIECES, &options->pieces[options->runs++])) {
            return false;
        }
    }
    return options->runs > 0;
}

static bench_parsed_t read_option(int option, options_t *options)
{
    const char *name = (const char[]){'-', (char) option, '\0'};
    int *number = option == 'm'   ? &options->m
                  : option == 'n' ? &options->n
                  : option == 'k' ? &options->k
                  : option == 'i' ? &options->iterations
                                  : &options->warmup;

    switch (option) {
    case 'h':
        fputs(help, stdout);
        return BENCH_HELP;
    case '?':
        return BENCH_BAD;
    case 't':
        return read_type(optarg, options)
                   ? BENCH_RUN
                   : bench_complain("flash_cublas", "-t %s: give fp32, tf32, fp16 or bf16", optarg);
    case 'c':
        return read_call(optarg, options)
                   ? BENCH_RUN
                   : bench_complain("flash_cublas", "-c %s: give allgather, reduce_scatter or both",
                                    optarg);
    case 'p':
        return read_pieces(optarg, options)
                   ? BENCH_RUN
                   : bench_complain("flash_cublas", "-p: give up to %d numbers from 1 to %d",
                                    MOST_RUNS, MOST_PIECES);
    default:
        return bench_read_int("flash_cublas", name, optarg, option == 'x' ? 0 : 1, 1 << 24, number);
    }
}

static bench_parsed_t read_options(int argc, char **argv, int nranks, options_t *options)
{
    bench_parsed_t parsed = BENCH_RUN;
    int option;

    *options = (options_t){.m = 4096,
                           .n = 2048,
                           .k = 2048,
                           .pieces = {1},
                           .runs = 1,
                           .gathers = true,
                           .scatters = true,
                           .iterations = 20,
                           .warmup = 3,
                           .type = CUDA_R_32F,
                           .compute = CUBLAS_COMPUTE_32F};
    while (parsed == BENCH_RUN && (option = getopt(argc, argv, "m:n:k:t:c:p:i:x:h")) != -1) {
        parsed = read_option(option, options);
    }
    if (parsed == BENCH_RUN && optind < argc) {
        return bench_complain("flash_cublas", "%s: not an option", argv[optind]);
    }
    if (parsed == BENCH_RUN && options->m % nranks != 0) {
        return bench_complain("flash_cublas", "-m %d: give a multiple of the %d ranks", options->m,
                              nranks);
    }
    return parsed;
}

/* ---------------------------------------------------------------------- matrices */

/* From -8 to 7, without a pattern, on which a device is faster; so small that sums are exact in any
   order. All ranks have the same rows of one factor, and each has columns of its own of the other. */
static int element_of(size_t index, int seed)
{
    uint32_t mixed = ((uint32_t) index ^ (uint32_t) seed * 0x85ebca6b) * 0x9e3779b1;

    return (int) ((mixed ^ mixed >> 15) * 0x2c1b3c6d >> 28) - 8;
}

static int seed_of_columns(int rank)
{
    return 3 + rank;
}

static void fill(const bench_t *bench, void *to, size_t elements, int seed)
{
    static const uint16_t halves[] = {0xc800, 0xc700, 0xc600, 0xc500, 0xc400, 0xc200,
                                      0xc000, 0xbc00, 0,      0x3c00, 0x4000, 0x4200,
                                      0x4400, 0x4500, 0x4600, 0x4700};
    char *content = malloc(elements * bench->element + 1);
    size_t i;

    for (i = 0; content != NULL && i < elements; i++) {
        int value = element_of(i, seed);
        float number = (float) value;
        uint32_t bits;
        uint16_t half = halves[value + 8];

        memcpy(&bits, &number, sizeof(bits));
        if (bench->options.type == CUDA_R_16BF) {
            half = (uint16_t) (bits >> 16);
        }
        memcpy(content + i * bench->element,
               bench->element == 4 ? (const void *) &number : (const void *) &half, bench->element);
    }
    if (content == NULL) {
        MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    }
    bench_device_write(to, content, elements * bench->element);
    free(content);
}

static MPIX_Flash_cublas_gemm describe(const bench_t *bench)
{
    MPIX_Flash_cublas_gemm gemm = MPIX_FLASH_CUBLAS_GEMM_INIT;

    gemm.n = bench->options.n;
    gemm.k = bench->options.k;
    gemm.type = bench->options.type;
    gemm.compute = bench->options.compute;
    gemm.a = bench->a;
    gemm.lda = gemm.k;
    gemm.b = bench->b;
    gemm.ldb = gemm.n;
    gemm.c = bench->c;
    gemm.ldc = gemm.n;
    return gemm;
}

static bool make(bench_t *bench)
{
    const options_t *options = &bench->options;
    size_t m = (size_t) options->m, n = (size_t) options->n, k = (size_t) options->k;

    bench->rows = options->m / bench->nranks;
    bench->element = options->type == CUDA_R_32F ? 4 : 2;
    bench->a = bench_device_allocate(m * k * bench->element);
    bench->b = bench_device_allocate(k * n * bench->element);
    bench->c = bench_device_allocate(m * n * sizeof(float));
    bench->own = bench_device_allocate((size_t) bench->rows * k * bench->element);
    bench->product = bench_device_allocate((size_t) bench->rows * n * sizeof(float));
    if (bench->a == NULL || bench->b == NULL || bench->c == NULL || bench->own == NULL ||
        bench->product == NULL) {
        return false;
    }
    for (int rank = 0; rank < bench->nranks; rank++) {
        size_t block = (size_t) bench->rows * k;

        fill(bench, (char *) bench->a + (size_t) rank * block * bench->element, block, rank);
    }
    fill(bench, bench->b, k * n, seed_of_columns(bench->rank));
    fill(bench, bench->own, (size_t) bench->rows * k, bench->rank);
    bench->whole = bench->in_pieces = describe(bench);
    return true;
}

static void unmake(bench_t *bench)
{
    MPIX_Flash_cublas_release(&bench->whole, NULL);
    MPIX_Flash_cublas_release(&bench->in_pieces, NULL);
    bench_device_free(bench->a);
    bench_device_free(bench->b);
    bench_device_free(bench->c);
    bench_device_free(bench->own);
    bench_device_free(bench->product);
}

/* ------------------------------------------------------------------------- cases */

/* All rows at once, as if they were a block of one rank. */
static void multiply(bench_t *bench)
{
    MPIX_Flash_block block = {.pieces = 1,
                              .ranks = 1,
                              .count = (MPI_Count) bench->options.m * bench->options.k,
                              .datatype = MPI_FLOAT,
                              .data = bench->a,
                              .on_stream = 1};

    if (MPIX_Flash_cublas_consume(&block, &bench->whole) != MPI_SUCCESS) {
        MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    }
    bench_device_wait();
}

static void gather(bench_t *bench)
{
    int count = bench->rows * bench->options.k * (int) bench->element;
    MPI_Request request;

    MPI_Iallgather(bench->own, count, MPI_BYTE, bench->a, count, MPI_BYTE, MPI_COMM_WORLD,
                   &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void scatter(bench_t *bench)
{
    MPI_Request request;

    MPI_Ireduce_scatter_block(bench->c, bench->product, bench->rows * bench->options.n, MPI_FLOAT,
                              MPI_SUM, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void overlap(bench_t *bench, bool gathers, int pieces)
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

static void run_case(bench_t *bench, bool gathers, int pieces, int which)
{
    if (which == TOGETHER) {
        overlap(bench, gathers, pieces);
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
static double product_of(const bench_t *bench, size_t row, size_t column, int rank)
{
    size_t k = (size_t) bench->options.k, n = (size_t) bench->options.n;
    size_t rows = (size_t) bench->rows;
    double sum = 0;

    for (size_t i = 0; i < k; i++) {
        sum += element_of(row % rows * k + i, (int) (row / rows)) *
               element_of(i * n + column, seed_of_columns(rank));
    }
    return sum;
}

/* Some of this rank's results, of `rows` rows, against the host's. */
static bool is_right(const bench_t *bench, bool gathers, const float *result, size_t rows)
{
    size_t n = (size_t) bench->options.n;

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

/* Whether the extension's results are the others', bit by bit, and right. */
static bool agree(bench_t *bench, bool gathers, int pieces)
{
    size_t rows = (size_t) (gathers ? bench->options.m : bench->rows);
    size_t bytes = rows * (size_t) bench->options.n * sizeof(float);
    void *result = gathers ? bench->c : bench->product;
    float *apart = malloc(bytes), *together = calloc(bytes, 1);
    int same, all;

    if (apart == NULL || together == NULL) {
        MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    }
    run_case(bench, gathers, pieces, APART);
    bench_device_read(apart, result, bytes);
    bench_device_write(result, together, bytes); /* what is not written again is seen */
    run_case(bench, gathers, pieces, TOGETHER);
    bench_device_read(together, result, bytes);
    same = memcmp(apart, together, bytes) == 0 && is_right(bench, gathers, together, rows);
    MPI_Allreduce(&same, &all, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    free(apart);
    free(together);
    return all;
}

/* ------------------------------------------------------------------------- times */

static void measure(bench_t *bench, bool gathers, int pieces, double medians[CASES])
{
    int iterations = bench->options.iterations, which, i;
    double *samples = malloc((size_t) (CASES * iterations) * sizeof(*samples));

    for (i = -bench->options.warmup; i < iterations; i++) {
        for (which = 0; which < CASES; which++) {
            double seconds, longest;

            MPI_Barrier(MPI_COMM_WORLD);
            seconds = bench_now();
            run_case(bench, gathers, pieces, which);
            seconds = bench_now() - seconds;
            MPI_Allreduce(&seconds, &longest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
            if (i >= 0) {
                samples[which * iterations + i] = longest;
            }
        }
    }
    for (which = 0; which < CASES; which++) {
        medians[which] = 1e3 * bench_stats(samples + which * iterations, iterations).median;
    }
    free(samples);
}

/* A row of the table. False: results are wrong. */
static bool report(bench_t *bench, bool gathers, int pieces)
{
    const options_t *options = &bench->options;
    bool right = agree(bench, gathers, pieces);
    double t[CASES], efficiency, bound;

    measure(bench, gathers, pieces, t);
    efficiency = (t[APART] - t[TOGETHER]) / (t[APART] - t[PRODUCT]);
    bound = t[PRODUCT] < t[CALL] ? t[PRODUCT] / t[CALL] : 1;
    if (bench->rank == 0) {
        printf("%s %s %5dx%5dx%5d %2d %8.2f %8.2f %8.2f %8.2f %6.3f %6.3f %6.3f  %s\n",
               gathers ? "AG" : "RS", type_name(options), options->m, options->n, options->k,
               pieces, t[PRODUCT], t[CALL], t[APART], t[TOGETHER], efficiency, bound,
               efficiency / bound, right ? "results agree" : "WRONG RESULTS");
        fflush(stdout);
    }
    return right;
}

static bool report_all(bench_t *bench)
{
    const options_t *options = &bench->options;
    bool right = true;

    if (bench->rank == 0) {
        printf("# %2d ranks,  m x  n x  k,  p %8s %8s %8s %8s %6s %6s %6s\n", bench->nranks,
               "T_gemm", "T_comm", "T_apart", "T_tog.", "E", "bound", "E/b.");
    }
    for (int k = 0; k < options->runs; k++) {
        right = (!options->gathers || report(bench, true, options->pieces[k])) && right;
        right = (!options->scatters || report(bench, false, options->pieces[k])) && right;
    }
    return right;
}

static int run(int argc, char **argv)
{
    bench_t bench = {.rank = 0};
    int parsed = BENCH_RUN, got, all;
    bool right;

    MPI_Comm_rank(MPI_COMM_WORLD, &bench.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &bench.nranks);
    if (bench.rank == 0) {
        parsed = (int) read_options(argc, argv, bench.nranks, &bench.options);
    }
    MPI_Bcast(&parsed, 1, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Bcast(&bench.options, (int) sizeof(bench.options), MPI_BYTE, 0, MPI_COMM_WORLD);
    if (parsed != BENCH_RUN) {
        return parsed == BENCH_HELP ? EXIT_SUCCESS : EXIT_FAILURE;
    }
    got = bench_device_open("flash_cublas", bench.rank) && make(&bench);
    MPI_Allreduce(&got, &all, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    if (!all) {
        fprintf(stderr, "%s", got ? "" : "flash_cublas: no such matrices on this device\n");
        return EXIT_FAILURE;
    }
    right = report_all(&bench);
    unmake(&bench);
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
