/*
 * flash_cuda_order.c: what a lane comes behind.
 *
 * MPI's rule is that the application has waited for what it did to a buffer. With a stream, flash
 * takes that over, of this stream alone. Without one there is something that an application cannot
 * well wait for: a cudaMemcpy() from ordinary memory, or a cudaMemset(), may return before it is
 * done, on the default stream. An event there would wait for all blocking streams of the context,
 * and they for it: so memory is told, when flash first sees it, that such calls are to return once
 * they are done (CU_POINTER_ATTRIBUTE_SYNC_MEMOPS), which waits for those that are under way.
 * Memory of a pool takes no such attribute: there an event it is, where a default stream holds
 * something.
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

bool flash_cuda_ask(void *answer, CUpointer_attribute attribute, const void *address)
{
    return flash_cuda_well(flash_cuda_driver.p_cuPointerGetAttribute(
        answer, attribute, (CUdeviceptr) (uintptr_t) address));
}

/* Whether calls that may return before they have copied or filled that memory do not. */
static bool is_synchronous(const void *address)
{
    static const unsigned yes = 1;
    unsigned long long id;
    uint64_t known;
    bool taken;

    if (!flash_cuda_ask(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, address)) {
        return false;
    }
    known = atomic_load_explicit(&seen[id % SEEN], memory_order_relaxed);
    if (known / 2 == id && known != 0) {
        return known % 2 == 1;
    }
    taken = flash_cuda_driver.p_cuPointerSetAttribute(&yes, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS,
                                                      (CUdeviceptr) (uintptr_t) address) ==
            CUDA_SUCCESS;
    atomic_store_explicit(&seen[id % SEEN], 2 * (uint64_t) id + taken, memory_order_relaxed);
    return taken;
}

/* What is being captured into a graph does not run, and an event there would be a part of it. */
bool flash_cuda_is_captured(CUstream stream)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;

    return flash_cuda_driver.p_cuStreamIsCapturing(stream, &status) != CUDA_SUCCESS ||
           status != CU_STREAM_CAPTURE_STATUS_NONE;
}

static bool come_behind_stream(flash_gpu_lane_t *lane, CUstream stream)
{
    bool recorded = flash_cuda_record(lane, stream, &lane->orders[lane->order]);

    lane->order += recorded;
    return recorded;
}

static bool come_behind_default(flash_gpu_lane_t *lane, CUstream stream)
{
    CUresult state;

    if (flash_cuda_is_captured(stream)) {
        return true;
    }
    state = flash_cuda_driver.p_cuStreamQuery(stream);
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

/* A driver that does not know is asked for each address. */
static void note_covered(flash_gpu_lane_t *lane, const void *address)
{
    CUdeviceptr at = (CUdeviceptr) (uintptr_t) address, begin = 0;
    size_t size = 0;
    bool known = flash_cuda_driver.p_cuPointerGetAttribute(
                     &begin, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, at) == CUDA_SUCCESS &&
                 flash_cuda_driver.p_cuPointerGetAttribute(&size, CU_POINTER_ATTRIBUTE_RANGE_SIZE,
                                                           at) == CUDA_SUCCESS;

    lane->covered = (uintptr_t) begin;
    lane->covered_size = known ? size : 0;
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
    note_covered(lane, address);
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

static bool wait_for(CUstream stream, const flash_gpu_lane_t *lane)
{
    bool waits = true;

    for (unsigned k = 0; k < lane->order && waits; k++) {
        waits = flash_cuda_well(flash_cuda_driver.p_cuStreamWaitEvent(stream, lane->orders[k], 0));
    }
    return waits;
}

/*
 * When a stream is first used: one that is not would keep what it waits for, for the next
 * operation.
 */
bool flash_cuda_come_behind(flash_cuda_track_t *track)
{
    const flash_gpu_lane_t *lane = track->lane;

    track->comes_behind =
        track->comes_behind || (wait_for(track->stream, lane) &&
                                (lane->other == NULL || wait_for(track->stream, lane->other)));
    return track->comes_behind;
}
