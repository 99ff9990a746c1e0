/*
 * flash_fallback.c: the callbacks around a plain collective, and the request that
 * stands for both.
 *
 * Shared between threads: the list of operations under way, and which of them a thread is busy
 * with, under `mutex`; `under_way` is an atomic hint that the list is not empty; an operation's
 * `undone` and `error`, written by those who call back and by those who complete a pending piece,
 * whose last word is to clear its bit (release; who finds it clear acquires). So do copies of a call on
 * host bounces, by `copies`.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "calls/flash_fallback.h"

#include <pthread.h>
#include <stdlib.h>

#include "device/flash_stager.h"

enum { FALLBACK_IN_USE, FALLBACK_FREED, FALLBACK_COMPLETED };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static flash_fallback_t *list;
static atomic_uint under_way;

/* ---------------------------------------------------------------- requests */

static void leave(ompi_request_t *base)
{
    flash_fallback_t *fallback = (flash_fallback_t *) base;

    if (atomic_exchange_explicit(&fallback->state, FALLBACK_FREED, memory_order_acq_rel) ==
        FALLBACK_COMPLETED) {
        OMPI_REQUEST_FINI(base);
        OBJ_RELEASE(fallback);
    }
}

static int fallback_free(ompi_request_t **handle)
{
    flash_fallback_t *fallback = (flash_fallback_t *) *handle;

    flash_compat_see_request(*handle);
    /* Nobody waits for a round of a persistent request's: its own handle is what fails. */
    if (fallback->persistent != NULL || !mca_coll_flash_owes(*handle, &fallback->debt, leave)) {
        leave(*handle);
    }
    *handle = MPI_REQUEST_NULL;
    return OMPI_SUCCESS;
}

/* As with a ring: no operation of the extension can be cancelled. */
static int fallback_cancel(ompi_request_t *request, int flag)
{
    (void) request;
    (void) flag;
    return MPI_ERR_REQUEST;
}

static void fallback_construct(flash_fallback_t *fallback)
{
    OMPI_REQUEST_INIT(&fallback->super.super, false);
    fallback->super.super.req_type = OMPI_REQUEST_COLL;
    fallback->super.super.req_state = OMPI_REQUEST_ACTIVE;
    fallback->super.super.req_free = fallback_free;
    fallback->super.super.req_cancel = fallback_cancel;
    fallback->super.super.req_status = ompi_status_empty;
    fallback->busy = false;
    atomic_init(&fallback->state, FALLBACK_IN_USE);
    fallback->inner[0] = fallback->inner[1] = MPI_REQUEST_NULL;
    atomic_init(&fallback->error, MPI_SUCCESS);
    fallback->begun = 0;
    fallback->compute = (mca_coll_flash_compute_t){.produce = NULL};
    atomic_init(&fallback->undone, 0);
    fallback->reported = fallback->worst = 0;
    fallback->comm = NULL;
    fallback->contribution = NULL;
    fallback->input = fallback->output = NULL;
    fallback->sendtype = NULL;
    fallback->counts = NULL;
    fallback->displs = NULL;
    fallback->at = fallback->piece = 0;
    fallback->schedule = (flash_schedule_t){.ring = {.nranks = 0}};
    fallback->stager = NULL;
    fallback->mirror = NULL;
    fallback->free_mirror = NULL;
    fallback->persistent = NULL;
    fallback->complete_persistent = NULL;
    fallback->below = MPI_REQUEST_NULL;
    atomic_init(&fallback->copies, 0);
    atomic_init(&fallback->copy_failed, false);
    fallback->advance = NULL;
}

/* One that failed lives on until its thread's next operation. */
static void release_memory(flash_fallback_t *fallback)
{
    flash_stager_close(fallback->stager);
    if (fallback->free_mirror != NULL) {
        fallback->free_mirror(fallback->mirror);
    }
    free(fallback->contribution);
    free(fallback->counts);
    free(fallback->displs);
    fallback->stager = NULL;
    fallback->mirror = NULL;
    fallback->contribution = NULL;
    fallback->counts = NULL;
    fallback->displs = NULL;
}

static void fallback_destruct(flash_fallback_t *fallback)
{
    if (fallback->comm != NULL) {
        OBJ_RELEASE(fallback->comm);
    }
    release_memory(fallback);
}

OBJ_CLASS_INSTANCE(flash_fallback_t, ompi_coll_base_nbc_request_t, fallback_construct,
                   fallback_destruct);

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

void flash_fallback_end_inner(flash_fallback_t *fallback)
{
    for (int k = 0; k < 2; k++) {
        flash_fallback_fail(fallback, end_inner(&fallback->inner[k]));
    }
}

static void complete(flash_fallback_t *fallback)
{
    ompi_request_t *base = &fallback->super.super, *persistent = fallback->persistent;
    void (*complete_persistent)(ompi_request_t *, int) = fallback->complete_persistent;
    int error;

    flash_fallback_end_inner(fallback);
    error = atomic_load_explicit(&fallback->error, memory_order_relaxed);
    release_memory(fallback);
    base->req_status.MPI_ERROR = error;
    if (error != MPI_SUCCESS) {
        base->req_type = OMPI_REQUEST_PML; /* as in coll_flash_request.c */
    }
    ompi_request_complete(base, true);
    if (atomic_exchange_explicit(&fallback->state, FALLBACK_COMPLETED, memory_order_acq_rel) ==
        FALLBACK_FREED) {
        OMPI_REQUEST_FINI(base);
        OBJ_RELEASE(fallback);
    }
    if (persistent != NULL) {
        complete_persistent(persistent, error);
    }
}

/* --------------------------------------------------------------- callbacks */

static uint64_t undone(const flash_fallback_t *fallback)
{
    return atomic_load_explicit(&fallback->undone, memory_order_acquire);
}

/* Whether there is room for one more. */
static bool may_begin(const flash_fallback_t *fallback)
{
    return (undone(fallback) & flash_pending_bit(fallback->begun)) == 0;
}

void flash_fallback_fail(flash_fallback_t *fallback, int error)
{
    int none = MPI_SUCCESS;

    atomic_compare_exchange_strong_explicit(&fallback->error, &none, error, memory_order_relaxed,
                                            memory_order_relaxed);
}

/* Who finds the bit clear may free the operation: nothing is touched after that. */
bool flash_fallback_end_pending(void *operation, MPI_Count piece, int error)
{
    flash_fallback_t *fallback = operation;
    uint64_t bit = flash_pending_bit((uint64_t) (-1 - piece));

    if ((undone(fallback) & bit) == 0) {
        return false;
    }
    flash_fallback_fail(fallback, error);
    atomic_fetch_and_explicit(&fallback->undone, ~bit, memory_order_release);
    return true;
}

bool flash_fallback_has_failed(const flash_fallback_t *fallback)
{
    return atomic_load_explicit(&fallback->error, memory_order_relaxed) != MPI_SUCCESS;
}

static char *first_of(const flash_fallback_t *fallback, bool produces, uint32_t block)
{
    const flash_schedule_t *schedule = &fallback->schedule;
    bool one = schedule->kind == (produces ? FLASH_ALLGATHER : FLASH_REDUCE_SCATTER);
    ptrdiff_t element = one ? 0 : flash_schedule_displ(schedule, block);

    return (produces ? fallback->input : fallback->output) + element * fallback->extent;
}

/* `block` but for what all callbacks have in common. */
static void call_back(flash_fallback_t *fallback, bool produces, MPIX_Flash_block block)
{
    const mca_coll_flash_compute_t *compute = &fallback->compute;
    bool nested = flash_in_callback;
    int error;

    block.datatype =
        produces && fallback->sendtype != NULL ? fallback->sendtype : fallback->datatype;
    block.on_stream = compute->on_stream;
    block.stream = compute->stream;
    block.handle = (MPIX_Flash_handle){fallback, -1 - (MPI_Count) fallback->begun};
    atomic_fetch_or_explicit(&fallback->undone, flash_pending_bit(fallback->begun++),
                             memory_order_relaxed);
    flash_in_callback = true;
    error = produces ? compute->produce(&block, compute->produce_arg)
                     : compute->consume(&block, compute->consume_arg);
    flash_in_callback = nested;
    if (error != MPIX_FLASH_PENDING) {
        flash_fallback_end_pending(fallback, block.handle.piece,
                                   error >= 0 ? error : MPI_ERR_OTHER);
    }
}

static void call_piece(flash_fallback_t *fallback, bool produces, uint32_t number, uint32_t piece)
{
    const flash_schedule_t *schedule = &fallback->schedule;
    flash_split_t split = flash_schedule_split(schedule, number);
    flash_range_t range = flash_split_piece(&split, piece);

    call_back(fallback, produces,
              (MPIX_Flash_block){.rank = (int) flash_schedule_rank(schedule, number),
                                 .piece = (int) piece,
                                 .pieces = (int) split.pieces,
                                 .ranks = 1,
                                 .displ = flash_schedule_displ(schedule, number),
                                 .offset = (MPI_Count) range.offset,
                                 .count = (MPI_Count) range.count,
                                 .data = first_of(fallback, produces, number) +
                                         (ptrdiff_t) range.offset * fallback->extent});
}

/*
 * All blocks of a walk, if callbacks may take them at once: several, of whole rows, which lie one
 * behind another as the ranks do. False: not so, or there is nothing in them, or nobody to call.
 */
static bool find_whole(flash_fallback_t *fallback, bool produces, MPIX_Flash_block *whole)
{
    const flash_schedule_t *schedule = &fallback->schedule;
    uint32_t ranks = schedule->ring.nranks;
    uint32_t first = produces ? flash_schedule_blocks(schedule) - ranks : 0;
    ptrdiff_t end = 0;

    *whole = (MPIX_Flash_block){.pieces = 1, .ranks = (int) ranks};
    if (!fallback->compute.merge || flash_fallback_has_failed(fallback) ||
        flash_schedule_length(schedule, produces ? FLASH_PRODUCED : FLASH_CONSUMED) == 1) {
        return false;
    }
    for (uint32_t block = first; block < first + ranks; block++) {
        ptrdiff_t displ = flash_schedule_displ(schedule, block);
        size_t count = flash_schedule_count(schedule, block);

        if (count == 0) {
            continue;
        }
        if (whole->count == 0) {
            whole->displ = displ;
            whole->data = first_of(fallback, produces, block);
        } else if (displ != end || whole->count % (MPI_Count) schedule->row != 0) {
            return false;
        }
        end = displ + (ptrdiff_t) count;
        whole->count += (MPI_Count) count;
    }
    return whole->count > 0;
}

/* Moves on to the next piece for a consumer. False if there is none. */
static bool find_next(flash_fallback_t *fallback)
{
    const flash_schedule_t *schedule = &fallback->schedule;
    MPIX_Flash_block whole;

    if (fallback->compute.consume == NULL || flash_fallback_has_failed(fallback)) {
        return false;
    }
    if (fallback->at == 0 && fallback->piece == 0 && find_whole(fallback, false, &whole)) {
        return true;
    }
    for (; fallback->at < flash_schedule_length(schedule, FLASH_CONSUMED); fallback->at++) {
        uint32_t block = flash_schedule_block(schedule, FLASH_CONSUMED, fallback->at);

        if (fallback->piece < flash_schedule_split(schedule, block).pieces) {
            return true;
        }
        fallback->piece = 0;
    }
    return false;
}

static void consume_next(flash_fallback_t *fallback)
{
    const flash_schedule_t *schedule = &fallback->schedule;
    MPIX_Flash_block whole;

    if (fallback->at == 0 && fallback->piece == 0 && find_whole(fallback, false, &whole)) {
        fallback->at = flash_schedule_length(schedule, FLASH_CONSUMED);
        call_back(fallback, false, whole);
    } else {
        call_piece(fallback, false, flash_schedule_block(schedule, FLASH_CONSUMED, fallback->at),
                   fallback->piece++);
    }
}

static void produce_block(flash_fallback_t *fallback, uint32_t block)
{
    uint32_t pieces = flash_schedule_split(&fallback->schedule, block).pieces;

    for (uint32_t piece = 0; piece < pieces && !flash_fallback_has_failed(fallback); piece++) {
        while (!may_begin(fallback)) {
            opal_progress();
        }
        if (flash_fallback_has_failed(fallback)) {
            break; /* meanwhile */
        }
        call_piece(fallback, true, block, piece);
    }
}

void flash_fallback_produce(flash_fallback_t *fallback)
{
    const flash_schedule_t *schedule = &fallback->schedule;
    uint32_t length = flash_schedule_length(schedule, FLASH_PRODUCED);
    MPIX_Flash_block whole;

    if (find_whole(fallback, true, &whole)) {
        call_back(fallback, true, whole);
    } else {
        for (uint32_t at = 0; at < length; at++) {
            produce_block(fallback, flash_schedule_block(schedule, FLASH_PRODUCED, at));
        }
    }
    while (undone(fallback) != 0) {
        opal_progress();
    }
}

/* ---------------------------------------------------------------- progress */

/* Whether nothing of it is under way, in the collective or in copies. That a rank has failed is known
 * before anything is made of it.
 */
static bool is_over(flash_fallback_t *fallback)
{
    bool over = is_complete(fallback->inner[0]) && is_complete(fallback->inner[1]) &&
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
            (find_next(fallback) ? !flash_in_callback && may_begin(fallback)
                                 : undone(fallback) == 0)) {
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
    if (find_next(fallback)) {
        consume_next(fallback);
        put_back(fallback);
    } else if (undone(fallback) != 0 || /* a piece has failed since */
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
    *request = &fallback->super.super;
    /* Once is enough, until Open MPI closes, and opens again, as for a session after the last. */
    opal_progress_register(fallback_progress);
    atomic_fetch_add_explicit(&under_way, 1, memory_order_relaxed);
    pthread_mutex_lock(&mutex);
    fallback->next = list;
    list = fallback;
    pthread_mutex_unlock(&mutex);
}
