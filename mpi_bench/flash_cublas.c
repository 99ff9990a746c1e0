/*
 * flash_cublas.c: allgather + GEMM and GEMM + reduce-scatter on CUDA devices, by cuBLASLt.
 *
 * Side by side in one run, interleaved: the call and then the whole product (or the other way
 * round), and the extension, whose callbacks leave the product's pieces in a stream; besides,
 * either part alone. What FLUX (arXiv 2406.06858) calls overlap efficiency, E, is the part of the
 * time beyond the product's that the extension saves. The two parts together take no less than the
 * longer one: that bounds E.
 *
 *   mpirun --mca coll flash flash_cublas -m 8192 -n 4096 -k 4096 -t bf16
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <mpix_flash_cublas.h>

#include <getopt.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_device.h"
#include "bench_parse.h"
#include "bench_stats.h"

enum { PRODUCT, CALL, APART, TOGETHER, CASES };
enum { MOST_PIECES = 4096, MOST_RUNS = 8, CHECKED = 64 };
/* Elements after which a matrix repeats itself: a prime, so that no rows or columns are equal. */
enum { PERIOD = 4194301 };

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
    bench_stats_t times[CASES];       /* ms */
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
    "(T_together); below them their quartiles. IQR: the largest distance between quartiles, in\n"
    "percent of its median.\n"
    "E = (T_apart - T_together) / (T_apart - T_gemm): the part of the time beyond the product's "
    "that\n"
    "the extension saves (FLUX, arXiv 2406.06858). bound: the most that E can be by these times,\n"
    "since the extension takes at least max(T_gemm, T_comm). A dash: the quartiles of two times "
    "that\n"
    "the figure divides by the difference of overlap.\n"
    "Before all times, results are checked: all of the extension's against those of the call and\n"
    "the product, and some of them against sums that the host makes. Factors are then small "
    "integers,\n"
    "whose sums are exact; for the times they have full mantissas.\n";

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

static uint32_t mix(size_t index, int seed)
{
    uint32_t mixed = ((uint32_t) (index % PERIOD) ^ (uint32_t) seed * 0x85ebca6b) * 0x9e3779b1;

    return (mixed ^ mixed >> 15) * 0x2c1b3c6d;
}

/* From -8 to 7: so small that sums are exact in any order. All ranks have the same rows of one
   factor, and each has columns of its own of the other. */
static int element_of(size_t index, int seed)
{
    return (int) (mix(index, seed) >> 28) - 8;
}

static int seed_of_columns(int rank)
{
    return 3 + rank;
}

typedef void write_fn(const bench_t *bench, void *to, uint32_t mixed);

static void write_bits(const bench_t *bench, void *to, uint32_t single, uint32_t half)
{
    uint16_t bits =
        (uint16_t) (bench->options.type == CUDA_R_16BF ? single >> 16 : half); /* truncated */

    memcpy(to, bench->element == 4 ? (const void *) &single : (const void *) &bits, bench->element);
}

static void write_integer(const bench_t *bench, void *to, uint32_t mixed)
{
    static const uint16_t halves[] = {0xc800, 0xc700, 0xc600, 0xc500, 0xc400, 0xc200,
                                      0xc000, 0xbc00, 0,      0x3c00, 0x4000, 0x4200,
                                      0x4400, 0x4500, 0x4600, 0x4700};
    float number = (float) ((int) (mixed >> 28) - 8);
    uint32_t bits;

    memcpy(&bits, &number, sizeof(bits));
    write_bits(bench, to, bits, halves[mixed >> 28]);
}

/* From 1/16 to 1, and their negatives, with all bits of the mantissa: a device is faster on numbers
   that have few. */
static void write_real(const bench_t *bench, void *to, uint32_t mixed)
{
    uint32_t sign = mixed >> 31, exponent = mixed >> 29 & 3, mantissa = mixed & 0x7fffff;

    write_bits(bench, to, sign << 31 | (126 - exponent) << 23 | mantissa,
               sign << 15 | (14 - exponent) << 10 | mantissa >> 13);
}

static void fill(const bench_t *bench, void *to, size_t elements, int seed, write_fn *write)
{
    size_t period = elements < PERIOD ? elements : PERIOD, size = bench->element;
    char *content = malloc(period * size + 1);

    if (content == NULL) {
        MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    }
    for (size_t i = 0; i < period; i++) {
        write(bench, content + i * size, mix(i, seed));
    }
    for (size_t at = 0; at < elements; at += period) {
        size_t count = elements - at < period ? elements - at : period;

        bench_device_write((char *) to + at * size, content, count * size);
    }
    free(content);
}

static void fill_all(const bench_t *bench, write_fn *write)
{
    size_t n = (size_t) bench->options.n, k = (size_t) bench->options.k;
    size_t block = (size_t) bench->rows * k;

    for (int rank = 0; rank < bench->nranks; rank++) {
        fill(bench, (char *) bench->a + (size_t) rank * block * bench->element, block, rank, write);
    }
    fill(bench, bench->b, k * n, seed_of_columns(bench->rank), write);
    fill(bench, bench->own, block, bench->rank, write);
}

/* Of any type: what a result takes from there is no number, either. */
static void fill_with_nan(void *to, size_t bytes)
{
    size_t piece = bytes < PERIOD ? bytes : PERIOD;
    char *content = malloc(piece + 1);

    if (content == NULL) {
        MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    }
    memset(content, 0xff, piece);
    for (size_t at = 0; at < bytes; at += piece) {
        bench_device_write((char *) to + at, content, bytes - at < piece ? bytes - at : piece);
    }
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

/* This rank's results, of `rows` rows: whether all are numbers, and some of them the host's. */
static bool is_right(const bench_t *bench, bool gathers, const float *result, size_t rows)
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
static void run_afresh(bench_t *bench, bool gathers, int pieces, int which)
{
    const options_t *options = &bench->options;
    size_t n = (size_t) options->n;

    if (gathers) {
        fill_with_nan(bench->a, (size_t) options->m * (size_t) options->k * bench->element);
    }
    fill_with_nan(bench->c, (size_t) options->m * n * sizeof(float));
    fill_with_nan(bench->product, (size_t) bench->rows * n * sizeof(float));
    MPI_Barrier(MPI_COMM_WORLD);
    run_case(bench, gathers, pieces, which);
}

/* Whether the extension's results are the others', bit by bit, and right. */
static bool agree(bench_t *bench, bool gathers, int pieces)
{
    size_t rows = (size_t) (gathers ? bench->options.m : bench->rows);
    size_t bytes = rows * (size_t) bench->options.n * sizeof(float);
    const void *result = gathers ? bench->c : bench->product;
    float *apart = malloc(bytes), *together = malloc(bytes);
    int same, all;

    if (apart == NULL || together == NULL) {
        MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    }
    fill_all(bench, write_integer);
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

static void measure(bench_t *bench, bool gathers, int pieces)
{
    int iterations = bench->options.iterations, which, i;
    double *samples = malloc((size_t) (CASES * iterations) * sizeof(*samples));

    if (samples == NULL) {
        MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    }
    fill_all(bench, write_real);
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

static void print_row(const bench_t *bench, bool gathers, int pieces, bool right)
{
    const options_t *options = &bench->options;
    const bench_stats_t *t = bench->times;
    const bench_stats_t *longest = t[CALL].median > t[PRODUCT].median ? &t[CALL] : &t[PRODUCT];
    double beyond = difference(&t[APART], &t[PRODUCT]), hidden = difference(&t[APART], longest);
    double saved = t[APART].median - t[TOGETHER].median, spread = 0;

    printf("%s %s %5dx%5dx%5d %2d", gathers ? "AG" : "RS", type_name(options), options->m,
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
static void report(bench_t *bench, bool gathers, int pieces, bool right)
{
    measure(bench, gathers, pieces);
    if (bench->rank == 0) {
        print_row(bench, gathers, pieces, right);
    }
}

static bool report_all(bench_t *bench)
{
    const options_t *options = &bench->options;
    bool all_right = true;

    if (bench->rank == 0) {
        printf("# %2d ranks,  m x  n x  k,  p %8s %8s %8s %8s %4s %6s %6s %6s\n", bench->nranks,
               "T_gemm", "T_comm", "T_apart", "T_tog.", "IQR%", "E", "bound", "E/b.");
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
