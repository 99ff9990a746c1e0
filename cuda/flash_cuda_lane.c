/*
 * flash_cuda_lane.c: lanes: in which context, and behind what. A lane is its operation's.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "flash_cuda.h"

#include <stdint.h>
#include <stdlib.h>
#include <time.h>

/* ------------------------------------------------------------- where it is */

static bool ask(void *answer, CUpointer_attribute attribute, const void *address)
{
    return flash_cuda_well(flash_cuda_driver.p_cuPointerGetAttribute(
        answer, attribute, (CUdeviceptr) (uintptr_t) address));
}

bool flash_cuda_device_of(const void *address, CUdevice *device)
{
    int ordinal = 0;

    return ask(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address) &&
           flash_cuda_well(flash_cuda_driver.p_cuDeviceGet(device, ordinal));
}

/* Memory of a pool, or that is mapped piece by piece, belongs to no context. */
static bool go_to_memory(flash_gpu_lane_t *lane, const void *address)
{
    if (!flash_cuda_device_of(address, &lane->device) ||
        !ask(&lane->context, CU_POINTER_ATTRIBUTE_CONTEXT, address)) {
        return false;
    }
    lane->retained =
        lane->context == NULL &&
        flash_cuda_well(flash_cuda_driver.p_cuDevicePrimaryCtxRetain(&lane->context, lane->device));
    return lane->context != NULL;
}

/* What is being captured into a graph does not run, and an event there would be a part of it. */
bool flash_cuda_is_captured(CUstream stream)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;

    return flash_cuda_driver.p_cuStreamIsCapturing(stream, &status) != CUDA_SUCCESS ||
           status != CU_STREAM_CAPTURE_STATUS_NONE;
}

/* The default streams are the current context's. */
static bool go_to_stream(flash_gpu_lane_t *lane, CUstream stream, const void *address)
{
    CUdevice device;
    flash_cuda_visit_t visit;
    bool there;

    if (!flash_cuda_well(flash_cuda_driver.p_cuStreamGetCtx(stream, &lane->context)) ||
        !flash_cuda_enter(lane->context, &visit)) {
        return false;
    }
    there = flash_cuda_well(flash_cuda_driver.p_cuCtxGetDevice(&lane->device)) &&
            flash_cuda_well(flash_cuda_is_captured(stream) ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
                                                           : CUDA_SUCCESS);
    flash_cuda_leave(&visit);
    if (there && address != NULL) {
        there = flash_cuda_device_of(address, &device) &&
                flash_cuda_well(device == lane->device ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE);
    }
    return there;
}

/* ------------------------------------------------------------------- order */

bool flash_cuda_come_behind(flash_cuda_track_t *track)
{
    const flash_gpu_lane_t *lane = track->lane;

    for (unsigned k = 0; k < lane->order && !track->comes_behind; k++) {
        if (!flash_cuda_well(
                flash_cuda_driver.p_cuStreamWaitEvent(track->stream, lane->orders[k], 0))) {
            return false;
        }
    }
    track->comes_behind = true;
    return true;
}

/* What a stream holds comes first: the lane's streams wait when they are first used. */
static bool order_behind(flash_gpu_lane_t *lane, CUstream stream)
{
    CUevent event;

    if (!flash_cuda_take_event(lane, &event)) {
        return false;
    }
    if (!flash_cuda_well(flash_cuda_driver.p_cuEventRecord(event, stream))) {
        flash_cuda_keep_event(lane, event);
        return false;
    }
    lane->orders[lane->order++] = event;
    return true;
}

static bool order_behind_default(flash_gpu_lane_t *lane, CUstream stream)
{
    return flash_cuda_is_captured(stream) || order_behind(lane, stream);
}

/*
 * What the application has put on its default stream comes first: a cudaMemcpy() from ordinary
 * memory, or a cudaMemset(), may return before it is done.
 */
static bool find_order(flash_gpu_lane_t *lane, void *const *stream)
{
    return stream != NULL ? order_behind(lane, *stream)
                          : order_behind_default(lane, CU_STREAM_LEGACY) &&
                                order_behind_default(lane, CU_STREAM_PER_THREAD);
}

/* Before the application's computation: the others wait for what runs here. */
static bool make_streams(flash_gpu_lane_t *lane)
{
    int least = 0, greatest = 0;
    bool made = flash_cuda_well(flash_cuda_driver.p_cuCtxGetStreamPriorityRange(&least, &greatest));

    for (unsigned k = 0; k < FLASH_CUDA_STREAMS && made; k++) {
        made = flash_cuda_well(flash_cuda_driver.p_cuStreamCreateWithPriority(
            &lane->tracks[k].stream, CU_STREAM_NON_BLOCKING, greatest));
    }
    return made;
}

/* -------------------------------------------------------------------- lanes */

static bool prepare(flash_gpu_lane_t *lane, void *const *stream)
{
    flash_cuda_visit_t visit;
    bool ready;

    if (lane->device >= FLASH_GPU_DEVICES) {
        return flash_cuda_well(CUDA_ERROR_INVALID_DEVICE);
    }
    if (flash_cuda_home(lane->device) == NULL || !flash_cuda_enter(lane->context, &visit)) {
        return false;
    }
    ready = make_streams(lane) && find_order(lane, stream);
    flash_cuda_leave(&visit);
    return ready;
}

/* All copies are done: those who began them are about to return. */
static void wait_for_others(flash_gpu_lane_t *lane)
{
    static const struct timespec pause = {.tv_nsec = 10000};

    while (atomic_load_explicit(&lane->inside, memory_order_acquire) > 0) {
        nanosleep(&pause, NULL);
    }
}

static void destroy(flash_gpu_lane_t *lane)
{
    for (unsigned k = 0; k < lane->order; k++) {
        flash_cuda_keep_event(lane, lane->orders[k]);
    }
    for (unsigned k = 0; k < lane->spares; k++) {
        flash_cuda_driver.p_cuEventDestroy(lane->spare[k]);
    }
    for (unsigned k = 0; k < FLASH_CUDA_STREAMS && lane->tracks[k].stream != NULL; k++) {
        flash_cuda_driver.p_cuStreamDestroy(lane->tracks[k].stream);
    }
    if (lane->retained) {
        flash_cuda_driver.p_cuDevicePrimaryCtxRelease(lane->device);
    }
    pthread_mutex_destroy(&lane->mutex);
    free(lane->spare);
    free(lane);
}

void flash_cuda_close(flash_gpu_lane_t *lane)
{
    wait_for_others(lane);
    destroy(lane);
}

flash_gpu_lane_t *flash_cuda_open(const void *address, void *const *stream)
{
    flash_gpu_lane_t *lane = calloc(1, sizeof(*lane));

    if (lane == NULL) {
        flash_cuda_well(CUDA_ERROR_OUT_OF_MEMORY);
        return NULL;
    }
    pthread_mutex_init(&lane->mutex, NULL);
    for (unsigned k = 0; k < FLASH_CUDA_TRACKS; k++) {
        lane->tracks[k].lane = lane;
    }
    if (!(stream != NULL ? go_to_stream(lane, *stream, address) : go_to_memory(lane, address)) ||
        !prepare(lane, stream)) {
        flash_cuda_close(lane);
        return NULL;
    }
    return lane;
}

int flash_cuda_device(const flash_gpu_lane_t *lane)
{
    return lane->device;
}

bool flash_cuda_is_at_home(const flash_gpu_lane_t *lane)
{
    return lane->context == flash_cuda_home(lane->device);
}

static _Thread_local flash_cuda_visit_t visit_lane;

bool flash_cuda_enter_lane(const flash_gpu_lane_t *lane)
{
    return flash_cuda_enter(lane->context, &visit_lane);
}

void flash_cuda_leave_lane(void)
{
    flash_cuda_leave(&visit_lane);
}
