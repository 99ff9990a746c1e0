/*
 * flash_cuda_lane.c: lanes: in which context, and where they come from.
 *
 * A lane is an operation's, and then kept for the next one in the same context: streams and events
 * take long to make, and of streams a device has few queues, which work of different streams shares
 * where there are more.
 *
 * Shared between threads: `kept` and `keeps`, under `mutex`, which nobody has while calling the
 * driver.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "flash_cuda.h"

#include <stdint.h>
#include <stdlib.h>
#include <time.h>

/* As many as operations are likely to be under way at a time. */
enum { MOST_KEPT = 16 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static flash_gpu_lane_t *kept;
static int keeps;

/* ------------------------------------------------------------- where it is */

bool flash_cuda_device_of(const void *address, CUdevice *device)
{
    int ordinal = 0;

    return flash_cuda_ask(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address) &&
           flash_cuda_well(flash_cuda_driver.p_cuDeviceGet(device, ordinal)) &&
           flash_cuda_well(*device < FLASH_GPU_DEVICES ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE);
}

static bool is_at_memory(flash_cuda_place_t *place, const void *address)
{
    if (!flash_cuda_device_of(address, &place->device) ||
        !flash_cuda_well(flash_cuda_ask_owner(&place->context, address))) {
        return false;
    }
    if (place->context == NULL) {
        place->context = flash_cuda_home(place->device);
    }
    return place->context != NULL;
}

/* The default streams are the current context's. */
static bool is_at_stream(flash_cuda_place_t *place, CUstream stream, const void *address)
{
    CUdevice device;
    flash_cuda_visit_t visit;
    bool there;

    if (!flash_cuda_well(flash_cuda_driver.p_cuStreamGetCtx(stream, &place->context)) ||
        !flash_cuda_enter(place->context, &visit)) {
        return false;
    }
    there = flash_cuda_well(flash_cuda_driver.p_cuCtxGetDevice(&place->device)) &&
            flash_cuda_well(place->device >= FLASH_GPU_DEVICES ? CUDA_ERROR_INVALID_DEVICE
                                                               : flash_cuda_ask_captured(stream));
    flash_cuda_leave(&visit);
    if (there && address != NULL) {
        there = flash_cuda_device_of(address, &device) &&
                flash_cuda_well(device == place->device ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE);
    }
    return there;
}

/* Pinned memory is of the device's primary context. */
static bool find_place(flash_cuda_place_t *place, const void *address, void *const *stream)
{
    return (stream != NULL ? is_at_stream(place, *stream, address)
                           : is_at_memory(place, address)) &&
           flash_cuda_home(place->device) != NULL &&
           flash_cuda_well(flash_cuda_driver.p_cuCtxGetId(place->context, &place->id));
}

/* ------------------------------------------------------------ making and freeing */

/* Its streams and events are gone, with their context. */
static void forget(flash_gpu_lane_t *lane)
{
    pthread_mutex_destroy(&lane->mutex);
    free(lane->spare);
    free(lane);
}

static void destroy(flash_gpu_lane_t *lane)
{
    for (unsigned k = 0; k < lane->spares; k++) {
        flash_cuda_driver.p_cuEventDestroy(lane->spare[k]);
    }
    for (unsigned k = 0; k < FLASH_CUDA_STREAMS && lane->tracks[k].stream != NULL; k++) {
        flash_cuda_driver.p_cuStreamDestroy(lane->tracks[k].stream);
    }
    forget(lane);
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

/* In its context. */
static flash_gpu_lane_t *make(const flash_cuda_place_t *place)
{
    flash_gpu_lane_t *lane = calloc(1, sizeof(*lane));

    if (lane == NULL) {
        flash_cuda_well(CUDA_ERROR_OUT_OF_MEMORY);
        return NULL;
    }
    lane->place = *place;
    pthread_mutex_init(&lane->mutex, NULL);
    for (unsigned k = 0; k < FLASH_CUDA_TRACKS; k++) {
        lane->tracks[k].lane = lane;
    }
    if (!make_streams(lane)) {
        destroy(lane);
        return NULL;
    }
    return lane;
}

/* ---------------------------------------------------------------------- keeping */

static bool keep(flash_gpu_lane_t *lane)
{
    bool room;

    pthread_mutex_lock(&mutex);
    room = keeps < MOST_KEPT;
    if (room) {
        lane->next = kept;
        kept = lane;
        keeps++;
    }
    pthread_mutex_unlock(&mutex);
    return room;
}

/* One of that context, or, with NULL, any; NULL: there is none. */
static flash_gpu_lane_t *take_kept(const flash_cuda_place_t *place)
{
    flash_gpu_lane_t **link = &kept, *lane;

    pthread_mutex_lock(&mutex);
    while (*link != NULL && place != NULL && (*link)->place.context != place->context) {
        link = &(*link)->next;
    }
    lane = *link;
    if (lane != NULL) {
        *link = lane->next;
        keeps--;
    }
    pthread_mutex_unlock(&mutex);
    return lane;
}

/*
 * In the context. A lane of another one that had its address is gone; so are the streams of one
 * that the application has reset, should it have kept its id.
 */
static flash_gpu_lane_t *find_lane(const flash_cuda_place_t *place)
{
    flash_gpu_lane_t *lane;

    while ((lane = take_kept(place)) != NULL) {
        if (lane->place.id == place->id &&
            flash_cuda_driver.p_cuStreamQuery(lane->tracks[0].stream) !=
                CUDA_ERROR_INVALID_HANDLE) {
            return lane;
        }
        forget(lane);
    }
    return make(place);
}

/* -------------------------------------------------------------------- lanes */

/* All copies are done: those who began them are about to return. */
static void wait_for_others(flash_gpu_lane_t *lane)
{
    static const struct timespec pause = {.tv_nsec = 10000};

    while (atomic_load_explicit(&lane->inside, memory_order_acquire) > 0) {
        nanosleep(&pause, NULL);
    }
}

void flash_cuda_close(flash_gpu_lane_t *lane)
{
    wait_for_others(lane);
    flash_cuda_forget_order(lane);
    if (atomic_load_explicit(&lane->failed, memory_order_relaxed) || !keep(lane)) {
        destroy(lane);
    }
}

/*
 * A context that has been destroyed is not touched: the driver says so of it, or it has another id.
 */
void flash_cuda_end(void)
{
    flash_gpu_lane_t *lane;

    while ((lane = take_kept(NULL)) != NULL) {
        unsigned long long id = 0;

        if (flash_cuda_driver.p_cuCtxGetId(lane->place.context, &id) == CUDA_SUCCESS &&
            id == lane->place.id) {
            destroy(lane);
        } else {
            forget(lane);
        }
    }
}

flash_gpu_lane_t *flash_cuda_open(const void *address, void *const *stream)
{
    flash_cuda_place_t place;
    flash_cuda_visit_t visit;
    flash_gpu_lane_t *lane;

    if (!find_place(&place, address, stream) || !flash_cuda_enter(place.context, &visit)) {
        return NULL;
    }
    lane = find_lane(&place);
    if (lane != NULL) {
        lane->ordered = stream != NULL;
        if (!flash_cuda_find_order(lane, stream, address)) {
            flash_cuda_close(lane);
            lane = NULL;
        }
    }
    flash_cuda_leave(&visit);
    return lane;
}

bool flash_cuda_serves(flash_gpu_lane_t *lane, const void *address)
{
    flash_cuda_place_t place;
    flash_cuda_visit_t visit;
    bool serves;

    if (!is_at_memory(&place, address) || place.device != lane->place.device) {
        return false;
    }
    if (lane->ordered || place.context != lane->place.context) {
        return lane->ordered;
    }
    if (!flash_cuda_enter(place.context, &visit)) {
        return false;
    }
    serves = flash_cuda_find_order(lane, NULL, address);
    flash_cuda_leave(&visit);
    return serves;
}

void flash_cuda_join(flash_gpu_lane_t *lane, flash_gpu_lane_t *other)
{
    lane->other = other;
    other->other = lane;
}

int flash_cuda_device(const flash_gpu_lane_t *lane)
{
    return lane->place.device;
}

bool flash_cuda_is_at_home(const flash_gpu_lane_t *lane)
{
    return lane->place.context == flash_cuda_home(lane->place.device);
}

static _Thread_local flash_cuda_visit_t visit_lane;

bool flash_cuda_enter_lane(const flash_gpu_lane_t *lane)
{
    return flash_cuda_enter(lane->place.context, &visit_lane);
}

void flash_cuda_leave_lane(void)
{
    flash_cuda_leave(&visit_lane);
}
