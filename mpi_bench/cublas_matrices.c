/*
 * cublas_matrices.c: the factors of flash_cublas, in a device's memory.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "cublas_bench.h"

#include <stdlib.h>
#include <string.h>

#include "bench_device.h"

/* Elements after which a matrix repeats itself: a prime, so that no rows or columns are equal. */
enum { PERIOD = 4194301 };

static uint32_t mix(size_t index, int seed)
{
    uint32_t mixed = ((uint32_t) (index % PERIOD) ^ (uint32_t) seed * 0x85ebca6b) * 0x9e3779b1;

    return (mixed ^ mixed >> 15) * 0x2c1b3c6d;
}

/* From -8 to 7: so small that sums are exact in any order. All ranks have the same rows of one
   factor, and each has columns of its own of the other. */
int cublas_element(size_t index, int seed)
{
    return (int) (mix(index, seed) >> 28) - 8;
}

int cublas_seed_of_columns(int rank)
{
    return 3 + rank;
}

static void write_bits(const cublas_bench_t *bench, void *to, uint32_t single, uint32_t half)
{
    uint16_t bits =
        (uint16_t) (bench->options.type == CUDA_R_16BF ? single >> 16 : half); /* truncated */

    memcpy(to, bench->element == 4 ? (const void *) &single : (const void *) &bits, bench->element);
}

void cublas_write_integer(const cublas_bench_t *bench, void *to, uint32_t mixed)
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
void cublas_write_real(const cublas_bench_t *bench, void *to, uint32_t mixed)
{
    uint32_t sign = mixed >> 31, exponent = mixed >> 29 & 3, mantissa = mixed & 0x7fffff;

    write_bits(bench, to, sign << 31 | (126 - exponent) << 23 | mantissa,
               sign << 15 | (14 - exponent) << 10 | mantissa >> 13);
}

static void fill(const cublas_bench_t *bench, void *to, size_t elements, int seed,
                 cublas_write_fn *write)
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

void cublas_fill(const cublas_bench_t *bench, cublas_write_fn *write)
{
    size_t n = (size_t) bench->options.n, k = (size_t) bench->options.k;
    size_t block = (size_t) bench->rows * k;

    for (int rank = 0; rank < bench->nranks; rank++) {
        fill(bench, (char *) bench->a + (size_t) rank * block * bench->element, block, rank, write);
    }
    fill(bench, bench->b, k * n, cublas_seed_of_columns(bench->rank), write);
    fill(bench, bench->own, block, bench->rank, write);
}

/* Of any type: what a result takes from there is no number, either. */
void cublas_fill_with_nan(void *to, size_t bytes)
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

static MPIX_Flash_cublas_gemm describe(const cublas_bench_t *bench)
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

bool cublas_make(cublas_bench_t *bench)
{
    const cublas_options_t *options = &bench->options;
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

void cublas_unmake(cublas_bench_t *bench)
{
    MPIX_Flash_cublas_release(&bench->whole, NULL);
    MPIX_Flash_cublas_release(&bench->in_pieces, NULL);
    bench_device_free(bench->a);
    bench_device_free(bench->b);
    bench_device_free(bench->c);
    bench_device_free(bench->own);
    bench_device_free(bench->product);
}
