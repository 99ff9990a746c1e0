/*
 * device_gemm.c: see device_gemm.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "device_gemm.h"

#include "mpitest.h"

MPIX_Flash_cublas_gemm gemm_describe(const gemm_problem_t *problem, const matrix_t *b)
{
    MPIX_Flash_cublas_gemm gemm = MPIX_FLASH_CUBLAS_GEMM_INIT;

    gemm.n = problem->n;
    gemm.k = problem->k;
    gemm.type = problem->type;
    gemm.product_type = problem->product_type;
    gemm.transposed = problem->transposed;
    gemm.b = b->buffer.data;
    gemm.ldb = b->stride;
    return gemm;
}

static cudaDataType_t bias_type_of(const gemm_problem_t *problem, cudaDataType_t product_type)
{
    return problem->type == CUDA_R_8F_E4M3 && product_type != CUDA_R_16F ? CUDA_R_16BF
                                                                         : product_type;
}

static int gap_of(const gemm_problem_t *problem)
{
    return problem->unequal_strides ? 3 : 0;
}

void gemm_check_gathered(const gemm_problem_t *problem, const matrix_t *c, float alpha)
{
    size_t bytes = c->buffer.bytes;
    char *got = get_memory(bytes + 1);

    buffer_read(&c->buffer, got);
    for (int row = 0; row < problem->rows * world_size; row++) {
        for (int column = 0; column < problem->n; column++) {
            float wanted = alpha * (float) matrix_dot(SEED_A, SEED_B, row, column, problem->k) +
                           (float) (problem->beta * matrix_number(SEED_C, row, column)) +
                           (float) (problem->bias ? matrix_number(SEED_BIAS, 0, column) : 0);
            float value = matrix_element(problem->product_type, got,
                                         (size_t) row * (size_t) c->stride + (size_t) column);

            if (!check(value == wanted, "%s: %d, %d is %g, not %g", problem->name, row, column,
                       (double) value, (double) wanted)) {
                free(got);
                return;
            }
        }
    }
    free(got);
}

void gemm_gather(const gemm_problem_t *problem, void *stream)
{
    int all_rows = problem->rows * world_size, gap = gap_of(problem);
    cudaDataType_t type = problem->type, product_type = problem->product_type;
    matrix_t a = matrix_make(type, SEED_A, world_rank * problem->rows, problem->rows, problem->k, 0,
                             false, stream);
    matrix_t all = matrix_make(type, 0, 0, all_rows, problem->k, 0, false, stream);
    matrix_t b =
        matrix_make(type, SEED_B, 0, problem->k, problem->n, gap, problem->transposed != 0, stream);
    matrix_t c = matrix_make(product_type, SEED_C, 0, all_rows, problem->n, gap, false, stream);
    matrix_t bias = matrix_make(bias_type_of(problem, product_type), SEED_BIAS, 0, 1, problem->n, 0,
                                false, stream);
    MPIX_Flash_cublas_gemm gemm = gemm_describe(problem, &b);
    MPI_Request request;

    gemm.alpha = 2;
    gemm.beta = (float) problem->beta;
    gemm.c = c.buffer.data;
    gemm.ldc = c.stride;
    gemm.bias = problem->bias ? bias.buffer.data : NULL;
    MPIX_Flash_cublas_iallgather_gemm(a.buffer.data, problem->rows, all.buffer.data, &gemm,
                                      problem->pieces, stream, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPIX_Flash_cublas_release(&gemm, stream);
    check(stream_wait(stream), "%s: the stream", problem->name);
    gemm_check_gathered(problem, &c, gemm.alpha);
    matrix_free(&bias);
    matrix_free(&c);
    matrix_free(&b);
    matrix_free(&all);
    matrix_free(&a);
}

void gemm_check_scattered(const gemm_problem_t *problem, const buffer_t *result)
{
    float *got = get_memory(result->bytes + 1);

    buffer_read(result, got);
    for (int row = 0; row < problem->rows; row++) {
        for (int column = 0; column < problem->n; column++) {
            float wanted = (float) (problem->bias ? matrix_number(SEED_BIAS, 0, column) : 0);

            for (int rank = 0; rank < world_size; rank++) {
                wanted += (float) matrix_dot(SEED_A + rank, SEED_B + rank,
                                             world_rank * problem->rows + row, column, problem->k);
            }
            if (!check(got[row * problem->n + column] == wanted, "%s: %d, %d of the sum",
                       problem->name, row, column)) {
                free(got);
                return;
            }
        }
    }
    free(got);
}

void gemm_scatter(const gemm_problem_t *problem, void *stream)
{
    int all_rows = problem->rows * world_size, gap = gap_of(problem);
    matrix_t a = matrix_make(problem->type, SEED_A + world_rank, 0, all_rows, problem->k, gap,
                             false, stream);
    matrix_t b = matrix_make(problem->type, SEED_B + world_rank, 0, problem->k, problem->n, gap,
                             problem->transposed != 0, stream);
    matrix_t bias = matrix_make(bias_type_of(problem, CUDA_R_32F), SEED_BIAS, 0, 1, problem->n, 0,
                                false, stream);
    buffer_t result =
        buffer_make(IN_DEVICE, (size_t) problem->rows * (size_t) problem->n * sizeof(float));
    MPIX_Flash_cublas_gemm gemm = gemm_describe(problem, &b);
    MPI_Request request;

    gemm.a = a.buffer.data;
    gemm.lda = a.stride;
    gemm.bias = problem->bias && world_rank == 0 ? bias.buffer.data : NULL;
    MPIX_Flash_cublas_igemm_reduce_scatter(&gemm, problem->rows, result.data, problem->pieces,
                                           stream, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPIX_Flash_cublas_release(&gemm, stream);
    check(stream_wait(stream), "%s: the stream", problem->name);
    gemm_check_scattered(problem, &result);
    check(buffer_free(&result), "wrote around the result");
    matrix_free(&bias);
    matrix_free(&b);
    matrix_free(&a);
}
