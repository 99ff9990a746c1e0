/*
 * mpix_flash_cublas.c: see mpix_flash_cublas.h.
 *
 * cuBLASLt computes on matrices stored by columns: it is given each one's transpose, and with that
 * the product's, whose columns are the rows here.
 *
 * The handle is the process's: cuBLASLt's may be used by all threads. What a structure keeps is
 * ordered as its operations' callbacks are.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "mpix_flash_cublas.h"

#include <cuda_runtime_api.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* Pieces of a block differ by a row at most, and in how they are aligned. */
enum { PLANS = 8 };

/* How products of that many rows are computed, of memory so aligned. */
typedef struct plan {
    MPI_Count rows; /* 0: none */
    unsigned aligned[2];
    cublasLtMatmulAlgo_t algorithm;
} plan_t;

struct MPIX_Flash_cublas_state {
    cublasLtMatmulDesc_t operation;
    void *workspace;
    plan_t plans[PLANS];
    unsigned next;
};
typedef struct MPIX_Flash_cublas_state state_t;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static cublasLtHandle_t handle; /* under `mutex`; kept */

static bool well(cublasStatus_t status, const char *function)
{
    if (status != CUBLAS_STATUS_SUCCESS) {
        fprintf(stderr, "mpix_flash_cublas: %s: %s\n", function, cublasLtGetStatusName(status));
    }
    return status == CUBLAS_STATUS_SUCCESS;
}

/* cublasStatus_t and its function are one word. */
#define WELL(function, ...) well(function(__VA_ARGS__), #function)

static cublasLtHandle_t find_handle(void)
{
    cublasLtHandle_t found;

    pthread_mutex_lock(&mutex);
    if (handle == NULL && !WELL(cublasLtCreate, &handle)) {
        handle = NULL;
    }
    found = handle;
    pthread_mutex_unlock(&mutex);
    return found;
}

/* -------------------------------------------------------------------- its state */

static bool set_operation(const MPIX_Flash_cublas_gemm *gemm, cublasLtMatmulDesc_t operation)
{
    cublasOperation_t transpose = gemm->transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_BIAS;
    int32_t bias_type = gemm->product_type;

    return WELL(cublasLtMatmulDescSetAttribute, operation, CUBLASLT_MATMUL_DESC_TRANSA, &transpose,
                sizeof(transpose)) &&
           (gemm->bias == NULL ||
            (WELL(cublasLtMatmulDescSetAttribute, operation, CUBLASLT_MATMUL_DESC_EPILOGUE,
                  &epilogue, sizeof(epilogue)) &&
             WELL(cublasLtMatmulDescSetAttribute, operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER,
                  &gemm->bias, sizeof(gemm->bias)) &&
             WELL(cublasLtMatmulDescSetAttribute, operation, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE,
                  &bias_type, sizeof(bias_type))));
}

static state_t *make_state(const MPIX_Flash_cublas_gemm *gemm, cudaStream_t stream)
{
    state_t *state = calloc(1, sizeof(*state));
    cudaError_t error = cudaSuccess;

    if (state == NULL) {
        return NULL;
    }
    if (!WELL(cublasLtMatmulDescCreate, &state->operation, gemm->compute, CUDA_R_32F)) {
        free(state);
        return NULL;
    }
    if (gemm->workspace > 0) {
        error = cudaMallocAsync(&state->workspace, gemm->workspace, stream);
    }
    if (error != cudaSuccess) {
        fprintf(stderr, "mpix_flash_cublas: cudaMallocAsync of %zu bytes: %s\n", gemm->workspace,
                cudaGetErrorName(error));
    }
    if (error != cudaSuccess || !set_operation(gemm, state->operation)) {
        MPIX_Flash_cublas_gemm made = {.state = state};

        MPIX_Flash_cublas_release(&made, stream);
        return NULL;
    }
    return state;
}

void MPIX_Flash_cublas_release(MPIX_Flash_cublas_gemm *gemm, cudaStream_t stream)
{
    state_t *state = gemm->state;

    if (state != NULL) {
        if (state->workspace != NULL) {
            cudaFreeAsync(state->workspace, stream);
        }
        cublasLtMatmulDescDestroy(state->operation);
        free(state);
        gemm->state = NULL;
    }
}

/* ------------------------------------------------------------------ one product */

/* As cuBLASLt sees them: B', A' and C', whose columns are rows of A and C. */
typedef struct layouts {
    cublasLtMatrixLayout_t b, a, c;
} layouts_t;

static void free_layouts(const layouts_t *layouts)
{
    if (layouts->c != NULL) {
        cublasLtMatrixLayoutDestroy(layouts->c);
    }
    if (layouts->a != NULL) {
        cublasLtMatrixLayoutDestroy(layouts->a);
    }
    if (layouts->b != NULL) {
        cublasLtMatrixLayoutDestroy(layouts->b);
    }
}

static bool make_layouts(const MPIX_Flash_cublas_gemm *gemm, MPI_Count rows, long long lda,
                         long long ldc, layouts_t *layouts)
{
    uint64_t n = (uint64_t) gemm->n, k = (uint64_t) gemm->k;

    *layouts = (layouts_t){NULL, NULL, NULL};
    return WELL(cublasLtMatrixLayoutCreate, &layouts->b, gemm->type, gemm->transposed ? k : n,
                gemm->transposed ? n : k, gemm->ldb) &&
           WELL(cublasLtMatrixLayoutCreate, &layouts->a, gemm->type, k, (uint64_t) rows, lda) &&
           WELL(cublasLtMatrixLayoutCreate, &layouts->c, gemm->product_type, n, (uint64_t) rows,
                ldc);
}

/* The largest power of two, 256 at most, that divides it. */
static unsigned alignment(const void *address)
{
    uintptr_t lowest = (uintptr_t) address & -(uintptr_t) address;

    return lowest == 0 || lowest > 256 ? 256 : (unsigned) lowest;
}

static bool set_preference(const MPIX_Flash_cublas_gemm *gemm, const plan_t *plan,
                           cublasLtMatmulPreference_t preference)
{
    uint32_t b = alignment(gemm->b), a = plan->aligned[0], c = plan->aligned[1];

    return WELL(cublasLtMatmulPreferenceSetAttribute, preference,
                CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &gemm->workspace,
                sizeof(gemm->workspace)) &&
           WELL(cublasLtMatmulPreferenceSetAttribute, preference,
                CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &b, sizeof(b)) &&
           WELL(cublasLtMatmulPreferenceSetAttribute, preference,
                CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &a, sizeof(a)) &&
           WELL(cublasLtMatmulPreferenceSetAttribute, preference,
                CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, &c, sizeof(c)) &&
           WELL(cublasLtMatmulPreferenceSetAttribute, preference,
                CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &c, sizeof(c));
}

static bool choose(const MPIX_Flash_cublas_gemm *gemm, const layouts_t *layouts, plan_t *plan)
{
    cublasLtMatmulHeuristicResult_t found;
    cublasLtMatmulPreference_t preference;
    int count = 0;
    bool chosen;

    if (!WELL(cublasLtMatmulPreferenceCreate, &preference)) {
        return false;
    }
    chosen = set_preference(gemm, plan, preference) &&
             WELL(cublasLtMatmulAlgoGetHeuristic, find_handle(), gemm->state->operation, layouts->b,
                  layouts->a, layouts->c, layouts->c, preference, 1, &found, &count) &&
             well(count > 0 ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED,
                  "cublasLtMatmulAlgoGetHeuristic");
    if (chosen) {
        plan->algorithm = found.algo;
    }
    cublasLtMatmulPreferenceDestroy(preference);
    return chosen;
}

/* NULL: cuBLASLt has none. */
static const plan_t *find_plan(const MPIX_Flash_cublas_gemm *gemm, const layouts_t *layouts,
                               MPI_Count rows, const void *a, const void *c)
{
    plan_t wanted = {.rows = rows, .aligned = {alignment(a), alignment(c)}};
    state_t *state = gemm->state;
    plan_t *made;

    for (unsigned i = 0; i < PLANS; i++) {
        const plan_t *plan = &state->plans[i];

        if (plan->rows == rows && plan->aligned[0] == wanted.aligned[0] &&
            plan->aligned[1] == wanted.aligned[1]) {
            return plan;
        }
    }
    if (!choose(gemm, layouts, &wanted)) {
        return NULL;
    }
    made = &state->plans[state->next++ % PLANS];
    *made = wanted;
    return made;
}

static bool multiply(const MPIX_Flash_cublas_gemm *gemm, MPI_Count rows, const void *a,
                     long long lda, void *c, long long ldc, cudaStream_t stream)
{
    layouts_t layouts;
    const plan_t *plan = NULL;
    bool done = false;

    if (make_layouts(gemm, rows, lda, ldc, &layouts)) {
        plan = find_plan(gemm, &layouts, rows, a, c);
    }
    if (plan != NULL) {
        done = WELL(cublasLtMatmul, find_handle(), gemm->state->operation, &gemm->alpha, gemm->b,
                    layouts.b, a, layouts.a, &gemm->beta, c, layouts.c, c, layouts.c,
                    &plan->algorithm, gemm->state->workspace, gemm->workspace, stream);
    }
    free_layouts(&layouts);
    return done;
}

/* -------------------------------------------------------------------- callbacks */

static size_t size_of(cudaDataType_t type)
{
    switch (type) {
    case CUDA_R_32F:
        return 4;
    case CUDA_R_16F:
    case CUDA_R_16BF:
        return 2;
    case CUDA_R_8F_E4M3:
    case CUDA_R_8F_E5M2:
        return 1;
    default:
        return 0;
    }
}

static bool is_well_formed(const MPIX_Flash_cublas_gemm *gemm)
{
    return gemm != NULL && gemm->size == sizeof(*gemm) && gemm->n > 0 && gemm->k > 0 &&
           size_of(gemm->type) > 0 && size_of(gemm->product_type) > 0 && gemm->b != NULL &&
           gemm->ldb >= (gemm->transposed ? gemm->k : gemm->n);
}

static bool may_consume(const MPIX_Flash_cublas_gemm *gemm)
{
    return is_well_formed(gemm) && gemm->c != NULL && gemm->ldc >= gemm->n;
}

static bool may_produce(const MPIX_Flash_cublas_gemm *gemm)
{
    return is_well_formed(gemm) && gemm->a != NULL && gemm->lda >= gemm->k && gemm->beta == 0;
}

static bool prepare(MPIX_Flash_cublas_gemm *gemm, cudaStream_t stream)
{
    if (gemm->state == NULL && find_handle() != NULL) {
        gemm->state = make_state(gemm, stream);
    }
    return gemm->state != NULL;
}

/* Where a piece's rows are among all ranks'; `length` elements each. */
static size_t first_row(const MPIX_Flash_cublas_gemm *gemm, const MPIX_Flash_block *block,
                        int length)
{
    MPI_Count first =
        gemm->first_rows != NULL ? gemm->first_rows[block->rank] : gemm->rows * block->rank;

    return (size_t) (first + block->offset / length);
}

static bool has_whole_rows(const MPIX_Flash_block *block, int length)
{
    return block->offset % length == 0 && block->count % length == 0;
}

int MPIX_Flash_cublas_consume(const MPIX_Flash_block *block, void *arg)
{
    MPIX_Flash_cublas_gemm *gemm = arg;
    char *c;

    if (!may_consume(gemm) || !has_whole_rows(block, gemm->k)) {
        return MPI_ERR_ARG;
    }
    c = (char *) gemm->c +
        first_row(gemm, block, gemm->k) * (size_t) gemm->ldc * size_of(gemm->product_type);
    return prepare(gemm, block->stream) && multiply(gemm, block->count / gemm->k, block->data,
                                                    gemm->k, c, gemm->ldc, block->stream)
               ? MPI_SUCCESS
               : MPI_ERR_OTHER;
}

int MPIX_Flash_cublas_produce(const MPIX_Flash_block *block, void *arg)
{
    MPIX_Flash_cublas_gemm *gemm = arg;
    const char *a;

    if (!may_produce(gemm) || !has_whole_rows(block, gemm->n)) {
        return MPI_ERR_ARG;
    }
    a = (const char *) gemm->a +
        first_row(gemm, block, gemm->n) * (size_t) gemm->lda * size_of(gemm->type);
    return prepare(gemm, block->stream) && multiply(gemm, block->count / gemm->n, a, gemm->lda,
                                                    block->data, gemm->n, block->stream)
               ? MPI_SUCCESS
               : MPI_ERR_OTHER;
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
    type = size_of(gemm->type) == 1   ? MPI_BYTE
           : size_of(gemm->type) == 2 ? MPI_UINT16_T
                                      : MPI_FLOAT;
    hints = hints_of(pieces, gemm->k, stream);
    gemm->rows = rows;
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
    gemm->rows = rows;
    return MPIX_Ireduce_scatter_block_compute(MPIX_Flash_cublas_produce, gemm, &hints, result,
                                              rows * gemm->n, MPI_FLOAT, MPI_SUM, comm, request);
}
