/*
 * flash_fallback.c: the callbacks around a plain collective, and the request that
 * stands for both.
 *
 * Shared between threads: the list of operations under way, and which of them a thread is busy
 * with, under `mutex`; `under_way` is an atomic hint that the list is not empty; an operation's
 * `undone` and `error`, written by those who call back and by those who complete a pending piece,
 * whose last word is to clear its bit (release; who finds it clear acquires). So do copies of a
 * call on host bounces, by `copies`.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "calls/flash_fallback.h"

#include <pthread.h>
#include <stdlib.h>

#include "device/flash_stager.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static flash_fallback_t *list;
static atomic_uint under_way;

/* ---------------------------------------------------------------- requests */

static void fallback_construct(flash_fallback_t *fallback)
{
    fallback->busy = false;
    fallback->inner[0] = fallback->inner[1] = MPI_REQUEST_NULL;
    fallback->moves_nothing = false;
    atomic_init(&fallback->error, MPI_SUCCESS);
    fallback->begun = 0;
    fallback->compute = (mca_coll_flash_compute_t){.produce = NULL};
    atomic_init(&fallback->undone, 0);
    fallback->reported = fallback->worst = 0;
    fallback->contribution = fallback->unread = NULL;
    fallback->input = fallback->output = NULL;
    fallback->sendtype = NULL;
    fallback->counts = NULL;
    fallback->displs = NULL;
    fallback->at = fallback->piece = 0;
    fallback->schedule = (flash_schedule_t){.ring = {.nranks = 0}};
    fallback->stager = NULL;
    fallback->kept = NULL;
    fallback->bounce = NULL;
    fallback->free_bounce = NULL;
    fallback->below = MPI_REQUEST_NULL;
    atomic_init(&fallback->copies, 0);
    atomic_init(&fallback->copy_failed, false);
    fallback->advance = NULL;
}

/* One that failed lives on until its thread's next operation. */
static void release_memory(flash_fallback_t *fallback)
{
    flash_stager_close(fallback->stager);
    if (fallback->free_bounce != NULL) {
        fallback->free_bounce(fallback->bounce);
    }
    free(fallback->contribution);
    free(fallback->unread);
    free(fallback->counts);
    free(fallback->displs);
    free(fallback->kept);
    fallback->stager = NULL;
    fallback->kept = NULL;
    fallback->bounce = NULL;
    fallback->contribution = fallback->unread = NULL;
    fallback->counts = NULL;
    fallback->displs = NULL;
}

OBJ_CLASS_INSTANCE(flash_fallback_t, mca_coll_flash_handle_t, fallback_construct, release_memory);

static void recycle(mca_coll_flash_handle_t *handle)
{
    OBJ_RELEASE(handle);
}

flash_fallback_t *flash_fallback_new(ompi_communicator_t *comm)
{
    flash_fallback_t *fallback = OBJ_NEW(flash_fallback_t);

    if (fallback != NULL) {
        mca_coll_flash_handle_init(&fallback->handle, comm, false, recycle);
    }
    return fallback;
}

void flash_fallback_drop(flash_fallback_t *fallback)
{
    mca_coll_flash_handle_leave(&fallback->handle);
}

static bool is_complete(MPI_Request request)
{
    return request == MPI_REQUEST_NULL || REQUEST_COMPLETE(request);
}

/* Of a request that is complete, and that is freed but for a persistent one, the error. */
static int end_inner(MPI_Request *inner)
{
    int rc;

    if (*inner == MPI_REQUEST_NULL) {
        return MPI_SUCCESS;
    }
    /* Not MPI_Wait: it would hand an error to MPI_COMM_WORLD's error handler. */
    rc = ompi_request_wait(inner, MPI_STATUS_IGNORE);
    if (*inner != MPI_REQUEST_NULL && !(*inner)->req_persistent) {
        ompi_request_free(inner); /* one that failed is left */
    }
    *inner = MPI_REQUEST_NULL;
    return rc;
}

/*
 * A collective without data may wait for a rank that has gone, as flash's operation has found out. It
 * stays under way for good, and its communicator and counts with it.
 */
static bool is_left(const flash_fallback_t *fallback)
{
    MPI_Request operation = fallback->inner[1];

    return fallback->moves_nothing && operation != MPI_REQUEST_NULL && is_complete(operation) &&
           operation->req_status.MPI_ERROR != MPI_SUCCESS && !is_complete(fallback->inner[0]);
}

void flash_fallback_end_inner(flash_fallback_t *fallback)
{
    if (is_left(fallback)) {
        OBJ_RETAIN(fallback->handle.super.super.req_mpi_object.comm);
        fallback->inner[0] = MPI_REQUEST_NULL;
        fallback->kept = NULL;
    }
    for (int k = 0; k < 2; k++) {
        flash_fallback_fail(fallback, end_inner(&fallback->inner[k]));
    }
}

static void complete(flash_fallback_t *fallback)
{
    int error;

    flash_fallback_end_inner(fallback);
    error = atomic_load_explicit(&fallback->error, memory_order_relaxed);
    release_memory(fallback);
    mca_coll_flash_handle_complete(&fallback->handle, error);
}

/* ---------------------------------------------------------------- progress */

/*
 * Whether nothing of it is under way, in the collective or in copies. That a rank has failed is
 * known before anything is made of it.
 */
static bool is_over(flash_fallback_t *fallback)
{
    bool left = is_left(fallback);
    bool over = (left || is_complete(fallback->inner[0])) && is_complete(fallback->inner[1]) &&
                atomic_load_explicit(&fallback->copies, memory_order_acquire) == 0;

    if (over && fallback->worst != 0) {
        flash_fallback_fail(fallback, MPI_ERR_OTHER);
    }
    return over;
}

/*
 * Takes an operation whose collective is complete, and that has a callback to make or can complete,
 * for this thread alone: inside a callback, one that has none left to call, which that callback may
 * wait for.
 */
static flash_fallback_t *take_ready(void)
{
    flash_fallback_t *fallback;

    pthread_mutex_lock(&mutex);
    for (fallback = list; fallback != NULL; fallback = fallback->next) {
        if (!fallback->busy && is_over(fallback) &&
            (flash_fallback_find_next(fallback)
                 ? !flash_in_callback && flash_fallback_may_begin(fallback)
                 : flash_fallback_undone(fallback) == 0)) {
            fallback->busy = true;
            break;
        }
    }
    pthread_mutex_unlock(&mutex);
    return fallback;
}

static void put_back(flash_fallback_t *fallback)
{
    pthread_mutex_lock(&mutex);
    fallback->busy = false;
    pthread_mutex_unlock(&mutex);
}

static void take_off_list(flash_fallback_t *fallback)
{
    flash_fallback_t **link = &list;

    pthread_mutex_lock(&mutex);
    while (*link != fallback) {
        link = &(*link)->next;
    }
    *link = fallback->next;
    pthread_mutex_unlock(&mutex);
    atomic_fetch_sub_explicit(&under_way, 1, memory_order_relaxed);
}

static int fallback_progress(void)
{
    flash_fallback_t *fallback;

    if (atomic_load_explicit(&under_way, memory_order_relaxed) == 0) {
        return 0;
    }
    flash_stager_poll();
    fallback = take_ready();
    if (fallback == NULL) {
        return 0;
    }
    if (flash_fallback_find_next(fallback)) {
        flash_fallback_consume_next(fallback);
        put_back(fallback);
    } else if (flash_fallback_undone(fallback) != 0 || /* a piece has failed since */
               (fallback->advance != NULL && !fallback->advance(fallback))) {
        put_back(fallback);
    } else {
        take_off_list(fallback);
        complete(fallback);
    }
    return 1;
}

void flash_fallback_close(void)
{
    opal_progress_unregister(fallback_progress); /* if it is registered */
}

void flash_fallback_enlist(flash_fallback_t *fallback, MPI_Request *request)
{
    *request = mca_coll_flash_handle_begin(&fallback->handle);
    /* Once is enough, until Open MPI closes, and opens again, as for a session after the last. */
    opal_progress_register(fallback_progress);
    atomic_fetch_add_explicit(&under_way, 1, memory_order_relaxed);
    pthread_mutex_lock(&mutex);
    fallback->next = list;
    list = fallback;
    pthread_mutex_unlock(&mutex);
}
