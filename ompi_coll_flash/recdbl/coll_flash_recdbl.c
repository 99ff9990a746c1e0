/*
 * coll_flash_recdbl.c: what is too small for a ring, in ceil(log2(N)) rounds (flash_recdbl.h) of
 * Open MPI's own messages.
 *
 * They take no thread and no connection of flash's: rounds begin inside MPI calls, where the
 * message of the one before is complete (coll_flash_recdbl_rounds.c).
 *
 * Shared between threads:
 *   the list of the requests under way, and all of theirs that is about rounds: under `mutex`,
 *     which is held while data moves and the user's operations run. A call that starts an operation
 *     does not wait for it. Without it: that a message is complete, which Open MPI tells only where
 *     no other thread is in MPI; and the end of a request, which is on no list any more
 *   started  atomic: the latest of those that are not on the list yet, each with the one before it.
 *     Who puts one there, whose first round is posted, stores with release order; who has the lock
 *     takes all of them, with acquire
 *   busy  atomic, relaxed: how many of both there are. Who has put one there polls again
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "recdbl/coll_flash_recdbl.h"

#include <pthread.h>

#include "request/coll_flash_silence.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static mca_coll_flash_request_t *active;
static _Atomic(mca_coll_flash_request_t *) started;
static atomic_uint busy;

static void put_started(mca_coll_flash_request_t *request)
{
    mca_coll_flash_request_t *before = atomic_load_explicit(&started, memory_order_relaxed);

    atomic_fetch_add_explicit(&busy, 1, memory_order_relaxed);
    do {
        mca_coll_flash_recdbl_of(request)->next = before;
    } while (!atomic_compare_exchange_weak_explicit(&started, &before, request,
                                                    memory_order_release, memory_order_relaxed));
}

static void begin(mca_coll_flash_request_t *request, flash_op_params_t *params)
{
    mca_coll_flash_poll();
    mca_coll_flash_recdbl_begin(request, params);
    put_started(request);
}

/* What comes behind it stays in step; the others wait. */
static void refuse(mca_coll_flash_module_t *module, uint32_t sequence, flash_kind_t kind,
                   flash_part_t part)
{
    (void) sequence;
    (void) kind;
    (void) part;
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
        before = mca_coll_flash_recdbl_of(request)->next;
        mca_coll_flash_recdbl_of(request)->next = active;
        mca_coll_flash_recdbl_of(request)->listed = true;
        active = request;
    }
}

/* Moves all on. Returns those that are at their ends, no more listed. */
static mca_coll_flash_request_t *advance_all(bool *happened)
{
    mca_coll_flash_request_t **at = &active, *request, *ended = NULL;

    while ((request = *at) != NULL) {
        if (mca_coll_flash_recdbl_advance(request, happened)) {
            *at = mca_coll_flash_recdbl_of(request)->next;
            mca_coll_flash_recdbl_of(request)->next = ended;
            ended = request;
        } else {
            at = &mca_coll_flash_recdbl_of(request)->next;
        }
    }
    return ended;
}

/* Of one that is listed: the same. */
static mca_coll_flash_request_t *advance_one(mca_coll_flash_request_t *request)
{
    mca_coll_flash_request_t **at = &active;
    bool happened;

    if (!mca_coll_flash_recdbl_advance(request, &happened) ||
        !flash_compat_is_held(request->module->comm)) {
        return NULL;
    }
    while (*at != request) {
        at = &mca_coll_flash_recdbl_of(*at)->next;
    }
    *at = mca_coll_flash_recdbl_of(request)->next;
    mca_coll_flash_recdbl_of(request)->next = NULL;
    return request;
}

/* Without the lock: who hears of an end may begin others. */
static int end_all(mca_coll_flash_request_t *ended)
{
    mca_coll_flash_request_t *request;
    int count = 0;

    while ((request = ended) != NULL) {
        ended = mca_coll_flash_recdbl_of(request)->next;
        atomic_fetch_sub_explicit(&busy, 1, memory_order_relaxed);
        mca_coll_flash_recdbl_end(request);
        mca_coll_flash_request_ended(request, mca_coll_flash_recdbl_of(request)->status,
                                     mca_coll_flash_recdbl_of(request)->failed_rank, false);
        count++;
    }
    return count;
}

/*
 * Called by Open MPI where a message is complete, and no other thread is in MPI: the next round
 * begins at once, unless the lock is this call's own caller's, or the request's call has not
 * returned. An end that is the communicator's, too, is for the next poll: Open MPI is still in its
 * messages.
 */
int mca_coll_flash_recdbl_arrival(ompi_request_t *receive)
{
    mca_coll_flash_request_t *request = receive->req_complete_cb_data, *ended;

    mca_coll_flash_recdbl_note(mca_coll_flash_recdbl_of(request), receive);
    if (mca_coll_flash_recdbl_of(request)->listed && pthread_mutex_trylock(&mutex) == 0) {
        ended = advance_one(request);
        pthread_mutex_unlock(&mutex);
        end_all(ended);
    }
    return 1; /* it is freed */
}

static bool is_busy(void)
{
    return atomic_load_explicit(&busy, memory_order_relaxed) > 0;
}

static int progress(void)
{
    mca_coll_flash_request_t *ended;
    bool happened = false;

    if (!is_busy() || pthread_mutex_trylock(&mutex) != 0) {
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

/*
 * Those that are silent; of several that wait for one rank of a communicator, the one that has
 * waited longest. Does not wait for their lock: without it, it finds none.
 */
static size_t find_silent(flash_silence_t *silences, mca_coll_flash_report_t *reports)
{
    flash_silence_t silence;
    size_t k, count = 0;

    if (!is_busy() || pthread_mutex_trylock(&mutex) != 0) {
        return 0;
    }
    /* Newer ones are before older ones. */
    for (mca_coll_flash_request_t *request = active; request != NULL;
         request = mca_coll_flash_recdbl_of(request)->next) {
        if (mca_coll_flash_recdbl_watch(request, &silence)) {
            k = place_among(silences, count, &silence);
            if (k < FLASH_MOST_SILENCES && (k == count || silence.watches >= silences[k].watches)) {
                silences[k] = silence;
                count += k == count;
            }
        }
    }
    for (k = 0; k < count; k++) {
        mca_coll_flash_silence_describe(reports, k, &silences[k]);
    }
    pthread_mutex_unlock(&mutex);
    return count;
}

static void watch(void)
{
    flash_silence_t silences[FLASH_MOST_SILENCES];
    mca_coll_flash_report_t reports[FLASH_MOST_SILENCES];
    size_t count = find_silent(silences, reports);

    for (size_t k = 0; k < count; k++) {
        if (reports[k].stalled) {
            mca_coll_flash_silence_warn(&silences[k], &reports[k]);
        }
        OBJ_RELEASE(reports[k].group);
    }
}

mca_coll_flash_ticket_t mca_coll_flash_recdbl_ticket(mca_coll_flash_module_t *module)
{
    return (mca_coll_flash_ticket_t){.algorithm = &mca_coll_flash_recdbl,
                                     .settings = &module->settings};
}

const mca_coll_flash_algorithm_t mca_coll_flash_recdbl = {.state_bytes =
                                                              sizeof(mca_coll_flash_recdbl_t),
                                                          .told = "by recursive doubling",
                                                          .begin = begin,
                                                          .refuse = refuse,
                                                          .progress = progress,
                                                          .is_busy = is_busy,
                                                          .watch = watch};
