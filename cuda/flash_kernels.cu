/*
 * flash_kernels.cu: the kernels, found by name (flash_cuda_kernel.c).
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "flash_operators.h"

#define FLASH_DEFINE_KERNEL(operation, name, type)                                           \
    extern "C" __global__ void flash_##operation##_##name(const type *in, const type *inout, \
                                                          type *out, size_t count)           \
    {                                                                                        \
        flash_combine_share<flash_##operation, type>(                                        \
            in, inout, out, count, blockIdx.x * size_t(blockDim.x) + threadIdx.x,            \
            gridDim.x * size_t(blockDim.x));                                                 \
    }

FLASH_KERNELS(FLASH_DEFINE_KERNEL)
