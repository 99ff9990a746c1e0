/*
 * test_engine_sends.c: which messages of a broadcast wait for its receiver's word: until it has begun,
 * and where it is behind.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "engine/flash_engine.h"
#include "fake_transport.h"
#include "tap.h"

enum { RANKS = 2, SEGMENT = 64, MOST = 64, SENDS = 8 };
/* As flash_slot_word.c has them: at first, and of each group, of four, one. */
enum { FIRST = 2, OTHERS_OF_GROUP = 3 };

typedef struct pair {
    fake_net_t *net;
    flash_engine_t *engines[RANKS];
    char blocks[RANKS][MOST * SEGMENT];
    bool ended[RANKS];
} pair_t;

static void set_up(pair_t *pair)
{
    static const fake_options_t options = {
        .rendezvous = 100, .unordered = FLASH_TAG_MARKS, .leaving = true};

    *pair = (pair_t){.net = fake_net_create(RANKS, 1, &options)};
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        pair->engines[rank] = flash_engine_create(fake_net_transport(pair->net, rank));
        must(pair->engines[rank] != NULL, "an engine");
    }
    memset(pair->blocks[0], 'b', sizeof(pair->blocks[0]));
}

static void start(pair_t *pair, uint32_t rank, size_t segments)
{
    flash_peer_t *other = fake_net_peer(pair->net, rank, 1 - rank);
    flash_op_params_t params = {.schedule = {.kind = FLASH_BCAST,
                                             .ring = {.nranks = RANKS, .place = rank},
                                             .blocks = {.count = segments * SEGMENT},
                                             .from_root = rank,
                                             .segment_elements = SEGMENT,
                                             .pieces = 1,
                                             .row = 1},
                                .element = 1,
                                .left = other,
                                .right = other,
                                .recv_tag = UINT64_C(1) << FLASH_TAG_SHIFT,
                                .send_tag = UINT64_C(1) << FLASH_TAG_SHIFT,
                                .sends = SENDS,
                                .depth = rank == 0 ? MOST : 2,
                                .input = pair->blocks[rank],
                                .output = pair->blocks[rank],
                                .user = &pair->ended[rank]};
    flash_op_t *op;

    must(flash_op_create(pair->engines[rank], &params, &op) == FLASH_OK, "an operation");
    flash_op_start(op);
}

/* Whether something has happened on the rank. */
static bool move(pair_t *pair, uint32_t rank)
{
    bool moved = flash_engine_progress(pair->engines[rank]) > 0;
    flash_op_t *op;

    while ((op = flash_engine_completed(pair->engines[rank])) != NULL) {
        must(flash_op_status(op) == FLASH_OK, "success");
        *(bool *) flash_op_user(op) = true;
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

static bool ends_well(pair_t *pair, size_t segments)
{
    bool well;

    while (!pair->ended[0] || !pair->ended[1]) {
        if (!move(pair, 0) & !move(pair, 1)) {
            break;
        }
    }
    well = pair->ended[0] && pair->ended[1] && fake_net_leftovers(pair->net) == 0 &&
           memcmp(pair->blocks[0], pair->blocks[1], segments * SEGMENT) == 0;
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        flash_engine_destroy(pair->engines[rank]);
    }
    fake_net_destroy(pair->net);
    return well;
}

static uint64_t sent(const pair_t *pair)
{
    return fake_net_stats(pair->net, 0).messages;
}

static void test_tail(void)
{
    enum { SEGMENTS = 4 };
    pair_t pair;

    set_up(&pair);
    start(&pair, 0, SEGMENTS);
    move_alone(&pair, 0);
    ok(sent(&pair) == FIRST && fake_net_piled(pair.net, 1) == 0,
       "until the receiver has begun, the root sends two messages, which wait for it");
    start(&pair, 1, SEGMENTS);
    while (fake_net_stats(pair.net, 1).receives < SEGMENTS) {
        must(move(&pair, 1), "what was sent arrives");
    }
    move_alone(&pair, 0);
    ok(sent(&pair) == SEGMENTS && pair.ended[0] && !pair.ended[1],
       "then the others leave, and the root is done before the receiver");
    ok(ends_well(&pair, SEGMENTS), "all arrives");
}

static void test_behind(void)
{
    pair_t pair;
    size_t piled;

    set_up(&pair);
    start(&pair, 0, MOST);
    start(&pair, 1, MOST);
    while (fake_net_stats(pair.net, 1).receives < 2 * FIRST) {
        must(move(&pair, 1) | move(&pair, 0), "messages");
    }
    move_alone(&pair, 0);
    piled = fake_net_piled(pair.net, 1);
    ok(piled > 0 && piled <= SENDS * OTHERS_OF_GROUP && sent(&pair) < MOST && !pair.ended[0],
       "the receiver is behind: %zu messages of %d lie there", piled, MOST);
    ok(ends_well(&pair, MOST), "all arrives");
}

int main(void)
{
    test_tail();
    test_behind();
    return tap_done();
}
