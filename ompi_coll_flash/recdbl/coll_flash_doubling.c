/*
 * coll_flash_doubling.c: what is too small for a ring, in ceil(log2(N)) rounds (flash_doubling.h) of
 * Open MPI's own messages.
 *
 * They take no thread and no connection of flash's: rounds begin inside MPI calls, where the message
 * of the one before is complete (coll_flash_rounds.c).
 *
 * Shared between threads:
 *   the list of the requests under way, and all of theirs that is about rounds: under `mutex`, which is
 *     held while data moves and the user's operations run. A call that starts an operation does not
 *     wait for it. Without it: that a message is complete, which Open MPI tells only where no other
 *     thread is in MPI; and the end of a request, which is on no list any more
 *   started  atomic: the latest of those that are not on the list yet, each with the one before it. Who
 *     puts one there, whose first round is posted, stores with release order; who has the lock takes all
 *     of them, with acquire
 *   busy  atomic, relaxed: how many of both there are. Who has put one there polls again
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "recdbl/coll_flash_doubling.h"

#include <pthread.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static mca_coll_flash_request_t *active;
static _Atomic(mca_coll_flash_request_t *) started;
static atomic_uint busy;

static void put_started(mca_coll_flash_request_t *request)
{
    mca_coll_flash_request_t *before = atomic_load_explicit(&started, memory_order_relaxed);

    atomic_fetch_add_explicit(&busy, 1, memory_order_relaxed);
    do {
        request->doubling.next = before;
    } while (!atomic_compare_exchange_weak_explicit(&started, &before, request,
                                                    memory_order_release, memory_order_relaxed));
}

void mca_coll_flash_doubling_begin(mca_coll_flash_request_t *request,
                                   const flash_op_params_t *params)
{
    mca_coll_flash_job_poll();
    mca_coll_flash_rounds_begin(request, params);
    put_started(request);
}

void mca_coll_flash_doubling_skip(mca_coll_flash_module_t *module)
{
    ompi_coll_base_nbc_reserve_tags(module->comm, 1);
}

/* With the lock. */
static void list_started(void)
{
    mca_coll_flash_request_t *request = NULL, *before;

    if (atomic_load_explicit(&started, memory_order_relaxed) != NULL) {
        request = atomic_exchange_explicit(&started, NULL, memory_order_acquire);
    }
    for (; request != NULL; request = before) {
        before = request->doubling.next;
        request->doubling.next = active;
        request->doubling.listed = true;
        active = request;
    }
}

/* Moves all on. Returns those that are at their ends, no more listed. */
static mca_coll_flash_request_t *advance_all(bool *happened)
{
    mca_coll_flash_request_t **at = &active, *request, *ended = NULL;

    while ((request = *at) != NULL) {
        if (mca_coll_flash_rounds_advance(request, happened)) {
            *at = request->doubling.next;
            request->doubling.next = ended;
            ended = request;
        } else {
            at = &request->doubling.next;
        }
    }
    return ended;
}

/* Of one that is listed: the same. */
static mca_coll_flash_request_t *advance_one(mca_coll_flash_request_t *request)
{
    mca_coll_flash_request_t **at = &active;
    bool happened;

    if (!mca_coll_flash_rounds_advance(request, &happened) ||
        !flash_compat_is_held(request->module->comm)) {
        return NULL;
    }
    while (*at != request) {
        at = &(*at)->doubling.next;
    }
    *at = request->doubling.next;
    request->doubling.next = NULL;
    return request;
}

/* Without the lock: who hears of an end may begin others. */
static int end_all(mca_coll_flash_request_t *ended)
{
    mca_coll_flash_request_t *request;
    int count = 0;

    while ((request = ended) != NULL) {
        ended = request->doubling.next;
        atomic_fetch_sub_explicit(&busy, 1, memory_order_relaxed);
        mca_coll_flash_rounds_end(request);
        mca_coll_flash_request_ended(request, request->doubling.status, request->doubling.blamed,
                                     false);
        count++;
    }
    return count;
}

/*
 * Called by Open MPI where a message is complete, and no other thread is in MPI: the next round begins
 * at once, unless the lock is this call's own caller's, or the request's call has not returned. An end
 * that is the communicator's, too, is for the next poll: Open MPI is still in its messages.
 */
int mca_coll_flash_doubling_arrival(ompi_request_t *receive)
{
    mca_coll_flash_request_t *request = receive->req_complete_cb_data, *ended;

    mca_coll_flash_rounds_note(&request->doubling, receive);
    if (request->doubling.listed && pthread_mutex_trylock(&mutex) == 0) {
        ended = advance_one(request);
        pthread_mutex_unlock(&mutex);
        end_all(ended);
    }
    return 1; /* it is freed */
}

bool mca_coll_flash_doublings_busy(void)
{
    return atomic_load_explicit(&busy, memory_order_relaxed) > 0;
}

int mca_coll_flash_doublings_progress(void)
{
    mca_coll_flash_request_t *ended;
    bool happened = false;

    if (!mca_coll_flash_doublings_busy() || pthread_mutex_trylock(&mutex) != 0) {
        return 0;
    }
    list_started();
    ended = advance_all(&happened);
    pthread_mutex_unlock(&mutex);
    return end_all(ended) + happened;
}

/* Where the one that waits for the same rank stands; or `count`. */
static size_t place_among(const flash_silence_t *silences, size_t count,
                          const flash_silence_t *silence)
{
    const mca_coll_flash_request_t *request = silence->user, *other;
    size_t k;

    for (k = 0; k < count; k++) {
        other = silences[k].user;
        if (silences[k].rank == silence->rank && other->module == request->module) {
            break;
        }
    }
    return k;
}

size_t mca_coll_flash_doublings_watch(flash_silence_t *silences, size_t most,
                                      void (*found)(void *arg, size_t k,
                                                    const flash_silence_t *silence),
                                      void *arg)
{
    flash_silence_t silence;
    size_t k, count = 0;

    if (!mca_coll_flash_doublings_busy() || pthread_mutex_trylock(&mutex) != 0) {
        return 0;
    }
    /* Newer ones are before older ones. */
    for (mca_coll_flash_request_t *request = active; request != NULL;
         request = request->doubling.next) {
        if (mca_coll_flash_rounds_watch(request, &silence)) {
            k = place_among(silences, count, &silence);
            if (k < most && (k == count || silence.watches >= silences[k].watches)) {
                silences[k] = silence;
                count += k == count;
            }
        }
    }
    for (k = 0; k < count; k++) {
        found(arg, k, &silences[k]);
    }
    pthread_mutex_unlock(&mutex);
    return count;
}
