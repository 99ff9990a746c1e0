/*
 * test_shm_failures.c: shared-memory channels: ranks that refuse, disagree or go: the others are
 * told, and the next operation is as if nothing had been.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "shm_trio.h"
#include "tap.h"

static void test_refusal(flash_kind_t kind, size_t count, bool reads)
{
    trio_t trio;
    flash_op_params_t params;
    const flash_shm_op_t *ops[TRIO];
    bool ended;

    (reads ? trio_set_up_reading(&trio, count) : trio_set_up(&trio, kind, count));
    for (uint32_t rank = 0; rank < TRIO; rank++) {
        params = trio_begin(&trio, rank);
        params.element = rank == 1 ? 0 : params.element;
        trio_start(&trio, rank, &params);
        ops[rank] = &trio.calls[rank].op;
    }
    ended = trio_finish(&trio, TRIO);
    ok(ended && ops[0]->status == FLASH_ERR_PEER && ops[0]->failed_rank == 1 &&
           ops[2]->status == FLASH_ERR_PEER && ops[2]->failed_rank == 1 &&
           ops[1]->status == FLASH_ERR_NO_MEMORY,
       "kind %d of %zu elements, read %d: a refusal is told", (int) kind, count, reads);
    for (int round = 0; round < 3; round++) {
        ended &= flash_shm_refuse(trio.shms[2], &params);
    }
    for (int round = 0; round < 3; round++) {
        for (uint32_t rank = 0; rank < 2; rank++) {
            params = trio_begin(&trio, rank);
            trio_start(&trio, rank, &params);
        }
        trio_finish(&trio, TRIO); /* the last rank has more to refuse */
        ended &= trio.calls[0].ended && trio.calls[1].ended;
        ended &= ops[0]->status == FLASH_ERR_PEER && ops[0]->failed_rank == 2;
    }
    ok(ended && trio_finish(&trio, TRIO), "and so are several in a row without an operation");
    ok(trio_all_start_and_end(&trio), "the next operation is as if nothing had been");
    trio_tear_down(&trio);
}

static void test_poisoned(bool reads)
{
    trio_t trio;
    bool ended;

    (reads ? trio_set_up_reading(&trio, 10000) : trio_set_up(&trio, FLASH_ALLGATHER, 10000));
    for (uint32_t rank = 0; rank < TRIO; rank++) {
        flash_op_params_t params = trio_begin(&trio, rank);

        params.poisoned = rank == 0;
        trio_start(&trio, rank, &params);
    }
    ended = trio_finish(&trio, TRIO);
    ok(ended && trio.calls[0].op.status == FLASH_OK && trio.calls[1].op.status == FLASH_ERR_PEER &&
           trio.calls[2].op.failed_rank == 0,
       "read %d: a poisoned block is told", reads);
    trio_tear_down(&trio);
}

/* Rank 2 has other sizes, of one round or of several. */
static void test_disagreement(flash_kind_t kind, size_t count, size_t other, size_t above)
{
    trio_t trio;
    shm_plan_t others;
    shm_call_t ignored;
    flash_op_params_t params;
    flash_shm_op_t behind[TRIO]; /* by two ranks started at once, so that its rounds come next */
    bool ended;

    trio_set_up(&trio, kind, count);
    for (uint32_t rank = 0; rank < TRIO; rank++) {
        flash_shm_read_by(trio.shms[rank], shm_read, NULL);
    }
    trio.read_above = above;
    others = trio.plan;
    for (uint32_t rank = 0; rank < TRIO; rank++) {
        others.counts[rank] = other;
        others.displs[rank] = (ptrdiff_t) (rank * other);
    }
    for (uint32_t rank = 0; rank < 2; rank++) {
        params = trio_begin(&trio, rank);
        trio_start(&trio, rank, &params);
        params.element = 0;
        params.user = &ignored;
        flash_shm_start(trio.shms[rank], &behind[rank], &params, above);
        flash_shm_progress(trio.shms[rank]);
    }
    params = shm_params(&trio.calls[2], &others, TRIO, 2);
    trio_start(&trio, 2, &params);
    params.element = 0;
    params.user = &ignored;
    flash_shm_start(trio.shms[2], &behind[2], &params, above);
    ended = trio_finish(&trio, TRIO);
    for (uint32_t rank = 0; rank < TRIO; rank++) {
        ended &= trio.calls[rank].op.status == FLASH_ERR_TRUNCATED;
    }
    ok(ended, "kind %d: %zu elements or %zu, read above %zu: all are told", (int) kind, count,
       other, above);
    ok(trio_all_start_and_end(&trio), "the next operation is as if nothing had been");
    trio_tear_down(&trio);
}

/* Ranks that begin an operation, which takes some rounds, and do what they can. */
static void begin_some(trio_t *trio, uint32_t ranks)
{
    for (uint32_t k = 0; k < 10; k++) {
        for (uint32_t rank = 0; rank < TRIO; rank++) {
            if ((ranks >> rank & 1) != 0) {
                if (k == 0) {
                    flash_op_params_t params = trio_begin(trio, rank);

                    trio_start(trio, rank, &params);
                }
                flash_shm_progress(trio->shms[rank]);
            }
        }
    }
}

static bool watch(trio_t *trio, uint32_t rank, flash_silence_t *silence)
{
    return flash_shm_watch(trio->shms[rank], silence) && silence->steps == 10;
}

/* Rank 2 goes: before it takes part, or after it has posted what it could and taken nothing. */
static void test_lost(bool posts)
{
    trio_t trio;
    flash_silence_t silence;
    flash_op_params_t params;

    trio_set_up(&trio, FLASH_ALLGATHER, 10 * FLASH_SHM_SLOT_BYTES / sizeof(uint64_t));
    if (posts) {
        begin_some(&trio, 1u << 2);
    }
    begin_some(&trio, 3);
    watch(&trio, 0, &silence);
    watch(&trio, 1, &silence);
    ok(watch(&trio, 0, &silence) && silence.watches == 1 && silence.rank == (posts ? 1 : 2) &&
           !silence.sending,
       "posts %d: the watch finds whom the others wait for", posts);
    flash_shm_lose(trio.shms[1], 2);
    ok(trio_ended_by_loss(&trio, 1, 2), "who loses it ends with an error");
    ok(!watch(&trio, 0, &silence) && trio_ended_by_loss(&trio, 0, 2),
       "and so does who waits for that");
    shm_free_call(&trio.calls[0]);
    params = trio_begin(&trio, 0);
    trio_start(&trio, 0, &params);
    ok(trio_ended_by_loss(&trio, 0, 2), "and who comes later");
    trio_tear_down(&trio);
}

/* What others do not take part in yet keeps from its end what comes behind. */
static void test_refusal_watched(void)
{
    trio_t trio;
    flash_silence_t silence;
    flash_op_params_t params;
    bool waits = false;

    trio_set_up(&trio, FLASH_ALLGATHER, 10 * FLASH_SHM_SLOT_BYTES / sizeof(uint64_t));
    params = trio_begin(&trio, 0);
    flash_shm_refuse(trio.shms[0], &params);
    flash_shm_progress(trio.shms[0]);
    for (int k = 0; k < 5; k++) {
        waits |= flash_shm_watch(trio.shms[0], &silence);
    }
    ok(!waits, "a refusal by itself waits for nobody");
    begin_some(&trio, 1);
    waits = flash_shm_watch(trio.shms[0], &silence);
    ok(silence.watches <= 2, "who comes behind it has only begun to wait");
    waits |= flash_shm_watch(trio.shms[0], &silence);
    ok(waits && silence.watches > 0 && silence.user == &trio.calls[0] && silence.rank != 0,
       "the watch finds whom an operation behind a refusal waits for");
    flash_shm_lose(trio.shms[0], silence.rank);
    ok(trio_ended_by_loss(&trio, 0, silence.rank), "which ends when that one goes");
    trio_tear_down(&trio);
}

/* It was only late: it finds who has given it up. */
static void test_given_up(void)
{
    trio_t trio;
    flash_silence_t silence;

    trio_set_up(&trio, FLASH_REDUCE_SCATTER, 10 * FLASH_SHM_SLOT_BYTES / sizeof(uint64_t) / 2);
    begin_some(&trio, 3);
    flash_shm_lose(trio.shms[0], 2);
    begin_some(&trio, 1u << 2);
    watch(&trio, 2, &silence);
    ok(!watch(&trio, 2, &silence) && trio_ended_by_loss(&trio, 2, 0), "who was given up is told");
    trio_tear_down(&trio);
}

/* Blocks of other lengths, as many elements in all. */
static void test_other_counts(void)
{
    trio_t trio;
    bool told = true;

    trio_set_up(&trio, FLASH_REDUCE_SCATTER, 4);
    trio.plan.equal = false;
    for (uint32_t rank = 0; rank < TRIO; rank++) {
        flash_op_params_t params = trio_begin(&trio, rank);

        if (rank == 1) {
            trio.calls[rank].counts[0] = 3;
            trio.calls[rank].counts[2] = 5;
        }
        trio_start(&trio, rank, &params);
    }
    told = trio_finish(&trio, TRIO);
    for (uint32_t rank = 0; rank < TRIO; rank++) {
        told &= trio.calls[rank].op.status == FLASH_ERR_TRUNCATED;
    }
    ok(told, "blocks of other lengths, and as many elements: all are told");
    trio_tear_down(&trio);
}

int main(void)
{
    test_refusal(FLASH_ALLGATHER, 3, false);
    test_refusal(FLASH_ALLGATHER, 3, true);
    test_refusal(FLASH_REDUCE_SCATTER, 100000, false);
    test_poisoned(false);
    test_poisoned(true);
    test_disagreement(FLASH_ALLGATHER, 3, 4, SIZE_MAX);
    test_disagreement(FLASH_ALLGATHER, 3, 4, 0);
    test_disagreement(FLASH_ALLGATHER, 3, 100000, SIZE_MAX);
    test_disagreement(FLASH_ALLGATHER, 3, 100000, 1000);
    test_disagreement(FLASH_ALLGATHER, 100000, 3, 1000);
    test_disagreement(FLASH_REDUCE_SCATTER, 100000, 3, 1000);
    test_other_counts();
    test_lost(false);
    test_lost(true);
    test_refusal_watched();
    test_given_up();
    ok(flash_shm_fits(2, FLASH_REDUCE_SCATTER, FLASH_SHM_SLOT_BYTES) &&
           !flash_shm_fits(3, FLASH_REDUCE_SCATTER, FLASH_SHM_SLOT_BYTES),
       "what does not fit into a slot");
    return tap_done();
}
