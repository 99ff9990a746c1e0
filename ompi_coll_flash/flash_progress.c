/*
 * flash_progress.c: see flash_progress.h.
 *
 * Shared between threads, and what orders it:
 *   engine, transport  the lock
 *   stop               written by the thread that joins, read by the progress thread; the lock
 *   in_flight          atomic, relaxed: a hint to poll() that there may be something to do. An
 *                      operation is counted before its starter can wait for it
 *   last_poll          atomic, relaxed: a hint to the progress thread; a stale value costs it a
 *                      short sleep or an early wake-up, never an event
 *   alarm_fd, alarm_time  alarm_lock for those that set them, together, so that an alarm_time
 *                      to come means an alarm to come; read without it, atomic, relaxed
 *   waits_at_once      atomic, relaxed: a guess at what the application does next
 *   contenders         atomic, relaxed: a hint to the progress thread to let go of the lock
 *   has_thread         atomic, relaxed: written by whoever starts and joins the thread, which
 *                      order it themselves; another thread may see it late, and then polls
 *   idle_polls, wakeups  atomic, relaxed: counters
 *   flash_in_callback  one for each thread
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "flash_progress.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

/*
 * How long the thread stands back from others: from whoever gives it something to do, who is about
 * to leave MPI for its computation (an accelerator, say, is to be started before its data moves) or
 * to wait inside MPI and do it itself, and from whoever waits for the lock. Where they share a
 * core, they come first. Not sched_yield(), which Linux's scheduler may answer with a pause of
 * several milliseconds.
 */
#define STAND_BACK_NS UINT64_C(50000)

/*
 * While the application polls, it puts the thread's alarm off, to twice this from now and whenever
 * less than this is left: the alarm goes off when it has stopped, and wakes nobody before.
 */
#define STAND_BY_NS UINT64_C(500000)

/* Without a thread, how many polls with nothing in flight go by before one moves data. */
#define IDLE_POLLS 32

struct flash_progress {
    flash_engine_t *engine;
    flash_transport_t *transport;
    pthread_mutex_t lock;
    pthread_t thread;
    atomic_bool has_thread;
    bool stop;
    pthread_mutex_t alarm_lock;
    int alarm_fd; /* a timer: the thread is to look after what is in flight */
    atomic_uint_fast64_t alarm_time;
    atomic_bool waits_at_once;
    atomic_uint idle_polls;
    void (*placed)(void *arg);
    void *placed_arg;
    atomic_size_t in_flight;
    atomic_uint_fast64_t last_poll; /* nanoseconds; 0: nobody polls */
    atomic_uint contenders;
    atomic_uint_fast64_t wakeups;
};

_Thread_local bool flash_in_callback;

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t) now.tv_sec * UINT64_C(1000000000) + (uint64_t) now.tv_nsec;
}

flash_progress_t *flash_progress_create(flash_engine_t *engine, flash_transport_t *transport)
{
    flash_progress_t *progress = calloc(1, sizeof(*progress));

    if (progress == NULL) {
        return NULL;
    }
    progress->alarm_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (progress->alarm_fd < 0) {
        free(progress);
        return NULL;
    }
    progress->engine = engine;
    progress->transport = transport;
    pthread_mutex_init(&progress->lock, NULL);
    pthread_mutex_init(&progress->alarm_lock, NULL);
    return progress;
}

void flash_progress_destroy(flash_progress_t *progress)
{
    flash_progress_stop_thread(progress);
    pthread_mutex_destroy(&progress->alarm_lock);
    pthread_mutex_destroy(&progress->lock);
    close(progress->alarm_fd);
    free(progress);
}

void flash_progress_lock(flash_progress_t *progress)
{
    atomic_fetch_add_explicit(&progress->contenders, 1, memory_order_relaxed);
    pthread_mutex_lock(&progress->lock);
    atomic_fetch_sub_explicit(&progress->contenders, 1, memory_order_relaxed);
}

void flash_progress_unlock(flash_progress_t *progress)
{
    pthread_mutex_unlock(&progress->lock);
}

static void set_alarm(flash_progress_t *progress, uint64_t when)
{
    const uint64_t second = UINT64_C(1000000000);
    struct itimerspec timer = {
        .it_value = {.tv_sec = (time_t) (when / second), .tv_nsec = (long) (when % second)}};

    pthread_mutex_lock(&progress->alarm_lock);
    atomic_store_explicit(&progress->alarm_time, when, memory_order_relaxed);
    timerfd_settime(progress->alarm_fd, TFD_TIMER_ABSTIME, &timer, NULL);
    pthread_mutex_unlock(&progress->alarm_lock);
}

/* Nanoseconds until the alarm; 0 if it is not set. */
static uint64_t until_alarm(const flash_progress_t *progress, uint64_t now)
{
    uint64_t when = atomic_load_explicit(&progress->alarm_time, memory_order_relaxed);

    return when > now ? when - now : 0;
}

/* The application goes away, or has left something to do: the thread is on duty. */
void flash_progress_wake(flash_progress_t *progress)
{
    if (flash_progress_has_thread(progress)) {
        atomic_store_explicit(&progress->last_poll, 0, memory_order_relaxed);
        set_alarm(progress, now_ns() + STAND_BACK_NS);
    }
}

/*
 * Likewise, where the application may also come back at once: with an operation started, or one of
 * several completed. An alarm that goes off soon enough is left as it is. Many operations in a row
 * do not keep each other waiting; and where the application came back at once the last time, it is
 * expected to do so again (setting a timer may take longer than a short ring).
 */
static void recall(flash_progress_t *progress)
{
    bool at_once = atomic_load_explicit(&progress->waits_at_once, memory_order_relaxed);
    uint64_t pending;

    if (!flash_progress_has_thread(progress)) {
        return;
    }
    pending = until_alarm(progress, now_ns());

    if (pending == 0 || (pending > STAND_BACK_NS && !at_once)) {
        flash_progress_wake(progress);
    } else {
        atomic_store_explicit(&progress->last_poll, 0, memory_order_relaxed);
    }
}

/* An application thread polls: it moves the data itself as long as it goes on. */
static void stand_in(flash_progress_t *progress)
{
    uint64_t now = now_ns();

    if (atomic_exchange_explicit(&progress->last_poll, now, memory_order_relaxed) == 0) {
        atomic_store_explicit(&progress->waits_at_once, until_alarm(progress, now) > 0,
                              memory_order_relaxed);
    }
    if (until_alarm(progress, now) < STAND_BY_NS) {
        set_alarm(progress, now + 2 * STAND_BY_NS);
    }
}

static void run_work(flash_progress_t *progress, const flash_work_t *work)
{
    int status;

    flash_progress_unlock(progress);
    status = flash_work_run(work);
    flash_progress_lock(progress);
    flash_engine_finish(work, status);
}

/* ------------------------------------------------------ the progress thread */

static void stand_back(void)
{
    static const struct timespec pause = {.tv_nsec = STAND_BACK_NS};

    nanosleep(&pause, NULL);
}

/* Until the alarm, or an event unless event_fd is negative. */
static void sleep_on(flash_progress_t *progress, int event_fd)
{
    struct pollfd fds[2] = {{.fd = progress->alarm_fd, .events = POLLIN},
                            {.fd = event_fd, .events = POLLIN}};
    uint64_t count;

    poll(fds, 2, -1);
    atomic_fetch_add_explicit(&progress->wakeups, 1, memory_order_relaxed);
    if (read(progress->alarm_fd, &count, sizeof(count)) < 0) {
        /* It was an event, or the alarm has been put off. */
    }
}

static bool application_polls(flash_progress_t *progress)
{
    uint64_t last = atomic_load_explicit(&progress->last_poll, memory_order_relaxed);

    return last != 0 && now_ns() - last < STAND_BY_NS;
}

/* The alarm goes off when nobody has put it off for a while; this one may just have done so. */
static void stand_by(flash_progress_t *progress)
{
    uint64_t now = now_ns();

    if (until_alarm(progress, now) == 0) {
        set_alarm(progress, now + STAND_BY_NS);
    }
    pthread_mutex_unlock(&progress->lock);
    sleep_on(progress, -1);
    pthread_mutex_lock(&progress->lock);
}

/* A mutex is not fair: without this, a thread that keeps finding events would keep the lock. */
static void let_others_in(flash_progress_t *progress)
{
    pthread_mutex_unlock(&progress->lock);
    while (atomic_load_explicit(&progress->contenders, memory_order_relaxed) > 0) {
        stand_back();
    }
    pthread_mutex_lock(&progress->lock);
}

/* A transport that cannot be armed has something to do that needs another moment, or others. */
static void sleep_until_event(flash_progress_t *progress)
{
    if (progress->transport->ops->arm(progress->transport) != FLASH_OK) {
        let_others_in(progress);
        stand_back();
        return;
    }
    pthread_mutex_unlock(&progress->lock);
    sleep_on(progress, progress->transport->event_fd);
    pthread_mutex_lock(&progress->lock);
}

static void *thread_main(void *arg)
{
    flash_progress_t *progress = arg;
    flash_work_t work;

    if (progress->placed != NULL) {
        progress->placed(progress->placed_arg);
    }
    pthread_mutex_lock(&progress->lock);
    while (!progress->stop) {
        if (application_polls(progress)) {
            stand_by(progress);
        } else if (flash_engine_progress(progress->engine) != 0) {
            let_others_in(progress);
        } else if (flash_engine_take(progress->engine, FLASH_WORK_COMBINE, &work)) {
            run_work(progress, &work);
        } else {
            sleep_until_event(progress);
        }
    }
    pthread_mutex_unlock(&progress->lock);
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
    struct timespec used;
    clockid_t clock;

    if (!flash_progress_has_thread(progress) ||
        pthread_getcpuclockid(progress->thread, &clock) != 0 || clock_gettime(clock, &used) != 0) {
        return 0;
    }
    return (double) used.tv_sec + 1e-9 * (double) used.tv_nsec;
}

/* --------------------------------------------------- the application threads */

int flash_progress_start_op(flash_progress_t *progress, const flash_op_params_t *params)
{
    flash_op_t *op;
    int rc;

    flash_progress_lock(progress);
    rc = flash_op_create(progress->engine, params, &op);
    if (rc == FLASH_OK) {
        atomic_fetch_add_explicit(&progress->in_flight, 1, memory_order_relaxed);
        flash_op_start(op);
        if (!flash_progress_has_thread(progress)) {
            flash_engine_progress(progress->engine);
        }
    }
    flash_progress_unlock(progress);
    if (rc == FLASH_OK) {
        recall(progress); /* it sends: that takes time the application may use */
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

static bool combine(flash_progress_t *progress)
{
    flash_work_t work;

    if (!flash_engine_take(progress->engine, FLASH_WORK_COMBINE | FLASH_WORK_USERS_COMBINE,
                           &work)) {
        return false;
    }
    run_work(progress, &work);
    return true;
}

/*
 * With a progress thread to do the rest, the user's computation comes first. Without one it comes
 * last: other ranks wait for what this one sends on.
 */
static int work_once(flash_progress_t *progress)
{
    int happened;

    if (flash_progress_has_thread(progress) && call_back(progress)) {
        return 1;
    }
    happened = (int) flash_engine_progress(progress->engine);
    return happened + (combine(progress) || call_back(progress));
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
    int happened, reported;

    if (!worth_polling(progress)) {
        return 0;
    }
    if (flash_progress_has_thread(progress)) {
        stand_in(progress);
    }
    if (pthread_mutex_trylock(&progress->lock) != 0) {
        return 0;
    }
    happened = work_once(progress);
    reported = report_completed(progress, completed);
    flash_progress_unlock(progress);
    if (reported > 0 && flash_progress_busy(progress)) {
        recall(progress); /* the application is about to leave, with operations in flight */
    }
    return happened + reported;
}
