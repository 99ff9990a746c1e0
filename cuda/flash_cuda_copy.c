/*
 * flash_cuda_copy.c: copies and sums in a lane, and what is told of the application's streams.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "flash_cuda.h"

#include <stdint.h>

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

/* What is in the stream is done, or the driver does nothing any more: nobody would learn of it. */
static bool take_back(flash_gpu_lane_t *lane, CUstream stream)
{
    atomic_store_explicit(&lane->failed, true, memory_order_relaxed);
    flash_cuda_driver.p_cuStreamSynchronize(stream);
    return false;
}

static bool record(flash_gpu_lane_t *lane, CUstream stream, flash_gpu_copy_t *copy)
{
    CUevent event;
    bool recorded = flash_cuda_record(lane, stream, &event);

    copy->event = recorded ? event : NULL;
    copy->rest = 0;
    return recorded;
}

/* In the lane's context, with its mutex. */
static bool submit(flash_cuda_track_t *track, const task_t *task, flash_gpu_copy_t *copy)
{
    if (!flash_cuda_well(flash_cuda_come_behind(track)) || !enqueue(task, track->stream)) {
        return false;
    }
    if (!record(track->lane, track->stream, copy)) {
        return take_back(track->lane, track->stream);
    }
    flash_cuda_follow(track, copy); /* it may be told of, and gone, from here on */
    return true;
}

typedef struct entry {
    flash_gpu_lane_t *lane;
    flash_cuda_visit_t visit;
} entry_t;

static bool go_in(flash_gpu_lane_t *lane, entry_t *entry)
{
    atomic_fetch_add_explicit(&lane->inside, 1, memory_order_relaxed);
    entry->lane = lane;
    if (flash_cuda_enter(lane->place.context, &entry->visit)) {
        pthread_mutex_lock(&lane->mutex);
        return true;
    }
    atomic_fetch_sub_explicit(&lane->inside, 1, memory_order_release);
    return false;
}

static bool go_out(entry_t *entry, bool begun)
{
    pthread_mutex_unlock(&entry->lane->mutex);
    flash_cuda_leave(&entry->visit);
    atomic_fetch_sub_explicit(&entry->lane->inside, 1, memory_order_release);
    return begun;
}

static bool begin(flash_gpu_lane_t *lane, const task_t *task, flash_gpu_copy_t *copy)
{
    entry_t entry;

    return go_in(lane, &entry) && go_out(&entry, submit(&lane->tracks[copy->way], task, copy));
}

bool flash_cuda_begin(flash_gpu_lane_t *lane, void *to, const void *from, size_t size,
                      flash_gpu_copy_t *copy)
{
    if (copy->pageable && (flash_cuda_is_pageable(from) || flash_cuda_is_pageable(to))) {
        copy->event = NULL;
        copy->to = to;
        copy->from = from;
        copy->rest = size;
        flash_cuda_follow(&lane->tracks[copy->way], copy);
        return true;
    }
    return begin(lane, &(task_t){.from = from, .to = to, .size = size}, copy);
}

bool flash_cuda_combine(flash_gpu_lane_t *lane, const flash_gpu_kernel_t *kernel, const void *in,
                        const void *inout, void *out, size_t count, flash_gpu_copy_t *copy)
{
    return begin(lane,
                 &(task_t){.kernel = kernel, .from = in, .with = inout, .to = out, .size = count},
                 copy);
}

/* Behind what the application's stream holds, or in one of the lane's. */
static bool copy_in(flash_gpu_lane_t *lane, void *const *stream, const task_t *task)
{
    flash_cuda_track_t *track = &lane->tracks[0];
    CUstream where = stream == NULL ? track->stream : *stream;

    if (stream == NULL && !flash_cuda_well(flash_cuda_come_behind(track))) {
        return false;
    }
    if (stream != NULL && !flash_cuda_well(flash_cuda_ask_captured(where))) {
        return false;
    }
    return (task->size == 0 || enqueue(task, where)) &&
           flash_cuda_well(flash_cuda_driver.p_cuStreamSynchronize(where));
}

bool flash_cuda_copy(flash_gpu_lane_t *lane, void *const *stream, void *to, const void *from,
                     size_t size)
{
    entry_t entry;
    bool well =
        go_in(lane, &entry) &&
        go_out(&entry, copy_in(lane, stream, &(task_t){.from = from, .to = to, .size = size}));

    if (!well && stream != NULL) {
        flash_cuda_lose_sight(lane, *stream);
    }
    return well;
}

/*
 * The event stands in the application's stream, which waits for nothing by that. In one that the
 * application has begun to capture since, it would be a part of the graph.
 */
static bool follow(flash_gpu_lane_t *lane, CUstream stream, flash_gpu_copy_t *copy)
{
    if (!flash_cuda_well(flash_cuda_ask_captured(stream)) || !record(lane, stream, copy)) {
        return false;
    }
    flash_cuda_follow(&lane->tracks[FLASH_CUDA_NOTICES], copy);
    return true;
}

bool flash_cuda_notify(flash_gpu_lane_t *lane, void *stream, flash_gpu_copy_t *copy)
{
    entry_t entry;
    bool well;

    lane->users = stream;
    well = go_in(lane, &entry) && go_out(&entry, follow(lane, stream, copy));
    if (!well) {
        flash_cuda_lose_sight(lane, stream);
    }
    return well;
}
