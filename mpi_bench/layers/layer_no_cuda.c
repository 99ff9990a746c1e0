/*
 * layer_no_cuda.c: instead of layer_cuda.c, where flash is built without what that needs.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <stdio.h>

#include "layer_device.h"

bool layer_cuda_open(layer_device_t *device, const char *program, int rank)
{
    (void) device;
    if (rank == 0) { /* it is the same on all */
        fprintf(stderr,
                "%s: --compute=cublas: built without the CUDA Toolkit, its nvcc or cuBLAS\n",
                program);
    }
    return false;
}
