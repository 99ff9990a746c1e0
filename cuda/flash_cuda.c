/*
 * flash_cuda.c: flash_gpu.h by CUDA's driver: the table, the driver, contexts and pinned memory.
 *
 * Shared between threads:
 *   flash_cuda_driver, found   written under `mutex` by whoever gets the table first
 *   home                       written under `mutex`, before the first lane is handed out
 *   complaint                  atomic: the driver's latest error
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "flash_cuda.h"

#include <pthread.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
flash_cuda_driver_t flash_cuda_driver;
static bool found;
static CUcontext home; /* of pinned memory, which all contexts use: a primary one, kept */
static atomic_int complaint;

bool flash_cuda_well(CUresult result)
{
    if (result != CUDA_SUCCESS) {
        atomic_store_explicit(&complaint, (int) result, memory_order_relaxed);
    }
    return result == CUDA_SUCCESS;
}

static const char *last_complaint(void)
{
    const char *name = NULL;
    CUresult result = (CUresult) atomic_load_explicit(&complaint, memory_order_relaxed);

    return flash_cuda_driver.p_cuGetErrorName(result, &name) == CUDA_SUCCESS && name != NULL
               ? name
               : "an error that it has no name for";
}

/* ------------------------------------------------------------------ contexts */

bool flash_cuda_enter(CUcontext context, flash_cuda_visit_t *visit)
{
    if (!flash_cuda_well(flash_cuda_driver.p_cuCtxPushCurrent(context))) {
        return false;
    }
    visit->mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    flash_cuda_driver.p_cuThreadExchangeStreamCaptureMode(&visit->mode);
    return true;
}

void flash_cuda_leave(flash_cuda_visit_t *visit)
{
    CUcontext context;

    flash_cuda_driver.p_cuThreadExchangeStreamCaptureMode(&visit->mode);
    flash_cuda_driver.p_cuCtxPopCurrent(&context);
}

bool flash_cuda_find_home(CUdevice device)
{
    bool there;

    pthread_mutex_lock(&mutex);
    there = home != NULL ||
            flash_cuda_well(flash_cuda_driver.p_cuDevicePrimaryCtxRetain(&home, device));
    pthread_mutex_unlock(&mutex);
    return there;
}

/* ------------------------------------------------------------- pinned memory */

static void *allocate(void *unused, size_t size)
{
    void *memory = NULL;
    flash_cuda_visit_t visit;

    (void) unused;
    if (!flash_cuda_enter(home, &visit)) {
        return NULL;
    }
    if (!flash_cuda_well(
            flash_cuda_driver.p_cuMemHostAlloc(&memory, size, CU_MEMHOSTALLOC_PORTABLE))) {
        memory = NULL;
    }
    flash_cuda_leave(&visit);
    return memory;
}

static void release(void *unused, void *memory)
{
    flash_cuda_visit_t visit;

    (void) unused;
    if (memory != NULL && flash_cuda_enter(home, &visit)) {
        flash_cuda_driver.p_cuMemFreeHost(memory);
        flash_cuda_leave(&visit);
    }
}

static const flash_gpu_ops_t ops = {.open = flash_cuda_open,
                                    .close = flash_cuda_close,
                                    .allocate = allocate,
                                    .release = release,
                                    .allocate_far = flash_cuda_allocate_far,
                                    .release_far = flash_cuda_release_far,
                                    .begin = flash_cuda_begin,
                                    .copy = flash_cuda_copy,
                                    .notify = flash_cuda_notify,
                                    .kernel = flash_cuda_kernel,
                                    .combine = flash_cuda_combine,
                                    .complaint = last_complaint};

__attribute__((visibility("default"))) const flash_gpu_ops_t *flash_gpu_plugin_2(void);

const flash_gpu_ops_t *flash_gpu_plugin_2(void)
{
    const flash_gpu_ops_t *table;

    pthread_mutex_lock(&mutex);
    found = found || flash_cuda_driver_find(&flash_cuda_driver);
    table = found ? &ops : NULL;
    pthread_mutex_unlock(&mutex);
    return table;
}
