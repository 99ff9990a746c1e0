/*
 * test_progress_thread.c: the progress thread sleeps where looking is in vain, and what wakes it.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <sys/eventfd.h>
#include <unistd.h>

#include "engine/flash_trace.h"
#include "progress_pair.h"
#include "tap.h"

static atomic_uint arms;

static int armed(flash_transport_t *transport)
{
    (void) transport;
    atomic_fetch_add_explicit(&arms, 1, memory_order_relaxed);
    return FLASH_OK;
}

static atomic_uint looks; /* of the thread, before its first sleep is over; it writes them */
/* How often the thread had woken up at its first two looks. */
static atomic_uint_fast64_t wakeups_at[2];
static atomic_uint looks_timed;

static int busy(flash_transport_t *transport)
{
    uint64_t wakeups = flash_progress_wakeups(shown->progress);

    (void) transport;
    if (wakeups == 0) {
        looks++;
    }
    if (looks_timed < 2) {
        wakeups_at[looks_timed] = wakeups;
        looks_timed++;
    }
    return FLASH_BUSY;
}

/* With an event that lasts, or none. */
static void start_thread(pair_t *pair, int (*arm)(flash_transport_t *transport), bool event)
{
    flash_transport_t *transport;

    set_up(pair);
    transport = fake_net_transport(pair->net, 0);
    set_arm(arm);
    transport->event_fd = eventfd(event, EFD_CLOEXEC);
    flash_progress_start_thread(pair->progress, NULL, NULL);
}

/* The other rank takes part, too. */
static bool ends(pair_t *pair)
{
    flash_progress_stop_thread(pair->progress);
    close(fake_net_transport(pair->net, 0)->event_fd);
    move_all(pair);
    shown = pair;
    flash_progress_poll(pair->progress, complete);
    return tear_down(pair);
}

/* Once it does. */
static bool ends_well(pair_t *pair)
{
    flash_progress_lock(pair->progress);
    start_there(pair, 0);
    flash_progress_unlock(pair->progress);
    return ends(pair);
}

/*
 * An event that lasts, and of which nothing comes, as long as the other rank does nothing. Between
 * two looks the thread sleeps: however long that takes here, there are not more of them than it has
 * time for.
 */
static void test_vain_events(void)
{
    enum { ENOUGH = 200, AT_FIRST = 100, A_MILLISECOND = 4 };
    double began = now_ms();
    pair_t pair = {.net = NULL};
    uint64_t wakeups;

    start_thread(&pair, armed, true);
    start_here(&pair, 0);
    do {
        sleep_a_while();
        wakeups = flash_progress_wakeups(pair.progress);
    } while (wakeups < ENOUGH);
    ok((double) wakeups < AT_FIRST + A_MILLISECOND * (now_ms() - began),
       "an event that nothing comes of: the thread looks again, and not all the time");
    ok(ends_well(&pair), "and it ends as any other");
}

/* ---------------------------------------------------------- a transport that is busy for ever */

/*
 * The thread finds the transport busy, and all still, as it has `times` times since `since`.
 * `off_duty`: a call that sees to it that the thread begins off duty; or NULL.
 */
static void start_busy_thread(pair_t *pair, unsigned times, uint64_t since,
                              void (*off_duty)(flash_progress_t *progress))
{
    flash_transport_t *transport;

    set_up(pair);
    transport = fake_net_transport(pair->net, 0);
    set_arm(busy);
    transport->event_fd = eventfd(0, EFD_CLOEXEC);
    start_here(pair, 0);
    flash_progress_lock(pair->progress);
    while (flash_progress_move(pair->progress)) {
    }
    flash_progress_unlock(pair->progress);
    pair->progress->busy_arms = times;
    pair->progress->busy_since = since;
    shown = pair;
    looks = looks_timed = 0;
    if (off_duty != NULL) {
        off_duty(pair->progress);
    }
    flash_progress_start_thread(pair->progress, NULL, NULL);
}

static void wait_for_wakeups(const pair_t *pair, uint64_t some)
{
    while (flash_progress_wakeups(pair->progress) < some) {
        sleep_a_while();
    }
}

/* The thread sleeps between two looks, but only after many looks, and after a second. */
static void test_busy_transport(void)
{
    enum { SOME = 5 };
    uint64_t now = flash_trace_now();
    pair_t pair = {.net = NULL};

    start_busy_thread(&pair, 1, now - FLASH_BUSY_NS - 1, NULL);
    wait_for_wakeups(&pair, SOME);
    ok(looks == FLASH_BUSY_ARMS, "busy for long: the thread sleeps after %u looks", looks);
    ok(ends_well(&pair), "and all ends as ever");

    now = flash_trace_now();
    start_busy_thread(&pair, FLASH_BUSY_ARMS, now, NULL);
    wait_for_wakeups(&pair, 1);
    ok(flash_trace_now() - now > FLASH_BUSY_NS && looks > 0,
       "looked at often: the thread sleeps after a second");
    ok(ends_well(&pair), "and all ends as ever");
}

/* The application polls without end; and has ended to do so. */
static void begin_polling(flash_progress_t *progress)
{
    atomic_store(&progress->timer.last_close, UINT64_MAX);
}

static void end_polling(flash_progress_t *progress)
{
    atomic_store(&progress->timer.last_close, 0);
}

/* What is under way is not the thread's affair; and is. */
static void leave_without_wakeup(flash_progress_t *progress)
{
    atomic_store(&progress->with_wakeup, 0);
}

static void attend(flash_progress_t *progress)
{
    atomic_store(&progress->with_wakeup, 1);
}

/*
 * The transport was busy for as often and as long as may be before the thread was off duty. Now
 * that it is on duty again and finds it busy once more, it looks again soon, without a sleep in
 * between.
 */
static void test_busy_before(void (*off_duty)(flash_progress_t *progress),
                             void (*on_duty)(flash_progress_t *progress), const char *what)
{
    uint64_t now = flash_trace_now();
    pair_t pair = {.net = NULL};

    start_busy_thread(&pair, FLASH_BUSY_ARMS, now - FLASH_BUSY_NS - 1, off_duty);
    wait_for_wakeups(&pair, 1);
    on_duty(pair.progress);
    while (looks_timed < 2) {
        sleep_a_while();
    }
    ok(wakeups_at[0] == wakeups_at[1], "busy before the thread %s: it does not sleep", what);
    ok(ends_well(&pair), "and all ends as ever");
}

/* ------------------------------------------------------------------------- what wakes it */

static bool has_armed(pair_t *pair)
{
    (void) pair;
    return atomic_load_explicit(&arms, memory_order_relaxed) > 0;
}

static bool has_woken(pair_t *pair)
{
    return flash_progress_wakeups(pair->progress) > 0;
}

static atomic_uint ended_there;

static void end(flash_ended_t *ended)
{
    (void) ended;
    see_guard();
    atomic_fetch_add_explicit(&ended_there, 1, memory_order_relaxed);
}

static bool has_ended(pair_t *pair)
{
    (void) pair;
    return atomic_load_explicit(&ended_there, memory_order_relaxed) > 0;
}

/* The thread sleeps, and no event will wake it. */
static void start_sleeper(pair_t *pair)
{
    atomic_store_explicit(&arms, 0, memory_order_relaxed);
    start_thread(pair, armed, false);
    comes_true(has_armed, pair);
    flash_progress_lock(pair->progress); /* which it has until it sleeps */
    flash_progress_unlock(pair->progress);
}

static void test_wake_ups(void)
{
    flash_ended_t ended = {.end = end};
    pair_t pair = {.net = NULL};

    start_sleeper(&pair);
    start_here(&pair, 0);
    ok(comes_true(has_woken, &pair), "an operation that starts wakes the thread");
    ok(ends_well(&pair), "and ends");
    start_sleeper(&pair);
    flash_progress_ended(pair.progress, &ended);
    ok(comes_true(has_ended, &pair), "what has ended elsewhere wakes the thread");
    start_here(&pair, 0);
    ok(ends_well(&pair), "and operations go on");
}

static bool has_armed_again(pair_t *pair)
{
    (void) pair;
    return atomic_load_explicit(&arms, memory_order_relaxed) > 1;
}

/* Rank 1 does what it can. */
static bool has_arrived(pair_t *pair)
{
    bool arrived;

    flash_progress_lock(pair->progress);
    flash_engine_progress(pair->engines[1]);
    arrived = flash_engine_active(pair->engines[0]) == 0;
    flash_progress_unlock(pair->progress);
    return arrived;
}

/* The thread has done all that there was to do, and sleeps again, when rank 1 sends. */
static void test_missed_event(void)
{
    pair_t pair = {.net = NULL};

    start_sleeper(&pair);
    start_here(&pair, 0);
    comes_true(has_armed_again, &pair);
    flash_progress_lock(pair.progress); /* which it has until it sleeps */
    start_there(&pair, 0);
    flash_progress_unlock(pair.progress);
    ok(comes_true(has_arrived, &pair), "an event that is missed: the thread finds what came");
    ok(ends(&pair), "and it ends as any other");
}

static atomic_uint elsewhere_looks, elsewhere_locked;
static atomic_bool elsewhere_busy;

static bool look_there(void)
{
    atomic_fetch_add_explicit(&elsewhere_looks, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&elsewhere_locked, is_locked(), memory_order_relaxed);
    return false;
}

static bool is_busy_there(void)
{
    return atomic_load_explicit(&elsewhere_busy, memory_order_relaxed);
}

static bool has_looked_often(pair_t *pair)
{
    (void) pair;
    return atomic_load_explicit(&elsewhere_looks, memory_order_relaxed) > 100;
}

/* What is under way elsewhere wakes nobody when it ends. */
static void test_elsewhere(void)
{
    static const flash_elsewhere_t elsewhere = {.poll = look_there, .busy = is_busy_there};
    flash_ended_t ended = {.end = end};
    pair_t pair = {.net = NULL};

    set_up(&pair);
    flash_progress_set_elsewhere(pair.progress, &elsewhere);
    start(&pair, 0);
    poll_is(&pair, true, 0);
    ok(atomic_load_explicit(&elsewhere_looks, memory_order_relaxed) == 1 &&
           atomic_load_explicit(&elsewhere_locked, memory_order_relaxed) == 0,
       "a poll asks elsewhere, without the lock");
    move_all(&pair);
    poll_is(&pair, false, 1);
    ok(tear_down(&pair), "and nothing is left over");

    start_sleeper(&pair);
    flash_progress_set_elsewhere(pair.progress, &elsewhere);
    atomic_store_explicit(&elsewhere_looks, 0, memory_order_relaxed);
    atomic_store_explicit(&elsewhere_busy, true, memory_order_relaxed);
    flash_progress_ended(pair.progress, &ended);
    ok(comes_true(has_looked_often, &pair), "the thread that sleeps wakes up to ask there");
    atomic_store_explicit(&elsewhere_busy, false, memory_order_relaxed);
    start_here(&pair, 0);
    ok(ends_well(&pair), "and operations go on");
}

/* More often than it is woken. */
static bool keeps_looking(pair_t *pair)
{
    return flash_progress_wakeups(pair->progress) > 3;
}

/* It is not woken by them, and looks after 20 ms all the same. */
static void test_left_without_wakeup(void)
{
    pair_t pair = {.net = NULL, .no_wakeup = true};
    double began;
    bool slept;

    start_sleeper(&pair);
    began = now_ms();
    start_here(&pair, 0);
    flash_progress_lock(pair.progress);
    start_there(&pair, 0);
    flash_progress_unlock(pair.progress);
    slept = is_moved_asleep(&pair);
    ok(slept || now_ms() - began >= 20,
       "the thread sleeps while the application moves an allgather");
    ok(comes_true(has_asked, &pair), "and looks for what has left, later");
    ok(ends(&pair), "and all is well in the end");
}

/* The thread does not attend the operation, and is to see out the messages that leave all the same. */
static void test_tail(void)
{
    pair_t pair = {.net = NULL};
    side_t sides[RANKS];
    flash_op_params_t params;
    flash_op_t *op;
    bool slept;

    start_sleeper(&pair);
    params = bcast_of(&pair, 1, &sides[1]);
    must(flash_op_create(pair.engines[1], &params, &op) == FLASH_OK, "an operation");
    flash_op_start(op);
    params = bcast_of(&pair, 0, &sides[0]);
    flash_progress_start_op(pair.progress, &params);
    slept = is_moved_asleep(&pair);
    ok(slept, "the thread sleeps while the application moves an operation");
    ok(comes_true(keeps_looking, &pair),
       "the thread is woken when it ends, and looks as long as messages are still to be sent");
    ok(comes_true(has_asked, &pair) && first_settled_ms(&pair) - completed_ms >= 20,
       "it asks the transport for that, 20 ms later");
    ok(ends(&pair) && memcmp(sides[0].block, sides[1].block, SEGMENTS) == 0,
       "and all is well in the end");
}

int main(void)
{
    test_wake_ups();
    test_tail();
    test_left_without_wakeup();
    test_missed_event();
    test_vain_events();
    test_busy_transport();
    test_busy_before(begin_polling, end_polling, "stood by");
    test_busy_before(leave_without_wakeup, attend, "left all without a wake-up");
    test_elsewhere();
    return tap_done();
}
