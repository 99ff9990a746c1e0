/*
 * layer_kernels.cu: the kernels, found by name (layer_cuda.c): a warp is a worker.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "layer_kernels.h"

#define LAYER_DEFINE(name)                                                                         \
    extern "C" __global__ void layer_##name(layer_work_t work)                                     \
    {                                                                                              \
        size_t thread = blockIdx.x * size_t(blockDim.x) + threadIdx.x;                             \
        layer_place_t place = {thread / 32, gridDim.x * size_t(blockDim.x) / 32, int(thread % 32), \
                               32};                                                                \
                                                                                                   \
        layer_run_##name(work, place);                                                             \
    }

LAYER_KERNELS(LAYER_DEFINE)
