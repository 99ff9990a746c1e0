/*
 * test_pageable.c: copies from and to the host's memory that is not pinned make no thread wait; and how
 * far an allocation reaches, beyond which no copy goes.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
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

static void wait_at_gate(void *arg)
{
    sem_wait(arg);
}

/*
 * Ordinary memory, one way or the other, behind a stream that holds something: who begins the copy,
 * and who polls, do not wait for that. Several pieces, and a rest.
 */
static void pageable(bool to_host)
{
    enum { LONG = (5 << 19) + 12345 };
    CUdeviceptr there = 0;
    CUstream stream = NULL;
    char *here = malloc(LONG), *wanted = malloc(LONG);
    flash_gpu_copy_t copy = {.done = copy_ended, .pageable = true};
    flash_gpu_lane_t *lane;
    sem_t gate;
    void *given;

    must(here != NULL && wanted != NULL && cuMemAlloc(&there, LONG) == CUDA_SUCCESS &&
             cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS,
         "memory and a stream");
    for (int k = 0; k < LONG; k++) {
        wanted[k] = (char) (k % 251);
        here[k] = to_host ? 0 : wanted[k];
    }
    must(!to_host || cuMemcpyHtoD(there, wanted, LONG) == CUDA_SUCCESS, "the content");
    sem_init(&gate, 0, 0);
    must(cuLaunchHostFunc(stream, wait_at_gate, &gate) == CUDA_SUCCESS, "a gate");
    given = stream;
    lane = gpu->open((void *) (uintptr_t) there, &given);
    ended = failed = 0;
    must(lane != NULL &&
             (to_host ? gpu->begin(lane, here, (void *) (uintptr_t) there, LONG, &copy)
                      : gpu->begin(lane, (void *) (uintptr_t) there, here, LONG, &copy)),
         "a copy");
    for (int k = 0; k < 100; k++) {
        gpu->poll();
    }
    ok(ended == 0 && gpu->busy(), "a copy %s ordinary memory waits for the stream, and no thread",
       to_host ? "to" : "from");
    sem_post(&gate);
    ok(all_end(1) && failed == 0, "and ends");
    must(to_host || cuMemcpyDtoH(here, there, LONG) == CUDA_SUCCESS, "the content");
    ok(memcmp(here, wanted, LONG) == 0, "all of it is there");
    gpu->close(lane);
    cuMemFree(there);
    cuStreamDestroy(stream);
    sem_destroy(&gate);
    free(here);
    free(wanted);
}

static bool told_well;

static void end_alone(flash_gpu_copy_t *copy, bool well)
{
    told_well = well;
    copy_ended(copy, well);
}

/* The device breaks while the copy waits for the stream. */
static void pageable_fails(char *memory)
{
    static char here[BYTES];
    CUstream stream = NULL, other = NULL;
    flash_gpu_copy_t copy = {.done = end_alone, .pageable = true};
    flash_gpu_lane_t *lane;
    void *given, *gate;

    must(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS &&
             cuStreamCreate(&other, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS,
         "streams");
    gate = standin_begin_kernel(stream);
    given = stream;
    lane = gpu->open(memory, &given);
    ended = failed = 0;
    told_well = true;
    must(lane != NULL && gpu->begin(lane, here, memory, BYTES, &copy), "a copy");
    gpu->poll();
    must(ended == 0, "the copy waits");
    cuMemcpyAsync((CUdeviceptr) (uintptr_t) memory + 1, (CUdeviceptr) (uintptr_t) memory, BYTES,
                  other); /* reaches beyond */
    ok(cuStreamSynchronize(other) == CUDA_ERROR_ILLEGAL_ADDRESS && all_end(1) && !told_well,
       "a copy to ordinary memory ends with an error when the device breaks");
    gpu->close(lane);
    standin_end_kernel(gate);
    standin_fail(NULL, 0);
    cuStreamDestroy(stream);
    cuStreamDestroy(other);
}

/* Two allocations that adjoin: a copy within one, and no further. */
static void reach(void)
{
    char *one = allocate(BYTES), *two = allocate(BYTES);

    ok(gpu->reach(one) == BYTES && gpu->reach(one + 5) == BYTES - 5 && two == one + BYTES &&
           gpu->reach(two) == BYTES,
       "how far an allocation reaches");
    cuMemFree((CUdeviceptr) (uintptr_t) one);
    cuMemFree((CUdeviceptr) (uintptr_t) two);
}

int main(void)
{
    const char *reason = NULL;
    CUcontext primary;
    char *memory;

    must(cuInit(0) == CUDA_SUCCESS && cuDevicePrimaryCtxRetain(&primary, 0) == CUDA_SUCCESS &&
             cuCtxPushCurrent(primary) == CUDA_SUCCESS,
         "the device");
    must((gpu = plugin_load()(&reason)) != NULL, "the plugin");
    memory = allocate(BYTES);
    pageable(true);
    pageable(false);
    pageable_fails(memory);
    reach();
    gpu->end();
    ok(standin_streams() == 0 && standin_events() == 0, "in the end nothing is left: %d, %d",
       standin_streams(), standin_events());
    return tap_done();
}
