/*
 * flash_cuda_driver.h: the functions of CUDA's driver that the plugin calls.
 *
 * Nothing links the driver: a node without one could not load the plugin, nor a build machine link
 * it. An application that has device memory has loaded it.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef FLASH_CUDA_DRIVER_H
#define FLASH_CUDA_DRIVER_H

#include <cuda.h>
#include <stdbool.h>

/* cuda.h's macros give each its name in the driver, with a version where it has one. */
/* clang-format off */
#define FLASH_CUDA_FUNCTIONS(each) \
    each(cuCtxGetDevice) \
    each(cuCtxGetId) \
    each(cuCtxGetStreamPriorityRange) \
    each(cuCtxPopCurrent) \
    each(cuCtxPushCurrent) \
    each(cuDeviceGet) \
    each(cuDeviceGetAttribute) \
    each(cuDeviceGetPCIBusId) \
    each(cuDevicePrimaryCtxRelease) \
    each(cuDevicePrimaryCtxRetain) \
    each(cuEventCreate) \
    each(cuEventDestroy) \
    each(cuEventQuery) \
    each(cuEventRecord) \
    each(cuGetErrorName) \
    each(cuKernelGetFunction) \
    each(cuLaunchKernel) \
    each(cuLibraryGetKernel) \
    each(cuLibraryLoadData) \
    each(cuMemAlloc) \
    each(cuMemAllocFromPoolAsync) \
    each(cuMemFree) \
    each(cuMemFreeAsync) \
    each(cuMemFreeHost) \
    each(cuMemHostAlloc) \
    each(cuMemHostRegister) \
    each(cuMemHostUnregister) \
    each(cuMemPoolCreate) \
    each(cuMemPoolSetAttribute) \
    each(cuMemcpyAsync) \
    each(cuPointerGetAttribute) \
    each(cuPointerSetAttribute) \
    each(cuStreamCreateWithPriority) \
    each(cuStreamDestroy) \
    each(cuStreamGetCtx) \
    each(cuStreamIsCapturing) \
    each(cuStreamQuery) \
    each(cuStreamSynchronize) \
    each(cuStreamWaitEvent) \
    each(cuThreadExchangeStreamCaptureMode)
/* clang-format on */

typedef struct flash_cuda_driver {
#define FLASH_CUDA_MEMBER(name) __typeof__(name) *p_##name;
    FLASH_CUDA_FUNCTIONS(FLASH_CUDA_MEMBER)
#undef FLASH_CUDA_MEMBER
} flash_cuda_driver_t;

/* The first CUDA whose driver has them all, and the number of that driver. */
#define FLASH_CUDA_LEAST "12.0 (525.60)"

/* Finds them all in the driver that the process has loaded, which stays. False: there is none, or
   one that lacks a function, and a sentence about that. One call at a time. */
bool flash_cuda_driver_find(flash_cuda_driver_t *driver, const char **reason);

#endif /* FLASH_CUDA_DRIVER_H */
