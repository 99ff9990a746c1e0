/*
 * test_engine_sends.c: which messages of a rank that only sends wait for the receiver's word: until it
 * has begun, and where it is behind.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "engine/flash_engine.h"
#include "fake_transport.h"
#include "tap.h"

/* As flash_slot_word.c has them: messages of a block that wait, at first, and of each group all but one. */
enum { FIRST = 2, OTHERS_OF_GROUP = 3 };
enum { RANKS = 2, SENDER = 0, RECEIVER = 1, SENDS = 8, SHORT = 64, LONG = 600 << 10 };

/* Rank 0 sends a block to rank 1, in so many segments of that many bytes. */
typedef struct pair {
    flash_kind_t kind;
    size_t segments, segment;
    fake_net_t *net;
    flash_engine_t *engines[RANKS];
    flash_flow_t flows[RANKS];
    flash_pair_t exchanges[RANKS];
    char *blocks[RANKS]; /* of the receiver of a gather: both ranks' */
    bool ended[RANKS], tails[RANKS];
} pair_t;

static size_t bytes_of(const pair_t *pair)
{
    return pair->segments * pair->segment;
}

static pair_t set_up(flash_kind_t kind, size_t segments, size_t segment)
{
    static const fake_options_t options = {
        .rendezvous = 100, .unordered = FLASH_TAG_MARKS, .leaving = true};
    pair_t pair = {.kind = kind,
                   .segments = segments,
                   .segment = segment,
                   .net = fake_net_create(RANKS, 1, &options)};

    for (uint32_t rank = 0; rank < RANKS; rank++) {
        pair.engines[rank] = flash_engine_create(fake_net_transport(pair.net, rank));
        pair.blocks[rank] = calloc(RANKS, bytes_of(&pair));
        must(pair.engines[rank] != NULL && pair.blocks[rank] != NULL, "memory");
        flash_flow_init(&pair.flows[rank]);
    }
    memset(pair.blocks[SENDER], 'b', bytes_of(&pair));
    return pair;
}

/* A broadcast's root is the sender, and a gather's the receiver. */
static void start(pair_t *pair, uint32_t rank)
{
    flash_peer_t *other = fake_net_peer(pair->net, rank, 1 - rank);
    bool gathers = pair->kind == FLASH_GATHER;
    flash_op_params_t params = {.schedule = {.kind = pair->kind,
                                             .ring = {.nranks = RANKS, .place = rank},
                                             .blocks = {.count = bytes_of(pair)},
                                             .from_root = gathers ? 1 - rank : rank,
                                             .segment_elements = pair->segment,
                                             .pieces = 1,
                                             .row = 1},
                                .element = 1,
                                .left = other,
                                .right = other,
                                .recv_tag = UINT64_C(1) << FLASH_TAG_SHIFT,
                                .send_tag = UINT64_C(1) << FLASH_TAG_SHIFT,
                                .pairs = &pair->exchanges[rank],
                                .sends = SENDS,
                                .flow = &pair->flows[rank],
                                .depth = rank == SENDER ? (uint32_t) pair->segments : FIRST,
                                .input = pair->blocks[rank],
                                .output = pair->blocks[rank],
                                .user = &pair->ended[rank]};
    flash_op_t *op;

    pair->exchanges[rank] = (flash_pair_t){.left = other, .right = other};
    if (gathers && rank == RECEIVER) { /* in place */
        params.input = pair->blocks[rank] + bytes_of(pair);
    }
    must(flash_op_create(pair->engines[rank], &params, &op) == FLASH_OK, "an operation");
    flash_op_start(op);
}

/* Whether something has happened on the rank. */
static bool move(pair_t *pair, uint32_t rank)
{
    bool moved = flash_engine_progress(pair->engines[rank]) > 0;
    flash_op_t *op;
    flash_work_t work;

    while (flash_engine_take(pair->engines[rank], FLASH_WORK_COPY, &work)) {
        flash_engine_finish(&work, flash_work_run(&work));
        moved = true;
    }
    while ((op = flash_engine_completed(pair->engines[rank])) != NULL) {
        must(flash_op_status(op) == FLASH_OK, "success");
        *(bool *) flash_op_user(op) = true;
        pair->tails[rank] = flash_op_has_tail(op);
        flash_op_destroy(op);
    }
    return moved;
}

/* As far as it gets while the other one does nothing. */
static void move_alone(pair_t *pair, uint32_t rank)
{
    while (move(pair, rank)) {
    }
}

/* Until the receiver has posted that many receives. */
static void let_receive(pair_t *pair, uint64_t receives)
{
    while (fake_net_stats(pair->net, RECEIVER).receives < receives) {
        must(move(pair, RECEIVER), "what was sent arrives");
    }
}

static bool ends_well(pair_t *pair)
{
    bool well, moved;

    do {
        moved = move(pair, SENDER);
        moved = move(pair, RECEIVER) || moved;
    } while (moved);
    well = pair->ended[SENDER] && pair->ended[RECEIVER] && fake_net_leftovers(pair->net) == 0 &&
           pair->flows[SENDER].bytes == 0 &&
           memcmp(pair->blocks[SENDER], pair->blocks[RECEIVER], bytes_of(pair)) == 0;
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        flash_engine_destroy(pair->engines[rank]);
        free(pair->blocks[rank]);
    }
    fake_net_destroy(pair->net);
    return well;
}

static uint64_t sent(const pair_t *pair)
{
    return fake_net_stats(pair->net, SENDER).messages;
}

/* Five segments, of which the last one would be the first of a group. */
static void test_leaves(flash_kind_t kind, const char *name)
{
    enum { SEGMENTS = 5 };
    pair_t pair = set_up(kind, SEGMENTS, SHORT);

    start(&pair, SENDER);
    move_alone(&pair, SENDER);
    ok(sent(&pair) == FIRST && fake_net_piled(pair.net, RECEIVER) == 0,
       "%s: until the receiver has begun, two messages are sent, which wait for it", name);
    start(&pair, RECEIVER);
    let_receive(&pair, 2 * FIRST);
    move_alone(&pair, SENDER);
    ok(sent(&pair) == SEGMENTS && pair.ended[SENDER] && !pair.ended[RECEIVER],
       "%s: then the others leave, and the sender is done before the receiver", name);
    ok(pair.tails[SENDER] && flash_engine_take_ended(pair.engines[SENDER]) &&
           !flash_engine_take_ended(pair.engines[SENDER]),
       "%s: some of it may still be on its way", name);
    ok(ends_well(&pair) && !pair.tails[RECEIVER], "%s: all arrives", name);
}

/* All messages have been matched: there is nothing to be seen out. */
static void test_none_leaves(void)
{
    pair_t pair = set_up(FLASH_BCAST, FIRST, SHORT);

    start(&pair, SENDER);
    start(&pair, RECEIVER);
    ok(!flash_engine_is_idle(pair.engines[SENDER]), "an operation runs");
    ok(ends_well(&pair) && !pair.tails[SENDER], "two messages: none leaves");
}

static void test_behind(void)
{
    enum { SEGMENTS = 64 };
    pair_t pair = set_up(FLASH_BCAST, SEGMENTS, SHORT);
    size_t piled;

    start(&pair, SENDER);
    start(&pair, RECEIVER);
    move_alone(&pair, SENDER);
    let_receive(&pair, 2 * FIRST);
    move_alone(&pair, SENDER);
    piled = fake_net_piled(pair.net, RECEIVER);
    ok(piled > 0 && piled <= SENDS * OTHERS_OF_GROUP && sent(&pair) < SEGMENTS,
       "the receiver is behind: %zu messages of %d lie there", piled, SEGMENTS);
    ok(pair.flows[SENDER].bytes >= piled * SHORT && !pair.ended[SENDER],
       "the flow counts what lies there: %zu bytes", pair.flows[SENDER].bytes);
    ok(ends_well(&pair), "all arrives");
}

/* Of segments that are longer than half a group each is one of its own. */
static void test_long(void)
{
    enum { SEGMENTS = 4 };
    pair_t pair = set_up(FLASH_BCAST, SEGMENTS, LONG);

    start(&pair, SENDER);
    start(&pair, RECEIVER);
    move_alone(&pair, SENDER);
    let_receive(&pair, 2 * FIRST);
    move_alone(&pair, SENDER);
    ok(sent(&pair) == SEGMENTS && fake_net_piled(pair.net, RECEIVER) == 1 && !pair.ended[SENDER],
       "of long messages the last one alone leaves");
    ok(ends_well(&pair), "all arrives");
}

int main(void)
{
    test_leaves(FLASH_BCAST, "broadcast");
    test_leaves(FLASH_GATHER, "gather");
    test_none_leaves();
    test_behind();
    test_long();
    return tap_done();
}
