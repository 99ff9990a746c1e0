/*
 * progress_pair.c: see progress_pair.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "progress_pair.h"

#include <string.h>
#include <time.h>

static flash_transport_ops_t counting; /* rank 0's transport, */
static unsigned asked;                 /* and how often it was to move data */
static const flash_transport_ops_t *asks;

/*
 * The lock; NULL: there is none yet. Whoever has it, or sees another thread have it, cannot take
 * it.
 */
static pthread_mutex_t *guard;
static bool unguarded; /* the transport was called without it */

bool is_locked(void)
{
    bool locked = pthread_mutex_trylock(guard) != 0;

    if (!locked) {
        pthread_mutex_unlock(guard);
    }
    return locked;
}

void see_guard(void)
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

flash_op_params_t params_of(pair_t *pair, uint32_t rank, unsigned operation)
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
                               .no_wakeup = rank == 0 && pair->no_wakeup,
                               .user = pair};
}

flash_op_params_t bcast_of(pair_t *pair, uint32_t rank, side_t *side)
{
    flash_op_params_t params = params_of(pair, rank, 0);

    memset(side->block, rank == 0 ? 'b' : 0, SEGMENTS);
    flash_flow_init(&side->flow);
    side->exchange = (flash_pair_t){.left = params.left, .right = params.right};
    params.schedule.kind = FLASH_BCAST;
    params.schedule.from_root = rank;
    params.schedule.blocks.count = SEGMENTS;
    params.pairs = &side->exchange;
    params.sends = params.depth = SEGMENTS;
    params.flow = &side->flow;
    params.input = params.output = side->block;
    params.no_wakeup = true;
    return params;
}

void start_here(pair_t *pair, unsigned operation)
{
    flash_op_params_t params = params_of(pair, 0, operation);

    flash_progress_start_op(pair->progress, &params);
}

void start_there(pair_t *pair, unsigned operation)
{
    flash_op_params_t params = params_of(pair, 1, operation);
    flash_op_t *op;

    flash_op_create(pair->engines[1], &params, &op);
    flash_op_start(op);
}

void start(pair_t *pair, unsigned operation)
{
    start_here(pair, operation);
    start_there(pair, operation);
}

static double settled_ms; /* when the transport was first asked for that; 0: it was not */

static bool settled(flash_transport_t *transport)
{
    settled_ms = settled_ms > 0 ? settled_ms : now_ms();
    return asks->settled(transport);
}

double first_settled_ms(pair_t *pair)
{
    double first;

    flash_progress_lock(pair->progress);
    first = settled_ms;
    flash_progress_unlock(pair->progress);
    return first;
}

void set_up(pair_t *pair)
{
    static const fake_options_t plain = {.burst = 1, .leaving = true};
    flash_transport_t *transport;

    pair->net = fake_net_create(RANKS, 1, &plain);
    transport = fake_net_transport(pair->net, 0);
    asks = transport->ops;
    counting = *asks;
    counting.progress = ask;
    counting.reserve = reserve;
    counting.unreserve = unreserve;
    counting.settled = settled;
    settled_ms = 0;
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

void set_arm(int (*arm)(flash_transport_t *transport))
{
    counting.arm = arm;
}

bool tear_down(pair_t *pair)
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

void move_here(pair_t *pair)
{
    flash_progress_lock(pair->progress);
    flash_engine_progress(pair->engines[0]);
    flash_progress_unlock(pair->progress);
}

void move_all(pair_t *pair)
{
    while (flash_engine_active(pair->engines[0]) + flash_engine_active(pair->engines[1]) > 0) {
        move_here(pair);
        flash_engine_progress(pair->engines[1]);
    }
}

int completed, latest_status;
double completed_ms;
pair_t *shown;

void complete(flash_op_t *op)
{
    completed++;
    completed_ms = now_ms();
    latest_status = flash_op_status(op);
    flash_progress_destroy_op(shown->progress, op);
}

bool poll_is(pair_t *pair, bool moves, int reports)
{
    int before = completed;

    asked = 0;
    shown = pair;
    flash_progress_poll(pair->progress, complete);
    return (asked > 0) == moves && completed - before == reports;
}

bool has_asked(pair_t *pair)
{
    return first_settled_ms(pair) > 0;
}

bool is_moved_asleep(pair_t *pair)
{
    bool slept = false;

    shown = pair;
    while (flash_progress_busy(pair->progress)) {
        slept = flash_progress_wakeups(pair->progress) == 0;
        flash_progress_lock(pair->progress);
        flash_engine_progress(pair->engines[1]);
        flash_progress_unlock(pair->progress);
        flash_progress_poll(pair->progress, complete);
    }
    return slept;
}

double now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return 1e3 * (double) now.tv_sec + 1e-6 * (double) now.tv_nsec;
}

void sleep_a_while(void)
{
    static const struct timespec a_while = {.tv_nsec = 10000000};

    nanosleep(&a_while, NULL);
}

bool comes_true(bool (*what)(pair_t *pair), pair_t *pair)
{
    enum { TOO_LONG_MS = 20000 };
    double began = now_ms();

    while (!what(pair) && now_ms() - began < TOO_LONG_MS) {
        sleep_a_while();
    }
    return what(pair);
}
