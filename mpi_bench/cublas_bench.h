/*
 * cublas_bench.h: what the parts of flash_cublas share: cublas_options.c, what is asked for;
 * cublas_matrices.c, the factors; flash_cublas.c, what is measured.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef CUBLAS_BENCH_H
#define CUBLAS_BENCH_H

#include <mpix_flash_cublas.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench_parse.h"
#include "bench_stats.h"

enum { PRODUCT, SPLIT, CALL, APART, TOGETHER, CASES };
enum { MOST_PIECES = 4096, MOST_RUNS = 8 };

typedef struct cublas_options {
    int m, n, k, iterations, warmup;
    int pieces[MOST_RUNS], runs; /* as many runs as there are numbers of pieces */
    bool gathers, scatters;
    cudaDataType_t type;
    cublasComputeType_t compute;
} cublas_options_t;

typedef struct cublas_bench {
    cublas_options_t options;
    int rank, nranks, rows;           /* of a block */
    void *a, *b, *c, *own, *product;  /* own: a block of the one, product: of the other */
    size_t element;                   /* bytes */
    MPIX_Flash_cublas_gemm whole;     /* in one piece */
    MPIX_Flash_cublas_gemm in_pieces; /* as the extension asks for it */
    bench_stats_t times[CASES];       /* ms */
} cublas_bench_t;

/* cublas_options.c */
bench_parsed_t cublas_read_options(int argc, char **argv, int nranks, cublas_options_t *options);
/* As -t has it. */
const char *cublas_type_name(const cublas_options_t *options);

/* cublas_matrices.c */
/* With the options and the ranks there: allocates the rest. False: there is no memory. */
bool cublas_make(cublas_bench_t *bench);
void cublas_unmake(cublas_bench_t *bench);
/* Writes an element, which `mixed` decides. */
typedef void cublas_write_fn(const cublas_bench_t *bench, void *to, uint32_t mixed);
/* From -8 to 7, so small that sums are exact in any order: cublas_element(). */
void cublas_write_integer(const cublas_bench_t *bench, void *to, uint32_t mixed);
/* With all bits of the mantissa: a device is faster on numbers that have few. */
void cublas_write_real(const cublas_bench_t *bench, void *to, uint32_t mixed);
/* All factors. */
void cublas_fill(const cublas_bench_t *bench, cublas_write_fn *write);
/* An integer factor's element; all ranks have the same rows, and columns of their own. */
int cublas_element(size_t index, int seed);
int cublas_seed_of_columns(int rank);
/* Of any type: what a result takes from there is no number, either. */
void cublas_fill_with_nan(void *to, size_t bytes);

#endif /* CUBLAS_BENCH_H */
