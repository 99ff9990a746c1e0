/*
 * flash_cuda.c: flash_gpu.h by CUDA's driver.
 *
 * Shared between threads:
 *   driver, found  written by whoever loads the plugin, under `mutex`; read by whoever got the
 * table home           written under `mutex` before the first lane is handed out complaint atomic:
 * a pointer to one of the driver's own strings A lane's fields but `next` do not change while it is
 * open; `next` is atomic.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "flash_gpu.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

#include "flash_cuda_driver.h"

/* Copies of a lane in turn: a stream stands still between the end of one and the next. */
#define STREAMS 4

struct flash_gpu_lane {
    CUcontext context;
    CUstream streams[STREAMS];
    atomic_uint next;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static flash_cuda_driver_t driver;
static bool found;
static CUcontext home; /* of pinned memory, which all contexts use */
static _Atomic(const char *) complaint = "nothing";

static bool well(CUresult result)
{
    const char *name = "an error that the driver has no name for";

    if (result == CUDA_SUCCESS) {
        return true;
    }
    driver.p_cuGetErrorName(result, &name);
    atomic_store_explicit(&complaint, name, memory_order_release);
    return false;
}

static const char *last_complaint(void)
{
    return atomic_load_explicit(&complaint, memory_order_acquire);
}

static bool ask(void *answer, CUpointer_attribute attribute, const void *address)
{
    return driver.p_cuPointerGetAttribute(answer, attribute, (CUdeviceptr) (uintptr_t) address) ==
           CUDA_SUCCESS;
}

/* ------------------------------------------------------------------ contexts */

static bool enter(CUcontext context)
{
    return well(driver.p_cuCtxPushCurrent(context));
}

static void leave(void)
{
    CUcontext context;

    driver.p_cuCtxPopCurrent(&context);
}

/* Stays retained: `home` does, and other devices' contexts as long as their memory. */
static bool primary_context(const void *address, CUcontext *context)
{
    int device = 0;

    return well(driver.p_cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                                               (CUdeviceptr) (uintptr_t) address)) &&
           well(driver.p_cuDevicePrimaryCtxRetain(context, device));
}

/* Memory of a pool, or that is mapped piece by piece, belongs to no context. */
static bool context_of(const void *address, CUcontext *context)
{
    *context = NULL;
    return (ask(context, CU_POINTER_ATTRIBUTE_CONTEXT, address) && *context != NULL) ||
           primary_context(address, context);
}

static bool find_home(const void *address)
{
    bool there;

    pthread_mutex_lock(&mutex);
    there = home != NULL || primary_context(address, &home);
    pthread_mutex_unlock(&mutex);
    return there;
}

/* --------------------------------------------------------------------- lanes */

static void close_lane(flash_gpu_lane_t *lane)
{
    if (enter(lane->context)) {
        for (unsigned k = 0; k < STREAMS && lane->streams[k] != NULL; k++) {
            driver.p_cuStreamDestroy(lane->streams[k]);
        }
        leave();
    }
    free(lane);
}

static bool make_streams(flash_gpu_lane_t *lane)
{
    bool made = true;

    if (!enter(lane->context)) {
        return false;
    }
    for (unsigned k = 0; k < STREAMS && made; k++) {
        made = well(driver.p_cuStreamCreate(&lane->streams[k], CU_STREAM_NON_BLOCKING));
    }
    leave();
    return made;
}

static flash_gpu_lane_t *open_lane(const void *address)
{
    flash_gpu_lane_t *lane = calloc(1, sizeof(*lane));

    if (lane == NULL) {
        return NULL;
    }
    atomic_init(&lane->next, 0);
    if (!find_home(address) || !context_of(address, &lane->context)) {
        free(lane);
        return NULL;
    }
    if (!make_streams(lane)) {
        close_lane(lane);
        return NULL;
    }
    return lane;
}

static void *allocate(void *unused, size_t size)
{
    void *memory = NULL;

    (void) unused;
    if (!enter(home)) {
        return NULL;
    }
    if (!well(driver.p_cuMemHostAlloc(&memory, size, CU_MEMHOSTALLOC_PORTABLE))) {
        memory = NULL;
    }
    leave();
    return memory;
}

static void release(void *unused, void *memory)
{
    (void) unused;
    if (memory != NULL && enter(home)) {
        driver.p_cuMemFreeHost(memory);
        leave();
    }
}

/* -------------------------------------------------------------------- copies */

static void copied(CUstream stream, CUresult result, void *arg)
{
    flash_gpu_copy_t *copy = arg;

    (void) stream;
    copy->done(copy, well(result));
}

static bool enqueue(CUstream stream, void *to, const void *from, size_t size)
{
    return well(driver.p_cuMemcpyAsync((CUdeviceptr) (uintptr_t) to, (CUdeviceptr) (uintptr_t) from,
                                       size, stream));
}

static bool begin(flash_gpu_lane_t *lane, void *to, const void *from, size_t size,
                  flash_gpu_copy_t *copy)
{
    unsigned turn = atomic_fetch_add_explicit(&lane->next, 1, memory_order_relaxed);
    CUstream stream = lane->streams[turn % STREAMS];
    bool begun;

    if (!enter(lane->context)) {
        return false;
    }
    begun = enqueue(stream, to, from, size);
    if (begun && !well(driver.p_cuStreamAddCallback(stream, copied, copy, 0))) {
        driver.p_cuStreamSynchronize(stream); /* nobody would know when it is done */
        begun = false;
    }
    leave();
    return begun;
}

static bool copy_now(flash_gpu_lane_t *lane, void *to, const void *from, size_t size)
{
    bool done;

    if (!enter(lane->context)) {
        return false;
    }
    done = enqueue(lane->streams[0], to, from, size) &&
           well(driver.p_cuStreamSynchronize(lane->streams[0]));
    leave();
    return done;
}

static const flash_gpu_ops_t ops = {.open = open_lane,
                                    .close = close_lane,
                                    .allocate = allocate,
                                    .release = release,
                                    .begin = begin,
                                    .copy = copy_now,
                                    .complaint = last_complaint};

__attribute__((visibility("default"))) const flash_gpu_ops_t *flash_gpu_plugin_1(void);

const flash_gpu_ops_t *flash_gpu_plugin_1(void)
{
    const flash_gpu_ops_t *table;

    pthread_mutex_lock(&mutex);
    found = found || flash_cuda_driver_find(&driver);
    table = found ? &ops : NULL;
    pthread_mutex_unlock(&mutex);
    return table;
}
