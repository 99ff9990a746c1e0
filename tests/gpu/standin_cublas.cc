/*
 * standin_cublas.cc: as much of cuBLASLt as libmpix_flash_cublas needs, over the stand-in driver:
 * products in plain loops, run in a stream. It refuses what memory is less aligned than was said.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <cstdlib>
#include <cstring>
#include <initializer_list>

#include <cublasLt.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include "standin.h"

namespace
{

struct operation_t {
    cublasOperation_t transpose = CUBLAS_OP_N; /* of the first matrix */
    cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
    const void *bias = nullptr;
    int32_t bias_type = CUDA_R_32F;
};

/* By columns, which are `leading` elements apart. */
struct layout_t {
    cudaDataType_t type;
    uint64_t rows, columns;
    int64_t leading;
};

struct preference_t {
    uint32_t alignment[4] = {256, 256, 256, 256};
};

/* An algorithm is what it may take for granted. */
struct algorithm_t {
    uint32_t alignment[4];
    uint64_t kind; /* of product, see kind_of() */
};

struct product_t {
    operation_t operation;
    layout_t a, b, d;
    uintptr_t a_data, b_data, d_data;
    float alpha, beta;
};

size_t size_of(cudaDataType_t type)
{
    return type == CUDA_R_32F ? 4 : type == CUDA_R_16F || type == CUDA_R_16BF ? 2 : 1;
}

template <class T> T read_as(const void *data, size_t index)
{
    T value;

    std::memcpy(&value, static_cast<const char *>(data) + index * sizeof(T), sizeof(T));
    return value;
}

double read(cudaDataType_t type, const void *data, size_t index)
{
    switch (type) {
    case CUDA_R_32F:
        return read_as<float>(data, index);
    case CUDA_R_16F:
        return __half2float(read_as<__half>(data, index));
    case CUDA_R_16BF:
        return __bfloat162float(read_as<__nv_bfloat16>(data, index));
    default:
        return static_cast<float>(read_as<__nv_fp8_e4m3>(data, index));
    }
}

void write(cudaDataType_t type, void *data, size_t index, double value)
{
    char *place = static_cast<char *>(data) + index * size_of(type);
    float rounded = static_cast<float>(value);

    if (type == CUDA_R_32F) {
        std::memcpy(place, &rounded, sizeof(rounded));
    } else if (type == CUDA_R_16F) {
        __half half = __float2half_rn(rounded);

        std::memcpy(place, &half, sizeof(half));
    } else {
        __nv_bfloat16 half = __float2bfloat16_rn(rounded);

        std::memcpy(place, &half, sizeof(half));
    }
}

/* Its bytes, from the first element to the last. */
size_t span(const layout_t &layout)
{
    return ((layout.columns - 1) * static_cast<size_t>(layout.leading) + layout.rows) *
           size_of(layout.type);
}

int multiply(void *arg)
{
    const product_t *product = static_cast<const product_t *>(arg);
    const layout_t &a = product->a, &b = product->b, &d = product->d;
    const void *a_data = standin_reach_by_kernel(product->a_data, span(a));
    const void *b_data = standin_reach_by_kernel(product->b_data, span(b));
    void *d_data = standin_reach_by_kernel(product->d_data, span(d));
    bool transposed = product->operation.transpose == CUBLAS_OP_T;
    const void *bias = nullptr;
    cudaDataType_t bias_type = static_cast<cudaDataType_t>(product->operation.bias_type);

    if (product->operation.epilogue == CUBLASLT_EPILOGUE_BIAS) {
        bias = standin_reach_by_kernel(reinterpret_cast<uintptr_t>(product->operation.bias),
                                       d.rows * size_of(bias_type));
    }
    if (a_data == nullptr || b_data == nullptr || d_data == nullptr ||
        (bias == nullptr && product->operation.epilogue == CUBLASLT_EPILOGUE_BIAS)) {
        return ILLEGAL_ADDRESS;
    }
    for (size_t j = 0; j < d.columns; j++) {
        for (size_t i = 0; i < d.rows; i++) {
            size_t place = j * static_cast<size_t>(d.leading) + i;
            double sum = 0;

            for (size_t l = 0; l < b.rows; l++) {
                size_t at = transposed ? i * static_cast<size_t>(a.leading) + l
                                       : l * static_cast<size_t>(a.leading) + i;

                sum += read(a.type, a_data, at) *
                       read(b.type, b_data, j * static_cast<size_t>(b.leading) + l);
            }
            sum = product->alpha * sum;
            if (product->beta != 0) {
                sum += product->beta * read(d.type, d_data, place);
            }
            if (bias != nullptr) {
                sum += read(bias_type, bias, i);
            }
            write(d.type, d_data, place, sum);
        }
    }
    return SUCCESS;
}

/* The same for products of one kind, and hardly for others. */
uint64_t kind_of(const operation_t &operation, const layout_t &a, const layout_t &b,
                 const layout_t &d)
{
    uint64_t kind =
        static_cast<uint64_t>(operation.transpose) * 8 + static_cast<uint64_t>(operation.epilogue);

    for (const layout_t *layout : {&a, &b, &d}) {
        for (uint64_t part : {static_cast<uint64_t>(layout->type), layout->rows, layout->columns,
                              static_cast<uint64_t>(layout->leading)}) {
            kind = kind * 1000003 + part;
        }
    }
    return kind;
}

template <class Made, class Handle> cublasStatus_t make(Handle *handle, const Made &content)
{
    *handle = reinterpret_cast<Handle>(new Made(content));
    return CUBLAS_STATUS_SUCCESS;
}

bool is_aligned(const void *data, uint32_t alignment)
{
    return reinterpret_cast<uintptr_t>(data) % alignment == 0;
}

} // namespace

const char *cublasLtGetStatusName(cublasStatus_t status)
{
    return status == CUBLAS_STATUS_NOT_SUPPORTED   ? "CUBLAS_STATUS_NOT_SUPPORTED"
           : status == CUBLAS_STATUS_INVALID_VALUE ? "CUBLAS_STATUS_INVALID_VALUE"
                                                   : "another status";
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle)
{
    static int the_handle;

    *handle = reinterpret_cast<cublasLtHandle_t>(&the_handle);
    return standin_fails("cublasLtCreate") ? CUBLAS_STATUS_NOT_INITIALIZED : CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *desc, cublasComputeType_t,
                                        cudaDataType_t scale)
{
    return scale == CUDA_R_32F ? make(desc, operation_t()) : CUBLAS_STATUS_NOT_SUPPORTED;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc)
{
    delete reinterpret_cast<operation_t *>(desc);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void *value, size_t size)
{
    operation_t *operation = reinterpret_cast<operation_t *>(desc);

    switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
        std::memcpy(&operation->transpose, value, size);
        return CUBLAS_STATUS_SUCCESS;
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
        std::memcpy(&operation->epilogue, value, size);
        return CUBLAS_STATUS_SUCCESS;
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
        std::memcpy(&operation->bias, value, size);
        return CUBLAS_STATUS_SUCCESS;
    case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE:
        std::memcpy(&operation->bias_type, value, size);
        return CUBLAS_STATUS_SUCCESS;
    default:
        return CUBLAS_STATUS_INVALID_VALUE;
    }
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *layout, cudaDataType type,
                                          uint64_t rows, uint64_t columns, int64_t leading)
{
    return rows == 0 || columns == 0 || leading < static_cast<int64_t>(rows)
               ? CUBLAS_STATUS_INVALID_VALUE
               : make(layout, layout_t{type, rows, columns, leading});
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout)
{
    delete reinterpret_cast<layout_t *>(layout);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *preference)
{
    return make(preference, preference_t());
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference)
{
    delete reinterpret_cast<preference_t *>(preference);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t handle,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void *value, size_t size)
{
    preference_t *preference = reinterpret_cast<preference_t *>(handle);
    int first = CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES;

    if (attribute >= first && attribute < first + 4) {
        std::memcpy(&preference->alignment[attribute - first], value, size);
    }
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t desc,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int,
                                              cublasLtMatmulHeuristicResult_t results[], int *count)
{
    const operation_t *operation = reinterpret_cast<const operation_t *>(desc);
    const layout_t *output = reinterpret_cast<const layout_t *>(d);
    algorithm_t algorithm;
    bool fp8 = size_of(reinterpret_cast<const layout_t *>(a)->type) == 1;
    bool e5m2 = reinterpret_cast<const layout_t *>(a)->type == CUDA_R_8F_E5M2 &&
                reinterpret_cast<const layout_t *>(b)->type == CUDA_R_8F_E5M2;
    int32_t bias_type = fp8 && output->type != CUDA_R_16F ? CUDA_R_16BF : output->type;

    *count = 0;
    if (standin_fails("cublasLtMatmulAlgoGetHeuristic") ||
        (fp8 && operation->transpose != CUBLAS_OP_T) || e5m2 ||
        (operation->epilogue == CUBLASLT_EPILOGUE_BIAS && operation->bias_type != bias_type)) {
        return CUBLAS_STATUS_NOT_SUPPORTED;
    }
    std::memcpy(algorithm.alignment, reinterpret_cast<const preference_t *>(preference)->alignment,
                sizeof(algorithm.alignment));
    algorithm.kind = kind_of(*operation, *reinterpret_cast<const layout_t *>(a),
                             *reinterpret_cast<const layout_t *>(b), *output);
    std::memcpy(&results[0].algo, &algorithm, sizeof(algorithm));
    *count = 1;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t desc, const void *alpha,
                              const void *a, cublasLtMatrixLayout_t a_layout, const void *b,
                              cublasLtMatrixLayout_t b_layout, const void *beta, const void *c,
                              cublasLtMatrixLayout_t, void *d, cublasLtMatrixLayout_t d_layout,
                              const cublasLtMatmulAlgo_t *algo, void *workspace,
                              size_t workspace_size, cudaStream_t stream)
{
    product_t *product;
    algorithm_t algorithm;

    std::memcpy(&algorithm, algo, sizeof(algorithm));
    if (standin_fails("cublasLtMatmul")) {
        return CUBLAS_STATUS_EXECUTION_FAILED;
    }
    if (c != d ||
        (workspace_size > 0 && standin_reach_by_kernel(reinterpret_cast<uintptr_t>(workspace),
                                                       workspace_size) == nullptr) ||
        algorithm.kind != kind_of(*reinterpret_cast<const operation_t *>(desc),
                                  *reinterpret_cast<const layout_t *>(a_layout),
                                  *reinterpret_cast<const layout_t *>(b_layout),
                                  *reinterpret_cast<const layout_t *>(d_layout)) ||
        !is_aligned(a, algorithm.alignment[0]) || !is_aligned(b, algorithm.alignment[1]) ||
        !is_aligned(c, algorithm.alignment[2]) || !is_aligned(d, algorithm.alignment[3])) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    product = static_cast<product_t *>(std::malloc(sizeof(*product)));
    *product = product_t{*reinterpret_cast<const operation_t *>(desc),
                         *reinterpret_cast<const layout_t *>(a_layout),
                         *reinterpret_cast<const layout_t *>(b_layout),
                         *reinterpret_cast<const layout_t *>(d_layout),
                         reinterpret_cast<uintptr_t>(a),
                         reinterpret_cast<uintptr_t>(b),
                         reinterpret_cast<uintptr_t>(d),
                         *static_cast<const float *>(alpha),
                         *static_cast<const float *>(beta)};
    return standin_compute(stream, multiply, product) == SUCCESS ? CUBLAS_STATUS_SUCCESS
                                                                 : CUBLAS_STATUS_EXECUTION_FAILED;
}
