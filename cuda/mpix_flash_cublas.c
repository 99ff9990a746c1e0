/*
 * mpix_flash_cublas.c: the callbacks that multiply, and the calls that use them; see
 * mpix_flash_cublas.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "mpix_flash_cublas.h"

#include <limits.h>
#include <stdio.h>

#include "mpix_flash_cublas_product.h"

/* -------------------------------------------------------------------- callbacks */

/* cuBLASLt multiplies E5M2 by E4M3 alone, and here both factors are of one type. */
static bool has_product(const MPIX_Flash_cublas_gemm *gemm)
{
    if (gemm->type == CUDA_R_8F_E5M2) {
        fprintf(stderr, "mpix_flash_cublas: two factors of CUDA_R_8F_E5M2: cuBLASLt has no such "
                        "product; use CUDA_R_8F_E4M3\n");
    }
    return gemm->type != CUDA_R_8F_E5M2;
}

static bool is_well_formed(const MPIX_Flash_cublas_gemm *gemm)
{
    return gemm != NULL && gemm->size == sizeof(*gemm) && gemm->n > 0 && gemm->k > 0 &&
           flash_cublas_size_of(gemm->type) > 0 && flash_cublas_size_of(gemm->product_type) > 1 &&
           gemm->b != NULL && gemm->ldb >= (gemm->transposed ? gemm->k : gemm->n) &&
           has_product(gemm);
}

static bool may_consume(const MPIX_Flash_cublas_gemm *gemm)
{
    return is_well_formed(gemm) && gemm->c != NULL && gemm->ldc >= gemm->n;
}

static bool may_produce(const MPIX_Flash_cublas_gemm *gemm)
{
    return is_well_formed(gemm) && gemm->a != NULL && gemm->lda >= gemm->k && gemm->beta == 0;
}

/* Where a piece's rows are among all ranks'; `length` elements each. */
static size_t first_row(const MPIX_Flash_block *block, int length)
{
    return (size_t) ((block->displ + block->offset) / length);
}

static bool has_whole_rows(const MPIX_Flash_block *block, int length)
{
    return block->displ % length == 0 && block->offset % length == 0 && block->count % length == 0;
}

int MPIX_Flash_cublas_consume(const MPIX_Flash_block *block, void *arg)
{
    MPIX_Flash_cublas_gemm *gemm = arg;
    flash_cublas_product_t product = {.gemm = gemm, .a = block->data};

    if (!block->on_stream || !may_consume(gemm) || !has_whole_rows(block, gemm->k)) {
        return MPI_ERR_ARG;
    }
    product.rows = block->count / gemm->k;
    product.lda = gemm->k;
    product.ldc = gemm->ldc;
    product.c = (char *) gemm->c + first_row(block, gemm->k) * (size_t) gemm->ldc *
                                       flash_cublas_size_of(gemm->product_type);
    return flash_cublas_multiply(gemm, &product, block->stream) ? MPI_SUCCESS : MPI_ERR_OTHER;
}

int MPIX_Flash_cublas_produce(const MPIX_Flash_block *block, void *arg)
{
    MPIX_Flash_cublas_gemm *gemm = arg;
    flash_cublas_product_t product = {.gemm = gemm, .c = block->data};

    if (!block->on_stream || !may_produce(gemm) || !has_whole_rows(block, gemm->n)) {
        return MPI_ERR_ARG;
    }
    product.rows = block->count / gemm->n;
    product.lda = gemm->lda;
    product.ldc = gemm->n;
    product.a = (const char *) gemm->a +
                first_row(block, gemm->n) * (size_t) gemm->lda * flash_cublas_size_of(gemm->type);
    return flash_cublas_multiply(gemm, &product, block->stream) ? MPI_SUCCESS : MPI_ERR_OTHER;
}

/* ------------------------------------------------------------------------ calls */

/* Hands an error to the communicator's handler, as MPI's own functions do. */
static int raise_error(MPI_Comm comm, int error)
{
    return error == MPI_SUCCESS ? error : (MPI_Comm_call_errhandler(comm, error), error);
}

static MPIX_Flash_hints hints_of(int pieces, int row, cudaStream_t stream)
{
    MPIX_Flash_hints hints = MPIX_FLASH_HINTS_INIT;

    hints.pieces = pieces;
    hints.row = row;
    hints.on_stream = 1;
    hints.stream = stream;
    return hints;
}

static int check_count(int rows, int length)
{
    return rows < 0 || (long long) rows * length > INT_MAX ? MPI_ERR_COUNT : MPI_SUCCESS;
}

int MPIX_Flash_cublas_iallgather_gemm(const void *a, int rows, void *gathered,
                                      MPIX_Flash_cublas_gemm *gemm, int pieces, cudaStream_t stream,
                                      MPI_Comm comm, MPI_Request *request)
{
    MPIX_Flash_hints hints;
    MPI_Datatype type; /* is not looked into */
    int error = may_consume(gemm) ? check_count(rows, gemm->k) : MPI_ERR_ARG;

    if (error != MPI_SUCCESS) {
        return raise_error(comm, error);
    }
    type = flash_cublas_size_of(gemm->type) == 1   ? MPI_BYTE
           : flash_cublas_size_of(gemm->type) == 2 ? MPI_UINT16_T
                                                   : MPI_FLOAT;
    hints = hints_of(pieces, gemm->k, stream);
    return MPIX_Iallgather_compute(a, rows * gemm->k, type, gathered, rows * gemm->k, type,
                                   MPIX_Flash_cublas_consume, gemm, &hints, comm, request);
}

int MPIX_Flash_cublas_igemm_reduce_scatter(MPIX_Flash_cublas_gemm *gemm, int rows, void *result,
                                           int pieces, cudaStream_t stream, MPI_Comm comm,
                                           MPI_Request *request)
{
    MPIX_Flash_hints hints;
    int error = may_produce(gemm) ? check_count(rows, gemm->n) : MPI_ERR_ARG;

    if (error == MPI_SUCCESS && gemm->product_type != CUDA_R_32F) {
        error = MPI_ERR_TYPE;
    }
    if (error != MPI_SUCCESS) {
        return raise_error(comm, error);
    }
    hints = hints_of(pieces, gemm->n, stream);
    return MPIX_Ireduce_scatter_block_compute(MPIX_Flash_cublas_produce, gemm, &hints, result,
                                              rows * gemm->n, MPI_FLOAT, MPI_SUM, comm, request);
}
