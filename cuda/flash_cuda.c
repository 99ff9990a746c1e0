/*
 * flash_cuda.c: flash_gpu.h by CUDA's driver.
 *
 * Shared between threads:
 *   driver, found   written under `mutex` by whoever gets the table first
 *   home            written under `mutex`, before the first lane is handed out
 *   complaint       atomic: the driver's latest error
 *   lane->next      atomic, relaxed: only spreads copies over streams
 *   lane->inside    atomic: who leaves releases what it did there, who closes acquires that
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "flash_gpu.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include "flash_cuda_driver.h"

/* Copies of a lane in turn: a stream stands still between the end of one and the next. */
#define STREAMS 4

struct flash_gpu_lane {
    CUcontext context;
    CUdevice retained; /* whose primary context it is; -1: the application's */
    CUstream streams[STREAMS];
    atomic_uint next;
    atomic_uint inside; /* calls of begin() and `done` that have not returned */
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static flash_cuda_driver_t driver;
static bool found;
static CUcontext home; /* of pinned memory, which all contexts use: a primary one, kept */
static atomic_int complaint;

/* Also from within a callback of the driver's, where none of its functions may be called. */
static bool well(CUresult result)
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

    return driver.p_cuGetErrorName(result, &name) == CUDA_SUCCESS && name != NULL
               ? name
               : "an error that it has no name for";
}

/* ------------------------------------------------------------------ contexts */

/* What flash does is none of a graph's that the application may be capturing. */
typedef struct visit {
    CUstreamCaptureMode mode;
} visit_t;

static bool enter(CUcontext context, visit_t *visit)
{
    if (!well(driver.p_cuCtxPushCurrent(context))) {
        return false;
    }
    visit->mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    driver.p_cuThreadExchangeStreamCaptureMode(&visit->mode);
    return true;
}

static void leave(visit_t *visit)
{
    CUcontext context;

    driver.p_cuThreadExchangeStreamCaptureMode(&visit->mode);
    driver.p_cuCtxPopCurrent(&context);
}

static bool ask(void *answer, CUpointer_attribute attribute, const void *address)
{
    return well(
        driver.p_cuPointerGetAttribute(answer, attribute, (CUdeviceptr) (uintptr_t) address));
}

static bool retain_primary(const void *address, CUcontext *context, CUdevice *device)
{
    int ordinal = 0;

    return ask(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address) &&
           well(driver.p_cuDeviceGet(device, ordinal)) &&
           well(driver.p_cuDevicePrimaryCtxRetain(context, *device));
}

/* Memory of a pool, or that is mapped piece by piece, belongs to no context. */
static bool find_context(const void *address, flash_gpu_lane_t *lane)
{
    lane->retained = -1;
    return ask(&lane->context, CU_POINTER_ATTRIBUTE_CONTEXT, address) &&
           (lane->context != NULL || retain_primary(address, &lane->context, &lane->retained));
}

static bool find_home(const void *address)
{
    CUdevice device;
    bool there;

    pthread_mutex_lock(&mutex);
    there = home != NULL || retain_primary(address, &home, &device);
    pthread_mutex_unlock(&mutex);
    return there;
}

/* --------------------------------------------------------------------- lanes */

static void go_in(flash_gpu_lane_t *lane)
{
    atomic_fetch_add_explicit(&lane->inside, 1, memory_order_relaxed);
}

static void go_out(flash_gpu_lane_t *lane)
{
    atomic_fetch_sub_explicit(&lane->inside, 1, memory_order_release);
}

/* All copies are done: those who began them, and were told so, are about to return. */
static void wait_for_others(flash_gpu_lane_t *lane)
{
    static const struct timespec pause = {.tv_nsec = 10000};

    while (atomic_load_explicit(&lane->inside, memory_order_acquire) > 0) {
        nanosleep(&pause, NULL);
    }
}

static void close_lane(flash_gpu_lane_t *lane)
{
    wait_for_others(lane);
    for (unsigned k = 0; k < STREAMS && lane->streams[k] != NULL; k++) {
        driver.p_cuStreamDestroy(lane->streams[k]);
    }
    if (lane->retained >= 0) {
        driver.p_cuDevicePrimaryCtxRelease(lane->retained);
    }
    free(lane);
}

static bool make_streams(flash_gpu_lane_t *lane)
{
    bool made = true;

    for (unsigned k = 0; k < STREAMS && made; k++) {
        made = well(driver.p_cuStreamCreate(&lane->streams[k], CU_STREAM_NON_BLOCKING));
    }
    return made;
}

/* What is being captured into a graph does not run, and an event there would end the capture. */
static bool is_captured(CUstream stream)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;

    return driver.p_cuStreamIsCapturing(stream, &status) != CUDA_SUCCESS ||
           status != CU_STREAM_CAPTURE_STATUS_NONE;
}

static bool wait_for_stream(flash_gpu_lane_t *lane, CUevent event, CUstream stream)
{
    bool waits = is_captured(stream) || well(driver.p_cuEventRecord(event, stream));

    for (unsigned k = 0; k < STREAMS && waits; k++) {
        waits = well(driver.p_cuStreamWaitEvent(lane->streams[k], event, 0));
    }
    return waits;
}

/*
 * What the application has put on its default stream comes first: a cudaMemcpy() from ordinary
 * memory, or a cudaMemset(), may return before it is done.
 */
static bool wait_for_default_streams(flash_gpu_lane_t *lane)
{
    CUevent event;
    bool waits;

    if (!well(driver.p_cuEventCreate(&event, CU_EVENT_DISABLE_TIMING))) {
        return false;
    }
    waits = wait_for_stream(lane, event, CU_STREAM_LEGACY) &&
            wait_for_stream(lane, event, CU_STREAM_PER_THREAD);
    driver.p_cuEventDestroy(event);
    return waits;
}

static bool prepare(flash_gpu_lane_t *lane)
{
    visit_t visit;
    bool ready;

    if (!enter(lane->context, &visit)) {
        return false;
    }
    ready = make_streams(lane) && wait_for_default_streams(lane);
    leave(&visit);
    return ready;
}

static flash_gpu_lane_t *open_lane(const void *address)
{
    flash_gpu_lane_t *lane = calloc(1, sizeof(*lane));

    if (lane == NULL) {
        well(CUDA_ERROR_OUT_OF_MEMORY);
        return NULL;
    }
    atomic_init(&lane->next, 0);
    atomic_init(&lane->inside, 0);
    if (!find_home(address) || !find_context(address, lane)) {
        free(lane);
        return NULL;
    }
    if (!prepare(lane)) {
        close_lane(lane);
        return NULL;
    }
    return lane;
}

static void *allocate(void *unused, size_t size)
{
    void *memory = NULL;
    visit_t visit;

    (void) unused;
    if (!enter(home, &visit)) {
        return NULL;
    }
    if (!well(driver.p_cuMemHostAlloc(&memory, size, CU_MEMHOSTALLOC_PORTABLE))) {
        memory = NULL;
    }
    leave(&visit);
    return memory;
}

static void release(void *unused, void *memory)
{
    visit_t visit;

    (void) unused;
    if (memory != NULL && enter(home, &visit)) {
        driver.p_cuMemFreeHost(memory);
        leave(&visit);
    }
}

/* -------------------------------------------------------------------- copies */

static void copied(CUstream stream, CUresult result, void *arg)
{
    flash_gpu_copy_t *copy = arg;
    flash_gpu_lane_t *lane = copy->lane; /* `done` may be the end of the copy */

    (void) stream;
    copy->done(copy, well(result));
    go_out(lane);
}

static bool enqueue(CUstream stream, void *to, const void *from, size_t size)
{
    return well(driver.p_cuMemcpyAsync((CUdeviceptr) (uintptr_t) to, (CUdeviceptr) (uintptr_t) from,
                                       size, stream));
}

static bool begin_on(CUstream stream, void *to, const void *from, size_t size,
                     flash_gpu_copy_t *copy)
{
    flash_gpu_lane_t *lane = copy->lane;

    if (!enqueue(stream, to, from, size)) {
        return false;
    }
    go_in(lane);
    if (!well(driver.p_cuStreamAddCallback(stream, copied, copy, 0))) {
        driver.p_cuStreamSynchronize(stream); /* nobody would know when it is done */
        go_out(lane);
        return false;
    }
    return true;
}

static bool begin(flash_gpu_lane_t *lane, void *to, const void *from, size_t size,
                  flash_gpu_copy_t *copy)
{
    unsigned turn = atomic_fetch_add_explicit(&lane->next, 1, memory_order_relaxed);
    visit_t visit;
    bool begun;

    go_in(lane);
    begun = enter(lane->context, &visit);
    if (begun) {
        copy->lane = lane;
        begun = begin_on(lane->streams[turn % STREAMS], to, from, size, copy);
        leave(&visit);
    }
    go_out(lane);
    return begun;
}

static bool copy_now(flash_gpu_lane_t *lane, void *to, const void *from, size_t size)
{
    visit_t visit;
    bool done;

    if (!enter(lane->context, &visit)) {
        return false;
    }
    done = enqueue(lane->streams[0], to, from, size) &&
           well(driver.p_cuStreamSynchronize(lane->streams[0]));
    leave(&visit);
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
