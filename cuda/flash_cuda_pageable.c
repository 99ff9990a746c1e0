/*
 * flash_cuda_pageable.c: copies from and to memory of the host's that is not pinned.
 *
 * The driver makes such a copy in the thread that asks for it, which may wait for all that the
 * stream holds first. This thread moves other operations' data, too, and the application's stream
 * may wait for these. So a copy is not given to the driver before what its lane comes behind is
 * done, nor while another piece of it is under way, and a piece is short: poll() does all that.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "flash_cuda.h"

#include <stdint.h>

#define BYTES_OF_A_PIECE ((size_t) 1 << 20) /* some hundred microseconds */

bool flash_cuda_is_pageable(const void *address)
{
    unsigned type;

    return flash_cuda_driver.p_cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                                     (CUdeviceptr) (uintptr_t) address) ==
           CUDA_ERROR_INVALID_VALUE;
}

/* Of what the lane comes behind: NOT_READY, or an error. */
static CUresult ask_orders(const flash_gpu_lane_t *lane)
{
    CUresult state = CUDA_SUCCESS;

    for (unsigned k = 0; k < lane->order && state == CUDA_SUCCESS; k++) {
        state = flash_cuda_driver.p_cuEventQuery(lane->orders[k]);
    }
    return state;
}

/* With the lane's mutex. The piece before has been told of by the same event. */
static CUresult give(flash_cuda_track_t *track, flash_gpu_copy_t *copy, size_t size)
{
    CUevent event = copy->event;
    CUresult result = flash_cuda_come_behind(track);

    if (result == CUDA_SUCCESS && event == NULL) {
        result = flash_cuda_take_event(track->lane, &event);
    }
    if (result == CUDA_SUCCESS) {
        copy->event = event;
        result = flash_cuda_driver.p_cuMemcpyAsync((CUdeviceptr) (uintptr_t) copy->to,
                                                   (CUdeviceptr) (uintptr_t) copy->from, size,
                                                   track->stream);
    }
    return result == CUDA_SUCCESS ? flash_cuda_driver.p_cuEventRecord(event, track->stream)
                                  : result;
}

CUresult flash_cuda_advance(flash_cuda_track_t *track, flash_gpu_copy_t *copy)
{
    flash_gpu_lane_t *lane = track->lane;
    size_t size = copy->rest < BYTES_OF_A_PIECE ? copy->rest : BYTES_OF_A_PIECE;
    CUresult state = ask_orders(lane);

    if (state == CUDA_SUCCESS && lane->other != NULL) {
        state = ask_orders(lane->other);
    }
    /* Who has the mutex may wait for the application's stream. */
    if (state != CUDA_SUCCESS || pthread_mutex_trylock(&lane->mutex) != 0) {
        return state == CUDA_SUCCESS ? CUDA_ERROR_NOT_READY : state;
    }
    state = give(track, copy, size);
    pthread_mutex_unlock(&lane->mutex);
    if (state != CUDA_SUCCESS) {
        return state;
    }
    copy->from = (const char *) copy->from + size;
    copy->to = (char *) copy->to + size;
    copy->rest -= size;
    return CUDA_ERROR_NOT_READY;
}
