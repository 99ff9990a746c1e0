/*
 * test_progress.c: what an application's poll does: moves data, calls back, or reports what has ended
 * and leaves the rest for later; whom it calls; what is done with the lock, and what without; that the
 * thread sleeps where looking is in vain, and what wakes it.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "fake_transport.h"
#include "flash_progress_state.h"
#include "flash_trace.h"
#include "tap.h"

enum { RANKS = 2, OPERATIONS = 2 };

static flash_transport_ops_t counting; /* rank 0's transport, */
static unsigned asked;                 /* and how often it was to move data */
static const flash_transport_ops_t *asks;

/* The lock; NULL: there is none yet. Whoever has it, or sees another thread have it, cannot take it. */
static pthread_mutex_t *guard;
static bool unguarded; /* the transport was called without it */

static bool is_locked(void)
{
    bool locked = pthread_mutex_trylock(guard) != 0;

    if (!locked) {
        pthread_mutex_unlock(guard);
    }
    return locked;
}

static void see_guard(void)
{
    unguarded |= guard != NULL && !is_locked();
}

static unsigned ask(flash_transport_t *transport)
{
    see_guard();
    asked++;
    return asks->progress(transport);
}

static int reserve(flash_transport_t *transport, uint32_t transfers)
{
    see_guard();
    return asks->reserve(transport, transfers);
}

static void unreserve(flash_transport_t *transport, uint32_t transfers)
{
    see_guard();
    asks->unreserve(transport, transfers);
}

/* Two ranks, whose allgathers are in place: there is nothing to do but to move them. */
typedef struct pair {
    fake_net_t *net;
    flash_engine_t *engines[RANKS];
    flash_progress_t *progress; /* rank 0's */
    uint32_t reserved;          /* by its engine alone */
    char blocks[RANKS][OPERATIONS][RANKS];
    flash_callback_fn *consume; /* of rank 0's operations; or NULL */
    bool unattended;            /* they are */
} pair_t;

static flash_op_params_t params_of(pair_t *pair, uint32_t rank, unsigned operation)
{
    char *output = pair->blocks[rank][operation];
    flash_peer_t *other = fake_net_peer(pair->net, rank, 1 - rank);
    uint64_t tag = (uint64_t) operation << FLASH_TAG_SHIFT;

    output[rank] = (char) ('a' + rank);
    return (flash_op_params_t){.schedule = {.kind = FLASH_ALLGATHER,
                                            .ring = {.nranks = RANKS, .place = rank},
                                            .pieces = 1,
                                            .row = 1,
                                            .segment_elements = 1,
                                            .blocks = {.count = 1}},
                               .element = 1,
                               .left = other,
                               .right = other,
                               .recv_tag = tag,
                               .send_tag = tag,
                               .depth = 1,
                               .input = output + rank,
                               .output = output,
                               .consume = rank == 0 ? pair->consume : NULL,
                               .consume_arg = pair,
                               .unattended = rank == 0 && pair->unattended,
                               .user = pair};
}

static void start_here(pair_t *pair, unsigned operation)
{
    flash_op_params_t params = params_of(pair, 0, operation);

    flash_progress_start_op(pair->progress, &params);
}

static void start_there(pair_t *pair, unsigned operation)
{
    flash_op_params_t params = params_of(pair, 1, operation);
    flash_op_t *op;

    flash_op_create(pair->engines[1], &params, &op);
    flash_op_start(op);
}

static void start(pair_t *pair, unsigned operation)
{
    start_here(pair, operation);
    start_there(pair, operation);
}

static void set_up(pair_t *pair)
{
    static const fake_options_t plain = {.burst = 1};
    flash_transport_t *transport;

    pair->net = fake_net_create(RANKS, 1, &plain);
    transport = fake_net_transport(pair->net, 0);
    asks = transport->ops;
    counting = *asks;
    counting.progress = ask;
    counting.reserve = reserve;
    counting.unreserve = unreserve;
    guard = NULL;
    transport->ops = &counting;
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        pair->engines[rank] = flash_engine_create(fake_net_transport(pair->net, rank));
    }
    pair->reserved = fake_net_stats(pair->net, 0).reserved;
    pair->progress = flash_progress_create(pair->engines[0], transport);
    guard = &pair->progress->lock;
    unguarded = false;
}

/* Whether nothing was left to do, or reserved, and all was done with the lock. */
static bool tear_down(pair_t *pair)
{
    const char *first;
    bool clean = fake_net_leftovers(pair->net) == 0 &&
                 fake_net_violations(pair->net, &first) == 0 &&
                 fake_net_stats(pair->net, 0).reserved == pair->reserved && !unguarded;
    flash_op_t *op;

    while ((op = flash_engine_completed(pair->engines[1])) != NULL) {
        flash_op_destroy(op);
    }
    flash_progress_destroy(pair->progress);
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        flash_engine_destroy(pair->engines[rank]);
    }
    fake_net_destroy(pair->net);
    return clean;
}

/* As the progress thread does. */
static void move_here(pair_t *pair)
{
    flash_progress_lock(pair->progress);
    flash_engine_progress(pair->engines[0]);
    flash_progress_unlock(pair->progress);
}

/* Likewise: operations end, and nobody has heard of it. */
static void move_all(pair_t *pair)
{
    while (flash_engine_active(pair->engines[0]) + flash_engine_active(pair->engines[1]) > 0) {
        move_here(pair);
        flash_engine_progress(pair->engines[1]);
    }
}

static int completed, latest_status;
static pair_t *shown;

static void complete(flash_op_t *op)
{
    completed++;
    latest_status = flash_op_status(op);
    flash_progress_destroy_op(shown->progress, op);
}

/* Whether it asks the transport, and how much it reports. */
static bool poll_is(pair_t *pair, bool moves, int reports)
{
    int before = completed;

    asked = 0;
    shown = pair;
    flash_progress_poll(pair->progress, complete);
    return (asked > 0) == moves && completed - before == reports;
}

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

static double now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return 1e3 * (double) now.tv_sec + 1e-6 * (double) now.tv_nsec;
}

static const struct timespec a_while = {.tv_nsec = 10000000};

/* With an event that lasts, or none. */
static void start_thread(pair_t *pair, int (*arm)(flash_transport_t *transport), bool event)
{
    flash_transport_t *transport;

    set_up(pair);
    transport = fake_net_transport(pair->net, 0);
    counting.arm = arm;
    transport->event_fd = eventfd(event, EFD_CLOEXEC);
    flash_progress_start_thread(pair->progress, NULL, NULL);
}

/* Once the other rank takes part, too. */
static bool ends_well(pair_t *pair)
{
    flash_progress_stop_thread(pair->progress);
    close(fake_net_transport(pair->net, 0)->event_fd);
    start_there(pair, 0);
    move_all(pair);
    shown = pair;
    flash_progress_poll(pair->progress, complete);
    return tear_down(pair);
}

/*
 * An event that lasts, and of which nothing comes, as long as the other rank does nothing. Between two
 * looks the thread sleeps: however long that takes here, there are not more of them than it has time for.
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
        nanosleep(&a_while, NULL);
        wakeups = flash_progress_wakeups(pair.progress);
    } while (wakeups < ENOUGH);
    ok((double) wakeups < AT_FIRST + A_MILLISECOND * (now_ms() - began),
       "an event that nothing comes of: the thread looks again, and not all the time");
    ok(ends_well(&pair), "and it ends as any other");
}

/* ---------------------------------------------------------- a transport that is busy for ever */

/* The thread finds the transport busy, and all still, as it has `times` times since `since`. `off_duty`:
   a call that sees to it that the thread begins off duty; or NULL. */
static void start_busy_thread(pair_t *pair, unsigned times, uint64_t since,
                              void (*off_duty)(flash_progress_t *progress))
{
    flash_transport_t *transport;

    set_up(pair);
    transport = fake_net_transport(pair->net, 0);
    counting.arm = busy;
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
        nanosleep(&a_while, NULL);
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
    atomic_store(&progress->alarm.last_close, UINT64_MAX);
}

static void end_polling(flash_progress_t *progress)
{
    atomic_store(&progress->alarm.last_close, 0);
}

/* What is under way is not the thread's affair; and is. */
static void leave_unattended(flash_progress_t *progress)
{
    atomic_store(&progress->attended, 0);
}

static void attend(flash_progress_t *progress)
{
    atomic_store(&progress->attended, 1);
}

/*
 * The transport was busy for as often and as long as may be before the thread was off duty. Now that it is
 * on duty again and finds it busy once more, it looks again soon, without a sleep in between.
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
        nanosleep(&a_while, NULL);
    }
    ok(wakeups_at[0] == wakeups_at[1], "busy before the thread %s: it does not sleep", what);
    ok(ends_well(&pair), "and all ends as ever");
}

/* ------------------------------------------------------- as if there were a progress thread */

/* What the application does, without another thread in between. */
static void pretend_thread(pair_t *pair, bool there)
{
    atomic_store(&pair->progress->has_thread, there);
}

/* The application moves what is unattended: the thread's alarm is not set, as it is otherwise. */
static void test_unattended(void)
{
    pair_t pair = {.net = NULL, .unattended = true};
    bool called = false;

    set_up(&pair);
    pretend_thread(&pair, true);
    start(&pair, 0);
    shown = &pair;
    for (int before = completed; completed == before;) {
        called |= pair.progress->alarm.when != 0;
        flash_engine_progress(pair.engines[1]);
        flash_progress_poll(pair.progress, complete);
    }
    start(&pair, 1);
    move_all(&pair);
    ok(poll_is(&pair, false, 1) && !called && pair.progress->alarm.when == 0,
       "unattended operations do not call the thread");
    pair.unattended = false;
    start(&pair, 0);
    ok(pair.progress->alarm.when != 0, "an attended one does");
    move_all(&pair);
    ok(poll_is(&pair, false, 1), "and ends");
    pretend_thread(&pair, false);
    ok(tear_down(&pair), "nothing is left over");
}

enum { FAILED = 71 };
static int calls;

/* Another thread has completed the piece with an error, and has not got the lock. */
typedef struct failure {
    flash_ended_t ended;
    flash_op_t *op;
    uint64_t number;
} failure_t;

static void end_failure(flash_ended_t *ended)
{
    const failure_t *failure = (failure_t *) ended;

    flash_engine_end_pending(failure->op, failure->number, FAILED);
}

/* The first piece fails so; the others are done at once. */
static int fail_later(void *arg, const flash_piece_t *piece)
{
    static failure_t failure;
    const pair_t *pair = arg;

    if (calls++ > 0) {
        return FLASH_OK;
    }
    failure = (failure_t){.ended = {.end = end_failure}, .op = piece->op, .number = piece->number};
    flash_progress_ended(pair->progress, &failure.ended);
    return FLASH_PENDING;
}

/* A note of a failed piece is read before the next callback is chosen, though that one is ready. */
static void test_no_callback_after_failure(void)
{
    enum { MANY = 100 };
    pair_t pair = {.net = NULL, .consume = fail_later};

    set_up(&pair);
    pretend_thread(&pair, true);
    start(&pair, 0);
    for (int k = 0; k < MANY; k++) {
        move_here(&pair);
        flash_engine_progress(pair.engines[1]);
    }
    ok(poll_is(&pair, false, 0) && calls == 1,
       "a callback comes first, with another one behind it");
    for (int k = 0; k < MANY; k++) {
        flash_progress_poll(pair.progress, complete);
    }
    ok(calls == 1 && latest_status == FAILED && !flash_progress_busy(pair.progress),
       "its piece has failed: there is no other callback, and the operation ends");
    pretend_thread(&pair, false);
    ok(tear_down(&pair), "nothing is left over");
}

/* Waits until that is true; false: it is not, for so long that it never will be. */
static bool comes_true(bool (*what)(pair_t *pair), pair_t *pair)
{
    enum { TOO_LONG_MS = 20000 };
    double began = now_ms();

    while (!what(pair) && now_ms() - began < TOO_LONG_MS) {
        nanosleep(&a_while, NULL);
    }
    return what(pair);
}

static bool has_armed(pair_t *pair)
{
    (void) pair;
    return atomic_load_explicit(&arms, memory_order_relaxed) > 0;
}

static bool has_woken(pair_t *pair)
{
    return flash_progress_wakeups(pair->progress) > 0;
}

static atomic_uint ends;

static void end(flash_ended_t *ended)
{
    (void) ended;
    see_guard();
    atomic_fetch_add_explicit(&ends, 1, memory_order_relaxed);
}

static bool has_ended(pair_t *pair)
{
    (void) pair;
    return atomic_load_explicit(&ends, memory_order_relaxed) > 0;
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

static flash_op_t *pending_op;
static uint64_t pending_number;

static int leave_pending(void *arg, const flash_piece_t *piece)
{
    (void) arg;
    if (calls++ > 0) {
        return FLASH_OK;
    }
    pending_op = piece->op;
    pending_number = piece->number;
    return FLASH_PENDING;
}

/* Whether a note lies in memory that was set aside with the operation. */
static bool is_noted(const flash_progress_t *progress)
{
    const char *note = (char *) atomic_load_explicit(&progress->ended, memory_order_relaxed);
    const char *notes = (char *) atomic_load_explicit(&progress->notes, memory_order_relaxed);

    return note != NULL && note >= notes && note < notes + sizeof(flash_progress_notes_t);
}

/* A function that the driver calls says that a piece is done, while another one has the lock. */
static void test_end_without_lock(void)
{
    pair_t pair = {.net = NULL, .consume = leave_pending};
    int before = completed;
    bool said;

    calls = 0;
    set_up(&pair);
    shown = &pair;
    start(&pair, 0);
    for (int k = 0; k < 100; k++) {
        flash_progress_poll(pair.progress, complete);
        flash_engine_progress(pair.engines[1]);
    }
    pthread_mutex_lock(&pair.progress->lock);
    said = flash_progress_end_pending(pair.progress, pending_op, pending_number, FLASH_OK);
    ok(said && is_noted(pair.progress), "a piece's end is noted, in memory that was set aside");
    ok(!flash_progress_end_pending(pair.progress, pending_op, pending_number, FLASH_OK) &&
           !flash_progress_end_pending(pair.progress, pending_op, pending_number + 1, FLASH_OK),
       "which is done once, and no other piece is");
    pthread_mutex_unlock(&pair.progress->lock);
    for (int k = 0; k < 100; k++) {
        flash_progress_poll(pair.progress, complete);
    }
    ok(completed == before + 1 && latest_status == FLASH_OK, "and ends its operation");
    ok(tear_down(&pair), "of which nothing is left over");
}

static unsigned consumed, consumed_locked;

static int consume(void *arg, const flash_piece_t *piece)
{
    (void) arg;
    (void) piece;
    consumed++;
    consumed_locked += is_locked();
    return FLASH_OK;
}

/* As in Open MPI's calls, which the callback may make. */
static void test_callbacks(void)
{
    pair_t pair = {.net = NULL};
    int before = completed;

    pair.consume = consume;
    set_up(&pair);
    shown = &pair;
    start(&pair, 0);
    while (completed == before) {
        flash_progress_poll(pair.progress, complete);
        flash_engine_progress(pair.engines[1]);
    }
    ok(consumed == RANKS && consumed_locked == 0, "callbacks are made without the lock");
    ok(tear_down(&pair), "and all else with it");
}

static atomic_uint apart;

static int consume_apart(void *arg, const flash_piece_t *piece)
{
    (void) arg;
    (void) piece;
    atomic_fetch_add_explicit(&apart, 1, memory_order_relaxed);
    return FLASH_OK;
}

static bool is_consumed(pair_t *pair)
{
    flash_progress_poll(pair->progress, complete);
    flash_engine_progress(pair->engines[1]);
    return completed > 0;
}

/* In the thread that is there for them. */
static void test_callbacks_apart(void)
{
    pair_t pair = {.net = NULL};
    flash_op_params_t params;

    set_up(&pair);
    flash_progress_start_caller(pair.progress);
    params = params_of(&pair, 0, 0);
    params.consume = consume_apart;
    params.apart = true;
    shown = &pair;
    completed = 0;
    flash_progress_start_op(pair.progress, &params);
    start_there(&pair, 0);
    ok(comes_true(is_consumed, &pair) &&
           atomic_load_explicit(&apart, memory_order_relaxed) == RANKS,
       "a piece that is there wakes the thread for callbacks");
    ok(tear_down(&pair), "and leaves nothing over");
}

int main(void)
{
    pair_t pair = {.net = NULL};

    set_up(&pair);
    start(&pair, 0);
    ok(poll_is(&pair, true, 0), "a poll moves what is under way");
    move_all(&pair);
    ok(poll_is(&pair, false, 1) && pair.blocks[0][0][1] == 'b',
       "what has ended is reported, and nothing else done");

    start(&pair, 0);
    move_all(&pair);
    start(&pair, 1);
    ok(poll_is(&pair, true, 1), "what is still under way is moved all the same");
    move_all(&pair);
    ok(poll_is(&pair, false, 1) && pair.blocks[0][1][1] == 'b', "until it has ended, too");
    ok(tear_down(&pair), "nothing is left over");
    test_callbacks();
    test_callbacks_apart();
    test_wake_ups();
    test_vain_events();
    test_busy_transport();
    test_busy_before(begin_polling, end_polling, "stood by");
    test_busy_before(leave_unattended, attend, "left all unattended");
    test_unattended();
    test_no_callback_after_failure();
    test_end_without_lock();
    test_elsewhere();
    return tap_done();
}
