/*
 * standin_blas.c: as much of cuBLAS as the layers need, over the stand-in driver: products of
 * single precision in plain loops, run in a stream.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "standin.h"

#include <cublas_v2.h>
#include <stdlib.h>

/* By columns, which are `leading` elements apart. */
typedef struct product {
    int m, n, k, lda, ldb, ldc;
    bool transpose_a, transpose_b;
    const float *a, *b;
    float *c;
    float alpha, beta;
} product_t;

static void *the_stream;

static const float *reach(const float *matrix, int rows, int columns, int leading)
{
    size_t count = (size_t) (columns - 1) * (size_t) leading + (size_t) rows;

    return rows > leading ? NULL
                          : standin_reach_by_kernel((uintptr_t) matrix, count * sizeof(float));
}

static double at(const float *matrix, int leading, bool transposed, int row, int column)
{
    int first = transposed ? column : row, second = transposed ? row : column;

    return (double) matrix[(size_t) second * (size_t) leading + (size_t) first];
}

static int multiply(void *arg)
{
    const product_t *p = arg;
    const float *a =
        reach(p->a, p->transpose_a ? p->k : p->m, p->transpose_a ? p->m : p->k, p->lda);
    const float *b =
        reach(p->b, p->transpose_b ? p->n : p->k, p->transpose_b ? p->k : p->n, p->ldb);
    float *c = (float *) (size_t) reach(p->c, p->m, p->n, p->ldc);

    if (a == NULL || b == NULL || c == NULL) {
        return ILLEGAL_ADDRESS;
    }
    for (int j = 0; j < p->n; j++) {
        for (int i = 0; i < p->m; i++) {
            float *place = c + (size_t) j * (size_t) p->ldc + i;
            double sum = 0;

            for (int l = 0; l < p->k; l++) {
                sum += at(a, p->lda, p->transpose_a, i, l) * at(b, p->ldb, p->transpose_b, l, j);
            }
            *place = (float) ((double) p->alpha * sum +
                              (p->beta != 0 ? (double) p->beta * (double) *place : 0));
        }
    }
    return SUCCESS;
}

cublasStatus_t cublasCreate_v2(cublasHandle_t *handle)
{
    *handle = (cublasHandle_t) &the_stream;
    return standin_fails("cublasCreate") ? CUBLAS_STATUS_NOT_INITIALIZED : CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t handle)
{
    (void) handle;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream)
{
    (void) handle;
    the_stream = stream;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t(cublasGemmEx)(cublasHandle_t handle, cublasOperation_t transpose_a,
                             cublasOperation_t transpose_b, int m, int n, int k, const void *alpha,
                             const void *a, cudaDataType a_type, int lda, const void *b,
                             cudaDataType b_type, int ldb, const void *beta, void *c,
                             cudaDataType c_type, int ldc, cublasComputeType_t compute,
                             cublasGemmAlgo_t algorithm)
{
    product_t *product;

    (void) handle;
    (void) algorithm;
    if (m < 1 || n < 1 || k < 1 || ldc < m) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    if (a_type != CUDA_R_32F || b_type != CUDA_R_32F || c_type != CUDA_R_32F ||
        (compute != CUBLAS_COMPUTE_32F && compute != CUBLAS_COMPUTE_32F_FAST_16BF)) {
        return CUBLAS_STATUS_NOT_SUPPORTED;
    }
    product = malloc(sizeof(*product));
    *product = (product_t){m,
                           n,
                           k,
                           lda,
                           ldb,
                           ldc,
                           transpose_a == CUBLAS_OP_T,
                           transpose_b == CUBLAS_OP_T,
                           a,
                           b,
                           c,
                           *(const float *) alpha,
                           *(const float *) beta};
    return standin_compute(the_stream, multiply, product) == SUCCESS
               ? CUBLAS_STATUS_SUCCESS
               : CUBLAS_STATUS_EXECUTION_FAILED;
}
