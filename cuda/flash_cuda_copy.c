/*
 * flash_cuda_copy.c: copies and sums in a lane, and how one learns that they are done.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "flash_cuda.h"

#include <stdint.h>

static void go_in(flash_gpu_lane_t *lane)
{
    atomic_fetch_add_explicit(&lane->inside, 1, memory_order_relaxed);
}

static void go_out(flash_gpu_lane_t *lane)
{
    atomic_fetch_sub_explicit(&lane->inside, 1, memory_order_release);
}

static void ended(CUstream stream, CUresult result, void *arg)
{
    flash_gpu_copy_t *copy = arg;
    flash_gpu_lane_t *lane = copy->lane; /* `done` may be the end of the copy */

    (void) stream;
    copy->done(copy, flash_cuda_well(result));
    go_out(lane);
}

static bool tell_end(flash_gpu_lane_t *lane, CUstream stream, flash_gpu_copy_t *copy)
{
    copy->lane = lane;
    go_in(lane);
    if (!flash_cuda_well(flash_cuda_driver.p_cuStreamAddCallback(stream, ended, copy, 0))) {
        flash_cuda_driver.p_cuStreamSynchronize(stream); /* nobody would know when it is done */
        go_out(lane);
        return false;
    }
    return true;
}

/* What a lane is to run: a copy, or with a kernel, a sum. */
typedef struct task {
    const flash_gpu_kernel_t *kernel;
    const void *from, *with;
    void *to;
    size_t size; /* bytes, or of a sum, elements */
} task_t;

static bool enqueue(const task_t *task, CUstream stream)
{
    return flash_cuda_well(
        task->kernel != NULL
            ? flash_cuda_launch(task->kernel, task->from, task->with, task->to, task->size, stream)
            : flash_cuda_driver.p_cuMemcpyAsync((CUdeviceptr) (uintptr_t) task->to,
                                                (CUdeviceptr) (uintptr_t) task->from, task->size,
                                                stream));
}

static bool begin(flash_gpu_lane_t *lane, const task_t *task, flash_gpu_copy_t *copy)
{
    unsigned turn = atomic_fetch_add_explicit(&lane->next, 1, memory_order_relaxed);
    CUstream stream = lane->streams[turn % FLASH_CUDA_STREAMS];
    flash_cuda_visit_t visit;
    bool begun;

    go_in(lane);
    begun = flash_cuda_enter(lane->context, &visit);
    if (begun) {
        begun = enqueue(task, stream) && tell_end(lane, stream, copy);
        flash_cuda_leave(&visit);
    }
    go_out(lane);
    return begun;
}

bool flash_cuda_begin(flash_gpu_lane_t *lane, void *to, const void *from, size_t size,
                      flash_gpu_copy_t *copy)
{
    return begin(lane, &(task_t){.from = from, .to = to, .size = size}, copy);
}

bool flash_cuda_combine(flash_gpu_lane_t *lane, const flash_gpu_kernel_t *kernel, const void *in,
                        const void *inout, void *out, size_t count, flash_gpu_copy_t *copy)
{
    return begin(lane,
                 &(task_t){.kernel = kernel, .from = in, .with = inout, .to = out, .size = count},
                 copy);
}

bool flash_cuda_copy(flash_gpu_lane_t *lane, void *const *stream, void *to, const void *from,
                     size_t size)
{
    CUstream where = stream == NULL ? lane->streams[0] : *stream;
    flash_cuda_visit_t visit;
    bool done;

    if (!flash_cuda_enter(lane->context, &visit)) {
        return false;
    }
    done = (size == 0 || enqueue(&(task_t){.from = from, .to = to, .size = size}, where)) &&
           flash_cuda_well(flash_cuda_driver.p_cuStreamSynchronize(where));
    flash_cuda_leave(&visit);
    return done;
}

static bool follow(flash_gpu_lane_t *lane, CUstream stream)
{
    CUevent event;
    bool follows;

    if (!flash_cuda_well(flash_cuda_driver.p_cuEventCreate(&event, CU_EVENT_DISABLE_TIMING))) {
        return false;
    }
    follows = flash_cuda_well(flash_cuda_driver.p_cuEventRecord(event, stream)) &&
              flash_cuda_well(flash_cuda_driver.p_cuStreamWaitEvent(lane->watch, event, 0));
    flash_cuda_driver.p_cuEventDestroy(event);
    return follows;
}

bool flash_cuda_notify(flash_gpu_lane_t *lane, void *stream, flash_gpu_copy_t *copy)
{
    flash_cuda_visit_t visit;
    bool begun;

    go_in(lane);
    begun = flash_cuda_enter(lane->context, &visit);
    if (begun) {
        begun = follow(lane, stream) && tell_end(lane, lane->watch, copy);
        flash_cuda_leave(&visit);
    }
    go_out(lane);
    return begun;
}
