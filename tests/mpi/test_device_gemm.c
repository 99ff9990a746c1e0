/*
 * test_device_gemm.c: products by cuBLASLt between the steps of a ring, against plain loops. All
 * operands are small integers, all results exact.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <mpix_flash_cublas.h>

#include "aftermath.h"
#include "device_gemm.h"
#include "device_job.h"

static const gemm_problem_t problems[] = {
    {.name = "fp32", .type = CUDA_R_32F, .rows = 5, .n = 7, .k = 3},
    {.name = "one row", .type = CUDA_R_32F, .rows = 1, .n = 1, .k = 1},
    {.name = "no rows", .type = CUDA_R_32F, .rows = 0, .n = 4, .k = 4},
    {.name = "pieces, a bias, beta, strides",
     .type = CUDA_R_32F,
     .rows = 33,
     .n = 20,
     .k = 12,
     .beta = 3,
     .bias = true,
     .unequal_strides = true,
     .pieces = 4},
    {.name = "B transposed",
     .type = CUDA_R_32F,
     .rows = 16,
     .n = 8,
     .k = 24,
     .transposed = 1,
     .pieces = 2},
    {.name = "fp16", .type = CUDA_R_16F, .rows = 24, .n = 16, .k = 32, .pieces = 3},
    {.name = "bf16", .type = CUDA_R_16BF, .rows = 24, .n = 16, .k = 32, .bias = true},
    {.name = "fp8",
     .type = CUDA_R_8F_E4M3,
     .rows = 32,
     .n = 32,
     .k = 32,
     .transposed = 1,
     .bias = true}};

static void products(void (*run)(const gemm_problem_t *problem, void *stream))
{
    void *stream = stream_make(0);

    device_enter();
    for (size_t k = 0; k < LENGTH(problems); k++) {
        run(&problems[k], stream);
    }
    device_leave();
    stream_free(stream);
    nothing_left();
}

static void allgather(void)
{
    static const gemm_problem_t to_bf16 = {.name = "bf16 to bf16",
                                           .type = CUDA_R_16BF,
                                           .product_type = CUDA_R_16BF,
                                           .rows = 8,
                                           .n = 16,
                                           .k = 8,
                                           .beta = 1};
    static const gemm_problem_t to_fp16 = {.name = "fp8 to fp16",
                                           .type = CUDA_R_8F_E4M3,
                                           .product_type = CUDA_R_16F,
                                           .rows = 32,
                                           .n = 32,
                                           .k = 32,
                                           .transposed = 1,
                                           .bias = true};
    void *stream;

    products(gemm_gather);
    stream = stream_make(0);
    device_enter();
    gemm_gather(&to_bf16, stream);
    gemm_gather(&to_fp16, stream);
    device_leave();
    stream_free(stream);
}

static void reduce_scatter(void)
{
    products(gemm_scatter);
}

/* One structure for three operations, changed between them. */
static void used_again(void)
{
    enum { N = 8, K = 4, MOST = 24, TURNS = 3 };
    static const int rows[TURNS] = {MOST, 2, 5};
    void *stream = stream_make(0);
    matrix_t b = matrix_make(CUDA_R_32F, SEED_B, 0, K, N, 0, false, stream);
    matrix_t a[TURNS], all[TURNS], c[TURNS], bias[2];
    MPIX_Flash_cublas_gemm gemm = MPIX_FLASH_CUBLAS_GEMM_INIT;
    MPI_Request requests[TURNS];

    gemm.n = gemm.ldb = gemm.ldc = N;
    gemm.k = K;
    gemm.b = b.buffer.data;
    device_enter();
    for (int t = 0; t < TURNS; t++) {
        a[t] = matrix_make(CUDA_R_32F, SEED_A, world_rank * rows[t], rows[t], K, 0, false, stream);
        all[t] = matrix_make(CUDA_R_32F, 0, 0, rows[t] * world_size, K, 0, false, stream);
        c[t] = matrix_make(CUDA_R_32F, 0, 0, rows[t] * world_size, N, 0, false, stream);
    }
    bias[0] = matrix_make(CUDA_R_32F, 1, 0, 1, N, 0, false, stream);
    bias[1] = matrix_make(CUDA_R_32F, SEED_BIAS, 0, 1, N, 0, false, stream);
    for (int t = 0; t < TURNS; t++) {
        gemm.c = c[t].buffer.data;
        gemm.bias = t == 2 ? bias[1].buffer.data : t == 1 ? bias[0].buffer.data : NULL;
        gemm.workspace = (size_t) (t + 1) << 16;
        MPIX_Flash_cublas_iallgather_gemm(a[t].buffer.data, rows[t], all[t].buffer.data, &gemm, 1,
                                          stream, MPI_COMM_WORLD, &requests[t]);
        MPI_Wait(&requests[t], MPI_STATUS_IGNORE);
    }
    check(stream_wait(stream), "the stream of three products");
    for (int t = 0; t < TURNS; t++) {
        gemm_problem_t problem = {.name = "used again",
                                  .type = CUDA_R_32F,
                                  .rows = rows[t],
                                  .n = N,
                                  .k = K,
                                  .bias = t == 2};

        if (t != 1) { /* that one's bias is another */
            gemm_check_gathered(&problem, &c[t], 1);
        }
        matrix_free(&c[t]);
        matrix_free(&all[t]);
        matrix_free(&a[t]);
    }
    MPIX_Flash_cublas_release(&gemm, stream);
    stream_wait(stream);
    device_leave();
    matrix_free(&bias[1]);
    matrix_free(&bias[0]);
    matrix_free(&b);
    stream_free(stream);
    nothing_left();
}

/* One structure for two operations at a time, whose blocks have other lengths. */
static void shared(void)
{
    enum { N = 8, K = 4, MOST = 24 };
    static const int rows[2] = {MOST, 3};
    void *stream = stream_make(0);
    matrix_t a =
        matrix_make(CUDA_R_32F, SEED_A + world_rank, 0, MOST * world_size, K, 0, false, stream);
    matrix_t b = matrix_make(CUDA_R_32F, SEED_B + world_rank, 0, K, N, 0, false, stream);
    buffer_t results[2] = {buffer_make(IN_DEVICE, MOST * N * sizeof(float)),
                           buffer_make(IN_DEVICE, 3 * N * sizeof(float))};
    MPIX_Flash_cublas_gemm gemm = MPIX_FLASH_CUBLAS_GEMM_INIT;
    MPI_Request requests[2];

    gemm.n = gemm.ldb = N;
    gemm.k = gemm.lda = K;
    gemm.a = a.buffer.data;
    gemm.b = b.buffer.data;
    device_enter();
    for (int t = 0; t < 2; t++) {
        MPIX_Flash_cublas_igemm_reduce_scatter(&gemm, rows[t], results[t].data, 2, stream,
                                               MPI_COMM_WORLD, &requests[t]);
    }
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    MPIX_Flash_cublas_release(&gemm, stream);
    check(stream_wait(stream), "the stream of two operations");
    device_leave();
    for (int t = 0; t < 2; t++) {
        gemm_problem_t problem = {.name = "shared", .rows = rows[t], .n = N, .k = K};

        gemm_check_scattered(&problem, &results[t]);
        check(buffer_free(&results[t]), "wrote around a result");
    }
    matrix_free(&b);
    matrix_free(&a);
    stream_free(stream);
    nothing_left();
}

/* What is refused at once, by each rank. */
static void refused(void)
{
    MPI_Comm comm = make_counted_comm();
    MPIX_Flash_cublas_gemm gemm = MPIX_FLASH_CUBLAS_GEMM_INIT;
    MPI_Request request;
    float matrix[4];

    check_class(
        MPIX_Flash_cublas_iallgather_gemm(matrix, 1, matrix, &gemm, 1, NULL, comm, &request),
        MPI_ERR_ARG, "an empty structure");
    gemm.n = gemm.k = 2;
    gemm.b = gemm.a = gemm.c = matrix;
    gemm.ldb = gemm.lda = gemm.ldc = 2;
    check_class(MPIX_Flash_cublas_iallgather_gemm(matrix, 0x40000000, matrix, &gemm, 1, NULL, comm,
                                                  &request),
                MPI_ERR_COUNT, "too many rows");
    gemm.product_type = CUDA_R_16BF;
    check_class(MPIX_Flash_cublas_igemm_reduce_scatter(&gemm, 1, matrix, 1, NULL, comm, &request),
                MPI_ERR_TYPE, "a sum that MPI does not have");
    gemm.product_type = CUDA_R_32F;
    check_class(MPIX_Reduce_scatter_block_compute(MPIX_Flash_cublas_produce, &gemm, NULL, matrix, 4,
                                                  MPI_FLOAT, MPI_SUM, comm),
                MPI_ERR_ARG, "a producer without a stream");
    gemm.beta = 1;
    check_class(MPIX_Flash_cublas_igemm_reduce_scatter(&gemm, 1, matrix, 1, NULL, comm, &request),
                MPI_ERR_ARG, "a producer's beta");
    gemm.beta = 0;
    gemm.type = CUDA_R_8F_E5M2;
    check_class(
        MPIX_Flash_cublas_iallgather_gemm(matrix, 1, matrix, &gemm, 1, NULL, comm, &request),
        MPI_ERR_ARG, "two factors of E5M2");
    MPI_Comm_free(&comm);
}

/* FLASH_TEST_FAIL: of rank 0's functions, one. */
static void cublas_fails(void)
{
    MPI_Comm comm = make_counted_comm();
    const char *name = getenv("FLASH_TEST_FAIL");
    const gemm_problem_t *problem = &problems[0];
    void *stream = stream_make(0);
    matrix_t a = matrix_make(CUDA_R_32F, SEED_A, 0, problem->rows * world_size, problem->k, 0,
                             false, stream);
    matrix_t b = matrix_make(CUDA_R_32F, SEED_B, 0, problem->k, problem->n, 0, false, stream);
    buffer_t result = buffer_make(IN_DEVICE, (size_t) problem->rows * 7 * sizeof(float));
    MPIX_Flash_cublas_gemm gemm = gemm_describe(problem, &b);
    MPI_Request request;

    gemm.a = a.buffer.data;
    gemm.lda = a.stride;
    device_enter();
    if (world_rank == 0) {
        device_fail(name, 1);
    }
    MPIX_Flash_cublas_igemm_reduce_scatter(&gemm, problem->rows, result.data, 1, stream, comm,
                                           &request);
    check_class(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_ERR_OTHER, name);
    device_fail(NULL, 0);
    MPIX_Flash_cublas_release(&gemm, stream);
    stream_wait(stream);
    device_leave();
    next_works(comm, "after cuBLAS failed");
    check(buffer_free(&result), "wrote around the result");
    matrix_free(&b);
    matrix_free(&a);
    stream_free(stream);
    MPI_Comm_free(&comm);
}

DEVICE_PROGRAM(test_device_gemm, {"allgather", allgather}, {"reduce_scatter", reduce_scatter},
               {"used_again", used_again}, {"shared", shared}, {"refused", refused},
               {"cublas_fails", cublas_fails});
TEST_MAIN(test_device_gemm)
