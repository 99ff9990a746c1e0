/*
 * mpix_flash_cublas_product.c: see mpix_flash_cublas_product.h.
 *
 * cuBLASLt computes on matrices stored by columns: it is given each one's transpose, and with that
 * the product's, whose columns are the rows here.
 *
 * Shared between threads, under `mutex`: each device's handle, kept; which algorithm computes what
 * kind of product; workspaces, until they are made. cuBLASLt's own functions may be called by any.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "mpix_flash_cublas_product.h"

#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { DEVICES = 64, PLANS = 64 };

/* What a product's algorithm depends on. Compared byte by byte: made of zeros. */
typedef struct kind {
    int device, n, k, type, product_type, compute, transposed, biased;
    long long rows, lda, ldb, ldc;
    size_t workspace;
    unsigned aligned[4]; /* B, A, C, the bias */
} kind_t;

typedef struct plan {
    kind_t kind; /* of no rows: none */
    cublasLtMatmulAlgo_t algorithm;
} plan_t;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static cublasLtHandle_t handles[DEVICES];
static plan_t plans[PLANS]; /* the latest, in turn */
static unsigned next_plan;

static bool well(cublasStatus_t status, const char *function)
{
    if (status != CUBLAS_STATUS_SUCCESS) {
        fprintf(stderr, "mpix_flash_cublas: %s: %s\n", function, cublasLtGetStatusName(status));
    }
    return status == CUBLAS_STATUS_SUCCESS;
}

/* cublasStatus_t and its function are one word. */
#define WELL(function, ...) well(function(__VA_ARGS__), #function)

static bool cuda_well(cudaError_t error, const char *function)
{
    if (error != cudaSuccess) {
        fprintf(stderr, "mpix_flash_cublas: %s: %s\n", function, cudaGetErrorName(error));
    }
    return error == cudaSuccess;
}

/* Under the mutex. NULL: there is none. */
static cublasLtHandle_t find_handle(int device)
{
    if (device >= DEVICES) {
        return NULL;
    }
    if (handles[device] == NULL && !WELL(cublasLtCreate, &handles[device])) {
        handles[device] = NULL;
    }
    return handles[device];
}

/* Under the mutex. What was there before may be in use by what the stream holds. */
static bool find_workspace(MPIX_Flash_cublas_gemm *gemm, cudaStream_t stream)
{
    if (gemm->state.size < gemm->workspace) {
        MPIX_Flash_cublas_release(gemm, stream);
        if (!cuda_well(cudaMallocAsync(&gemm->state.memory, gemm->workspace, stream),
                       "cudaMallocAsync")) {
            gemm->state.memory = NULL;
            return false;
        }
        gemm->state.size = gemm->workspace;
    }
    return true;
}

void MPIX_Flash_cublas_release(MPIX_Flash_cublas_gemm *gemm, cudaStream_t stream)
{
    if (gemm->state.memory != NULL) {
        cudaFreeAsync(gemm->state.memory, stream);
    }
    gemm->state.memory = NULL;
    gemm->state.size = 0;
}

/* What cuBLASLt wants of it. B', A' and C', as it sees them: columns are rows of A and C. */
typedef struct description {
    cublasLtMatmulDesc_t operation;
    cublasLtMatrixLayout_t b, a, c;
} description_t;

static void free_description(const description_t *made)
{
    if (made->c != NULL) {
        cublasLtMatrixLayoutDestroy(made->c);
    }
    if (made->a != NULL) {
        cublasLtMatrixLayoutDestroy(made->a);
    }
    if (made->b != NULL) {
        cublasLtMatrixLayoutDestroy(made->b);
    }
    if (made->operation != NULL) {
        cublasLtMatmulDescDestroy(made->operation);
    }
}

size_t flash_cublas_size_of(cudaDataType_t type)
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

/* As cuBLASLt has it: with factors of 8 bits, not that of a product of 32. */
static int32_t bias_type(const MPIX_Flash_cublas_gemm *gemm)
{
    return flash_cublas_size_of(gemm->type) == 1 && gemm->product_type != CUDA_R_16F
               ? CUDA_R_16BF
               : gemm->product_type;
}

static bool add_bias(const MPIX_Flash_cublas_gemm *gemm, cublasLtMatmulDesc_t operation)
{
    cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_BIAS;
    int32_t type = bias_type(gemm);

    return WELL(cublasLtMatmulDescSetAttribute, operation, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue,
                sizeof(epilogue)) &&
           WELL(cublasLtMatmulDescSetAttribute, operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER,
                &gemm->bias, sizeof(gemm->bias)) &&
           WELL(cublasLtMatmulDescSetAttribute, operation, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE,
                &type, sizeof(type));
}

static bool describe(const flash_cublas_product_t *product, description_t *made)
{
    const MPIX_Flash_cublas_gemm *gemm = product->gemm;
    cublasOperation_t transpose = gemm->transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    uint64_t n = (uint64_t) gemm->n, k = (uint64_t) gemm->k, rows = (uint64_t) product->rows;

    return WELL(cublasLtMatmulDescCreate, &made->operation, gemm->compute, CUDA_R_32F) &&
           WELL(cublasLtMatmulDescSetAttribute, made->operation, CUBLASLT_MATMUL_DESC_TRANSA,
                &transpose, sizeof(transpose)) &&
           (gemm->bias == NULL || add_bias(gemm, made->operation)) &&
           WELL(cublasLtMatrixLayoutCreate, &made->b, gemm->type, gemm->transposed ? k : n,
                gemm->transposed ? n : k, gemm->ldb) &&
           WELL(cublasLtMatrixLayoutCreate, &made->a, gemm->type, k, rows, product->lda) &&
           WELL(cublasLtMatrixLayoutCreate, &made->c, gemm->product_type, n, rows, product->ldc);
}

/* The largest power of two, 256 at most, that divides it. */
static unsigned alignment(const void *address)
{
    uintptr_t lowest = (uintptr_t) address & -(uintptr_t) address;

    return lowest == 0 || lowest > 256 ? 256 : (unsigned) lowest;
}

static kind_t kind_of(const flash_cublas_product_t *product, int device)
{
    const MPIX_Flash_cublas_gemm *gemm = product->gemm;
    kind_t kind;

    memset(&kind, 0, sizeof(kind));
    kind.device = device;
    kind.n = gemm->n;
    kind.k = gemm->k;
    kind.type = gemm->type;
    kind.product_type = gemm->product_type;
    kind.compute = gemm->compute;
    kind.transposed = gemm->transposed != 0;
    kind.biased = gemm->bias != NULL;
    kind.rows = product->rows;
    kind.lda = product->lda;
    kind.ldb = gemm->ldb;
    kind.ldc = product->ldc;
    kind.workspace = gemm->workspace;
    kind.aligned[0] = alignment(gemm->b);
    kind.aligned[1] = alignment(product->a);
    kind.aligned[2] = alignment(product->c);
    kind.aligned[3] = alignment(gemm->bias);
    return kind;
}

static bool prefer(cublasLtMatmulPreference_t preference,
                   cublasLtMatmulPreferenceAttributes_t attribute, unsigned alignment_bytes)
{
    uint32_t value = alignment_bytes;

    return WELL(cublasLtMatmulPreferenceSetAttribute, preference, attribute, &value, sizeof(value));
}

static bool set_preference(const kind_t *kind, cublasLtMatmulPreference_t preference)
{
    return WELL(cublasLtMatmulPreferenceSetAttribute, preference,
                CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &kind->workspace,
                sizeof(kind->workspace)) &&
           prefer(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, kind->aligned[0]) &&
           prefer(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, kind->aligned[1]) &&
           prefer(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, kind->aligned[2]) &&
           prefer(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, kind->aligned[2]);
}

static bool choose(cublasLtHandle_t handle, const kind_t *kind, const description_t *what,
                   cublasLtMatmulAlgo_t *algorithm)
{
    cublasLtMatmulHeuristicResult_t found;
    cublasLtMatmulPreference_t preference;
    int count = 0;
    bool chosen;

    if (!WELL(cublasLtMatmulPreferenceCreate, &preference)) {
        return false;
    }
    chosen = set_preference(kind, preference) &&
             WELL(cublasLtMatmulAlgoGetHeuristic, handle, what->operation, what->b, what->a,
                  what->c, what->c, preference, 1, &found, &count) &&
             well(count > 0 ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED,
                  "cublasLtMatmulAlgoGetHeuristic");
    if (chosen) {
        *algorithm = found.algo;
    }
    cublasLtMatmulPreferenceDestroy(preference);
    return chosen;
}

/* Under the mutex. False: cuBLASLt has none. */
static bool find_plan(cublasLtHandle_t handle, const kind_t *kind, const description_t *what,
                      cublasLtMatmulAlgo_t *algorithm)
{
    for (unsigned i = 0; i < PLANS; i++) {
        if (memcmp(&plans[i].kind, kind, sizeof(*kind)) == 0) {
            *algorithm = plans[i].algorithm;
            return true;
        }
    }
    if (!choose(handle, kind, what, algorithm)) {
        return false;
    }
    plans[next_plan % PLANS] = (plan_t){.kind = *kind, .algorithm = *algorithm};
    next_plan++;
    return true;
}

bool flash_cublas_multiply(MPIX_Flash_cublas_gemm *gemm, const flash_cublas_product_t *product,
                           cudaStream_t stream)
{
    description_t what = {NULL, NULL, NULL, NULL};
    cublasLtHandle_t handle = NULL;
    cublasLtMatmulAlgo_t algorithm;
    bool done = false;
    int device = 0;

    if (cuda_well(cudaGetDevice(&device), "cudaGetDevice") && describe(product, &what)) {
        kind_t kind = kind_of(product, device);

        pthread_mutex_lock(&mutex);
        handle = find_handle(device);
        done = handle != NULL && find_plan(handle, &kind, &what, &algorithm) &&
               find_workspace(gemm, stream);
        pthread_mutex_unlock(&mutex);
    }
    if (done) {
        done =
            WELL(cublasLtMatmul, handle, what.operation, &gemm->alpha, gemm->b, what.b, product->a,
                 what.a, &gemm->beta, product->c, what.c, product->c, what.c, &algorithm,
                 gemm->workspace > 0 ? gemm->state.memory : NULL, gemm->workspace, stream);
    }
    free_description(&what);
    return done;
}
