/*
 * flash_cublas.c: allgather + GEMM and GEMM + reduce-scatter on CUDA devices, by cuBLASLt.
 *
 * Side by side in one run, interleaved: the call and then the whole product (or the other way
 * round), and the extension, whose callbacks leave the product's pieces in a stream; besides,
 * either part alone. What FLUX (arXiv 2406.06858) calls overlap efficiency is the part of the time
 * beyond the product's that the extension saves.
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

typedef struct options {
    int m, n, k, pieces, iterations, warmup;
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
    "  -p PIECES      of a block (default 1)\n"
    "  -i ITERATIONS  (default 20)\n"
    "  -x WARMUP      (default 3)\n"
    "\n"
    "All times are medians over the iterations of the maximum over ranks, in ms. E: the part of "
    "the\n"
    "time beyond the product's that the extension saves (FLUX, arXiv 2406.06858).\n";

/* --------------------------------------------------------------------- options */

static bool read_type(const char *text, options_t *options)
{
    static const struct {
        const char *name;
        cudaDataType_t type;
        cublasComputeType_t compute;
    } types[] = {{"fp32", CUDA_R_32F, CUBLAS_COMPUTE_32F},
                 {"tf32", CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32},
                 {"fp16", CUDA_R_16F, CUBLAS_COMPUTE_32F},
                 {"bf16", CUDA_R_16BF, CUBLAS_COMPUTE_32F}};
    size_t i;

    for (i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        if (strcmp(text, types[i].name) == 0) {
            options->type = types[i].type;
            options->compute = types[i].compute;
            return true;
        }
    }
    return false;
}

static bench_parsed_t read_option(int option, options_t *options)
{
    const char *name = (const char[]){'-', (char) option, '\0'};
    int *number = option == 'm'   ? &options->m
                  : option == 'n' ? &options->n
                  : option == 'k' ? &options->k
                  : option == 'p' ? &options->pieces
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
                           .pieces = 1,
                           .iterations = 20,
                           .warmup = 3,
                           .type = CUDA_R_32F,
                           .compute = CUBLAS_COMPUTE_32F};
    while (parsed == BENCH_RUN && (option = getopt(argc, argv, "m:n:k:t:p:i:x:h")) != -1) {
        parsed = read_option(option, options);
    }
    if (parsed == BENCH_RUN && optind < argc) {
        return bench_complain("flash_cublas", "%s: not an option", argv[optind]);
    }
    if (parsed == BENCH_RUN && (options->m % nranks != 0 || options->pieces > 4096)) {
        return bench_complain("flash_cublas",
                              "-m %d: give a multiple of the %d ranks; -p: 4096 at "
                              "most",
                              options->m, nranks);
    }
    return parsed;
}

/* ---------------------------------------------------------------------- matrices */

/* Of small numbers, so that sums are exact in any order. */
static void fill(const bench_t *bench, void *to, size_t elements, int seed)
{
    char *content = malloc(elements * bench->element + 1);
    size_t i;

    for (i = 0; content != NULL && i < elements; i++) {
        float number = (float) ((int) ((i * 7 + (size_t) seed) % 5) - 2);
        uint32_t bits;
        static const uint16_t halves[] = {0xc000, 0xbc00, 0, 0x3c00, 0x4000};
        uint16_t half = halves[(i * 7 + (size_t) seed) % 5];

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
    fill(bench, bench->a, m * k, bench->rank);
    fill(bench, bench->b, k * n, 3);
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

static void overlap(bench_t *bench, bool gathers)
{
    const options_t *options = &bench->options;
    MPI_Request request;

    if (gathers) {
        MPIX_Flash_cublas_iallgather_gemm(bench->own, bench->rows, bench->a, &bench->in_pieces,
                                          options->pieces, NULL, MPI_COMM_WORLD, &request);
    } else {
        MPIX_Flash_cublas_igemm_reduce_scatter(&bench->in_pieces, bench->rows, bench->product,
                                               options->pieces, NULL, MPI_COMM_WORLD, &request);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    bench_device_wait();
}

static void run_case(bench_t *bench, bool gathers, int which)
{
    if (which == TOGETHER) {
        overlap(bench, gathers);
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

/* Whether the extension's result is the other's, bit by bit. */
static bool agree(bench_t *bench, bool gathers)
{
    size_t n = (size_t) bench->options.n;
    size_t bytes = (size_t) (gathers ? bench->options.m : bench->rows) * n * sizeof(float);
    const void *result = gathers ? bench->c : bench->product;
    char *apart = malloc(bytes + 1), *together = malloc(bytes + 1);
    int same, all;

    run_case(bench, gathers, APART);
    bench_device_read(apart, result, bytes);
    run_case(bench, gathers, TOGETHER);
    bench_device_read(together, result, bytes);
    same = memcmp(apart, together, bytes) == 0;
    MPI_Allreduce(&same, &all, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    free(apart);
    free(together);
    return all;
}

static void measure(bench_t *bench, bool gathers, double medians[CASES])
{
    int iterations = bench->options.iterations, which, i;
    double *samples = malloc((size_t) (CASES * iterations) * sizeof(*samples));

    for (i = -bench->options.warmup; i < iterations; i++) {
        for (which = 0; which < CASES; which++) {
            double seconds, longest;

            MPI_Barrier(MPI_COMM_WORLD);
            seconds = bench_now();
            run_case(bench, gathers, which);
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

static bool report(bench_t *bench, bool gathers)
{
    double t[CASES];
    bool right = agree(bench, gathers);

    measure(bench, gathers, t);
    if (bench->rank == 0) {
        printf("%-28s %10.3f %10.3f %10.3f %10.3f %10.1f  %s\n",
               gathers ? "allgather + GEMM" : "GEMM + reduce-scatter", t[PRODUCT], t[CALL],
               t[APART], t[TOGETHER], 100 * (t[APART] - t[TOGETHER]) / (t[APART] - t[PRODUCT]),
               right ? "results agree" : "WRONG RESULTS");
        fflush(stdout);
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
    if (bench.rank == 0) {
        printf("# %d ranks, m %d, n %d, k %d, %d pieces\n%-28s %10s %10s %10s %10s %10s\n",
               bench.nranks, bench.options.m, bench.options.n, bench.options.k,
               bench.options.pieces, "# ms", "GEMM", "call", "apart", "flash", "E (%)");
    }
    right = report(&bench, true);
    right = report(&bench, false) && right;
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
