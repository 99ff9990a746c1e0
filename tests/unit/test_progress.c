/*
 * test_progress.c: what an application's poll does: moves data, calls back, or reports what has
 * ended and leaves the rest for later; whom it calls; what is done with the lock, and what without.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "progress_pair.h"
#include "tap.h"

/* ------------------------------------------------------- as if there were a progress thread */

/* What the application does, without another thread in between. */
static void pretend_thread(pair_t *pair, bool there)
{
    atomic_store(&pair->progress->has_thread, there);
}

/*
 * The application moves operations without a wake-up: the thread's timer is set for 20 ms later, and
 * otherwise for sooner.
 */
static void test_no_wakeup(void)
{
    pair_t pair = {.net = NULL, .no_wakeup = true};
    double began;

    set_up(&pair);
    began = now_ms();
    pretend_thread(&pair, true);
    start(&pair, 0);
    shown = &pair;
    for (int before = completed; completed == before;) {
        flash_engine_progress(pair.engines[1]);
        flash_progress_poll(pair.progress, complete);
    }
    start(&pair, 1);
    move_all(&pair);
    ok(poll_is(&pair, false, 1) && 1e-6 * (double) pair.progress->timer.when >= began + 20,
       "operations without a wake-up do not call the thread, but for a look after them");
    pair.no_wakeup = false;
    start(&pair, 0);
    ok(1e-6 * (double) pair.progress->timer.when < now_ms() + 20, "one with a wake-up does");
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

static atomic_uint on_callback_thread;

static int consume_on_thread(void *arg, const flash_piece_t *piece)
{
    (void) arg;
    (void) piece;
    atomic_fetch_add_explicit(&on_callback_thread, 1, memory_order_relaxed);
    return FLASH_OK;
}

static bool is_consumed(pair_t *pair)
{
    flash_progress_poll(pair->progress, complete);
    flash_engine_progress(pair->engines[1]);
    return completed > 0;
}

/* In the thread that is there for them. */
static void test_callbacks_on_thread(void)
{
    pair_t pair = {.net = NULL};
    flash_op_params_t params;

    set_up(&pair);
    flash_progress_start_callback_thread(pair.progress);
    params = params_of(&pair, 0, 0);
    params.consume = consume_on_thread;
    params.on_callback_thread = true;
    shown = &pair;
    completed = 0;
    flash_progress_start_op(pair.progress, &params);
    start_there(&pair, 0);
    ok(comes_true(is_consumed, &pair) &&
           atomic_load_explicit(&on_callback_thread, memory_order_relaxed) == RANKS,
       "a piece that is there wakes the thread for callbacks");
    ok(tear_down(&pair), "and leaves nothing over");
}

/* How long the thread stands back from an application whose call has taken so long. */
static uint64_t stands_back(uint64_t taken)
{
    flash_timer_t timer = {.fd = -1};
    uint64_t time;

    must(flash_timer_init(&timer), "a timer");
    flash_timer_recall(&timer, false, taken);
    time = atomic_load(&timer.when) - atomic_load(&timer.called);
    flash_timer_fini(&timer);
    return time;
}

static void test_stand_back(void)
{
    ok(stands_back(0) == 50000 && stands_back(25000) == 50000,
       "the thread stands back for a moment from a call that starts an operation");
    ok(stands_back(200000) == 400000, "for longer from one that has taken long");
    ok(stands_back(500000) == 1000000 && stands_back(UINT64_MAX) == 1000000, "but not for ever");
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
    test_stand_back();
    test_callbacks();
    test_callbacks_on_thread();
    test_no_wakeup();
    test_no_callback_after_failure();
    test_end_without_lock();
    return tap_done();
}
