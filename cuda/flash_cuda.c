/*
 * flash_cuda.c: flash_gpu.h by CUDA's driver: the table, the driver, contexts.
 *
 * Shared between threads:
 *   flash_cuda_driver, found   written under `mutex` by whoever gets the table first
 *   homes                      under `mutex`; what is there stays
 *   settled                    atomic: stored once (release), and acquired by who enters it
 *   complaint                  atomic: the driver's latest error
 *   visit_home, at_home        one for each thread
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "flash_cuda.h"

#include <pthread.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
flash_cuda_driver_t flash_cuda_driver;
static bool found;
static CUcontext homes[FLASH_GPU_DEVICES]; /* primary ones, kept: of all memory of flash's */
static _Atomic(CUcontext) settled;         /* the one of them that a transport works in */
static atomic_int complaint;

bool flash_cuda_well(CUresult result)
{
    if (result != CUDA_SUCCESS) {
        atomic_store_explicit(&complaint, (int) result, memory_order_relaxed);
    }
    return result == CUDA_SUCCESS;
}

/* Errors whose name alone does not say what to do. */
static const char *explain(CUresult result)
{
    switch (result) {
    case CUDA_ERROR_DEVICE_UNAVAILABLE:
        return "CUDA_ERROR_DEVICE_UNAVAILABLE (another process has the device, and its compute "
               "mode "
               "is exclusive, see nvidia-smi -q -d COMPUTE)";
    case CUDA_ERROR_NO_DEVICE:
        return "CUDA_ERROR_NO_DEVICE (CUDA_VISIBLE_DEVICES may hide all of them)";
    case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
        return "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH (libcuda.so.1 and the kernel's module are of "
               "different releases)";
    case CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED:
        return "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED (the stream is being captured into a graph)";
    default:
        return NULL;
    }
}

static const char *last_complaint(void)
{
    const char *name = NULL;
    CUresult result = (CUresult) atomic_load_explicit(&complaint, memory_order_relaxed);

    if (explain(result) != NULL) {
        return explain(result);
    }
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

CUcontext flash_cuda_home(CUdevice device)
{
    CUcontext home;

    pthread_mutex_lock(&mutex);
    if (homes[device] == NULL &&
        !flash_cuda_well(flash_cuda_driver.p_cuDevicePrimaryCtxRetain(&homes[device], device))) {
        homes[device] = NULL;
    }
    home = homes[device];
    pthread_mutex_unlock(&mutex);
    return home;
}

/*
 * The libraries that the transport uses make what they need in the context that they find first,
 * and want no other from then on.
 */
static bool settle(int device)
{
    CUcontext here = flash_cuda_home(device), none = NULL;

    return here != NULL &&
           (atomic_compare_exchange_strong_explicit(&settled, &none, here, memory_order_release,
                                                    memory_order_relaxed) ||
            none == here);
}

static _Thread_local flash_cuda_visit_t visit_home;
static _Thread_local bool at_home;

static void enter_home(void)
{
    at_home = flash_cuda_enter(atomic_load_explicit(&settled, memory_order_acquire), &visit_home);
}

static void leave_home(void)
{
    if (at_home) {
        flash_cuda_leave(&visit_home);
    }
}

static const flash_gpu_ops_t ops = {.open = flash_cuda_open,
                                    .serves = flash_cuda_serves,
                                    .covers = flash_cuda_covers,
                                    .reach = flash_cuda_reach,
                                    .join = flash_cuda_join,
                                    .close = flash_cuda_close,
                                    .end = flash_cuda_end,
                                    .device = flash_cuda_device,
                                    .is_at_home = flash_cuda_is_at_home,
                                    .allocate_pinned = flash_cuda_allocate_pinned,
                                    .release_pinned = flash_cuda_release_pinned,
                                    .allocate_direct = flash_cuda_allocate_direct,
                                    .release_direct = flash_cuda_release_direct,
                                    .settle = settle,
                                    .enter = flash_cuda_enter_lane,
                                    .leave = flash_cuda_leave_lane,
                                    .enter_home = enter_home,
                                    .leave_home = leave_home,
                                    .allocate_on_device = flash_cuda_allocate_on_device,
                                    .release_on_device = flash_cuda_release_on_device,
                                    .begin = flash_cuda_begin,
                                    .copy = flash_cuda_copy,
                                    .notify = flash_cuda_notify,
                                    .kernel = flash_cuda_kernel,
                                    .combine = flash_cuda_combine,
                                    .poll = flash_cuda_poll,
                                    .busy = flash_cuda_busy,
                                    .complaint = last_complaint};

__attribute__((visibility("default"))) const flash_gpu_ops_t *
flash_gpu_plugin_6(const char **reason);

const flash_gpu_ops_t *flash_gpu_plugin_6(const char **reason)
{
    const flash_gpu_ops_t *table;

    pthread_mutex_lock(&mutex);
    found = found || flash_cuda_driver_find(&flash_cuda_driver, reason);
    table = found ? &ops : NULL;
    pthread_mutex_unlock(&mutex);
    return table;
}
