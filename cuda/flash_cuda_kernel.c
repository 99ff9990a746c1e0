/*
 * flash_cuda_kernel.c: finds kernels and launches them.
 *
 * They read and write pinned host memory as they do the device's: a sum is one launch, and what
 * arrives from a neighbour needs no copy of its own.
 *
 * Shared between threads: `library` and `kernels`, under `mutex`; what is found stays. Each device
 * has its own: one may be too old for what another has.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "flash_cuda.h"

#include <pthread.h>
#include <stdio.h>

/* Enough to keep a bus busy, and little of a device that computes. */
enum { THREADS = 256, MOST_BLOCKS = 32 };
#define BYTES_OF_A_BLOCK ((size_t) 16 << 10)

struct flash_gpu_kernel {
    CUkernel kernel; /* NULL: not looked for yet */
    size_t element;
    bool missing;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static CUlibrary library;
static flash_gpu_kernel_t kernels[FLASH_GPU_DEVICES][FLASH_GPU_OPERATORS][FLASH_GPU_TYPES];

static const char *const operators[FLASH_GPU_OPERATORS] = {
    [FLASH_GPU_SUM] = "sum",   [FLASH_GPU_PROD] = "prod", [FLASH_GPU_MAX] = "max",
    [FLASH_GPU_MIN] = "min",   [FLASH_GPU_LAND] = "land", [FLASH_GPU_LOR] = "lor",
    [FLASH_GPU_LXOR] = "lxor", [FLASH_GPU_BAND] = "band", [FLASH_GPU_BOR] = "bor",
    [FLASH_GPU_BXOR] = "bxor"};

static const struct {
    const char *name, *twin; /* where the sign makes no difference */
    size_t size;
} types[FLASH_GPU_TYPES] = {
    [FLASH_GPU_I8] = {"i8", "u8", 1},    [FLASH_GPU_I16] = {"i16", "u16", 2},
    [FLASH_GPU_I32] = {"i32", "u32", 4}, [FLASH_GPU_I64] = {"i64", "u64", 8},
    [FLASH_GPU_U8] = {"u8", "u8", 1},    [FLASH_GPU_U16] = {"u16", "u16", 2},
    [FLASH_GPU_U32] = {"u32", "u32", 4}, [FLASH_GPU_U64] = {"u64", "u64", 8},
    [FLASH_GPU_F16] = {"f16", "f16", 2}, [FLASH_GPU_BF16] = {"bf16", "bf16", 2},
    [FLASH_GPU_F32] = {"f32", "f32", 4}, [FLASH_GPU_F64] = {"f64", "f64", 8}};

#ifdef HAVE_CUDA_KERNELS
extern const char flash_cuda_image[]; /* flash_cuda_image.S */

static bool load(void)
{
    return library != NULL || flash_cuda_well(flash_cuda_driver.p_cuLibraryLoadData(
                                  &library, flash_cuda_image, NULL, NULL, 0, NULL, NULL, 0));
}
#else
static bool load(void)
{
    return false;
}
#endif

/*
 * In the lane's context. Each context loads a kernel once: its first launch would wait for what runs
 * there.
 */
static bool load_here(const flash_gpu_kernel_t *kernel)
{
    CUfunction function;

    return flash_cuda_well(flash_cuda_driver.p_cuKernelGetFunction(&function, kernel->kernel));
}

/* Under the mutex, in the lane's context. */
static void find(flash_gpu_kernel_t *kernel, flash_gpu_operator_t operation, flash_gpu_type_t type)
{
    bool by_order = operation == FLASH_GPU_MAX || operation == FLASH_GPU_MIN;
    char name[32];

    snprintf(name, sizeof(name), "flash_%s_%s", operators[operation],
             by_order ? types[type].name : types[type].twin);
    kernel->element = types[type].size;
    kernel->missing =
        !load() ||
        flash_cuda_driver.p_cuLibraryGetKernel(&kernel->kernel, library, name) != CUDA_SUCCESS ||
        !load_here(kernel);
}

const flash_gpu_kernel_t *flash_cuda_kernel(flash_gpu_lane_t *lane, const void *output,
                                            flash_gpu_operator_t operation, flash_gpu_type_t type)
{
    flash_gpu_kernel_t *kernel;
    flash_cuda_visit_t visit;
    CUdevice device;
    bool loaded;

    if (!flash_cuda_device_of(output, &device) || device != lane->place.device ||
        !flash_cuda_enter(lane->place.context, &visit)) {
        return NULL;
    }
    kernel = &kernels[device][operation][type];
    pthread_mutex_lock(&mutex);
    if (kernel->kernel == NULL && !kernel->missing) {
        find(kernel, operation, type);
    }
    loaded = !kernel->missing && load_here(kernel);
    pthread_mutex_unlock(&mutex);
    flash_cuda_leave(&visit);
    return loaded ? kernel : NULL;
}

CUresult flash_cuda_launch(const flash_gpu_kernel_t *kernel, const void *in, const void *inout,
                           void *out, size_t count, CUstream stream)
{
    size_t blocks = (count * kernel->element + BYTES_OF_A_BLOCK - 1) / BYTES_OF_A_BLOCK;
    void *arguments[] = {&in, &inout, &out, &count};

    return flash_cuda_driver.p_cuLaunchKernel(
        (CUfunction) kernel->kernel, (unsigned) (blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS), 1, 1,
        THREADS, 1, 1, 0, stream, arguments, NULL);
}
