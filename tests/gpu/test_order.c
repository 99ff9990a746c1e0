/*
 * test_order.c: what the plugin does comes behind what the application's streams hold, and is not
 * done before that is.
 *
 * The stand-in driver runs all streams in one thread, a random one's next action at a time. So a
 * stream's first action here is a gate, and STEPS others follow: when all is in its stream, the
 * gate opens, and what does not come behind the stream is soon chosen before the last of them. Each
 * step counts in the memory that is copied: the copy says how many came first. What copies nothing
 * is told of by a thread that polls: for that one, steps take a while.
 *
 * `steps` is atomic, relaxed; `counter` is set while no stream holds a step.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cuda.h>

#include "../unit/tap.h"
#include "plugin.h"
#include "standin.h"

enum { STEPS = 64, BYTES = 256 };

static const flash_gpu_ops_t *gpu;
static sem_t gate;
static atomic_int steps;
static int seen;     /* how many of them, at the end of what comes behind them */
static int *counter; /* of the memory that is copied; or NULL */
static int *got;     /* BYTES of pinned memory */
static atomic_bool done;

static int wait_at_gate(void *arg)
{
    (void) arg;
    sem_wait(&gate);
    return SUCCESS;
}

static int step(void *arg)
{
    static const struct timespec a_moment = {.tv_nsec = 200000};

    (void) arg;
    atomic_fetch_add_explicit(&steps, 1, memory_order_relaxed);
    if (counter != NULL) {
        ++*counter;
    } else {
        nanosleep(&a_moment, NULL);
    }
    return SUCCESS;
}

static void fill(CUstream stream, const void *memory)
{
    counter = memory == NULL ? NULL : standin_reach_device((uintptr_t) memory, sizeof(*counter));
    if (counter != NULL) {
        *counter = 0;
    }
    memset(got, 0xff, BYTES);
    atomic_store_explicit(&steps, 0, memory_order_relaxed);
    atomic_store_explicit(&done, false, memory_order_relaxed);
    must(standin_compute(stream, wait_at_gate, NULL) == SUCCESS, "a gate");
    for (int k = 0; k < STEPS; k++) {
        must(standin_compute(stream, step, NULL) == SUCCESS, "a step");
    }
}

static void end(flash_gpu_copy_t *copy, bool well)
{
    (void) copy;
    seen = well ? atomic_load_explicit(&steps, memory_order_relaxed) : -1;
    atomic_store_explicit(&done, true, memory_order_release);
}

static bool comes_behind(void)
{
    static const struct timespec pause = {.tv_nsec = 10000};

    sem_post(&gate);
    while (!atomic_load_explicit(&done, memory_order_acquire)) {
        nanosleep(&pause, NULL);
        gpu->poll();
    }
    if (counter != NULL) {
        must(cuStreamSynchronize(CU_STREAM_LEGACY) == CUDA_SUCCESS, "the steps");
        seen = got[0];
    }
    if (seen != STEPS) {
        diag("behind %d of %d", seen, STEPS);
    }
    return seen == STEPS;
}

/* A lane for `first`, which covers `memory`: of the same allocation, or of another one. */
static flash_gpu_lane_t *open_lane(void *first, void *const *given, void *memory)
{
    flash_gpu_lane_t *lane = gpu->open(first, given);

    must(lane != NULL && (first == memory || gpu->covers(lane, memory)), "a lane");
    return lane;
}

/* A copy in a lane that is opened when the stream holds something. */
static bool copy_comes_behind(CUstream stream, void *const *given, void *first, void *memory)
{
    flash_gpu_copy_t copy = {.done = end};
    flash_gpu_lane_t *lane;
    bool behind;

    fill(stream, memory);
    lane = open_lane(first, given, memory);
    must(gpu->begin(lane, got, memory, BYTES, &copy), "a copy");
    behind = comes_behind();
    gpu->close(lane);
    return behind;
}

/* From one device's memory, which its default stream still writes, by the lane of another one's. */
static bool copy_between_comes_behind(void *from)
{
    flash_gpu_copy_t copy = {.done = end};
    flash_gpu_lane_t *lane, *other;
    CUcontext context, popped;
    CUdeviceptr to = 0;
    bool behind;

    must(cuDevicePrimaryCtxRetain(&context, 1) == CUDA_SUCCESS &&
             cuCtxPushCurrent(context) == CUDA_SUCCESS && cuMemAlloc(&to, BYTES) == CUDA_SUCCESS &&
             cuCtxPopCurrent(&popped) == CUDA_SUCCESS,
         "the other device");
    fill(CU_STREAM_LEGACY, from);
    lane = gpu->open(from, NULL);
    other = gpu->open((void *) (uintptr_t) to, NULL);
    must(lane != NULL && other != NULL, "lanes");
    gpu->join(lane, other);
    must(gpu->begin(other, got, from, BYTES, &copy), "a copy");
    behind = comes_behind();
    gpu->close(other);
    gpu->close(lane);
    must(cuMemFree(to) == CUDA_SUCCESS, "memory");
    cuDevicePrimaryCtxRelease(1);
    return behind;
}

/* While a kernel runs in a blocking stream. */
static bool copy_overlaps(void *const *given, void *memory)
{
    enum { PATIENCE = 500 };
    static const struct timespec pause = {.tv_nsec = 1000000};
    flash_gpu_copy_t copy = {.done = end};
    flash_gpu_lane_t *lane;
    CUstream blocking = NULL;
    void *kernel;
    bool overlaps;

    must(cuStreamCreate(&blocking, CU_STREAM_DEFAULT) == CUDA_SUCCESS, "a blocking stream");
    kernel = standin_begin_kernel(blocking);
    atomic_store_explicit(&done, false, memory_order_relaxed);
    lane = gpu->open(memory, given);
    must(lane != NULL, "a lane");
    must(gpu->begin(lane, (char *) memory + BYTES, memory, BYTES, &copy), "a copy");
    for (int k = 0; k < PATIENCE && !atomic_load_explicit(&done, memory_order_acquire); k++) {
        nanosleep(&pause, NULL);
        gpu->poll();
    }
    overlaps = atomic_load_explicit(&done, memory_order_acquire);
    standin_end_kernel(kernel);
    while (!atomic_load_explicit(&done, memory_order_acquire)) {
        gpu->poll();
    }
    gpu->close(lane);
    must(cuStreamSynchronize(blocking) == CUDA_SUCCESS, "the blocking stream");
    cuStreamDestroy(blocking);
    return overlaps;
}

/* cuMemcpyHtoD() may return before it is done, again and again. */
static bool write_comes_first(void *first, void *memory)
{
    enum { TIMES = 50 };
    CUdeviceptr address = (CUdeviceptr) (uintptr_t) memory;
    unsigned char content[BYTES], result[BYTES];
    flash_gpu_copy_t copy = {.done = end};
    int right = 0;

    for (int k = 0; k < TIMES; k++) {
        flash_gpu_lane_t *lane;

        memset(content, k, BYTES);
        atomic_store_explicit(&done, false, memory_order_relaxed);
        must(cuMemcpyHtoD(address, content, BYTES) == CUDA_SUCCESS, "a copy from the host");
        lane = open_lane(first, NULL, memory);
        must(gpu->begin(lane, result, memory, BYTES, &copy), "a copy");
        while (!atomic_load_explicit(&done, memory_order_acquire)) {
            gpu->poll();
        }
        gpu->close(lane);
        right += memcmp(content, result, BYTES) == 0;
    }
    return right == TIMES;
}

/* What is told of a stream that holds something. */
static bool notice_comes_behind(CUstream stream, void *memory)
{
    void *given = stream;
    flash_gpu_copy_t copy = {.done = end};
    flash_gpu_lane_t *lane = gpu->open(memory, &given);
    bool behind;

    must(lane != NULL, "a lane");
    fill(stream, NULL);
    must(gpu->notify(lane, stream, &copy), "a notice");
    behind = comes_behind();
    gpu->close(lane);
    return behind;
}

static void *open_gate(void *arg)
{
    static const struct timespec a_while = {.tv_nsec = 20000000};

    nanosleep(&a_while, NULL); /* so long that the other thread waits by then */
    sem_post(&gate);
    return arg;
}

/* Who waits for a stream. */
static bool waits_for(CUstream stream, void *memory)
{
    void *given = stream;
    flash_gpu_lane_t *lane = gpu->open(memory, &given);
    pthread_t opener;
    bool waits;

    must(lane != NULL, "a lane");
    fill(stream, NULL);
    must(pthread_create(&opener, NULL, open_gate, NULL) == 0, "a thread");
    waits = gpu->copy(lane, &given, NULL, NULL, 0) &&
            atomic_load_explicit(&steps, memory_order_relaxed) == STEPS;
    pthread_join(opener, NULL);
    must(cuStreamSynchronize(stream) == CUDA_SUCCESS, "the end of the stream");
    gpu->close(lane);
    return waits;
}

int main(void)
{
    const char *reason = NULL;
    CUcontext context = NULL;
    CUstream stream = NULL;
    CUdeviceptr address = 0;
    CUdeviceptr second = 0, third = 0; /* every other one is as if of a pool */
    void *memory, *pooled, *other, *given, *pinned = NULL;
    int streams;

    must(cuInit(0) == CUDA_SUCCESS && cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS &&
             cuCtxPushCurrent(context) == CUDA_SUCCESS &&
             cuMemAlloc(&address, 2 * BYTES) == CUDA_SUCCESS &&
             cuMemAlloc(&second, 2 * BYTES) == CUDA_SUCCESS &&
             cuMemAlloc(&third, 2 * BYTES) == CUDA_SUCCESS &&
             cuMemHostAlloc(&pinned, BYTES, 0) == CUDA_SUCCESS &&
             cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS,
         "the device");
    sem_init(&gate, 0, 0);
    must((gpu = plugin_load()(&reason)) != NULL, "the plugin");
    got = pinned;
    memory = (void *) (uintptr_t) address;
    pooled = (void *) (uintptr_t) second;
    other = (void *) (uintptr_t) third;
    given = stream;
    streams = standin_streams();
    ok(copy_comes_behind(stream, &given, memory, memory),
       "a copy comes behind what the stream holds");
    ok(copy_comes_behind(CU_STREAM_LEGACY, NULL, pooled, pooled),
       "one of a pool's memory behind what the default stream does");
    ok(copy_comes_behind(CU_STREAM_PER_THREAD, NULL, pooled, pooled), "and each thread's");
    ok(copy_comes_behind(CU_STREAM_LEGACY, NULL, memory, pooled),
       "and one of a pool's memory that a lane for other memory covers");
    ok(copy_between_comes_behind(pooled), "one to another device's memory as well");
    ok(copy_overlaps(NULL, memory), "one of other memory does not wait for a blocking stream");
    ok(copy_overlaps(&given, memory) && copy_overlaps(&given, pooled),
       "nor one behind a stream for any other");
    ok(write_comes_first(memory, memory),
       "a copy from ordinary memory that has returned comes first");
    ok(write_comes_first(memory, other), "and one to other memory that the lane covers");
    ok(notice_comes_behind(stream, memory), "what a stream holds is done when that is told");
    ok(waits_for(stream, memory), "who waits for a stream waits for all that it holds");
    gpu->end();
    ok(standin_streams() == streams, "lanes leave no streams behind");
    return tap_done();
}
