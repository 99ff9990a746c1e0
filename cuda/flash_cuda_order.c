/*
 * flash_cuda_order.c: what a lane comes behind.
 *
 * MPI's rule is that the application has waited for what it did to a buffer. With a stream, flash
 * takes that over, of this stream alone. Without one there is something that an application cannot
 * well wait for: a cudaMemcpy() from ordinary memory, or a cudaMemset(), may return before it is
 * done, on the default stream. An event there would wait for all blocking streams of the context,
 * and they for it: so memory is told, when flash first sees it, that such calls are to return once
 * they are done (CU_POINTER_ATTRIBUTE_SYNC_MEMOPS), which waits for those that are under way.
 * Memory of a pool, or that is mapped piece by piece, takes no such attribute for all of it: there
 * an event it is, where a default stream holds something.
 *
 * Shared between threads: `seen`, atomic, relaxed: what it has of an allocation stays true.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "flash_cuda.h"

#include <stdint.h>

/*
 * Allocations by their ids, which no other one gets, the latest at each place; twice the id, and
 * one more if it takes the attribute.
 */
enum { SEEN = 1024 };
static _Atomic(uint64_t) seen[SEEN];

static CUresult ask(void *answer, CUpointer_attribute attribute, const void *address)
{
    return flash_cuda_driver.p_cuPointerGetAttribute(answer, attribute,
                                                     (CUdeviceptr) (uintptr_t) address);
}

bool flash_cuda_ask(void *answer, CUpointer_attribute attribute, const void *address)
{
    return flash_cuda_well(ask(answer, attribute, address));
}

CUresult flash_cuda_ask_owner(CUcontext *owner, const void *address)
{
    CUresult result = ask(owner, CU_POINTER_ATTRIBUTE_CONTEXT, address);

    if (result != CUDA_ERROR_INVALID_VALUE) {
        return result;
    }
    *owner = NULL;
    return CUDA_SUCCESS;
}

/*
 * Memory that is mapped piece by piece would take the attribute for a piece, if it takes it: like a
 * pool's it belongs to no context.
 */
static bool make_synchronous(const void *address)
{
    static const unsigned yes = 1;
    CUcontext owner;

    return flash_cuda_ask_owner(&owner, address) == CUDA_SUCCESS && owner != NULL &&
           flash_cuda_driver.p_cuPointerSetAttribute(&yes, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS,
                                                     (CUdeviceptr) (uintptr_t) address) ==
               CUDA_SUCCESS;
}

/* Whether calls that may return before they have copied or filled that memory do not. */
static bool is_synchronous(const void *address)
{
    unsigned long long id;
    uint64_t known;
    bool taken;

    if (ask(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, address) != CUDA_SUCCESS) {
        return false;
    }
    known = atomic_load_explicit(&seen[id % SEEN], memory_order_relaxed);
    if (known / 2 == id && known != 0) {
        return known % 2 == 1;
    }
    taken = make_synchronous(address);
    atomic_store_explicit(&seen[id % SEEN], 2 * (uint64_t) id + taken, memory_order_relaxed);
    return taken;
}

/*
 * What is being captured into a graph does not run, and an event there would be a part of it. The
 * driver may tell here of an error that the device had before.
 */
CUresult flash_cuda_ask_captured(CUstream stream)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    CUresult result = flash_cuda_driver.p_cuStreamIsCapturing(stream, &status);

    return result == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT ||
                   (result == CUDA_SUCCESS && status != CU_STREAM_CAPTURE_STATUS_NONE)
               ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
               : result;
}

static bool come_behind_stream(flash_gpu_lane_t *lane, CUstream stream)
{
    bool recorded = flash_cuda_record(lane, stream, &lane->orders[lane->order]);

    lane->order += recorded;
    return recorded;
}

static bool come_behind_default(flash_gpu_lane_t *lane, CUstream stream)
{
    CUresult state = flash_cuda_ask_captured(stream);

    if (state == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED) {
        return true;
    }
    if (state == CUDA_SUCCESS) {
        state = flash_cuda_driver.p_cuStreamQuery(stream);
    }
    return state == CUDA_ERROR_NOT_READY ? come_behind_stream(lane, stream)
                                         : flash_cuda_well(state);
}

bool flash_cuda_find_order(flash_gpu_lane_t *lane, void *const *stream, const void *address)
{
    if (stream != NULL) {
        return come_behind_stream(lane, *stream);
    }
    return is_synchronous(address) || lane->order > 0 ||
           (come_behind_default(lane, CU_STREAM_LEGACY) &&
            come_behind_default(lane, CU_STREAM_PER_THREAD));
}

/* Bytes of the allocation, which begins at *begin; 0: the driver does not know. */
static size_t find_allocation(const void *address, uintptr_t *begin)
{
    CUdeviceptr start = 0;
    size_t size = 0;
    bool known = ask(&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, address) == CUDA_SUCCESS &&
                 ask(&size, CU_POINTER_ATTRIBUTE_RANGE_SIZE, address) == CUDA_SUCCESS;

    *begin = (uintptr_t) start;
    return known ? size : 0;
}

size_t flash_cuda_reach(const void *address)
{
    uintptr_t begin;
    size_t size = find_allocation(address, &begin);

    return size == 0 ? 0 : size - ((uintptr_t) address - begin);
}

bool flash_cuda_covers(flash_gpu_lane_t *lane, const void *address)
{
    flash_cuda_visit_t visit;
    bool covers;

    if (lane->ordered || (uintptr_t) address - lane->covered < lane->covered_size) {
        return true;
    }
    if (!flash_cuda_enter(lane->place.context, &visit)) {
        return false;
    }
    covers = flash_cuda_find_order(lane, NULL, address);
    lane->covered_size = find_allocation(address, &lane->covered); /* 0: it is asked each time */
    flash_cuda_leave(&visit);
    return covers;
}

void flash_cuda_forget_order(flash_gpu_lane_t *lane)
{
    lane->other = NULL;
    lane->covered_size = 0;
    while (lane->order > 0) {
        flash_cuda_keep_event(lane, lane->orders[--lane->order]);
    }
    for (unsigned k = 0; k < FLASH_CUDA_STREAMS; k++) {
        lane->tracks[k].comes_behind = false;
    }
}

static CUresult wait_for(CUstream stream, const flash_gpu_lane_t *lane)
{
    CUresult result = CUDA_SUCCESS;

    for (unsigned k = 0; k < lane->order && result == CUDA_SUCCESS; k++) {
        result = flash_cuda_driver.p_cuStreamWaitEvent(stream, lane->orders[k], 0);
    }
    return result;
}

/*
 * When a stream is first used: one that is not would keep what it waits for, for the next
 * operation.
 */
CUresult flash_cuda_come_behind(flash_cuda_track_t *track)
{
    const flash_gpu_lane_t *lane = track->lane;
    CUresult result = CUDA_SUCCESS;

    if (!track->comes_behind) {
        result = wait_for(track->stream, lane);
        if (result == CUDA_SUCCESS && lane->other != NULL) {
            result = wait_for(track->stream, lane->other);
        }
        track->comes_behind = result == CUDA_SUCCESS;
    }
    return result;
}
