/*
 * test_shm_failures.c: shared-memory channels: ranks that refuse, disagree or go: the others are
 * told, and the next operation is as if nothing had been.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <stdlib.h>

#include "shm_rig.h"
#include "tap.h"

enum { N = 3 };

typedef struct trio {
    flash_shm_side_t *memory;
    flash_shm_t *shms[N];
    shm_call_t calls[N];
    shm_plan_t plan;
    size_t read_above; /* bytes; SIZE_MAX: nothing is read */
} trio_t;

static void set_up(trio_t *trio, flash_kind_t kind, size_t count)
{
    flash_shm_side_t *sides[N];

    *trio = (trio_t){.memory = shm_sides(N), .plan = {.kind = kind, .equal = true, .seed = 5}};
    for (uint32_t rank = 0; rank < N; rank++) {
        sides[rank] = &trio->memory[rank];
        trio->plan.counts[rank] = count;
        trio->plan.displs[rank] = (ptrdiff_t) (rank * count);
    }
    for (uint32_t rank = 0; rank < N; rank++) {
        trio->shms[rank] = flash_shm_create(N, rank, sides);
    }
}

static void tear_down(trio_t *trio)
{
    for (uint32_t rank = 0; rank < N; rank++) {
        flash_shm_destroy(trio->shms[rank]);
        shm_free_call(&trio->calls[rank]);
    }
    free(trio->memory);
}

static flash_op_params_t begin(trio_t *trio, uint32_t rank)
{
    shm_free_call(&trio->calls[rank]);
    return shm_params(&trio->calls[rank], &trio->plan, N, rank);
}

static void start(trio_t *trio, uint32_t rank, const flash_op_params_t *params)
{
    flash_shm_start(trio->shms[rank], &trio->calls[rank].op, params, trio->read_above);
}

static bool finish(trio_t *trio, uint32_t ranks)
{
    bool busy = true;

    for (int k = 0; k < 1000 && busy; k++) {
        busy = false;
        for (uint32_t rank = 0; rank < ranks; rank++) {
            flash_shm_progress(trio->shms[rank]);
            shm_collect(trio->shms[rank]);
            busy |= flash_shm_is_busy(trio->shms[rank]);
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
        right &= shm_is_right(&trio->calls[rank], N, rank);
    }
    return right;
}

/* Allgathers of that trio are read. */
static void set_up_reading(trio_t *trio, size_t count)
{
    set_up(trio, FLASH_ALLGATHER, count);
    for (uint32_t rank = 0; rank < N; rank++) {
        flash_shm_read_by(trio->shms[rank], shm_read, NULL);
    }
    trio->read_above = 0;
}

static void test_refusal(flash_kind_t kind, size_t count, bool reads)
{
    trio_t trio;
    flash_op_params_t params;
    const flash_shm_op_t *ops[N];
    bool ended;

    (reads ? set_up_reading(&trio, count) : set_up(&trio, kind, count));
    for (uint32_t rank = 0; rank < N; rank++) {
        params = begin(&trio, rank);
        params.element = rank == 1 ? 0 : params.element;
        start(&trio, rank, &params);
        ops[rank] = &trio.calls[rank].op;
    }
    ended = finish(&trio, N);
    ok(ended && ops[0]->status == FLASH_ERR_PEER && ops[0]->failed_rank == 1 &&
           ops[2]->status == FLASH_ERR_PEER && ops[2]->failed_rank == 1 &&
           ops[1]->status == FLASH_ERR_NO_MEMORY,
       "kind %d of %zu elements, read %d: a refusal is told", (int) kind, count, reads);
    for (int round = 0; round < 3; round++) {
        ended &= flash_shm_refuse(trio.shms[2], &params);
    }
    for (int round = 0; round < 3; round++) {
        for (uint32_t rank = 0; rank < 2; rank++) {
            params = begin(&trio, rank);
            start(&trio, rank, &params);
        }
        finish(&trio, N); /* the last rank has more to refuse */
        ended &= trio.calls[0].ended && trio.calls[1].ended;
        ended &= ops[0]->status == FLASH_ERR_PEER && ops[0]->failed_rank == 2;
    }
    ok(ended && finish(&trio, N), "and so are several in a row without an operation");
    ok(all_start_and_end(&trio), "the next operation is as if nothing had been");
    tear_down(&trio);
}

static void test_poisoned(bool reads)
{
    trio_t trio;
    bool ended;

    (reads ? set_up_reading(&trio, 10000) : set_up(&trio, FLASH_ALLGATHER, 10000));
    for (uint32_t rank = 0; rank < N; rank++) {
        flash_op_params_t params = begin(&trio, rank);

        params.poisoned = rank == 0;
        start(&trio, rank, &params);
    }
    ended = finish(&trio, N);
    ok(ended && trio.calls[0].op.status == FLASH_OK && trio.calls[1].op.status == FLASH_ERR_PEER &&
           trio.calls[2].op.failed_rank == 0,
       "read %d: a poisoned block is told", reads);
    tear_down(&trio);
}

/* Rank 2 has other sizes, of one round or of several. */
static void test_disagreement(flash_kind_t kind, size_t count, size_t other, size_t above)
{
    trio_t trio;
    shm_plan_t others;
    shm_call_t ignored;
    flash_op_params_t params;
    flash_shm_op_t behind[N]; /* by two ranks started at once, so that its rounds come next */
    bool ended;

    set_up(&trio, kind, count);
    for (uint32_t rank = 0; rank < N; rank++) {
        flash_shm_read_by(trio.shms[rank], shm_read, NULL);
    }
    trio.read_above = above;
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
        flash_shm_start(trio.shms[rank], &behind[rank], &params, above);
        flash_shm_progress(trio.shms[rank]);
    }
    params = shm_params(&trio.calls[2], &others, N, 2);
    start(&trio, 2, &params);
    params.element = 0;
    params.user = &ignored;
    flash_shm_start(trio.shms[2], &behind[2], &params, above);
    ended = finish(&trio, N);
    for (uint32_t rank = 0; rank < N; rank++) {
        ended &= trio.calls[rank].op.status == FLASH_ERR_TRUNCATED;
    }
    ok(ended, "kind %d: %zu elements or %zu, read above %zu: all are told", (int) kind, count,
       other, above);
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
                flash_shm_progress(trio->shms[rank]);
            }
        }
    }
}

static bool watch(trio_t *trio, uint32_t rank, flash_silence_t *silence)
{
    return flash_shm_watch(trio->shms[rank], silence) && silence->steps == 10;
}

static bool ended_by_loss(trio_t *trio, uint32_t rank, uint32_t lost)
{
    shm_collect(trio->shms[rank]);
    return trio->calls[rank].ended && trio->calls[rank].op.status == FLASH_ERR_LOST &&
           trio->calls[rank].op.failed_rank == lost && !flash_shm_is_left(trio->shms[rank]);
}

/* Rank 2 goes: before it takes part, or after it has posted what it could and taken nothing. */
static void test_lost(bool posts)
{
    trio_t trio;
    flash_silence_t silence;
    flash_op_params_t params;

    set_up(&trio, FLASH_ALLGATHER, 10 * FLASH_SHM_SLOT_BYTES / sizeof(uint64_t));
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
    ok(ended_by_loss(&trio, 1, 2), "who loses it ends with an error");
    ok(!watch(&trio, 0, &silence) && ended_by_loss(&trio, 0, 2), "and so does who waits for that");
    shm_free_call(&trio.calls[0]);
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

    set_up(&trio, FLASH_ALLGATHER, 10 * FLASH_SHM_SLOT_BYTES / sizeof(uint64_t));
    params = begin(&trio, 0);
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
    ok(ended_by_loss(&trio, 0, silence.rank), "which ends when that one goes");
    tear_down(&trio);
}

/* It was only late: it finds who has given it up. */
static void test_given_up(void)
{
    trio_t trio;
    flash_silence_t silence;

    set_up(&trio, FLASH_REDUCE_SCATTER, 10 * FLASH_SHM_SLOT_BYTES / sizeof(uint64_t) / 2);
    begin_some(&trio, 3);
    flash_shm_lose(trio.shms[0], 2);
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

/* ---------------------------------------------------------------------- reading */

static void start_all(trio_t *trio)
{
    for (uint32_t rank = 0; rank < N; rank++) {
        flash_op_params_t params = begin(trio, rank);

        start(trio, rank, &params);
    }
}

static void step(trio_t *trio, uint32_t rank, int times)
{
    for (int k = 0; k < times; k++) {
        flash_shm_progress(trio->shms[rank]);
        shm_collect(trio->shms[rank]);
    }
}

/* Its memory is its user's when the operation has ended. */
static void test_kept(uint32_t hidden)
{
    trio_t trio;
    bool early;

    set_up_reading(&trio, 2 * FLASH_SHM_READ_BYTES / sizeof(uint64_t) + 5);
    trio.plan.hidden = hidden;
    start_all(&trio);
    step(&trio, 2, 1); /* it posts, and there is nothing to read yet */
    for (int k = 0; k < 100; k++) {
        step(&trio, 0, 1);
        step(&trio, 1, 1);
    }
    early = trio.calls[0].ended || trio.calls[1].ended;
    ok(!early && finish(&trio, N) && shm_is_right(&trio.calls[2], N, 2),
       "hidden %u: nobody's operation ends before the last one has read its block", hidden);
    ok(all_start_and_end(&trio), "the next operation is as if nothing had been");
    tear_down(&trio);
}

static int fails_with;

static int fail_to_read(void *arg, uint32_t rank, void *to, const void *from, size_t bytes)
{
    (void) arg;
    (void) to;
    (void) from;
    (void) bytes;
    return rank == 2 ? fails_with : FLASH_OK;
}

/* Rank 0 finds that rank 2 has gone. */
static void test_gone(void)
{
    trio_t trio;
    bool ended;

    set_up_reading(&trio, 100);
    fails_with = FLASH_ERR_LOST;
    flash_shm_read_by(trio.shms[0], fail_to_read, NULL);
    start_all(&trio);
    ended = finish(&trio, N);
    ok(ended && trio.calls[0].op.status == FLASH_ERR_LOST && trio.calls[0].op.failed_rank == 2 &&
           shm_is_right(&trio.calls[1], N, 1) && shm_is_right(&trio.calls[2], N, 2),
       "who finds a rank gone ends with an error, the others well");
    tear_down(&trio);
}

/*
 * Ranks 0 and 1 ask rank 2 for its block, rank 1 when rank 0 has some pieces already: both get all, and neither a
 * piece that another is written over.
 */
static void test_shown_to_two(int late)
{
    trio_t trio;

    set_up_reading(&trio, 5 * FLASH_SHM_SLOT_BYTES / sizeof(uint64_t) + 3);
    fails_with = FLASH_ERR_UNREADABLE;
    flash_shm_read_by(trio.shms[0], fail_to_read, NULL);
    flash_shm_read_by(trio.shms[1], fail_to_read, NULL);
    start_all(&trio);
    for (int k = 0; k < late; k++) {
        step(&trio, 0, 1);
        step(&trio, 2, 1);
    }
    for (int k = 0; k < 20; k++) { /* it takes some, and then does nothing while the others go on */
        step(&trio, 2, 1);
        step(&trio, 0, 1);
        step(&trio, 1, k < 4);
    }
    ok(finish(&trio, N) && shm_is_right(&trio.calls[2], N, 2) &&
           trio.calls[0].op.status == FLASH_OK && trio.calls[1].op.status == FLASH_OK &&
           shm_has_block(&trio.calls[0], 2) && shm_has_block(&trio.calls[1], 2),
       "a block is shown to two, to one of them %d steps later", late);
    tear_down(&trio);
}

/* The last piece of a rank's block is read when that one has lost another, and its user writes there. */
static void test_read_too_late(void)
{
    trio_t trio;

    set_up_reading(&trio, 2 * FLASH_SHM_READ_BYTES / sizeof(uint64_t));
    start_all(&trio);
    step(&trio, 1, 1);
    step(&trio, 0, 1);
    flash_shm_lose(trio.shms[1], 2);
    trio.calls[1].input[0]++;
    step(&trio, 2, 100);
    step(&trio, 0, 100);
    finish(&trio, N);
    ok(trio.calls[0].op.status == FLASH_ERR_LOST && trio.calls[0].op.failed_rank == 2,
       "what is read of a rank that has lost another does not count");
    flash_shm_lose(trio.shms[0], 2);
    ok(ended_by_loss(&trio, 0, 2), "and the operation ends when that is found here");
    tear_down(&trio);
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
    test_kept(0);
    test_kept(3);
    test_gone();
    for (int late = 0; late < 20; late++) {
        test_shown_to_two(late);
    }
    test_read_too_late();
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
