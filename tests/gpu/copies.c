/*
 * copies.c: see copies.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "copies.h"

#include <stdint.h>
#include <time.h>

#include <cuda.h>

#include "../unit/tap.h"

int ended, failed;

void copy_ended(flash_gpu_copy_t *copy, bool well)
{
    (void) copy;
    ended++;
    failed += !well;
}

bool all_end(int count)
{
    enum { PATIENCE = 20000 };
    static const struct timespec pause = {.tv_nsec = 1000000};

    for (int k = 0; k < PATIENCE && ended < count; k++) {
        gpu->poll();
        nanosleep(&pause, NULL);
    }
    return ended == count && !gpu->busy();
}

char *allocate(size_t bytes)
{
    CUdeviceptr memory = 0;

    must(cuMemAlloc(&memory, bytes) == CUDA_SUCCESS, "memory");
    return (char *) (uintptr_t) memory;
}
