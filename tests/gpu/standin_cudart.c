/*
 * standin_cudart.c: as much of the CUDA Runtime as libmpix_flash_cublas needs, over the stand-in
 * driver, in the calling thread's context.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "standin.h"

int cuMemAlloc_v2(unsigned long long *address, size_t size);
int cuMemFreeAsync(unsigned long long address, void *stream);

int cuCtxGetDevice(int *device);

int cudaGetDevice(int *device)
{
    return standin_fails("cudaGetDevice") ? UNKNOWN : cuCtxGetDevice(device);
}

int cudaMallocAsync(void **memory, size_t size, void *stream)
{
    unsigned long long address = 0;
    int result = standin_fails("cudaMallocAsync") ? OUT_OF_MEMORY : cuMemAlloc_v2(&address, size);

    (void) stream;
    *memory = (void *) (uintptr_t) address;
    return result;
}

int cudaFreeAsync(void *memory, void *stream)
{
    return cuMemFreeAsync((uintptr_t) memory, stream);
}

const char *cudaGetErrorName(int error)
{
    return error == OUT_OF_MEMORY ? "cudaErrorMemoryAllocation" : "another error";
}
