/*
 * test_shm_reading.c: shared-memory channels whose ranks read each other's blocks where they are:
 * when a block is its user's again, and what becomes of ranks that cannot read, or read of one that
 * goes.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "shm_trio.h"
#include "tap.h"

static void start_all(trio_t *trio)
{
    for (uint32_t rank = 0; rank < TRIO; rank++) {
        flash_op_params_t params = trio_begin(trio, rank);

        trio_start(trio, rank, &params);
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

    trio_set_up_reading(&trio, 2 * FLASH_SHM_READ_BYTES / sizeof(uint64_t) + 5);
    trio.plan.hidden = hidden;
    start_all(&trio);
    step(&trio, 2, 1); /* it posts, and there is nothing to read yet */
    for (int k = 0; k < 100; k++) {
        step(&trio, 0, 1);
        step(&trio, 1, 1);
    }
    early = trio.calls[0].ended || trio.calls[1].ended;
    ok(!early && trio_finish(&trio, TRIO) && shm_is_right(&trio.calls[2], TRIO, 2),
       "hidden %u: nobody's operation ends before the last one has read its block", hidden);
    ok(trio_all_start_and_end(&trio), "the next operation is as if nothing had been");
    trio_tear_down(&trio);
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

    trio_set_up_reading(&trio, 100);
    fails_with = FLASH_ERR_LOST;
    flash_shm_read_by(trio.shms[0], fail_to_read, NULL);
    start_all(&trio);
    ended = trio_finish(&trio, TRIO);
    ok(ended && trio.calls[0].op.status == FLASH_ERR_LOST && trio.calls[0].op.failed_rank == 2 &&
           shm_is_right(&trio.calls[1], TRIO, 1) && shm_is_right(&trio.calls[2], TRIO, 2),
       "who finds a rank gone ends with an error, the others well");
    trio_tear_down(&trio);
}

/*
 * Ranks 0 and 1 ask rank 2 for its block, rank 1 when rank 0 has some pieces already: both get all,
 * and neither a piece that another is written over.
 */
static void test_shown_to_two(int late)
{
    trio_t trio;

    trio_set_up_reading(&trio, 5 * FLASH_SHM_SLOT_BYTES / sizeof(uint64_t) + 3);
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
    ok(trio_finish(&trio, TRIO) && shm_is_right(&trio.calls[2], TRIO, 2) &&
           trio.calls[0].op.status == FLASH_OK && trio.calls[1].op.status == FLASH_OK &&
           shm_has_block(&trio.calls[0], 2) && shm_has_block(&trio.calls[1], 2),
       "a block is shown to two, to one of them %d steps later", late);
    trio_tear_down(&trio);
}

/*
 * The last piece of a rank's block is read when that one has lost another, and its user writes
 * there.
 */
static void test_read_too_late(void)
{
    trio_t trio;

    trio_set_up_reading(&trio, 2 * FLASH_SHM_READ_BYTES / sizeof(uint64_t));
    start_all(&trio);
    step(&trio, 1, 1);
    step(&trio, 0, 1);
    flash_shm_lose(trio.shms[1], 2);
    trio.calls[1].input[0]++;
    step(&trio, 2, 100);
    step(&trio, 0, 100);
    trio_finish(&trio, TRIO);
    ok(trio.calls[0].op.status == FLASH_ERR_LOST && trio.calls[0].op.failed_rank == 2,
       "what is read of a rank that has lost another does not count");
    flash_shm_lose(trio.shms[0], 2);
    ok(trio_ended_by_loss(&trio, 0, 2), "and the operation ends when that is found here");
    trio_tear_down(&trio);
}

int main(void)
{
    test_kept(0);
    test_kept(3);
    test_gone();
    for (int late = 0; late < 20; late++) {
        test_shown_to_two(late);
    }
    test_read_too_late();
    return tap_done();
}
