/*
 * test_lanes.c: the plugin's lanes are kept, for the context that they are of and no other; what is
 * begun in them ends, however it ends; and captures are left alone.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda.h>

#include "../unit/tap.h"
#include "copies.h"
#include "plugin.h"
#include "standin.h"

enum { BYTES = 4096 };

const flash_gpu_ops_t *gpu;
static CUcontext primary;

/* A few copies each way. */
static bool use(flash_gpu_lane_t *lane, char *memory)
{
    flash_gpu_copy_t copies[8];

    ended = failed = 0;
    for (int k = 0; k < 8; k++) {
        copies[k] = (flash_gpu_copy_t){.done = copy_ended, .way = (unsigned) k % FLASH_GPU_WAYS};
        must(gpu->begin(lane, memory + BYTES / 2, memory, BYTES / 2, &copies[k]), "a copy");
    }
    return all_end(8) && failed == 0;
}

static bool use_once(char *memory, void *const *stream)
{
    flash_gpu_lane_t *lane = gpu->open(memory, stream);
    bool well;

    must(lane != NULL, "a lane");
    well = use(lane, memory);
    gpu->close(lane);
    return well;
}

static void kept(char *memory)
{
    CUstream stream = NULL;
    void *given;
    unsigned long made;
    flash_gpu_lane_t *one, *two;

    must(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS, "a stream");
    given = stream;
    use_once(memory, NULL);
    use_once(memory, &given);
    made = standin_made();
    for (int k = 0; k < 10; k++) {
        use_once(memory, k % 2 == 0 ? NULL : &given);
    }
    ok(standin_made() == made, "what comes later makes no stream and no event");
    one = gpu->open(memory, NULL);
    two = gpu->open(memory, &given);
    ok(one != NULL && two != NULL && one != two && use(one, memory) && use(two, memory),
       "a lane is one operation's at a time");
    gpu->close(one);
    gpu->close(two);
    made = standin_made();
    one = gpu->open(memory, NULL);
    two = gpu->open(memory, NULL);
    gpu->close(one);
    gpu->close(two);
    ok(standin_made() == made, "both are kept");
    cuStreamDestroy(stream);
}

static void shared(char *memory)
{
    char *more = allocate(BYTES);
    flash_gpu_lane_t *lane = gpu->open(memory, NULL);
    CUcontext context, popped;
    char *other;

    ok(gpu->serves(lane, more), "input and output of a context share a lane");
    must(cuDevicePrimaryCtxRetain(&context, 1) == CUDA_SUCCESS &&
             cuCtxPushCurrent(context) == CUDA_SUCCESS,
         "the other device");
    other = allocate(BYTES);
    ok(!gpu->serves(lane, other), "those of two devices do not");
    gpu->close(lane);
    cuMemFree((CUdeviceptr) (uintptr_t) other);
    cuCtxPopCurrent(&popped);
    cuMemFree((CUdeviceptr) (uintptr_t) more);
}

/* Memory that belongs to the current context: every other allocation does. */
static char *allocate_here(void)
{
    CUcontext owner = NULL;
    char *memory = allocate(BYTES);

    cuPointerGetAttribute(&owner, CU_POINTER_ATTRIBUTE_CONTEXT, (CUdeviceptr) (uintptr_t) memory);
    if (owner == NULL) {
        cuMemFree((CUdeviceptr) (uintptr_t) memory);
        memory = allocate(BYTES);
    }
    return memory;
}

static void contexts(void)
{
    void *first = standin_make_context(0), *second;
    CUcontext popped;
    unsigned long made;
    char *memory;
    bool well;

    must(cuCtxPushCurrent(first) == CUDA_SUCCESS, "a context");
    memory = allocate_here();
    well = use_once(memory, NULL);
    cuMemFree((CUdeviceptr) (uintptr_t) memory);
    cuCtxPopCurrent(&popped);
    standin_destroy_context(first);
    second = standin_make_context(0);
    must(second == first && cuCtxPushCurrent(second) == CUDA_SUCCESS, "another context");
    memory = allocate_here();
    made = standin_made();
    ok(well && use_once(memory, NULL) && standin_made() > made,
       "a context that has the address of one that is gone has lanes of its own");
    cuMemFree((CUdeviceptr) (uintptr_t) memory);
    cuCtxPopCurrent(&popped);
    standin_destroy_context(second); /* its lane is kept, and not to be touched */
}

static void reset(void)
{
    char *memory = allocate_here();
    unsigned long made;

    use_once(memory, NULL);
    standin_reset(0);
    made = standin_made();
    ok(use_once(memory, NULL) && standin_made() > made, "so has one that was reset");
    cuMemFree((CUdeviceptr) (uintptr_t) memory);
}

/*
 * Work in all tracks, when the device breaks: behind a kernel, so that it does when all has begun.
 */
static void errors(char *memory)
{
    CUstream stream = NULL, first = NULL;
    void *given, *gate, *kernel;
    flash_gpu_lane_t *lane;
    flash_gpu_copy_t copies[4];
    unsigned long made;

    must(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS &&
             cuStreamCreate(&first, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS,
         "streams");
    gate = standin_begin_kernel(first);
    given = first;
    lane = gpu->open(memory, &given);
    must(lane != NULL, "a lane");
    kernel = standin_begin_kernel(stream);
    ended = failed = 0;
    for (int k = 0; k < 4; k++) {
        copies[k] = (flash_gpu_copy_t){.done = copy_ended, .way = (unsigned) k % 2};
        must(k == 3 ? gpu->notify(lane, stream, &copies[k])
                    /* the last one of its stream reaches beyond the memory */
                    : gpu->begin(lane, memory + BYTES / 2, memory, k == 2 ? BYTES : BYTES / 2,
                                 &copies[k]),
             "a copy");
    }
    standin_end_kernel(gate);
    ok(all_end(4) && failed > 0, "all that is begun ends, with an error of the device as well");
    ok(strcmp(gpu->complaint(), "CUDA_ERROR_ILLEGAL_ADDRESS") == 0, "which is told: %s",
       gpu->complaint());
    ok(!gpu->begin(lane, memory, memory, 1, &copies[0]), "nothing more is begun there");
    gpu->close(lane);
    standin_end_kernel(kernel);
    standin_fail(NULL, 0);
    made = standin_made();
    ok(use_once(memory, NULL) && standin_made() > made, "what was there then is not used again");
    cuStreamDestroy(stream);
    cuStreamDestroy(first);
}

typedef struct capture {
    CUstream stream;
    sem_t begun, end;
    bool whole;
} capture_t;

/* Another thread of the application's, which captures a graph meanwhile. */
static void *capture(void *arg)
{
    capture_t *capture = arg;
    CUcontext popped;
    CUgraph graph = NULL;

    standin_exempt(true);
    must(cuCtxPushCurrent(primary) == CUDA_SUCCESS &&
             cuStreamBeginCapture(capture->stream, CU_STREAM_CAPTURE_MODE_GLOBAL) == CUDA_SUCCESS,
         "a capture");
    sem_post(&capture->begun);
    sem_wait(&capture->end);
    capture->whole = cuStreamEndCapture(capture->stream, &graph) == CUDA_SUCCESS;
    cuCtxPopCurrent(&popped);
    return NULL;
}

static void captures(char *memory, char *pooled)
{
    CUstream stream = NULL;
    capture_t elsewhere = {.whole = false};
    flash_gpu_copy_t copy = {.done = copy_ended};
    flash_gpu_lane_t *lane;
    CUgraph graph = NULL;
    pthread_t thread;
    void *given, *on_device;
    bool well;

    must(cuStreamCreate(&elsewhere.stream, CU_STREAM_DEFAULT) == CUDA_SUCCESS &&
             cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS,
         "streams");
    sem_init(&elsewhere.begun, 0, 0);
    sem_init(&elsewhere.end, 0, 0);
    must(pthread_create(&thread, NULL, capture, &elsewhere) == 0, "a thread");
    sem_wait(&elsewhere.begun);
    given = stream;
    well = use_once(memory, NULL) && use_once(pooled, NULL) && use_once(memory, &given);
    sem_post(&elsewhere.end);
    pthread_join(thread, NULL);
    ok(well && elsewhere.whole, "a capture meanwhile disturbs nothing, and is not disturbed");

    /* The stream itself, once the operation has begun. */
    lane = gpu->open(memory, &given);
    on_device = lane == NULL ? NULL : gpu->allocate_on_device(lane, BYTES);
    must(on_device != NULL, "a producer's memory");
    ended = failed = 0;
    must(gpu->notify(lane, stream, &copy), "a notice");
    standin_exempt(true);
    must(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED) == CUDA_SUCCESS, "a capture");
    standin_exempt(false);
    ok(all_end(1) && failed == 0, "what the stream held before it was captured ends");
    ok(!gpu->notify(lane, stream, &copy) &&
           strstr(gpu->complaint(), "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED") != NULL &&
           !gpu->copy(lane, &given, memory, on_device, BYTES),
       "what is captured is refused");
    gpu->release_on_device(lane, on_device);
    gpu->close(lane);
    ok(cuStreamEndCapture(stream, &graph) == CUDA_SUCCESS, "and the graph is whole");
    cuStreamDestroy(stream);
    cuStreamDestroy(elsewhere.stream);
}

/* As one that is made of a green context: another one than the memory's, of the same device. */
static void stream_elsewhere(char *memory)
{
    void *context = standin_make_context(0), *given;
    CUstream stream = NULL;
    CUcontext popped;

    must(cuCtxPushCurrent(context) == CUDA_SUCCESS &&
             cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS,
         "a context");
    cuCtxPopCurrent(&popped);
    given = stream;
    ok(use_once(memory, &given), "a stream of another context of the device's");
    cuStreamDestroy(stream);
    standin_destroy_context(context);
}

/* A sum in each of two contexts: the stand-in ends a launch that has to load its kernel. */
static void kernels(char *memory)
{
    void *context = standin_make_context(0);
    CUcontext popped;
    bool well = true;

    for (int k = 0; k < 2; k++) {
        char *mine = memory;
        flash_gpu_copy_t copy = {.done = copy_ended};
        const flash_gpu_kernel_t *kernel;
        flash_gpu_lane_t *lane;

        if (k == 1) {
            must(cuCtxPushCurrent(context) == CUDA_SUCCESS, "a context");
            mine = allocate_here();
        }
        lane = gpu->open(mine, NULL);
        kernel = lane == NULL ? NULL : gpu->kernel(lane, mine, FLASH_GPU_SUM, FLASH_GPU_I32);
        must(kernel != NULL, "a kernel");
        ended = failed = 0;
        well = well && gpu->combine(lane, kernel, mine, mine, mine, BYTES / 4, &copy) &&
               all_end(1) && failed == 0;
        gpu->close(lane);
        if (k == 1) {
            cuMemFree((CUdeviceptr) (uintptr_t) mine);
            cuCtxPopCurrent(&popped);
        }
    }
    ok(well, "each context loads a kernel before it is launched there");
    standin_destroy_context(context);
}

typedef struct visit {
    flash_gpu_lane_t *lane;
    flash_gpu_copy_t *copy;
} visit_t;

/* A callback thread: the default stream that it is told of is its own. */
static void *notify_there(void *arg)
{
    const visit_t *visit = arg;

    must(gpu->enter(visit->lane), "the lane's context");
    must(gpu->notify(visit->lane, CU_STREAM_PER_THREAD, visit->copy), "a notice");
    gpu->leave();
    return NULL;
}

static void per_thread(char *memory)
{
    void *given = CU_STREAM_PER_THREAD;
    flash_gpu_lane_t *lane = gpu->open(memory, &given);
    flash_gpu_copy_t copy = {.done = copy_ended};
    void *on_device;
    pthread_t thread;

    must(lane != NULL, "a lane");
    on_device = gpu->allocate_on_device(lane, BYTES);
    must(on_device != NULL, "a producer's memory");
    ended = failed = 0;
    must(pthread_create(&thread, NULL, notify_there, &(visit_t){lane, &copy}) == 0, "a thread");
    pthread_join(thread, NULL);
    ok(all_end(1) && failed == 0, "each thread's default stream is another one");
    gpu->release_on_device(lane, on_device);
    gpu->close(lane);
}

int main(void)
{
    const char *reason = NULL;
    char *memory, *pooled;

    must(cuInit(0) == CUDA_SUCCESS && cuDevicePrimaryCtxRetain(&primary, 0) == CUDA_SUCCESS &&
             cuCtxPushCurrent(primary) == CUDA_SUCCESS,
         "the device");
    must((gpu = plugin_load()(&reason)) != NULL, "the plugin");
    memory = allocate(BYTES);
    pooled = allocate(BYTES);
    kept(memory);
    shared(memory);
    contexts();
    reset();
    errors(memory);
    captures(memory, pooled);
    stream_elsewhere(memory);
    per_thread(memory);
    kernels(memory);
    gpu->end();
    ok(standin_streams() == 0 && standin_events() == 0, "in the end nothing is left: %d, %d",
       standin_streams(), standin_events());
    ok(standin_pushed() == 1, "and no context");
    return tap_done();
}
