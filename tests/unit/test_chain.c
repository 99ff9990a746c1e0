/*
 * test_chain.c: broadcasts and reduces, which go along the ring once: what each rank does of them,
 * whichever is the root, and what becomes of them where a rank takes no part.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "ring_schedule.h"
#include "tap.h"
#include "unattended.h"

/* What one rank of a chain sends, contributes and gets. */
static bool chain_holds(const flash_schedule_t *schedule)
{
    flash_schedule_t next = *schedule;
    flash_step_t way = flash_schedule_step(schedule, 0);
    uint32_t n = schedule->ring.nranks;
    bool bcast = schedule->kind == FLASH_BCAST, root = schedule->from_root == 0;

    next.ring.place = (schedule->ring.place + 1) % n;
    next.from_root = (schedule->from_root + 1) % n;
    return way.sends == flash_schedule_step(&next, 0).receives && !way.adds &&
           way.contributes == (!bcast || root) && way.delivers == (bcast != root) &&
           flash_schedule_length(schedule, FLASH_STEPS) == 1 &&
           flash_schedule_length(schedule, FLASH_PRODUCED) == (uint32_t) (!bcast || root) &&
           flash_schedule_length(schedule, FLASH_CONSUMED) == (uint32_t) (bcast || root) &&
           flash_schedule_blocks(schedule) == 1 && flash_schedule_distance(schedule, 0) == 1 &&
           flash_schedule_own_input(schedule) == 0 && flash_schedule_own_result(schedule) == 0 &&
           flash_schedule_rank(schedule, 0) ==
               flash_ring_rank(&schedule->ring, n - schedule->from_root);
}

/* From each root. */
static void test_steps(flash_kind_t kind, const char *name)
{
    bool holds = true, whole = true;

    for (size_t k = 0; k < RING_SIZES; k++) {
        uint32_t n = ring_sizes[k];

        for (uint32_t root = 0; root < n; root += n < 1000 ? 1 : 111) {
            uint32_t receives = 0;

            for (uint32_t rank = 0; rank < n; rank++) {
                flash_schedule_t schedule = ring(kind, n, rank);

                schedule.from_root = (rank + n - root) % n;
                holds &= chain_holds(&schedule) && flash_schedule_rank(&schedule, 0) == root;
                receives += flash_schedule_step(&schedule, 0).receives;
            }
            whole &= receives == n - 1;
        }
    }
    ok(holds, "%s: each rank sends what the next one receives, and the root has the block", name);
    ok(whole, "%s: each rank but the first receives", name);
}

static void test_distances(void)
{
    static const uint32_t order[] = {3, 0, 4, 1, 2};
    enum { RANKS = sizeof(order) / sizeof(order[0]) };
    bool right = true;

    for (uint32_t place = 0; place < RANKS; place++) {
        flash_ring_t ring = {.nranks = RANKS, .place = place, .ranks = order};

        for (uint32_t other = 0; other < RANKS; other++) {
            right &= flash_ring_distance(&ring, order[other]) == (place + RANKS - other) % RANKS;
        }
        ring.ranks = NULL;
        right &= flash_ring_distance(&ring, 0) == place;
    }
    ok(right, "how far to the left a rank stands");
}

int main(int argc, char **argv)
{
    static const flash_kind_t chains[] = {FLASH_BCAST, FLASH_REDUCE};
    unsigned long seed = tap_seed(argc, argv);

    for (size_t k = 0; k < sizeof(chains) / sizeof(chains[0]); k++) {
        test_steps(chains[k], sim_kinds[chains[k]]);
        ok(unattended_ends_well(seed, chains[k], tap_stride()),
           "%s: a rank refuses, and nobody waits for that", sim_kinds[chains[k]]);
    }
    test_distances();
    return tap_done();
}
