/*
 * test_device_gemm.c: products by cuBLASLt between the steps of a ring, against plain loops. All
 * operands are small integers, all results exact.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <mpix_flash_cublas.h>

#include "aftermath.h"
#include "device_job.h"

typedef struct problem {
    const char *name;
    cudaDataType_t type, product_type;
    int rows, n, k;
    int transposed;
    int beta;
    bool bias, unequal_strides;
    int pieces;
} problem_t;

/* From -3 to 3. */
static int number(int seed, int row, int column)
{
    return (int) (mix((uint32_t) seed, (uint32_t) row, (uint32_t) column) % 7) - 3;
}

static size_t size_of(cudaDataType_t type)
{
    return type == CUDA_R_32F ? 4 : type == CUDA_R_8F_E4M3 ? 1 : 2;
}

static void put(cudaDataType_t type, void *data, size_t index, int value)
{
    static const uint16_t halves[] = {0, 0x3c00, 0x4000, 0x4200};
    static const uint8_t quarters[] = {0, 0x38, 0x40, 0x44};
    float number = (float) value;
    uint32_t bits;
    uint16_t half;

    memcpy(&bits, &number, sizeof(bits));
    if (type == CUDA_R_32F) {
        memcpy((char *) data + index * 4, &number, 4);
    } else if (type == CUDA_R_8F_E4M3) {
        ((uint8_t *) data)[index] = (uint8_t) (quarters[abs(value)] | (value < 0 ? 0x80 : 0));
    } else {
        half = type == CUDA_R_16BF ? (uint16_t) (bits >> 16)
                                   : (uint16_t) (halves[abs(value)] | (value < 0 ? 0x8000 : 0));
        memcpy((char *) data + index * 2, &half, 2);
    }
}

/* fp16, of a number that is not smaller than the smallest normal one, or 0, as bits of fp32. */
static uint32_t widen(uint16_t half)
{
    uint32_t size = half & 0x7fff;

    return ((uint32_t) (half & 0x8000) << 16) | (size == 0 ? 0 : (size << 13) + (112U << 23));
}

/* A product's element: of 32 bits, bf16 or fp16. */
static float get(cudaDataType_t type, const void *data, size_t index)
{
    uint32_t bits = 0;
    uint16_t half;
    float number;

    if (type == CUDA_R_32F) {
        memcpy(&bits, (const char *) data + index * 4, 4);
    } else {
        memcpy(&half, (const char *) data + index * 2, 2);
        bits = type == CUDA_R_16F ? widen(half) : (uint32_t) half << 16;
    }
    memcpy(&number, &bits, 4);
    return number;
}

/* A matrix on the device, `stride` elements from row to row, written in the order of a stream. */
typedef struct matrix {
    buffer_t buffer;
    void *content; /* of the host; stays until the stream has read it */
    long long stride;
} matrix_t;

enum { SEED_A = 1000, SEED_B = 2000, SEED_C = 3000, SEED_BIAS = 4000 };

static matrix_t make_matrix(cudaDataType_t type, int seed, int first_row, int rows, int columns,
                            int gap, bool transposed, void *stream)
{
    int lines = transposed ? columns : rows, length = transposed ? rows : columns;
    matrix_t made = {.stride = length + gap};
    size_t bytes = (size_t) lines * (size_t) made.stride * size_of(type);

    made.content = get_memory(bytes + 1);
    memset(made.content, 0, bytes);
    for (int row = 0; row < rows; row++) {
        for (int column = 0; column < columns; column++) {
            size_t index = transposed ? (size_t) column * (size_t) made.stride + (size_t) row
                                      : (size_t) row * (size_t) made.stride + (size_t) column;

            put(type, made.content, index, number(seed, first_row + row, column));
        }
    }
    made.buffer = buffer_make(IN_DEVICE, bytes);
    stream_copy(stream, made.buffer.data, made.content, bytes);
    return made;
}

static void free_matrix(matrix_t *matrix)
{
    check(buffer_free(&matrix->buffer), "wrote around a matrix");
    free(matrix->content);
}

/* Of A of that seed, whose row it is, and B. */
static int dot(int seed_a, int seed_b, int row, int column, int k)
{
    int sum = 0;

    for (int l = 0; l < k; l++) {
        sum += number(seed_a, row, l) * number(seed_b, l, column);
    }
    return sum;
}

static MPIX_Flash_cublas_gemm describe(const problem_t *problem, const matrix_t *b)
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

static cudaDataType_t bias_type_of(const problem_t *problem, cudaDataType_t product_type)
{
    return problem->type == CUDA_R_8F_E4M3 && product_type != CUDA_R_16F ? CUDA_R_16BF
                                                                         : product_type;
}

static int gap_of(const problem_t *problem)
{
    return problem->unequal_strides ? 3 : 0;
}

/* ------------------------------------------------------------------ all gathered */

static void check_gathered(const problem_t *problem, const matrix_t *c, float alpha)
{
    size_t bytes = c->buffer.bytes;
    char *got = get_memory(bytes + 1);

    buffer_read(&c->buffer, got);
    for (int row = 0; row < problem->rows * world_size; row++) {
        for (int column = 0; column < problem->n; column++) {
            float wanted = alpha * (float) dot(SEED_A, SEED_B, row, column, problem->k) +
                           (float) (problem->beta * number(SEED_C, row, column)) +
                           (float) (problem->bias ? number(SEED_BIAS, 0, column) : 0);
            float value = get(problem->product_type, got,
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

static void gather(const problem_t *problem, void *stream)
{
    int all_rows = problem->rows * world_size, gap = gap_of(problem);
    cudaDataType_t type = problem->type, product_type = problem->product_type;
    matrix_t a = make_matrix(type, SEED_A, world_rank * problem->rows, problem->rows, problem->k, 0,
                             false, stream);
    matrix_t all = make_matrix(type, 0, 0, all_rows, problem->k, 0, false, stream);
    matrix_t b =
        make_matrix(type, SEED_B, 0, problem->k, problem->n, gap, problem->transposed != 0, stream);
    matrix_t c = make_matrix(product_type, SEED_C, 0, all_rows, problem->n, gap, false, stream);
    matrix_t bias = make_matrix(bias_type_of(problem, product_type), SEED_BIAS, 0, 1, problem->n, 0,
                                false, stream);
    MPIX_Flash_cublas_gemm gemm = describe(problem, &b);
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
    check_gathered(problem, &c, gemm.alpha);
    free_matrix(&bias);
    free_matrix(&c);
    free_matrix(&b);
    free_matrix(&all);
    free_matrix(&a);
}

/* -------------------------------------------------------------- reduced, scattered */

static void check_scattered(const problem_t *problem, const buffer_t *result)
{
    float *got = get_memory(result->bytes + 1);

    buffer_read(result, got);
    for (int row = 0; row < problem->rows; row++) {
        for (int column = 0; column < problem->n; column++) {
            float wanted = (float) (problem->bias ? number(SEED_BIAS, 0, column) : 0);

            for (int rank = 0; rank < world_size; rank++) {
                wanted += (float) dot(SEED_A + rank, SEED_B + rank,
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

static void scatter(const problem_t *problem, void *stream)
{
    int all_rows = problem->rows * world_size, gap = gap_of(problem);
    matrix_t a = make_matrix(problem->type, SEED_A + world_rank, 0, all_rows, problem->k, gap,
                             false, stream);
    matrix_t b = make_matrix(problem->type, SEED_B + world_rank, 0, problem->k, problem->n, gap,
                             problem->transposed != 0, stream);
    matrix_t bias = make_matrix(bias_type_of(problem, CUDA_R_32F), SEED_BIAS, 0, 1, problem->n, 0,
                                false, stream);
    buffer_t result =
        buffer_make(IN_DEVICE, (size_t) problem->rows * (size_t) problem->n * sizeof(float));
    MPIX_Flash_cublas_gemm gemm = describe(problem, &b);
    MPI_Request request;

    gemm.a = a.buffer.data;
    gemm.lda = a.stride;
    gemm.bias = problem->bias && world_rank == 0 ? bias.buffer.data : NULL;
    MPIX_Flash_cublas_igemm_reduce_scatter(&gemm, problem->rows, result.data, problem->pieces,
                                           stream, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPIX_Flash_cublas_release(&gemm, stream);
    check(stream_wait(stream), "%s: the stream", problem->name);
    check_scattered(problem, &result);
    check(buffer_free(&result), "wrote around the result");
    free_matrix(&bias);
    free_matrix(&b);
    free_matrix(&a);
}

/* ------------------------------------------------------------------------- cases */

static const problem_t problems[] = {
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

static void products(void (*run)(const problem_t *problem, void *stream))
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
    static const problem_t to_bf16 = {.name = "bf16 to bf16",
                                      .type = CUDA_R_16BF,
                                      .product_type = CUDA_R_16BF,
                                      .rows = 8,
                                      .n = 16,
                                      .k = 8,
                                      .beta = 1};
    static const problem_t to_fp16 = {.name = "fp8 to fp16",
                                      .type = CUDA_R_8F_E4M3,
                                      .product_type = CUDA_R_16F,
                                      .rows = 32,
                                      .n = 32,
                                      .k = 32,
                                      .transposed = 1,
                                      .bias = true};
    void *stream;

    products(gather);
    stream = stream_make(0);
    device_enter();
    gather(&to_bf16, stream);
    gather(&to_fp16, stream);
    device_leave();
    stream_free(stream);
}

static void reduce_scatter(void)
{
    products(scatter);
}

/* One structure for three operations, changed between them. */
static void used_again(void)
{
    enum { N = 8, K = 4, MOST = 24, TURNS = 3 };
    static const int rows[TURNS] = {MOST, 2, 5};
    void *stream = stream_make(0);
    matrix_t b = make_matrix(CUDA_R_32F, SEED_B, 0, K, N, 0, false, stream);
    matrix_t a[TURNS], all[TURNS], c[TURNS], bias[2];
    MPIX_Flash_cublas_gemm gemm = MPIX_FLASH_CUBLAS_GEMM_INIT;
    MPI_Request requests[TURNS];

    gemm.n = gemm.ldb = gemm.ldc = N;
    gemm.k = K;
    gemm.b = b.buffer.data;
    device_enter();
    for (int t = 0; t < TURNS; t++) {
        a[t] = make_matrix(CUDA_R_32F, SEED_A, world_rank * rows[t], rows[t], K, 0, false, stream);
        all[t] = make_matrix(CUDA_R_32F, 0, 0, rows[t] * world_size, K, 0, false, stream);
        c[t] = make_matrix(CUDA_R_32F, 0, 0, rows[t] * world_size, N, 0, false, stream);
    }
    bias[0] = make_matrix(CUDA_R_32F, 1, 0, 1, N, 0, false, stream);
    bias[1] = make_matrix(CUDA_R_32F, SEED_BIAS, 0, 1, N, 0, false, stream);
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
        problem_t problem = {.name = "used again",
                             .type = CUDA_R_32F,
                             .rows = rows[t],
                             .n = N,
                             .k = K,
                             .bias = t == 2};

        if (t != 1) { /* that one's bias is another */
            check_gathered(&problem, &c[t], 1);
        }
        free_matrix(&c[t]);
        free_matrix(&all[t]);
        free_matrix(&a[t]);
    }
    MPIX_Flash_cublas_release(&gemm, stream);
    stream_wait(stream);
    device_leave();
    free_matrix(&bias[1]);
    free_matrix(&bias[0]);
    free_matrix(&b);
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
        make_matrix(CUDA_R_32F, SEED_A + world_rank, 0, MOST * world_size, K, 0, false, stream);
    matrix_t b = make_matrix(CUDA_R_32F, SEED_B + world_rank, 0, K, N, 0, false, stream);
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
        problem_t problem = {.name = "shared", .rows = rows[t], .n = N, .k = K};

        check_scattered(&problem, &results[t]);
        check(buffer_free(&results[t]), "wrote around a result");
    }
    free_matrix(&b);
    free_matrix(&a);
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
    const problem_t *problem = &problems[0];
    void *stream = stream_make(0);
    matrix_t a = make_matrix(CUDA_R_32F, SEED_A, 0, problem->rows * world_size, problem->k, 0,
                             false, stream);
    matrix_t b = make_matrix(CUDA_R_32F, SEED_B, 0, problem->k, problem->n, 0, false, stream);
    buffer_t result = buffer_make(IN_DEVICE, (size_t) problem->rows * 7 * sizeof(float));
    MPIX_Flash_cublas_gemm gemm = describe(problem, &b);
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
    free_matrix(&b);
    free_matrix(&a);
    stream_free(stream);
    MPI_Comm_free(&comm);
}

DEVICE_PROGRAM(test_device_gemm, {"allgather", allgather}, {"reduce_scatter", reduce_scatter},
               {"used_again", used_again}, {"shared", shared}, {"refused", refused},
               {"cublas_fails", cublas_fails});
TEST_MAIN(test_device_gemm)
