/*
 * test_standin.c: the stand-in driver is no kinder than a real one.
 *
 * `steps` and `called` are atomic, relaxed: what is done to the streams orders them.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cuda.h>

#include "../unit/tap.h"
#include "standin.h"

enum { BYTES = 4096, MANY = 9 };

static CUdeviceptr memory;
static atomic_int steps, called;

static void pause_for(long nanoseconds)
{
    nanosleep(&(struct timespec){.tv_nsec = nanoseconds}, NULL);
}

static CUstream make_stream(unsigned flags)
{
    CUstream stream = NULL;

    must(cuStreamCreate(&stream, flags) == CUDA_SUCCESS, "a stream");
    return stream;
}

static CUevent record(CUstream stream)
{
    CUevent event = NULL;

    must(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS &&
             cuEventRecord(event, stream) == CUDA_SUCCESS,
         "an event");
    return event;
}

/* Whether it comes in time; a long while, when it does not. */
static bool comes(CUevent event, long nanoseconds)
{
    for (long waited = 0; waited < nanoseconds; waited += 1000000) {
        if (cuEventQuery(event) == CUDA_SUCCESS) {
            return true;
        }
        pause_for(1000000);
    }
    return cuEventQuery(event) == CUDA_SUCCESS;
}

#define SOON INT64_C(5000000000)
#define LONG INT64_C(30000000)

/* An event behind a kernel that runs in another stream: whether it waits for its end. */
static bool waits_for(CUstream first, CUstream second)
{
    void *kernel = standin_begin_kernel(first);
    CUevent event = record(second);
    bool waits = !comes(event, LONG), ends;

    standin_end_kernel(kernel);
    ends = comes(event, SOON);
    cuEventDestroy(event);
    return waits && ends;
}

static void default_streams(void)
{
    CUstream blocking = make_stream(CU_STREAM_DEFAULT);
    CUstream other = make_stream(CU_STREAM_NON_BLOCKING);

    ok(waits_for(blocking, CU_STREAM_LEGACY), "the legacy stream waits for a blocking one");
    ok(waits_for(CU_STREAM_LEGACY, blocking), "which waits for it");
    ok(waits_for(CU_STREAM_PER_THREAD, CU_STREAM_LEGACY), "and for each thread's");
    ok(waits_for(CU_STREAM_LEGACY, CU_STREAM_PER_THREAD), "which waits for it as well");
    ok(!waits_for(other, CU_STREAM_LEGACY) && !waits_for(CU_STREAM_LEGACY, other),
       "it does not for one that is not blocking, nor that for it");
    ok(!waits_for(blocking, CU_STREAM_PER_THREAD), "two blocking ones do not for each other");
    cuStreamDestroy(blocking);
    cuStreamDestroy(other);
}

/* What is behind a kernel in a queue keeps those behind it in the same queue. */
static void queues(void)
{
    CUstream streams[MANY];
    CUevent events[MANY], behind;
    void *kernel;
    int late = 0;

    for (int k = 0; k < MANY; k++) {
        streams[k] = make_stream(CU_STREAM_NON_BLOCKING);
    }
    kernel = standin_begin_kernel(streams[0]);
    behind = record(streams[0]);
    for (int k = 1; k < MANY; k++) {
        events[k] = record(streams[k]);
    }
    pause_for(LONG);
    for (int k = 1; k < MANY; k++) {
        late += cuEventQuery(events[k]) == CUDA_ERROR_NOT_READY;
    }
    ok(late == 1, "of %d streams, one waits for what shares its queue (%d)", MANY, late);
    standin_end_kernel(kernel);
    ok(comes(behind, SOON), "until that has begun");
    for (int k = 0; k < MANY; k++) {
        must(cuStreamSynchronize(streams[k]) == CUDA_SUCCESS, "a stream");
        cuEventDestroy(k == 0 ? behind : events[k]);
        cuStreamDestroy(streams[k]);
    }
}

static void CUDA_CB stay(void *arg)
{
    (void) arg;
    atomic_fetch_add_explicit(&called, 1, memory_order_relaxed);
    pause_for(LONG);
    atomic_fetch_add_explicit(&steps, 1, memory_order_relaxed);
}

/* Now and then, a call does not return before a host function that is under way. */
static void callbacks(void)
{
    CUstream stream = make_stream(CU_STREAM_NON_BLOCKING);
    int waited = 0, not = 0;

    for (int k = 0; k < 20; k++) {
        int before = atomic_load_explicit(&called, memory_order_relaxed);
        unsigned long long id;

        must(cuLaunchHostFunc(stream, stay, NULL) == CUDA_SUCCESS, "a host function");
        while (atomic_load_explicit(&called, memory_order_relaxed) == before) {
            pause_for(100000);
        }
        must(cuCtxGetId(NULL, &id) == CUDA_SUCCESS, "a call");
        if (atomic_load_explicit(&steps, memory_order_relaxed) == before + 1) {
            waited++;
        } else {
            not ++;
        }
        must(cuStreamSynchronize(stream) == CUDA_SUCCESS, "the stream");
    }
    ok(waited > 0 && not > 0, "calls wait for host functions at times (%d, %d not)", waited, not );
    cuStreamDestroy(stream);
}

static void CUDA_CB call(void *arg)
{
    (void) arg;
    atomic_fetch_add_explicit(&called, 1, memory_order_relaxed);
}

static void CUDA_CB call_back(CUstream stream, CUresult result, void *arg)
{
    (void) stream;
    (void) arg;
    atomic_fetch_add_explicit(&called, result == CUDA_SUCCESS ? 1000 : 1, memory_order_relaxed);
}

/* A copy beyond the memory's end. */
static void errors(void)
{
    CUstream stream = make_stream(CU_STREAM_NON_BLOCKING);
    CUstream other = make_stream(CU_STREAM_NON_BLOCKING);
    void *kernel = standin_begin_kernel(stream);
    CUevent event, behind;
    CUdeviceptr more = 0;
    int callbacks_before;

    atomic_store_explicit(&called, 0, memory_order_relaxed);
    must(cuMemcpyAsync(memory + BYTES / 2, memory, BYTES, stream) == CUDA_SUCCESS, "a copy");
    event = record(stream);
    behind = record(other);
    must(comes(behind, SOON), "the other stream");
    must(cuLaunchHostFunc(stream, call, NULL) == CUDA_SUCCESS, "a host function");
    for (int k = 0; k < 20; k++) {
        must(cuStreamAddCallback(stream, call_back, NULL, 0) == CUDA_SUCCESS, "a callback");
    }
    standin_end_kernel(kernel);
    for (int k = 0; k < 1000 && !standin_broken(); k++) {
        pause_for(1000000);
    }
    ok(cuEventQuery(event) == CUDA_ERROR_ILLEGAL_ADDRESS, "an error is what events say");
    ok(cuEventQuery(behind) == CUDA_ERROR_ILLEGAL_ADDRESS, "those that had come before as well");
    ok(cuStreamSynchronize(other) == CUDA_ERROR_ILLEGAL_ADDRESS &&
           cuMemAlloc(&more, 1) == CUDA_ERROR_ILLEGAL_ADDRESS &&
           cuLaunchHostFunc(other, call, NULL) == CUDA_ERROR_ILLEGAL_ADDRESS,
       "and all else");
    pause_for(LONG);
    callbacks_before = atomic_load_explicit(&called, memory_order_relaxed);
    ok(callbacks_before > 0 && callbacks_before < 20,
       "no host function is called, and of 20 callbacks some (%d)", callbacks_before);
    standin_fail(NULL, 0);
    ok(cuStreamSynchronize(stream) == CUDA_SUCCESS, "that is over for the next test");
    cuEventDestroy(event);
    cuEventDestroy(behind);
    cuStreamDestroy(stream);
    cuStreamDestroy(other);
}

static void *query_elsewhere(void *arg)
{
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    CUcontext context;
    CUresult *results = arg;

    must(cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS &&
             cuCtxPushCurrent(context) == CUDA_SUCCESS,
         "a context");
    results[0] = cuStreamQuery(CU_STREAM_PER_THREAD);
    must(cuThreadExchangeStreamCaptureMode(&mode) == CUDA_SUCCESS, "a mode");
    results[1] = cuStreamQuery(CU_STREAM_PER_THREAD);
    cuCtxPopCurrent(&context);
    cuDevicePrimaryCtxRelease(0);
    return NULL;
}

/* Begins a capture, and ends it: whether it is whole. */
static void begin(CUstream stream, CUstreamCaptureMode mode)
{
    standin_exempt(true);
    must(cuStreamBeginCapture(stream, mode) == CUDA_SUCCESS, "a capture");
    standin_exempt(false);
}

static bool end(CUstream stream)
{
    CUgraph graph;

    return cuStreamEndCapture(stream, &graph) == CUDA_SUCCESS;
}

static void captures(void)
{
    CUstream stream = make_stream(CU_STREAM_DEFAULT);
    CUstream other = make_stream(CU_STREAM_NON_BLOCKING);
    CUstreamCaptureStatus status;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    CUevent event = record(other);
    CUresult results[2];
    pthread_t thread;
    CUdeviceptr more = 0;

    begin(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
    ok(cuEventQuery(event) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED && !end(stream),
       "an event's query spoils a capture");
    begin(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    ok(cuMemAlloc(&more, 1) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED && !end(stream),
       "so does memory that is allocated");
    begin(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
    must(pthread_create(&thread, NULL, query_elsewhere, results) == 0, "a thread");
    pthread_join(thread, NULL);
    ok(results[0] == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED && results[1] == CUDA_SUCCESS &&
           !end(stream),
       "in another thread as well, unless it is relaxed");
    must(cuThreadExchangeStreamCaptureMode(&mode) == CUDA_SUCCESS, "a mode");
    begin(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
    ok(cuStreamIsCapturing(CU_STREAM_LEGACY, &status) == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT &&
           end(stream),
       "whether the legacy stream is captured may be asked");
    begin(stream, CU_STREAM_CAPTURE_MODE_RELAXED);
    ok(cuEventRecord(event, CU_STREAM_LEGACY) == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT && !end(stream),
       "but not used, in any mode");
    begin(stream, CU_STREAM_CAPTURE_MODE_RELAXED);
    ok(cuStreamSynchronize(stream) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED && !end(stream),
       "what is captured cannot be waited for");
    begin(other, CU_STREAM_CAPTURE_MODE_RELAXED);
    standin_exempt(true);
    must(cuEventRecord(event, other) == CUDA_SUCCESS, "an event");
    standin_exempt(false);
    ok(cuEventQuery(event) == CUDA_ERROR_CAPTURED_EVENT, "nor an event that was");
    must(end(other), "the capture");
    cuThreadExchangeStreamCaptureMode(&mode);
    cuEventDestroy(event);
    cuStreamDestroy(stream);
    cuStreamDestroy(other);
}

/* 32-bit sums from addresses that are none of such numbers. */
static void alignment(void)
{
    static const uint32_t fatbin = UINT32_C(0xba55ed50);
    CUlibrary library;
    CUkernel kernel;
    CUfunction function;
    CUstream stream = make_stream(CU_STREAM_NON_BLOCKING);
    CUdeviceptr in = memory + 1, out = memory;
    size_t count = 1;
    void *arguments[] = {&in, &out, &out, &count};

    must(cuLibraryLoadData(&library, &fatbin, NULL, NULL, 0, NULL, NULL, 0) == CUDA_SUCCESS,
         "the library");
    if (cuLibraryGetKernel(&kernel, library, "flash_sum_u32") != CUDA_SUCCESS) {
        ok(true, "there are no kernels here");
        cuStreamDestroy(stream);
        return;
    }
    must(cuKernelGetFunction(&function, kernel) == CUDA_SUCCESS, "a kernel that is loaded");
    must(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, arguments, NULL) == CUDA_SUCCESS,
         "a kernel");
    ok(cuStreamSynchronize(stream) == CUDA_ERROR_MISALIGNED_ADDRESS,
       "a kernel refuses what is not aligned");
    standin_fail(NULL, 0);
    cuStreamDestroy(stream);
}

static void contexts(void)
{
    void *first = standin_make_context(0), *second;
    unsigned long long id = 0, next = 0;
    CUcontext popped;

    must(cuCtxGetId(first, &id) == CUDA_SUCCESS, "an id");
    standin_destroy_context(first);
    ok(cuCtxGetId(first, &next) == CUDA_ERROR_CONTEXT_IS_DESTROYED &&
           cuCtxPushCurrent(first) == CUDA_ERROR_CONTEXT_IS_DESTROYED,
       "a context that is gone");
    second = standin_make_context(0);
    ok(second == first && cuCtxGetId(second, &next) == CUDA_SUCCESS && next != id &&
           cuCtxPushCurrent(second) == CUDA_SUCCESS,
       "another may have its address");
    cuCtxPopCurrent(&popped);
    standin_destroy_context(second);
}

/* Of two allocations, one takes the attribute. */
static void attributes(void)
{
    char content[BYTES] = {0};
    CUstream blocking = make_stream(CU_STREAM_DEFAULT);
    unsigned one = 1, taken = 0;
    CUdeviceptr two[2];
    void *kernel;

    for (int k = 0; k < 2; k++) {
        must(cuMemAlloc(&two[k], BYTES) == CUDA_SUCCESS, "memory");
    }
    kernel = standin_begin_kernel(blocking);
    must(cuMemcpyHtoD(two[0], content, BYTES) == CUDA_SUCCESS, "a copy that is not done");
    ok(cuStreamQuery(CU_STREAM_LEGACY) == CUDA_ERROR_NOT_READY, "a copy returns before it is done");
    standin_end_kernel(kernel);
    for (int k = 0; k < 2; k++) {
        taken +=
            cuPointerSetAttribute(&one, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, two[k]) == CUDA_SUCCESS;
    }
    ok(taken == 1, "memory takes the attribute that changes that, or not");
    must(cuStreamSynchronize(CU_STREAM_LEGACY) == CUDA_SUCCESS, "the copy");
    for (int k = 0; k < 2; k++) {
        cuMemFree(two[k]);
    }
    cuStreamDestroy(blocking);
}

int main(void)
{
    CUcontext context = NULL;

    must(cuInit(0) == CUDA_SUCCESS && cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS &&
             cuCtxPushCurrent(context) == CUDA_SUCCESS &&
             cuMemAlloc(&memory, BYTES) == CUDA_SUCCESS,
         "the device");
    default_streams();
    queues();
    callbacks();
    errors();
    captures();
    alignment();
    contexts();
    attributes();
    ok(standin_streams() == 0 && standin_events() == 0, "nothing is left");
    return tap_done();
}
