/*
 * flash_cuda_track.c: how one learns that something in a stream is done: an event stands behind it,
 * and poll() asks the oldest event of each track.
 *
 * A function that the driver calls would have to leave at once, blocks its stream and may hold a
 * lock of the driver's meanwhile, and does not come after an error of the device. A question costs
 * about a microsecond and always has an answer.
 *
 * Shared between threads:
 *   busy, and of each track `first`, `last` and `next`, and of each lane `spare`  under `mutex`,
 *             which nobody has while calling the driver
 *   polling   a mutex that a thread tries, and has while it polls: it alone takes copies off
 *             tracks, so what it looks at stays
 *   under_way atomic, relaxed: a hint that there is something to ask for; whoever begins something
 *             sees it by itself
 * A lane whose track holds a copy is not closed. What poll() has taken off all tracks it tells
 * last: from then on it does not touch the lane.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "flash_cuda.h"

#include <stdlib.h>
#include <time.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t polling = PTHREAD_MUTEX_INITIALIZER;
/* So long a poll gives the driver copies of a track that it makes in the thread that gives them. */
#define LONGEST_NS UINT64_C(1000000)

static flash_cuda_track_t *busy; /* those that hold something */
static atomic_uint under_way;

/* ------------------------------------------------------------------- events */

/* Room for one more spare event, beside those that are in tracks. */
static bool make_room(flash_gpu_lane_t *lane)
{
    CUevent *spare = realloc(lane->spare, (lane->events + 1) * sizeof(*spare));

    if (spare == NULL) {
        return false;
    }
    lane->spare = spare;
    lane->events++;
    return true;
}

CUresult flash_cuda_take_event(flash_gpu_lane_t *lane, CUevent *event)
{
    CUresult result;
    bool found;

    pthread_mutex_lock(&mutex);
    found = lane->spares > 0;
    if (found) {
        *event = lane->spare[--lane->spares];
    }
    pthread_mutex_unlock(&mutex);
    if (found) {
        return CUDA_SUCCESS;
    }
    result = flash_cuda_driver.p_cuEventCreate(event, CU_EVENT_DISABLE_TIMING);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    pthread_mutex_lock(&mutex);
    found = make_room(lane);
    pthread_mutex_unlock(&mutex);
    if (!found) {
        flash_cuda_driver.p_cuEventDestroy(*event);
    }
    return found ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* Under the mutex. */
static void keep_event(flash_gpu_lane_t *lane, CUevent event)
{
    lane->spare[lane->spares++] = event;
}

void flash_cuda_keep_event(flash_gpu_lane_t *lane, CUevent event)
{
    pthread_mutex_lock(&mutex);
    keep_event(lane, event);
    pthread_mutex_unlock(&mutex);
}

bool flash_cuda_record(flash_gpu_lane_t *lane, CUstream stream, CUevent *event)
{
    if (!flash_cuda_well(flash_cuda_take_event(lane, event))) {
        return false;
    }
    if (!flash_cuda_well(flash_cuda_driver.p_cuEventRecord(*event, stream))) {
        flash_cuda_keep_event(lane, *event);
        return false;
    }
    return true;
}

/* ------------------------------------------------------------------- tracks */

void flash_cuda_follow(flash_cuda_track_t *track, flash_gpu_copy_t *copy)
{
    copy->next = NULL;
    pthread_mutex_lock(&mutex);
    if (track->first == NULL) {
        track->first = copy;
        track->next = busy;
        busy = track;
    } else {
        track->last->next = copy;
    }
    track->last = copy;
    pthread_mutex_unlock(&mutex);
    atomic_fetch_add_explicit(&under_way, 1, memory_order_relaxed);
}

/* Under the mutex. */
static void take_off(flash_cuda_track_t *track)
{
    flash_cuda_track_t **link = &busy;

    while (*link != track) {
        link = &(*link)->next;
    }
    *link = track->next;
}

/* The oldest copy is done: the next one; NULL: there is none. */
static flash_gpu_copy_t *pass(flash_cuda_track_t *track, flash_gpu_copy_t *copy)
{
    flash_gpu_copy_t *next;

    pthread_mutex_lock(&mutex);
    if (copy->event != NULL) {
        keep_event(track->lane, copy->event);
    }
    next = track->first = copy->next;
    if (next == NULL) {
        take_off(track);
    }
    pthread_mutex_unlock(&mutex);
    return next;
}

/* NOT_READY, or an error. */
static CUresult ask(flash_cuda_track_t *track, flash_gpu_copy_t *copy, bool entered)
{
    CUresult state =
        copy->event == NULL ? CUDA_SUCCESS : flash_cuda_driver.p_cuEventQuery(copy->event);

    if (state != CUDA_SUCCESS || copy->rest == 0) {
        return state;
    }
    return entered ? flash_cuda_advance(track, copy) : CUDA_ERROR_INVALID_CONTEXT;
}

/*
 * After an error the device does nothing any more. Should it do so nevertheless, the memory is the
 * application's again once it has stopped.
 */
static bool is_done(flash_cuda_track_t *track, flash_gpu_copy_t *copy, bool entered)
{
    CUresult result = ask(track, copy, entered);

    if (result == CUDA_ERROR_NOT_READY) {
        return false;
    }
    copy->well = result == CUDA_SUCCESS;
    if (!copy->well) {
        if (entered) { /* else the driver has said why already */
            flash_cuda_well(result);
        }
        atomic_store_explicit(&track->lane->failed, true, memory_order_relaxed);
        if (track->stream != NULL) {
            flash_cuda_driver.p_cuStreamSynchronize(track->stream);
        } else {
            flash_cuda_lose_sight(track->lane, track->lane->users);
        }
    }
    return true;
}

/* What is being captured into a graph does not run. */
void flash_cuda_lose_sight(flash_gpu_lane_t *lane, CUstream stream)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;

    if (flash_cuda_driver.p_cuStreamIsCapturing(stream, &status) == CUDA_SUCCESS &&
        status == CU_STREAM_CAPTURE_STATUS_ACTIVE) {
        return;
    }
    lane->users = stream;
    atomic_store_explicit(&lane->failed, true, memory_order_relaxed);
    atomic_store_explicit(&lane->unwaited, true, memory_order_relaxed);
}

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t) now.tv_sec * UINT64_C(1000000000) + (uint64_t) now.tv_nsec;
}

/*
 * Takes off what is done, and adds it to a list, the latest first. *given: if the driver has been
 * given more of copies that it makes in this thread, which are given up to some time.
 */
static flash_gpu_copy_t *look(flash_cuda_track_t *track, flash_gpu_copy_t *copy,
                              flash_gpu_copy_t *ended, bool *given)
{
    flash_cuda_visit_t visit;
    bool entered = flash_cuda_enter(track->lane->place.context, &visit);
    uint64_t begun = now_ns();

    /* The driver may refuse to be entered after an error, and is then to say so of the events. */
    while (copy != NULL) {
        size_t rest = copy->rest;

        if (is_done(track, copy, entered)) {
            flash_gpu_copy_t *next = pass(track, copy);

            copy->next = ended;
            ended = copy;
            copy = next;
        } else if (copy->rest == rest) {
            break;
        } else {
            *given = true;
            if (now_ns() - begun > LONGEST_NS) {
                break;
            }
        }
    }
    if (entered) {
        flash_cuda_leave(&visit);
    }
    return ended;
}

/*
 * The track behind that one, or the first; and its oldest copy. Tracks that come meanwhile come
 * first.
 */
static flash_cuda_track_t *next_track(flash_cuda_track_t *track, flash_gpu_copy_t **copy)
{
    pthread_mutex_lock(&mutex);
    track = track == NULL ? busy : track->next;
    *copy = track == NULL ? NULL : track->first;
    pthread_mutex_unlock(&mutex);
    return track;
}

static void tell(flash_gpu_copy_t *ended)
{
    flash_gpu_copy_t *oldest = NULL, *next;

    for (; ended != NULL; ended = next) {
        next = ended->next;
        ended->next = oldest;
        oldest = ended;
    }
    for (; oldest != NULL; oldest = next) {
        next = oldest->next;
        atomic_fetch_sub_explicit(&under_way, 1, memory_order_relaxed);
        oldest->done(oldest, oldest->well);
    }
}

bool flash_cuda_busy(void)
{
    return atomic_load_explicit(&under_way, memory_order_relaxed) > 0;
}

bool flash_cuda_poll(void)
{
    flash_gpu_copy_t *ended = NULL, *copy;
    flash_cuda_track_t *track;
    bool given = false;

    if (!flash_cuda_busy() || pthread_mutex_trylock(&polling) != 0) {
        return false;
    }
    /* What is taken off keeps its `next`, and its lane until it is told. */
    for (track = next_track(NULL, &copy); track != NULL; track = next_track(track, &copy)) {
        ended = look(track, copy, ended, &given);
    }
    pthread_mutex_unlock(&polling);
    tell(ended);
    return ended != NULL || given;
}
