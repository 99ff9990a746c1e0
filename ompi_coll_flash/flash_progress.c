/*
 * flash_progress.c: see flash_progress.h.
 *
 * Shared between threads, and what orders it:
 *   engine, transport  the lock
 *   stop               written by the thread that joins, read by the progress thread; the lock
 *   in_flight          atomic, relaxed: a hint to poll() that there may be something to do. An
 *                      operation is counted before its starter can wait for it
 *   alarm              see flash_alarm.h
 *   contenders         atomic, relaxed: a hint to those who keep coming back for the lock
 *   has_thread         atomic, relaxed: written by whoever starts and joins the thread, which
 *                      order it themselves; another thread may see it late, and then polls
 *   cpu_clock          atomic, relaxed: written by the progress thread. The clock of a thread that
 *                      has ended cannot be read
 *   ended              atomic: whoever adds to the list releases what it adds, whoever takes the
 *                      list acquires it
 *   idle_polls, wakeups  atomic, relaxed: counters
 *   context            the lock
 *   visitors           atomic: who leaves releases all that it did with the progress, who destroys
 *                      that acquires it
 *   flash_in_callback  one for each thread
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "flash_progress.h"

#include "flash_alarm.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

/* An operation that moves less than this is a brief one, see flash_alarm_recall(). */
#define BRIEF_BYTES (1024 * 1024)

/* Without a thread, how many polls with nothing in flight go by before one moves data. */
#define IDLE_POLLS 32

/* Nobody has the lock for so long but who waits for a driver, or for a processor. */
enum { NEAR = 16, MOMENT = 200 }; /* turns given away; and then pauses */

/* That a pending piece is done. */
typedef struct note {
    flash_ended_t ended;
    flash_op_t *op;
    uint64_t number;
} note_t;

struct flash_progress {
    flash_engine_t *engine;
    flash_transport_t *transport;
    pthread_mutex_t lock;
    pthread_t thread;
    atomic_bool has_thread;
    bool stop;
    flash_alarm_t alarm;
    atomic_int cpu_clock; /* of the thread; 0: none */
    atomic_uint idle_polls;
    void (*placed)(void *arg);
    void *placed_arg;
    atomic_size_t in_flight;
    atomic_uint contenders;
    atomic_uint_fast64_t wakeups;
    _Atomic(flash_ended_t *) ended; /* the latest first */
    const flash_context_t *context; /* NULL: none is needed */
    atomic_uint visitors;           /* that end a pending piece */
};

_Thread_local bool flash_in_callback;

static void stand_back(void)
{
    static const struct timespec pause = {.tv_nsec = FLASH_STAND_BACK_NS};

    nanosleep(&pause, NULL);
}

flash_progress_t *flash_progress_create(flash_engine_t *engine, flash_transport_t *transport)
{
    flash_progress_t *progress = calloc(1, sizeof(*progress));

    if (progress == NULL) {
        return NULL;
    }
    if (!flash_alarm_init(&progress->alarm)) {
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
        stand_back();
    }
    pthread_mutex_destroy(&progress->lock);
    flash_alarm_fini(&progress->alarm);
    free(progress);
}

static void enter_context(const flash_progress_t *progress)
{
    if (progress->context != NULL) {
        progress->context->enter();
    }
}

static void lock(flash_progress_t *progress)
{
    pthread_mutex_lock(&progress->lock);
    enter_context(progress);
}

void flash_progress_lock(flash_progress_t *progress)
{
    atomic_fetch_add_explicit(&progress->contenders, 1, memory_order_relaxed);
    lock(progress);
    atomic_fetch_sub_explicit(&progress->contenders, 1, memory_order_relaxed);
}

static bool try_lock(flash_progress_t *progress)
{
    bool locked = pthread_mutex_trylock(&progress->lock) == 0;

    if (locked) {
        enter_context(progress);
    }
    return locked;
}

void flash_progress_unlock(flash_progress_t *progress)
{
    if (progress->context != NULL) {
        progress->context->leave();
    }
    pthread_mutex_unlock(&progress->lock);
}

/* The application goes away, or has left something to do: the thread is on duty. */
void flash_progress_wake(flash_progress_t *progress)
{
    if (flash_progress_has_thread(progress)) {
        flash_alarm_call(&progress->alarm);
    }
}

static void recall(flash_progress_t *progress, bool brief)
{
    if (flash_progress_has_thread(progress)) {
        flash_alarm_recall(&progress->alarm, brief);
    }
}

static void run_work(flash_progress_t *progress, const flash_work_t *work)
{
    int status;

    flash_progress_unlock(progress);
    status = flash_work_run(work);
    flash_progress_lock(progress);
    if (status != FLASH_LATER) {
        flash_engine_finish(work, status);
    }
}

void flash_progress_ended(flash_progress_t *progress, flash_ended_t *ended)
{
    flash_ended_t *latest = atomic_load_explicit(&progress->ended, memory_order_relaxed);

    do {
        ended->next = latest;
    } while (!atomic_compare_exchange_weak_explicit(&progress->ended, &latest, ended,
                                                    memory_order_release, memory_order_relaxed));
    if (flash_progress_has_thread(progress)) {
        flash_alarm_ring(&progress->alarm);
    }
}

static void end_noted(flash_ended_t *ended)
{
    note_t *note = (note_t *) ended;

    flash_engine_end_pending(note->op, note->number, ended->status);
    free(note);
}

static bool finish_ended(flash_progress_t *progress)
{
    flash_ended_t *ended = NULL, *oldest = NULL, *next;

    if (atomic_load_explicit(&progress->ended, memory_order_relaxed) == NULL) {
        return false;
    }
    ended = atomic_exchange_explicit(&progress->ended, NULL, memory_order_acquire);
    for (; ended != NULL; ended = next) {
        next = ended->next;
        ended->next = oldest;
        oldest = ended;
    }
    for (; oldest != NULL; oldest = next) {
        next = oldest->next;
        oldest->end(oldest);
    }
    return true;
}

void flash_progress_set_context(flash_progress_t *progress, const flash_context_t *context)
{
    pthread_mutex_lock(&progress->lock);
    progress->context = context;
    pthread_mutex_unlock(&progress->lock);
}

const flash_context_t *flash_progress_context(const flash_progress_t *progress)
{
    return progress->context;
}

/* Moves data, and takes note of what has ended elsewhere. */
static bool move(flash_progress_t *progress)
{
    bool ended = finish_ended(progress);

    return flash_engine_progress(progress->engine) != 0 || ended;
}

/* ------------------------------------------------------ the progress thread */

static void sleep_on(flash_progress_t *progress, int event_fd)
{
    flash_progress_unlock(progress);
    flash_alarm_sleep(&progress->alarm, event_fd);
    atomic_fetch_add_explicit(&progress->wakeups, 1, memory_order_relaxed);
    lock(progress);
}

/* A mutex is not fair: without this, a thread that keeps finding events would keep the lock. */
static void let_others_in(flash_progress_t *progress)
{
    flash_progress_unlock(progress);
    while (atomic_load_explicit(&progress->contenders, memory_order_relaxed) > 0) {
        stand_back();
    }
    lock(progress);
}

/* A transport that cannot be armed has something to do that needs another moment, or others. */
static void sleep_until_event(flash_progress_t *progress)
{
    if (progress->transport->ops->arm(progress->transport) != FLASH_OK) {
        let_others_in(progress);
        stand_back();
        return;
    }
    sleep_on(progress, progress->transport->event_fd);
}

/*
 * In turn: as long as data keeps coming in, the sums that the right neighbour waits for would
 * otherwise not go out.
 */
static bool move_and_combine(flash_progress_t *progress)
{
    bool moved = move(progress);
    flash_work_t work;

    if (!flash_engine_take(progress->engine,
                           FLASH_WORK_STAGE | FLASH_WORK_COMBINE | FLASH_WORK_COPY, &work)) {
        return moved;
    }
    run_work(progress, &work);
    return true;
}

static void *thread_main(void *arg)
{
    flash_progress_t *progress = arg;
    clockid_t clock;

    /* Its naps are to be as long as they say, and not up to 50 us longer. */
    prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
    if (pthread_getcpuclockid(pthread_self(), &clock) == 0) {
        atomic_store_explicit(&progress->cpu_clock, clock, memory_order_relaxed);
    }

    if (progress->placed != NULL) {
        progress->placed(progress->placed_arg);
    }
    lock(progress);
    while (!progress->stop) {
        if (flash_alarm_stands_by(&progress->alarm)) {
            sleep_on(progress, -1);
        } else if (move_and_combine(progress)) {
            let_others_in(progress);
        } else {
            sleep_until_event(progress);
        }
    }
    flash_progress_unlock(progress);
    return NULL;
}

int flash_progress_start_thread(flash_progress_t *progress, void (*placed)(void *arg), void *arg)
{
    sigset_t all, before;
    int rc;

    if (progress->transport->event_fd < 0) {
        return FLASH_ERR_TRANSPORT;
    }
    progress->placed = placed;
    progress->placed_arg = arg;
    progress->stop = false;
    atomic_store_explicit(&progress->has_thread, true, memory_order_relaxed);
    /* The application's signal handlers are not to run on this thread. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    rc = pthread_create(&progress->thread, NULL, thread_main, progress);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc != 0) {
        atomic_store_explicit(&progress->has_thread, false, memory_order_relaxed);
        return FLASH_ERR_NO_MEMORY;
    }
    pthread_setname_np(progress->thread, "flash-progress");
    return FLASH_OK;
}

bool flash_progress_has_thread(const flash_progress_t *progress)
{
    return atomic_load_explicit(&progress->has_thread, memory_order_relaxed);
}

void flash_progress_stop_thread(flash_progress_t *progress)
{
    if (!flash_progress_has_thread(progress)) {
        return;
    }
    flash_progress_lock(progress);
    progress->stop = true;
    flash_progress_unlock(progress);
    flash_progress_wake(progress);
    pthread_join(progress->thread, NULL);
    atomic_store_explicit(&progress->has_thread, false, memory_order_relaxed);
}

uint64_t flash_progress_wakeups(const flash_progress_t *progress)
{
    return atomic_load_explicit(&progress->wakeups, memory_order_relaxed);
}

double flash_progress_cpu_time(const flash_progress_t *progress)
{
    clockid_t clock = atomic_load_explicit(&progress->cpu_clock, memory_order_relaxed);
    struct timespec used;

    if (clock == 0 || clock_gettime(clock, &used) != 0) {
        return 0;
    }
    return (double) used.tv_sec + 1e-9 * (double) used.tv_nsec;
}

/* --------------------------------------------------- the application threads */

/* About: as if all blocks were as long as the own one. */
static bool is_brief(const flash_op_params_t *params)
{
    const flash_schedule_t *schedule = &params->schedule;
    size_t own = flash_schedule_count(schedule, flash_ring_rank(&schedule->ring, 0));

    return params->produce == NULL && params->consume == NULL &&
           own * params->element * schedule->ring.nranks < BRIEF_BYTES;
}

int flash_progress_start_op(flash_progress_t *progress, const flash_op_params_t *params)
{
    bool brief = is_brief(params); /* another thread may complete it, and free what it refers to */
    flash_op_t *op;
    int rc;

    flash_progress_lock(progress);
    rc = flash_op_create(progress->engine, params, &op);
    if (rc == FLASH_OK) {
        atomic_fetch_add_explicit(&progress->in_flight, 1, memory_order_relaxed);
        flash_op_start(op);
        if (!flash_progress_has_thread(progress)) {
            move(progress);
        }
    }
    flash_progress_unlock(progress);
    if (rc == FLASH_OK) {
        recall(progress, brief); /* it sends: that takes time the application may use */
    }
    return rc;
}

bool flash_progress_refuse(flash_progress_t *progress, const flash_op_params_t *params)
{
    bool refused;

    flash_progress_lock(progress);
    refused = flash_engine_refuse(progress->engine, params);
    if (refused && params->user != NULL) {
        atomic_fetch_add_explicit(&progress->in_flight, 1, memory_order_relaxed);
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

/* For a moment. Without the context, which a driver's callback may not enter. */
static bool get_lock_soon(flash_progress_t *progress)
{
    bool locked = false;

    atomic_fetch_add_explicit(&progress->contenders, 1, memory_order_relaxed);
    for (int k = 0; k < MOMENT && !locked; k++) {
        if (k > NEAR) {
            stand_back();
        } else if (k > 0) {
            sched_yield();
        }
        locked = pthread_mutex_trylock(&progress->lock) == 0;
    }
    atomic_fetch_sub_explicit(&progress->contenders, 1, memory_order_relaxed);
    return locked;
}

/* False if there is no memory for a note. */
static bool leave_note(flash_progress_t *progress, flash_op_t *op, uint64_t number, int status)
{
    note_t *note = malloc(sizeof(*note));

    if (note == NULL) {
        return false;
    }
    *note = (note_t){.ended = {.status = status, .end = end_noted}, .op = op, .number = number};
    flash_progress_ended(progress, &note->ended);
    return true;
}

bool flash_progress_end_pending(flash_progress_t *progress, flash_op_t *op, uint64_t number,
                                int status)
{
    bool pending = true, locked;

    atomic_fetch_add_explicit(&progress->visitors, 1, memory_order_relaxed);
    locked = get_lock_soon(progress);
    if (!locked && !leave_note(progress, op, number, status)) {
        pthread_mutex_lock(&progress->lock);
        locked = true;
    }
    if (locked) {
        pending = flash_engine_end_pending(op, number, status);
        if (pending) {
            recall(progress, false);
        }
        pthread_mutex_unlock(&progress->lock);
    }
    /* The application may finalize MPI already. */
    atomic_fetch_sub_explicit(&progress->visitors, 1, memory_order_release);
    return pending;
}

static bool call_back(flash_progress_t *progress)
{
    flash_work_t work;

    if (flash_in_callback || !flash_engine_take(progress->engine, FLASH_WORK_CALLBACK, &work)) {
        return false;
    }
    flash_progress_wake(progress);
    flash_in_callback = true;
    run_work(progress, &work);
    flash_in_callback = false;
    return true;
}

static bool take_and_run(flash_progress_t *progress, unsigned kinds)
{
    flash_work_t work;

    if (!flash_engine_take(progress->engine, kinds, &work)) {
        return false;
    }
    run_work(progress, &work);
    return true;
}

/*
 * With a progress thread to do the rest, the user's computation comes first. What follows from it,
 * its operation's end for one, comes behind it at once.
 */
static bool call_back_first(flash_progress_t *progress)
{
    if (!flash_progress_has_thread(progress) || !call_back(progress)) {
        return false;
    }
    if (!flash_engine_calls_back(progress->engine)) {
        move(progress);
    }
    return true;
}

/* The user's computation comes last: other ranks wait for what this one sends on. */
static int work_once(flash_progress_t *progress)
{
    int happened = move(progress);

    return happened + (take_and_run(progress, FLASH_WORK_STAGE | FLASH_WORK_COMBINE |
                                                  FLASH_WORK_USERS_COMBINE) ||
                       call_back(progress) || take_and_run(progress, FLASH_WORK_COPY));
}

static int report_completed(flash_progress_t *progress, void (*completed)(flash_op_t *op))
{
    flash_op_t *op;
    int reported = 0;

    while ((op = flash_engine_completed(progress->engine)) != NULL) {
        flash_progress_unlock(progress);
        atomic_fetch_sub_explicit(&progress->in_flight, 1, memory_order_relaxed);
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

int flash_progress_poll(flash_progress_t *progress, void (*completed)(flash_op_t *op))
{
    flash_trace_t *trace = flash_engine_trace(progress->engine);
    uint64_t began = flash_trace_clock(trace);
    int happened, reported;
    bool locked;

    if (!worth_polling(progress)) {
        return 0;
    }
    locked = atomic_load_explicit(&progress->contenders, memory_order_relaxed) == 0 &&
             try_lock(progress);
    happened = locked && call_back_first(progress);
    if (!happened && flash_progress_has_thread(progress)) {
        flash_alarm_polled(&progress->alarm); /* may take longer than all the rest */
    }
    if (!locked) {
        return 0;
    }
    if (!happened) {
        happened = work_once(progress);
    }
    if (trace != NULL && flash_engine_active(progress->engine) > 0) {
        flash_trace_wait(trace, began);
    }
    reported = report_completed(progress, completed);
    flash_progress_unlock(progress);
    if (reported > 0 && flash_progress_busy(progress)) {
        recall(progress, true); /* the application is about to leave, with operations in flight */
    }
    return happened + reported;
}
