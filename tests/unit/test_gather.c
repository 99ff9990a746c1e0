/*
 * test_gather.c: gathers and scatters, in which the root exchanges a block with each other rank: what
 * each rank does of them, whichever is the root, how many ranks the root has to do with at a time, and
 * what becomes of them where a rank takes no part.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "engine/flash_op.h"
#include "ring_schedule.h"
#include "tap.h"
#include "unattended.h"

static flash_schedule_t schedule_of(flash_kind_t kind, uint32_t nranks, uint32_t rank,
                                    uint32_t root)
{
    flash_schedule_t schedule = ring(kind, nranks, rank);

    schedule.from_root = (rank + nranks - root) % nranks;
    return schedule;
}

/* The way of the block in a step: one end sends it, or the other one receives it. */
static bool is_way(flash_step_t way, bool sends)
{
    return way.sends == sends && way.contributes == sends && way.receives == !sends &&
           way.delivers == !sends && !way.adds;
}

/* The root's steps meet the one step of each other rank: with the same block, at the same distance. */
static bool steps_meet(flash_kind_t kind, uint32_t nranks, uint32_t root)
{
    flash_schedule_t roots = schedule_of(kind, nranks, root, root);
    bool gathers = kind == FLASH_GATHER;
    bool meet = flash_schedule_length(&roots, FLASH_STEPS) == nranks - 1;

    for (uint32_t step = 0; step + 1 < nranks && meet; step++) {
        uint32_t distance = flash_schedule_distance(&roots, step);
        uint32_t rank = (root + (gathers ? nranks - distance : distance)) % nranks;
        flash_schedule_t other = schedule_of(kind, nranks, rank, root);

        meet = distance == step + 1 && is_way(flash_schedule_step(&roots, step), !gathers) &&
               flash_schedule_block(&roots, FLASH_STEPS, step) == rank &&
               flash_schedule_length(&other, FLASH_STEPS) == 1 &&
               flash_schedule_distance(&other, 0) == distance &&
               is_way(flash_schedule_step(&other, 0), gathers) &&
               flash_schedule_block(&other, FLASH_STEPS, 0) == rank;
    }
    return meet;
}

/* The root walks through all blocks, in the order of its steps, and others through their own alone. */
static bool walks_are_right(flash_kind_t kind, uint32_t nranks, uint32_t rank, uint32_t root)
{
    flash_schedule_t schedule = schedule_of(kind, nranks, rank, root);
    bool gathers = kind == FLASH_GATHER;
    flash_walk_t one = gathers ? FLASH_PRODUCED : FLASH_CONSUMED;
    flash_walk_t all = gathers ? FLASH_CONSUMED : FLASH_PRODUCED;
    uint32_t first = gathers ? 1 : 0; /* of the others', the own block is consumed first */
    bool right = flash_schedule_length(&schedule, one) == 1 &&
                 flash_schedule_block(&schedule, one, 0) == rank &&
                 flash_schedule_own_input(&schedule) == rank &&
                 flash_schedule_own_result(&schedule) == rank &&
                 flash_schedule_length(&schedule, all) == (rank == root ? nranks : 0) &&
                 flash_schedule_blocks(&schedule) == nranks &&
                 flash_schedule_rank(&schedule, nranks - 1) == nranks - 1;

    for (uint32_t at = 0; at + 1 < nranks && rank == root && right; at++) {
        right = flash_schedule_block(&schedule, all, first + at) ==
                flash_schedule_block(&schedule, FLASH_STEPS, at);
    }
    return right &&
           (rank != root || flash_schedule_block(&schedule, all, gathers ? 0 : nranks - 1) == root);
}

static void test_steps(flash_kind_t kind)
{
    bool meet = true, right = true;

    for (size_t k = 0; k < RING_SIZES; k++) {
        uint32_t n = ring_sizes[k];

        for (uint32_t root = 0; root < n; root += n < 1000 ? 1 : 111) {
            meet &= steps_meet(kind, n, root);
            for (uint32_t rank = 0; rank < n; rank++) {
                right &= walks_are_right(kind, n, rank, root);
            }
        }
    }
    ok(meet, "%s: what the root does in a step, the other rank does in its one step",
       sim_kinds[kind]);
    ok(right, "%s: the root has all blocks, in the order of its steps, and others their own",
       sim_kinds[kind]);
}

/* ------------------------------------------------------------------- memory */

static flash_op_params_t params_of(flash_kind_t kind, uint32_t nranks, uint32_t rank, size_t count)
{
    flash_op_params_t params = {
        .schedule = schedule_of(kind, nranks, rank, 0), .element = SIM_ELEMENT, .depth = 4};

    params.schedule.segment_elements = 100;
    params.schedule.blocks.count = count;
    return params;
}

/* The root has two blocks' segments in flight, however many ranks there are; the others two segments. */
static void test_window(flash_kind_t kind)
{
    bool roots = true, others = true;

    for (uint32_t nranks = 3; nranks <= 3000; nranks *= 10) {
        flash_op_params_t root = params_of(kind, nranks, 0, 1000);
        flash_op_params_t other = params_of(kind, nranks, 1, 1000);
        flash_op_params_t brief = params_of(kind, nranks, 0, 1);

        roots &= flash_op_window(&root) == 20 && flash_op_window(&brief) <= 4;
        other.depth = 1;
        others &= flash_op_window(&other) == 2;
    }
    ok(roots, "%s: the root exchanges with two ranks at a time, or has the window's segments",
       sim_kinds[kind]);
    ok(others, "%s: another rank needs no more than two segments in flight", sim_kinds[kind]);
}

/* Memory for segments is there for what travels: no rank sends and receives. */
static void test_scratch(flash_kind_t kind)
{
    bool right = true;

    for (uint32_t rank = 0; rank < 2; rank++) {
        bool sends = (rank == 0) == (kind == FLASH_SCATTER);
        flash_op_params_t in = params_of(kind, 4, rank, 1000), out = in, both = in;

        in.stage_in = out.stage_out = both.stage_in = both.stage_out = true;
        right &= (flash_op_scratch_size(&in) > 0) == sends &&
                 (flash_op_scratch_size(&out) > 0) == !sends &&
                 flash_op_scratch_size(&both) == flash_op_scratch_size(sends ? &in : &out);
        in.bound = out.bound = both.bound = 3 * flash_op_segment_bytes(&both);
        right &= flash_op_scratch_size(&both) == flash_op_scratch_size(sends ? &in : &out) &&
                 flash_op_scratch_size(&both) <= both.bound;
    }
    ok(right, "%s: device memory that does not travel takes no pinned memory", sim_kinds[kind]);
}

int main(int argc, char **argv)
{
    static const flash_kind_t kinds[] = {FLASH_GATHER, FLASH_SCATTER};
    unsigned long seed = tap_seed(argc, argv);

    for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
        test_steps(kinds[k]);
        test_window(kinds[k]);
        test_scratch(kinds[k]);
        ok(unattended_ends_well(seed, kinds[k], tap_stride()),
           "%s: a rank refuses, and nobody waits for that", sim_kinds[kinds[k]]);
    }
    return tap_done();
}
