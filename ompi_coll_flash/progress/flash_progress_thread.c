/*
 * flash_progress_thread.c: the progress thread, see flash_progress.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "progress/flash_progress_state.h"

#include <sys/prctl.h>
#include <time.h>

#include "progress/flash_thread.h"
#include "engine/flash_trace.h"

/*
 * After so many looks after what the transport has still to send, the time between two of them doubles, and
 * so on, up to 1.3 s: the transport may wait for an answer by a process that is stopped.
 */
#define SETTLING_LOOKS   50
#define SETTLING_DOUBLES 6

/*
 * So many events that nothing came of are borne, one behind the other: the application may have
 * been quicker. More of them stand for something that lasts, such as UCX's sockets while the other
 * side has not answered yet: between any two, the thread then sleeps, for longer each time, up to
 * about a millisecond.
 */
#define VAIN_EVENTS 8
#define NAP_NS      INT64_C(50000)
#define NAP_DOUBLES 4

/*
 * How long the thread sleeps at most while something is under way elsewhere: as often as a copy of
 * a segment may end, at first; longer where it takes longer, a computation for one.
 */
#define LOOKS_AT_FIRST 8
#define LOOKS_DOUBLE   4 /* after so many more each */
#define LONGEST_NS     INT64_C(1000000)

/* Without the lock. */
static bool look_elsewhere(flash_progress_t *progress)
{
    bool found = flash_progress_look_elsewhere(progress);

    if (found) {
        progress->vain_looks = 0;
    }
    return found;
}

static int64_t until_next_look(flash_progress_t *progress)
{
    int64_t time = NAP_NS;
    unsigned more;

    if (!flash_progress_busy_elsewhere(progress)) {
        progress->vain_looks = 0;
        return -1;
    }
    more = progress->vain_looks < LOOKS_AT_FIRST ? 0 : progress->vain_looks - LOOKS_AT_FIRST;
    for (; more >= LOOKS_DOUBLE && time < LONGEST_NS; more -= LOOKS_DOUBLE) {
        time *= 2;
    }
    progress->vain_looks++;
    return time < LONGEST_NS ? time : LONGEST_NS;
}

static int64_t sooner(int64_t time, int64_t other)
{
    return time < 0 || (other >= 0 && other < time) ? other : time;
}

/* See flash_timer_sleep(). */
static bool sleep_on(flash_progress_t *progress, int event_fd, int64_t nanoseconds)
{
    bool event;

    nanoseconds = sooner(nanoseconds, until_next_look(progress));
    flash_progress_unlock(progress);
    event = flash_timer_sleep(&progress->timer, event_fd, nanoseconds);
    atomic_fetch_add_explicit(&progress->wakeups, 1, memory_order_relaxed);
    look_elsewhere(progress);
    flash_progress_lock_behind(progress);
    return event;
}

/* Back to the loop, which looks for what the timer may have been about. */
static void nap(flash_progress_t *progress)
{
    unsigned more = progress->vain_events - VAIN_EVENTS;

    progress->napped = true;
    sleep_on(progress, -1, NAP_NS << (more < NAP_DOUBLES ? more : NAP_DOUBLES));
}

/* A mutex is not fair: without this, a thread that keeps finding events would keep the lock. */
static void let_others_in(flash_progress_t *progress)
{
    flash_progress_unlock(progress);
    look_elsewhere(progress);
    while (atomic_load_explicit(&progress->contenders, memory_order_relaxed) > 0) {
        flash_progress_stand_back();
    }
    flash_progress_lock_behind(progress);
}

/*
 * Whether the transport has been busy for long, at each look since this thread has been on duty.
 * Looks are counted as well: a process that was stopped has seen nothing meanwhile.
 */
static bool is_busy_for_long(flash_progress_t *progress)
{
    uint64_t now = flash_trace_now();

    if (progress->busy_arms == 0) {
        progress->busy_since = now;
    }
    if (progress->busy_arms < FLASH_BUSY_ARMS) {
        progress->busy_arms++;
        return false;
    }
    return now - progress->busy_since > FLASH_BUSY_NS;
}

/* A transport that cannot be armed has something to do that needs another moment, or others. */
static void wait_a_moment(flash_progress_t *progress)
{
    if (is_busy_for_long(progress)) {
        sleep_on(progress, -1, FLASH_LOOK_NS);
    } else {
        let_others_in(progress);
        flash_progress_stand_back();
    }
}

/*
 * With nothing in flight: whether the transport has nothing to send either. That is asked, which may take a
 * message, when no operation has ended for as long as between two looks.
 */
static bool is_settled(flash_progress_t *progress)
{
    uint64_t now = flash_trace_now();

    if (flash_engine_take_ended(progress->engine)) {
        progress->unsettled = true;
        progress->ended_at = now;
        progress->settling_looks = 0;
    }
    if (progress->unsettled && now - progress->ended_at >= (uint64_t) FLASH_LOOK_NS) {
        progress->unsettled = !progress->transport->ops->settled(progress->transport);
        progress->settling_looks++;
    }
    return !progress->unsettled;
}

/* With nothing in flight, and nothing left to send, there is nothing to miss. */
static int64_t longest_sleep(flash_progress_t *progress)
{
    unsigned doubles;

    if (!flash_engine_is_idle(progress->engine)) {
        return FLASH_LOOK_NS;
    }
    if (is_settled(progress)) {
        return -1;
    }
    doubles = progress->settling_looks / SETTLING_LOOKS;
    return FLASH_LOOK_NS << (doubles < SETTLING_DOUBLES ? doubles : SETTLING_DOUBLES);
}

static void sleep_until_event(flash_progress_t *progress)
{
    int64_t longest = longest_sleep(progress);

    if (progress->transport->ops->arm(progress->transport) != FLASH_OK) {
        wait_a_moment(progress);
        return;
    }
    progress->busy_arms = 0;
    if (progress->vain_events >= VAIN_EVENTS && !progress->napped) {
        nap(progress);
        return;
    }
    progress->napped = false;
    if (sleep_on(progress, progress->transport->event_fd, longest)) {
        progress->vain_events++;
    } else {
        progress->vain_events = 0;
    }
}

/*
 * In turn: as long as data keeps coming in, the sums that the right neighbour waits for would
 * otherwise not go out.
 */
static bool move_and_combine(flash_progress_t *progress)
{
    bool moved = flash_progress_move(progress);
    flash_work_t work;

    if (!flash_engine_take(progress->engine,
                           FLASH_WORK_STAGE | FLASH_WORK_COMBINE | FLASH_WORK_COPY, &work)) {
        return moved;
    }
    flash_progress_run(progress, &work);
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
    flash_progress_lock_behind(progress);
    while (!progress->stop) {
        if (flash_timer_stands_by(&progress->timer)) {
            progress->busy_arms = 0;
            sleep_on(progress, -1, -1);
        } else if (move_and_combine(progress)) {
            progress->vain_events = 0;
            progress->busy_arms = 0;
            let_others_in(progress);
        } else if (flash_progress_needs_no_wakeup(progress)) {
            progress->busy_arms = 0;
            sleep_on(progress, -1, FLASH_LOOK_NS);
        } else {
            sleep_until_event(progress);
        }
    }
    flash_progress_unlock(progress);
    return NULL;
}

int flash_progress_start_thread(flash_progress_t *progress, void (*placed)(void *arg), void *arg)
{
    if (progress->transport->event_fd < 0) {
        return FLASH_ERR_TRANSPORT;
    }
    progress->placed = placed;
    progress->placed_arg = arg;
    progress->stop = false;
    atomic_store_explicit(&progress->has_thread, true, memory_order_relaxed);
    if (!flash_thread_start(&progress->thread, "flash-progress", thread_main, progress)) {
        atomic_store_explicit(&progress->has_thread, false, memory_order_relaxed);
        return FLASH_ERR_NO_MEMORY;
    }
    return FLASH_OK;
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
