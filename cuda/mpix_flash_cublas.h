/*
 * mpix_flash_cublas.h: matrix products on a CUDA device, by cuBLASLt, between a ring's steps.
 *
 * An allgather of a matrix' rows whose product is computed as they arrive, and a reduce-scatter of
 * a product whose rows leave as they are computed: the column-parallel and the row-parallel half of
 * a tensor-parallel layer (CommFuse/FlashOverlap, arXiv 2604.24013). Described by one structure,
 * used by one call:
 *
 *   MPIX_Flash_cublas_gemm gemm = MPIX_FLASH_CUBLAS_GEMM_INIT;
 *   gemm.n = n, gemm.k = k, gemm.type = CUDA_R_16BF;
 *   gemm.b = weights, gemm.ldb = n, gemm.c = product, gemm.ldc = n;
 *   MPIX_Flash_cublas_iallgather_gemm(own_rows, rows, all_rows, &gemm, 1, stream, comm, &request);
 *   MPI_Wait(&request, MPI_STATUS_IGNORE);    (what is enqueued from here on sees the product)
 *   ...
 *   MPIX_Flash_cublas_release(&gemm, stream);
 *
 * Link with -lmpix_flash_cublas. Matrices are stored by rows; a column-major one is its transpose.
 * All are in the memory of the stream's device, which is the current one of each thread that calls
 * MPI meanwhile.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef MPIX_FLASH_CUBLAS_H
#define MPIX_FLASH_CUBLAS_H

#include <cublasLt.h>
#include <mpix_flash.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * C = alpha A B + beta C + bias, a piece of A's and C's rows at a time: A has k columns, B is k by
 * n, C has n columns. Of the allgather, A is what is gathered, and of the reduce-scatter, C is what
 * is scattered. The caller's, as all that it points to; unchanged while an operation uses it, and
 * as the caller likes between operations. Several operations may use one at a time if they have the
 * same stream: they share its workspace.
 */
typedef struct MPIX_Flash_cublas_gemm {
    size_t size;         /* sizeof(MPIX_Flash_cublas_gemm) */
    int n, k;            /* at least 1 */
    cudaDataType_t type; /* of A and B: CUDA_R_32F, CUDA_R_16F, CUDA_R_16BF, or, where cuBLASLt
                            has it, CUDA_R_8F_E4M3 (of two of E5M2 it makes no product) */
    cudaDataType_t product_type; /* of C: CUDA_R_32F, or CUDA_R_16F or CUDA_R_16BF as goes
                                    with `type` */
    cublasComputeType_t compute; /* CUBLAS_COMPUTE_32F; CUBLAS_COMPUTE_32F_FAST_TF32: by tf32 */
    int transposed;    /* 1: B is stored as n rows of k elements, as fp8 demands; else 0 */
    float alpha, beta; /* a producer's beta is 0 */
    const void *b;     /* whose rows are ldb elements apart */
    long long ldb;
    const void *a; /* producer: all ranks' rows, lda elements apart; a consumer's come to it */
    long long lda;
    void *c; /* consumer: all ranks' rows, ldc elements apart; a producer's go where it is told */
    long long ldc;
    const void *bias; /* n elements of C's type, but with fp8 factors and C in CUDA_R_32F, of
                         CUDA_R_16BF, which each row gets added; NULL: none. Of a reduce-scatter,
                         on one rank alone */
    size_t workspace; /* bytes that a product may use besides; 0: none */
    struct {
        void *memory;
        size_t size;
    } state; /* the library's; zeros at first */
} MPIX_Flash_cublas_gemm;

#define MPIX_FLASH_CUBLAS_GEMM_INIT                                                                \
    {                                                                                              \
        sizeof(MPIX_Flash_cublas_gemm), 0, 0, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F, 0, 1, 0, \
            NULL, 0, NULL, 0, NULL, 0, NULL, (size_t) 32 << 20,                                    \
        {                                                                                          \
            NULL, 0                                                                                \
        }                                                                                          \
    }

/*
 * Gathers `rows` rows of k dense elements of each rank of `comm` from a to gathered (a may be
 * MPI_IN_PLACE), and computes gemm->c, of all ranks' rows, as they arrive; a block in `pieces`
 * pieces of whole rows. In the order of `stream`, as MPIX_Flash_hints has it. `rows`, `pieces` and
 * k are equal on all ranks; rows times k at most INT_MAX. Errors: as MPIX_Iallgather_compute;
 * MPI_ERR_ARG (malformed), MPI_ERR_COUNT (too many).
 */
int MPIX_Flash_cublas_iallgather_gemm(const void *a, int rows, void *gathered,
                                      MPIX_Flash_cublas_gemm *gemm, int pieces, cudaStream_t stream,
                                      MPI_Comm comm, MPI_Request *request);

/*
 * Adds up what each rank of `comm` computes from its gemm->a, and leaves this rank's block of it,
 * `rows` rows of n dense elements, in `result`. product_type is CUDA_R_32F: what MPI_SUM adds. The
 * rest as above.
 * Errors: as MPIX_Ireduce_scatter_block_compute; MPI_ERR_ARG, MPI_ERR_COUNT, MPI_ERR_TYPE.
 */
int MPIX_Flash_cublas_igemm_reduce_scatter(MPIX_Flash_cublas_gemm *gemm, int rows, void *result,
                                           int pieces, cudaStream_t stream, MPI_Comm comm,
                                           MPI_Request *request);

/*
 * The callbacks that these use (MPIX_Flash_compute_fn), for other calls: of an operation with a
 * stream, whose pieces are whole rows (MPIX_Flash_hints), with the structure as argument.
 * A block's rows are where block->displ says. MPI_ERR_ARG: malformed, or no stream. MPI_ERR_OTHER:
 * cuBLASLt refuses, and what it says is printed.
 */
int MPIX_Flash_cublas_consume(const MPIX_Flash_block *block, void *gemm);
int MPIX_Flash_cublas_produce(const MPIX_Flash_block *block, void *gemm);

/*
 * Frees the workspace, in the order of `stream`. No operation uses it any more. With nothing there,
 * does nothing. The structure may be used again.
 */
void MPIX_Flash_cublas_release(MPIX_Flash_cublas_gemm *gemm, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif /* MPIX_FLASH_CUBLAS_H */
