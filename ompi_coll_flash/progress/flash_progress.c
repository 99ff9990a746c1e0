/*
 * flash_progress.c: the application threads, and the callback thread, see
 * flash_progress.h. flash_progress_state.h says what is shared.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "progress/flash_progress_state.h"

#include <stdlib.h>

/* An operation that moves less than this is a brief one, see flash_timer_recall(). */
#define BRIEF_BYTES (1024 * 1024)

/* Without a thread, how many polls with nothing in flight go by before one moves data. */
#define IDLE_POLLS 32

_Thread_local bool flash_in_callback;

flash_progress_t *flash_progress_create(flash_engine_t *engine, flash_transport_t *transport)
{
    flash_progress_t *progress = calloc(1, sizeof(*progress));

    if (progress == NULL) {
        return NULL;
    }
    if (!flash_timer_init(&progress->timer)) {
        free(progress);
        return NULL;
    }
    progress->engine = engine;
    progress->transport = transport;
    pthread_mutex_init(&progress->lock, NULL);
    return progress;
}

void flash_progress_destroy(flash_progress_t *progress)
{
    flash_progress_stop_thread(progress);
    while (atomic_load_explicit(&progress->visitors, memory_order_acquire) > 0) {
        flash_progress_stand_back();
    }
    if (progress->has_callback_thread) {
        flash_callback_thread_stop(&progress->callback_thread);
    }
    flash_progress_free_notes(progress);
    pthread_mutex_destroy(&progress->lock);
    flash_timer_fini(&progress->timer);
    free(progress);
}

bool flash_progress_move(flash_progress_t *progress)
{
    bool ended = flash_progress_finish_ended(progress);

    return flash_engine_progress(progress->engine) != 0 || ended;
}

/* --------------------------------------------------- the application threads */

/* About: as if all blocks were as long as the own one, but where steps are left out. A chain has no
   other. */
static size_t elements(const flash_schedule_t *schedule)
{
    size_t own = flash_schedule_count(schedule, flash_schedule_own_result(schedule)), all = 0;

    if (schedule->taken == NULL) {
        return flash_schedule_chains(schedule->kind) ? own : own * schedule->ring.nranks;
    }
    for (uint32_t block = 0; block < flash_schedule_blocks(schedule); block++) {
        all += flash_schedule_count(schedule, block);
    }
    return all;
}

static bool is_brief(const flash_op_params_t *params)
{
    return params->produce == NULL && params->consume == NULL &&
           elements(&params->schedule) * params->element < BRIEF_BYTES;
}

static void count_one(flash_progress_t *progress, bool no_wakeup)
{
    atomic_fetch_add_explicit(&progress->with_wakeup, no_wakeup ? 0 : 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&progress->in_flight, 1, memory_order_relaxed);
}

static void uncount_one(flash_progress_t *progress, bool no_wakeup)
{
    atomic_fetch_sub_explicit(&progress->in_flight, 1, memory_order_relaxed);
    atomic_fetch_sub_explicit(&progress->with_wakeup, no_wakeup ? 0 : 1, memory_order_relaxed);
}

bool flash_progress_needs_no_wakeup(const flash_progress_t *progress)
{
    return flash_progress_busy(progress) &&
           atomic_load_explicit(&progress->with_wakeup, memory_order_relaxed) == 0;
}

int flash_progress_start_op(flash_progress_t *progress, const flash_op_params_t *params)
{
    /* Another thread may complete it, and free what it refers to. */
    bool brief = is_brief(params), no_wakeup = params->no_wakeup;
    uint64_t began = flash_trace_now();
    flash_op_t *op;
    int rc;

    flash_progress_lock(progress);
    rc = params->produce != NULL || params->consume != NULL ? flash_progress_make_notes(progress)
                                                            : FLASH_OK;
    if (rc == FLASH_OK) {
        rc = flash_op_create(progress->engine, params, &op);
    }
    if (rc == FLASH_OK) {
        count_one(progress, no_wakeup);
        flash_op_start(op);
        if (no_wakeup || !flash_progress_has_thread(progress)) {
            flash_progress_move(progress);
        }
    }
    flash_progress_unlock(progress);
    /* It sends: that takes time the application may use. Or it has taken an event from others. */
    if (rc == FLASH_OK && !(no_wakeup && flash_progress_needs_no_wakeup(progress))) {
        flash_progress_recall(progress, brief, flash_trace_now() - began);
    } else if (rc == FLASH_OK && flash_progress_has_thread(progress)) {
        flash_timer_before(&progress->timer, FLASH_LOOK_NS); /* for what the transport misses */
    }
    return rc;
}

bool flash_progress_refuse(flash_progress_t *progress, const flash_op_params_t *params)
{
    bool refused;

    flash_progress_lock(progress);
    refused = flash_engine_refuse(progress->engine, params);
    if (refused && params->user != NULL) {
        count_one(progress, false);
    }
    flash_progress_unlock(progress);
    flash_progress_wake(progress);
    return refused;
}

void flash_progress_destroy_op(flash_progress_t *progress, flash_op_t *op)
{
    flash_progress_lock(progress);
    flash_op_destroy(op);
    flash_progress_unlock(progress);
}

static bool call_back(flash_progress_t *progress, enum flash_work_kind kind)
{
    flash_work_t work;

    if (flash_in_callback) {
        return false;
    }
    /* A piece that another thread has completed with an error: no callback is made after it. */
    flash_progress_finish_ended(progress);
    if (!flash_engine_take(progress->engine, kind, &work)) {
        return false;
    }
    if (kind == FLASH_WORK_CALLBACK) { /* who has been polling stops for as long as it takes */
        flash_progress_wake(progress);
    }
    flash_in_callback = true;
    flash_progress_run(progress, &work);
    flash_in_callback = false;
    return true;
}

static bool take_and_run(flash_progress_t *progress, unsigned kinds)
{
    flash_work_t work;

    if (!flash_engine_take(progress->engine, kinds, &work)) {
        return false;
    }
    flash_progress_run(progress, &work);
    return true;
}

/*
 * With a progress thread to do the rest, the user's computation comes before it. What follows from
 * it, its operation's end for one, comes behind it at once.
 */
static bool call_back_first(flash_progress_t *progress)
{
    if (!flash_progress_has_thread(progress) || !call_back(progress, FLASH_WORK_CALLBACK)) {
        return false;
    }
    if (!flash_engine_calls_back(progress->engine, FLASH_WORK_CALLBACK)) {
        flash_progress_move(progress);
    }
    return true;
}

/* The user's computation comes last: other ranks wait for what this one sends on. */
static int work_once(flash_progress_t *progress)
{
    int happened = flash_progress_move(progress);

    return happened +
           (take_and_run(progress,
                         FLASH_WORK_STAGE | FLASH_WORK_COMBINE | FLASH_WORK_USERS_COMBINE) ||
            call_back(progress, FLASH_WORK_CALLBACK) || take_and_run(progress, FLASH_WORK_COPY));
}

/* `tail` becomes true if the thread is to be woken for one: to send what the transport has of it. */
static int report_completed(flash_progress_t *progress, void (*completed)(flash_op_t *op),
                            bool *tail)
{
    flash_op_t *op;
    int reported = 0;

    while ((op = flash_engine_completed(progress->engine)) != NULL) {
        *tail = *tail || flash_op_has_tail(op);
        flash_progress_unlock(progress);
        uncount_one(progress, flash_op_needs_no_wakeup(op));
        completed(op);
        reported++;
        flash_progress_lock(progress);
    }
    return reported;
}

bool flash_progress_busy(const flash_progress_t *progress)
{
    return atomic_load_explicit(&progress->in_flight, memory_order_relaxed) > 0;
}

static bool worth_polling(flash_progress_t *progress)
{
    if (flash_progress_busy(progress)) {
        return true;
    }
    /* Connections of peers and the rest of what was sent still need a hand now and then. */
    return !flash_progress_has_thread(progress) &&
           atomic_fetch_add_explicit(&progress->idle_polls, 1, memory_order_relaxed) % IDLE_POLLS ==
               0;
}

/* Whether anybody wants to know how long the application waits. */
static bool measures(const flash_progress_t *progress)
{
    return flash_engine_trace(progress->engine) != NULL ||
           flash_meter_is_on(flash_engine_meter(progress->engine));
}

static void note_wait(flash_progress_t *progress, uint64_t began)
{
    flash_trace_t *trace = flash_engine_trace(progress->engine);

    if (trace != NULL && flash_engine_active(progress->engine) > 0) {
        flash_trace_wait(trace, began);
    }
    flash_meter_wait(flash_engine_meter(progress->engine), began, flash_trace_now());
}

/* That an application thread is here. May take longer than all the rest. */
static void tell_thread(flash_progress_t *progress)
{
    if (flash_progress_has_thread(progress) && !flash_progress_needs_no_wakeup(progress)) {
        flash_timer_polled(&progress->timer, flash_progress_busy(progress));
    }
}

int flash_progress_poll(flash_progress_t *progress, void (*completed)(flash_op_t *op))
{
    int happened, reported = 0;
    uint64_t began;
    bool locked, all_ended, tail = false;

    if (!worth_polling(progress)) {
        return 0;
    }
    flash_progress_look_elsewhere(progress);
    locked = atomic_load_explicit(&progress->contenders, memory_order_relaxed) == 0 &&
             flash_progress_try_lock(progress);
    if (locked) {
        reported = report_completed(progress, completed, &tail);
    }
    /* Who comes for the last one's end is not kept waiting by what the thread sees out. */
    all_ended = reported > 0 && !flash_progress_busy(progress);
    began = measures(progress) ? flash_trace_now() : 0;
    happened = locked && !all_ended && call_back_first(progress);
    if (!happened) {
        tell_thread(progress);
    }
    if (!locked) {
        return 0;
    }
    if (!happened && !all_ended) {
        happened = work_once(progress);
    }
    if (began > 0) {
        note_wait(progress, began);
    }
    reported += report_completed(progress, completed, &tail);
    flash_progress_unlock(progress);
    if (tail) {
        flash_progress_wake(progress);
    } else if (reported > 0 && flash_progress_busy(progress) &&
               !flash_progress_needs_no_wakeup(progress)) {
        flash_progress_recall(progress, true,
                              0); /* the application is about to leave, with operations in flight */
    }
    return happened + reported;
}

/* ------------------------------------------------------------- what is measured */

void flash_progress_measure(flash_progress_t *progress)
{
    flash_progress_lock(progress);
    flash_meter_start(flash_engine_meter(progress->engine),
                      flash_engine_active(progress->engine) > 0, flash_trace_now());
    flash_progress_unlock(progress);
}

flash_times_t flash_progress_times(flash_progress_t *progress)
{
    const flash_meter_t *meter = flash_engine_meter(progress->engine);
    flash_times_t times;

    flash_progress_lock(progress);
    times.under_way = 1e-9 * (double) flash_meter_busy(meter, flash_trace_now());
    times.exposed = 1e-9 * (double) flash_meter_waited(meter);
    flash_progress_unlock(progress);
    return times;
}

/* ------------------------------------------------------- the callback thread */

/* A transport that cannot wake a sleeper is not to be used by another thread either. */
static bool call_back_on_thread(void *arg)
{
    flash_progress_t *progress = arg;
    bool called, moves = progress->transport->event_fd >= 0;

    flash_progress_lock(progress);
    called = call_back(progress, FLASH_WORK_CALLBACK_ON_THREAD);
    if (called && moves) {
        flash_progress_move(progress);
    }
    flash_progress_unlock(progress);
    if (called) {
        flash_progress_wake(progress); /* for what has been sent, once this thread is gone */
    }
    return called;
}

int flash_progress_start_callback_thread(flash_progress_t *progress)
{
    if (!progress->has_callback_thread) {
        progress->has_callback_thread =
            flash_callback_thread_start(&progress->callback_thread, call_back_on_thread, progress);
    }
    return progress->has_callback_thread ? FLASH_OK : FLASH_ERR_NO_MEMORY;
}
