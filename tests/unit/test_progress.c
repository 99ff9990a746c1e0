/*
 * test_progress.c: what an application's poll does: moves data, or reports what has ended and leaves
 * the rest for later; and that the thread sleeps where looking is in vain.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "fake_transport.h"
#include "flash_progress.h"
#include "tap.h"

enum { RANKS = 2, OPERATIONS = 2 };

static flash_transport_ops_t counting; /* rank 0's transport, */
static unsigned asked;                 /* and how often it was to move data */
static const flash_transport_ops_t *asks;

static unsigned ask(flash_transport_t *transport)
{
    asked++;
    return asks->progress(transport);
}

/* Two ranks, whose allgathers are in place: there is nothing to do but to move them. */
typedef struct pair {
    fake_net_t *net;
    flash_engine_t *engines[RANKS];
    flash_progress_t *progress; /* rank 0's */
    char blocks[RANKS][OPERATIONS][RANKS];
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
    transport->ops = &counting;
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        pair->engines[rank] = flash_engine_create(fake_net_transport(pair->net, rank));
    }
    pair->progress = flash_progress_create(pair->engines[0], transport);
}

/* Whether nothing was left to do. */
static bool tear_down(pair_t *pair)
{
    const char *first;
    bool clean = fake_net_leftovers(pair->net) == 0 && fake_net_violations(pair->net, &first) == 0;
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

/* As the progress thread does: operations end, and nobody has heard of it. */
static void move_all(pair_t *pair)
{
    while (flash_engine_active(pair->engines[0]) + flash_engine_active(pair->engines[1]) > 0) {
        flash_progress_lock(pair->progress);
        flash_engine_progress(pair->engines[0]);
        flash_progress_unlock(pair->progress);
        flash_engine_progress(pair->engines[1]);
    }
}

static int completed;
static pair_t *shown;

static void complete(flash_op_t *op)
{
    completed++;
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

static int armed(flash_transport_t *transport)
{
    (void) transport;
    return FLASH_OK;
}

static int busy(flash_transport_t *transport)
{
    (void) transport;
    return FLASH_BUSY;
}

static double now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return 1e3 * (double) now.tv_sec + 1e-6 * (double) now.tv_nsec;
}

static const struct timespec a_while = {.tv_nsec = 10000000};

/* With an operation under way, and an event that lasts. */
static void start_thread(pair_t *pair, int (*arm)(flash_transport_t *transport))
{
    flash_transport_t *transport;

    set_up(pair);
    transport = fake_net_transport(pair->net, 0);
    counting.arm = arm;
    transport->event_fd = eventfd(1, EFD_CLOEXEC);
    flash_progress_start_thread(pair->progress, NULL, NULL);
    start_here(pair, 0);
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

    start_thread(&pair, armed);
    do {
        nanosleep(&a_while, NULL);
        wakeups = flash_progress_wakeups(pair.progress);
    } while (wakeups < ENOUGH);
    ok((double) wakeups < AT_FIRST + A_MILLISECOND * (now_ms() - began),
       "an event that nothing comes of: the thread looks again, and not all the time");
    ok(ends_well(&pair), "and it ends as any other");
}

/* A transport that says for long that it has something to do, and does nothing. */
static void test_busy_transport(void)
{
    enum { SOME = 5, TOO_LONG_MS = 60000 };
    double began = now_ms();
    pair_t pair = {.net = NULL};

    start_thread(&pair, busy);
    while (flash_progress_wakeups(pair.progress) < SOME && now_ms() - began < TOO_LONG_MS) {
        nanosleep(&a_while, NULL);
    }
    ok(flash_progress_wakeups(pair.progress) >= SOME,
       "a transport that is busy for ever: in the end, the thread sleeps between two looks");
    ok(ends_well(&pair), "and all ends as ever");
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
    test_vain_events();
    test_busy_transport();
    return tap_done();
}
