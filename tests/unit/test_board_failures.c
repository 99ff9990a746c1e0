/*
 * test_board_failures.c: boards: ranks that refuse, disagree or go: the others are told, and the next operation is
 * as if nothing had been.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <stdlib.h>

#include "board_rig.h"
#include "tap.h"

enum { N = 3 };

typedef struct trio {
    flash_board_side_t *memory;
    flash_board_t *boards[N];
    board_call_t calls[N];
    board_plan_t plan;
} trio_t;

static void set_up(trio_t *trio, flash_kind_t kind, size_t count)
{
    flash_board_side_t *sides[N];

    *trio = (trio_t){.memory = board_sides(N), .plan = {.kind = kind, .equal = true, .seed = 5}};
    for (uint32_t rank = 0; rank < N; rank++) {
        sides[rank] = &trio->memory[rank];
        trio->plan.counts[rank] = count;
        trio->plan.displs[rank] = (ptrdiff_t) (rank * count);
    }
    for (uint32_t rank = 0; rank < N; rank++) {
        trio->boards[rank] = flash_board_create(N, rank, sides);
    }
}

static void tear_down(trio_t *trio)
{
    for (uint32_t rank = 0; rank < N; rank++) {
        flash_board_destroy(trio->boards[rank]);
        board_free_call(&trio->calls[rank]);
    }
    free(trio->memory);
}

static flash_op_params_t begin(trio_t *trio, uint32_t rank)
{
    board_free_call(&trio->calls[rank]);
    return board_params(&trio->calls[rank], &trio->plan, N, rank);
}

static void start(trio_t *trio, uint32_t rank, const flash_op_params_t *params)
{
    flash_board_start(trio->boards[rank], &trio->calls[rank].op, params);
}

static bool finish(trio_t *trio, uint32_t ranks)
{
    bool busy = true;

    for (int k = 0; k < 1000 && busy; k++) {
        busy = false;
        for (uint32_t rank = 0; rank < ranks; rank++) {
            flash_board_progress(trio->boards[rank]);
            board_collect(trio->boards[rank]);
            busy |= flash_board_is_busy(trio->boards[rank]);
        }
    }
    return !busy;
}

static bool all_start_and_end(trio_t *trio)
{
    bool right;

    for (uint32_t rank = 0; rank < N; rank++) {
        flash_op_params_t params = begin(trio, rank);

        start(trio, rank, &params);
    }
    right = finish(trio, N);
    for (uint32_t rank = 0; rank < N; rank++) {
        right &= board_is_right(&trio->calls[rank], N, rank);
    }
    return right;
}

static void test_refusal(flash_kind_t kind, size_t count)
{
    trio_t trio;
    flash_op_params_t params;
    const flash_board_op_t *ops[N];
    bool ended;

    set_up(&trio, kind, count);
    for (uint32_t rank = 0; rank < N; rank++) {
        params = begin(&trio, rank);
        params.element = rank == 1 ? 0 : params.element;
        start(&trio, rank, &params);
        ops[rank] = &trio.calls[rank].op;
    }
    ended = finish(&trio, N);
    ok(ended && ops[0]->status == FLASH_ERR_PEER && ops[0]->blamed == 1 &&
           ops[2]->status == FLASH_ERR_PEER && ops[2]->blamed == 1 &&
           ops[1]->status == FLASH_ERR_NO_MEMORY,
       "kind %d of %zu elements: a refusal is told", (int) kind, count);
    for (int round = 0; round < 3; round++) {
        ended &= flash_board_refuse(trio.boards[2], &params);
    }
    for (int round = 0; round < 3; round++) {
        for (uint32_t rank = 0; rank < 2; rank++) {
            params = begin(&trio, rank);
            start(&trio, rank, &params);
        }
        finish(&trio, N); /* the last rank has more to refuse */
        ended &= trio.calls[0].ended && trio.calls[1].ended;
        ended &= ops[0]->status == FLASH_ERR_PEER && ops[0]->blamed == 2;
    }
    ok(ended && finish(&trio, N), "and so are several in a row without an operation");
    ok(all_start_and_end(&trio), "the next operation is as if nothing had been");
    tear_down(&trio);
}

static void test_spoiled(void)
{
    trio_t trio;
    bool ended;

    set_up(&trio, FLASH_ALLGATHER, 10000);
    for (uint32_t rank = 0; rank < N; rank++) {
        flash_op_params_t params = begin(&trio, rank);

        params.spoiled = rank == 0;
        start(&trio, rank, &params);
    }
    ended = finish(&trio, N);
    ok(ended && trio.calls[0].op.status == FLASH_OK && trio.calls[1].op.status == FLASH_ERR_PEER &&
           trio.calls[2].op.blamed == 0,
       "a spoiled block is told");
    tear_down(&trio);
}

/* Rank 2 has other sizes, of one round or of several. */
static void test_disagreement(flash_kind_t kind, size_t count, size_t other)
{
    trio_t trio;
    board_plan_t others;
    board_call_t ignored;
    flash_op_params_t params;
    flash_board_op_t behind[N]; /* by two ranks started at once, so that its rounds come next */
    bool ended;

    set_up(&trio, kind, count);
    others = trio.plan;
    for (uint32_t rank = 0; rank < N; rank++) {
        others.counts[rank] = other;
        others.displs[rank] = (ptrdiff_t) (rank * other);
    }
    for (uint32_t rank = 0; rank < 2; rank++) {
        params = begin(&trio, rank);
        start(&trio, rank, &params);
        params.element = 0;
        params.user = &ignored;
        flash_board_start(trio.boards[rank], &behind[rank], &params);
        flash_board_progress(trio.boards[rank]);
    }
    params = board_params(&trio.calls[2], &others, N, 2);
    start(&trio, 2, &params);
    params.element = 0;
    params.user = &ignored;
    flash_board_start(trio.boards[2], &behind[2], &params);
    ended = finish(&trio, N);
    for (uint32_t rank = 0; rank < N; rank++) {
        ended &= trio.calls[rank].op.status == FLASH_ERR_TRUNCATED;
    }
    ok(ended, "kind %d: %zu elements or %zu: all are told", (int) kind, count, other);
    ok(all_start_and_end(&trio), "the next operation is as if nothing had been");
    tear_down(&trio);
}

/* Ranks that begin an operation, which takes some rounds, and do what they can. */
static void begin_some(trio_t *trio, uint32_t ranks)
{
    for (uint32_t k = 0; k < 10; k++) {
        for (uint32_t rank = 0; rank < N; rank++) {
            if ((ranks >> rank & 1) != 0) {
                if (k == 0) {
                    flash_op_params_t params = begin(trio, rank);

                    start(trio, rank, &params);
                }
                flash_board_progress(trio->boards[rank]);
            }
        }
    }
}

static bool watch(trio_t *trio, uint32_t rank, flash_silence_t *silence)
{
    uint64_t rounds;

    return flash_board_watch(trio->boards[rank], silence, &rounds) && rounds == 10;
}

static bool ended_by_loss(trio_t *trio, uint32_t rank, uint32_t lost)
{
    board_collect(trio->boards[rank]);
    return trio->calls[rank].ended && trio->calls[rank].op.status == FLASH_ERR_LOST &&
           trio->calls[rank].op.blamed == lost && !flash_board_is_left(trio->boards[rank]);
}

/* Rank 2 goes: before it takes part, or after it has posted what it could and taken nothing. */
static void test_lost(bool posts)
{
    trio_t trio;
    flash_silence_t silence;
    flash_op_params_t params;

    set_up(&trio, FLASH_ALLGATHER, 10 * FLASH_BOARD_SLOT_BYTES / sizeof(uint64_t));
    if (posts) {
        begin_some(&trio, 1u << 2);
    }
    begin_some(&trio, 3);
    watch(&trio, 0, &silence);
    watch(&trio, 1, &silence);
    ok(watch(&trio, 0, &silence) && silence.watches == 1 && silence.rank == (posts ? 1 : 2) &&
           !silence.sending,
       "posts %d: the watch finds whom the others wait for", posts);
    flash_board_lose(trio.boards[1], 2);
    ok(ended_by_loss(&trio, 1, 2), "who loses it ends with an error");
    ok(!watch(&trio, 0, &silence) && ended_by_loss(&trio, 0, 2), "and so does who waits for that");
    board_free_call(&trio.calls[0]);
    params = begin(&trio, 0);
    start(&trio, 0, &params);
    ok(ended_by_loss(&trio, 0, 2), "and who comes later");
    tear_down(&trio);
}

/* What others do not take part in yet keeps from its end what comes behind. */
static void test_refusal_watched(void)
{
    trio_t trio;
    flash_silence_t silence;
    flash_op_params_t params;
    bool waits = false;

    set_up(&trio, FLASH_ALLGATHER, 10 * FLASH_BOARD_SLOT_BYTES / sizeof(uint64_t));
    params = begin(&trio, 0);
    flash_board_refuse(trio.boards[0], &params);
    flash_board_progress(trio.boards[0]);
    for (int k = 0; k < 5; k++) {
        waits |= flash_board_watch(trio.boards[0], &silence, &(uint64_t){0});
    }
    ok(!waits, "a refusal by itself waits for nobody");
    begin_some(&trio, 1);
    waits = flash_board_watch(trio.boards[0], &silence, &(uint64_t){0});
    ok(silence.watches <= 2, "who comes behind it has only begun to wait");
    waits |= flash_board_watch(trio.boards[0], &silence, &(uint64_t){0});
    ok(waits && silence.watches > 0 && silence.user == &trio.calls[0] && silence.rank != 0,
       "the watch finds whom an operation behind a refusal waits for");
    flash_board_lose(trio.boards[0], silence.rank);
    ok(ended_by_loss(&trio, 0, silence.rank), "which ends when that one goes");
    tear_down(&trio);
}

/* It was only late: it finds who has given it up. */
static void test_given_up(void)
{
    trio_t trio;
    flash_silence_t silence;

    set_up(&trio, FLASH_REDUCE_SCATTER, 10 * FLASH_BOARD_SLOT_BYTES / sizeof(uint64_t) / 2);
    begin_some(&trio, 3);
    flash_board_lose(trio.boards[0], 2);
    begin_some(&trio, 1u << 2);
    watch(&trio, 2, &silence);
    ok(!watch(&trio, 2, &silence) && ended_by_loss(&trio, 2, 0), "who was given up is told");
    tear_down(&trio);
}

/* Blocks of other lengths, as many elements in all. */
static void test_other_counts(void)
{
    trio_t trio;
    bool told = true;

    set_up(&trio, FLASH_REDUCE_SCATTER, 4);
    trio.plan.equal = false;
    for (uint32_t rank = 0; rank < N; rank++) {
        flash_op_params_t params = begin(&trio, rank);

        if (rank == 1) {
            trio.calls[rank].counts[0] = 3;
            trio.calls[rank].counts[2] = 5;
        }
        start(&trio, rank, &params);
    }
    told = finish(&trio, N);
    for (uint32_t rank = 0; rank < N; rank++) {
        told &= trio.calls[rank].op.status == FLASH_ERR_TRUNCATED;
    }
    ok(told, "blocks of other lengths, and as many elements: all are told");
    tear_down(&trio);
}

int main(void)
{
    test_refusal(FLASH_ALLGATHER, 3);
    test_refusal(FLASH_REDUCE_SCATTER, 100000);
    test_spoiled();
    test_disagreement(FLASH_ALLGATHER, 3, 4);
    test_disagreement(FLASH_ALLGATHER, 3, 100000);
    test_disagreement(FLASH_REDUCE_SCATTER, 100000, 3);
    test_other_counts();
    test_lost(false);
    test_lost(true);
    test_refusal_watched();
    test_given_up();
    ok(flash_board_fits(2, FLASH_REDUCE_SCATTER, FLASH_BOARD_SLOT_BYTES) &&
           !flash_board_fits(3, FLASH_REDUCE_SCATTER, FLASH_BOARD_SLOT_BYTES),
       "what does not fit into a slot");
    return tap_done();
}
