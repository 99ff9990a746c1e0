/*
 * layer_cuda.c: a CUDA device as the engine: products by cuBLAS and kernels, on one stream. Neither
 * the driver nor cuBLAS is linked: the programs run where there are none.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <cublas_v2.h>
#include <cuda.h>
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench_device.h"
#include "layer_device.h"

enum { THREADS = 256, MOST_BLOCKS = 4096 };

#define STRING(name)   #name
#define EXPANDED(name) STRING(name)
/* cuda.h's and cublas_v2.h's macros give some names a version. */
/* clang-format off */
#define DRIVER_FUNCTIONS(each) \
    each(cuEventCreate) each(cuEventDestroy) each(cuEventQuery) each(cuEventRecord) \
    each(cuEventSynchronize) each(cuKernelGetFunction) each(cuLaunchKernel) \
    each(cuLibraryGetKernel) each(cuLibraryLoadData) each(cuLibraryUnload) each(cuMemFreeHost) \
    each(cuMemHostAlloc) each(cuMemcpyAsync) each(cuStreamCreate) each(cuStreamDestroy) \
    each(cuStreamSynchronize)
#define CUBLAS_FUNCTIONS(each) \
    each(cublasCreate) each(cublasDestroy) each(cublasGemmEx) each(cublasSetStream)
/* clang-format on */

#define MEMBER(name) __typeof__(name) *p_##name;
static struct {
    DRIVER_FUNCTIONS(MEMBER)
    CUBLAS_FUNCTIONS(MEMBER)
} cuda;
#undef MEMBER

static cublasHandle_t blas;
static CUlibrary library;
static CUfunction kernels[LAYER_KERNEL_COUNT];
static CUevent event; /* the mark */

extern const char layer_image[]; /* layer_image.S */

/* -------------------------------------------------------------------- beginning */

static bool find(void *from, const char *name, void *place)
{
    void *found = from == NULL ? NULL : dlsym(from, name);

    memcpy(place, &found, sizeof(found));
    return found != NULL;
}

static bool find_all(const char *program)
{
    const char *name = "libcublas.so." EXPANDED(CUBLAS_VER_MAJOR);
    void *driver = dlopen("libcuda.so.1", RTLD_NOW), *cublas = dlopen(name, RTLD_NOW);
    bool found = true;

#define FIND(function) found = found && find(from, EXPANDED(function), &cuda.p_##function);
    void *from = driver;
    DRIVER_FUNCTIONS(FIND)
    if (!found) {
        fprintf(stderr, "%s: --compute=cublas: the CUDA driver is older than CUDA 12\n", program);
        return false;
    }
    from = cublas;
    CUBLAS_FUNCTIONS(FIND)
#undef FIND
    if (!found) {
        fprintf(stderr, "%s: --compute=cublas: no %s: name its folder in LD_LIBRARY_PATH\n",
                program, name);
    }
    return found;
}

static bool load_kernels(void)
{
    static const char *const names[] = {
#define NAME(name) "layer_" #name,
        LAYER_KERNELS(NAME)
#undef NAME
    };
    CUkernel found;
    bool loaded =
        cuda.p_cuLibraryLoadData(&library, layer_image, NULL, NULL, 0, NULL, NULL, 0) == 0;

    for (int k = 0; k < LAYER_KERNEL_COUNT && loaded; k++) {
        loaded = cuda.p_cuLibraryGetKernel(&found, library, names[k]) == 0 &&
                 cuda.p_cuKernelGetFunction(&kernels[k], found) == 0;
    }
    return loaded;
}

static const layer_engine_t engine;

bool layer_cuda_open(layer_device_t *device, const char *program, int rank)
{
    CUstream stream;

    if (!bench_device_open(program, rank) || !find_all(program)) {
        return false;
    }
    if (cuda.p_cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) != 0 ||
        cuda.p_cuEventCreate(&event, CU_EVENT_DISABLE_TIMING) != 0 || !load_kernels() ||
        cuda.p_cublasCreate(&blas) != 0 || cuda.p_cublasSetStream(blas, stream) != 0) {
        fprintf(stderr, "%s: --compute=cublas: the device cannot be used\n", program);
        return false;
    }
    device->engine = &engine;
    device->stream = stream;
    return true;
}

/* ------------------------------------------------------------------- the engine */

static void must(int error, const char *what)
{
    if (error != 0) {
        fprintf(stderr, "--compute=cublas: %s fails with error %d\n", what, error);
        exit(EXIT_FAILURE);
    }
}

static void *allocate(size_t bytes, bool on_host)
{
    void *memory = NULL;

    return !on_host                                        ? bench_device_allocate(bytes)
           : cuda.p_cuMemHostAlloc(&memory, bytes, 0) == 0 ? memory
                                                           : NULL;
}

static void release(void *memory, bool on_host)
{
    if (on_host) {
        must((int) cuda.p_cuMemFreeHost(memory), "cuMemFreeHost");
    } else {
        bench_device_free(memory);
    }
}

/* cuBLAS has matrices by columns: it is given the transpose of each, and of the product. */
static void multiply(layer_device_t *device, const layer_product_t *product)
{
    static const float one = 1;
    cublasOperation_t a = product->transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasOperation_t b = product->transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasComputeType_t by = device->half ? CUBLAS_COMPUTE_32F_FAST_16BF : CUBLAS_COMPUTE_32F;

    must((int) cuda.p_cublasGemmEx(blas, b, a, product->n, product->m, product->k, &one, product->b,
                                   CUDA_R_32F, product->ldb, product->a, CUDA_R_32F, product->lda,
                                   &product->beta, product->c, CUDA_R_32F, product->ldc, by,
                                   CUBLAS_GEMM_DEFAULT),
         "cublasGemmEx");
}

static void compute(layer_device_t *device, layer_kernel_t kernel, const layer_work_t *work)
{
    bool by_rows = work->width > 0;
    size_t threads = work->count * (by_rows ? 32 : 1), blocks = (threads + THREADS - 1) / THREADS;
    layer_work_t copy = *work;
    void *arguments[] = {&copy};

    must((int) cuda.p_cuLaunchKernel(kernels[kernel],
                                     (unsigned) (blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS), 1, 1,
                                     THREADS, 1, 1, 0, device->stream, arguments, NULL),
         "cuLaunchKernel");
}

static void copy(layer_device_t *device, void *to, const void *from, size_t bytes)
{
    must((int) cuda.p_cuMemcpyAsync((uintptr_t) to, (uintptr_t) from, bytes, device->stream),
         "cuMemcpyAsync");
}

static void mark(layer_device_t *device)
{
    must((int) cuda.p_cuEventRecord(event, device->stream), "cuEventRecord");
}

static bool reached(const layer_device_t *device)
{
    (void) device;
    return cuda.p_cuEventQuery(event) != CUDA_ERROR_NOT_READY;
}

static void wait_for_mark(const layer_device_t *device)
{
    (void) device;
    must((int) cuda.p_cuEventSynchronize(event), "cuEventSynchronize");
}

static void finish(const layer_device_t *device)
{
    must((int) cuda.p_cuStreamSynchronize(device->stream), "cuStreamSynchronize");
}

static void close_device(layer_device_t *device)
{
    cuda.p_cublasDestroy(blas);
    cuda.p_cuLibraryUnload(library);
    cuda.p_cuEventDestroy(event);
    cuda.p_cuStreamDestroy(device->stream);
}

static const layer_engine_t engine = {.allocate = allocate,
                                      .release = release,
                                      .multiply = multiply,
                                      .compute = compute,
                                      .copy = copy,
                                      .mark = mark,
                                      .reached = reached,
                                      .wait = wait_for_mark,
                                      .finish = finish,
                                      .close = close_device};
