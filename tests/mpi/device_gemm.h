/*
 * device_gemm.h: a product by cuBLASLt between the steps of a ring, and its check against plain
 * loops.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef DEVICE_GEMM_H
#define DEVICE_GEMM_H

#include <mpix_flash_cublas.h>

#include "device_matrix.h"

typedef struct problem {
    const char *name;
    cudaDataType_t type, product_type;
    int rows, n, k;
    int transposed;
    int beta;
    bool bias, unequal_strides;
    int pieces;
} gemm_problem_t;

/* All but what is for one of the two operations alone. */
MPIX_Flash_cublas_gemm gemm_describe(const gemm_problem_t *problem, const matrix_t *b);

/* One allgather or reduce-scatter from its buffers to its check. */
void gemm_gather(const gemm_problem_t *problem, void *stream);
void gemm_scatter(const gemm_problem_t *problem, void *stream);
/* The checks alone, of the product of all ranks' rows, and of this rank's rows of the sum. */
void gemm_check_gathered(const gemm_problem_t *problem, const matrix_t *c, float alpha);
void gemm_check_scattered(const gemm_problem_t *problem, const buffer_t *result);

#endif /* DEVICE_GEMM_H */
