/*
 * test_engine_ring.c: the right result, whatever the order of events: many shapes, ring sizes and
 * operations at a time, moved at random over a network that delays and reorders.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <string.h>

#include "prng.h"
#include "sim.h"
#include "tap.h"

#define MOST_RANKS 1000

/* Memory for unequal counts, one array for each operation of a case. */
static size_t counts_memory[SIM_MAX_OPS][MOST_RANKS];

typedef enum { ANY, EQUAL, UNEQUAL, EMPTY } sizes_t;

/* Runs a case and says whether all of it is well; prints it if not. */
static bool run_case(uint32_t nranks, uint64_t seed, const fake_options_t *net,
                     const sim_spec_t *specs, uint32_t nspecs)
{
    sim_t *sim = sim_create(nranks, seed, net, specs, nspecs);
    bool well = sim_runs_well(sim);

    sim_destroy(sim);
    return well;
}

static sim_shape_t random_shape(uint64_t *random, uint32_t nranks, sizes_t sizes, size_t *counts)
{
    sim_shape_t shape = {.count = prng_below(random, 40),
                         .scattered = prng_percent(random, 40),
                         .pieces = 1 + prng_below(random, 5),
                         .row = prng_percent(random, 50) ? 1 : 1 + prng_below(random, 7),
                         .segment = 1 + prng_below(random, 24),
                         .longest = prng_below(random, 30)};

    if (sizes == ANY) {
        sizes = prng_percent(random, 50) ? EQUAL : UNEQUAL;
    }
    if (sizes == EMPTY) {
        shape.count = 0;
    }
    if (sizes == UNEQUAL) {
        for (uint32_t block = 0; block < nranks; block++) {
            counts[block] = prng_percent(random, 25) ? 0 : prng_below(random, 40);
        }
        shape.counts = counts;
    }
    return shape;
}

static sim_spec_t random_spec(uint64_t *random, uint32_t nranks, flash_kind_t kind, sizes_t sizes,
                              uint32_t index)
{
    return (sim_spec_t){
        .kind = kind,
        .shape = random_shape(random, nranks, sizes, counts_memory[index]),
        .depth = prng_percent(random, 10) ? 1000 : 1 + prng_below(random, 8),
        .sends = prng_below(random, 4),
        .callback = prng_percent(random, 60),
        .other = prng_percent(random, 40),
        .pending = 50 * prng_below(random, 3),
        .in_place = prng_percent(random, 50),
        .mix = prng_percent(random, 50),
        .users = flash_schedule_reduces(kind) && prng_percent(random, 30),
        .on_callback_thread = prng_percent(random, 30),
        .wide = prng_percent(random, 50),
        .name = 5 + index,
        .odd_rank = SIM_NOBODY,
        .fail_rank = SIM_NOBODY,
        .root = flash_schedule_has_root(kind) ? prng_below(random, nranks) : 0,
    };
}

/* One operation at a time. */
static void test_alone(uint64_t seed, flash_kind_t kind, sizes_t sizes, const char *name)
{
    bool well = true;

    for (uint32_t nranks = 2; nranks <= 31 && well; nranks += nranks < 16 ? 1 : 15) {
        for (uint32_t k = 0; k < 30 && well; k += tap_stride()) {
            uint64_t random = seed + 1000 * nranks + k;
            sim_spec_t spec = random_spec(&random, nranks, kind, sizes, 0);
            fake_options_t net = sim_random_net(&random);

            well = run_case(nranks, random, &net, &spec, 1);
        }
    }
    ok(well, "%s, %s blocks, 2 to 31 ranks", sim_kinds[kind], name);
}

/* Several at a time: of different names, or of one name as soon as the one before is over. */
static void test_together(uint64_t seed, unsigned same_name, const char *name)
{
    bool well = true;

    for (uint32_t k = 0; k < 200 && well; k += tap_stride()) {
        uint64_t random = seed + 77777 + k;
        uint32_t nranks = 2 + prng_below(&random, k % 10 == 0 ? 30 : 8);
        uint32_t nspecs = 2 + prng_below(&random, SIM_MAX_OPS - 1);
        fake_options_t net = sim_random_net(&random);
        sim_spec_t specs[SIM_MAX_OPS];

        for (uint32_t op = 0; op < nspecs; op++) {
            flash_kind_t kind = prng_below(&random, FLASH_KINDS);

            specs[op] = random_spec(&random, nranks, kind, ANY, op);
            if (prng_percent(&random, same_name)) {
                specs[op].name = 1;
            }
        }
        well = run_case(nranks, random, &net, specs, nspecs);
    }
    ok(well, "%s", name);
}

/* Every depth with one and with many segments: the window's ends are where mistakes live. */
static void test_depths(uint64_t seed, flash_kind_t kind)
{
    bool well = true;

    for (uint32_t k = 0; k < 9 * 7 * 3 * 2 * 4 && well; k += tap_stride()) {
        uint64_t random = seed + 31337 + k;
        uint32_t nranks = 2 + k / 63 % 3;
        fake_options_t net = sim_random_net(&random);
        sim_spec_t spec = random_spec(&random, nranks, kind, EQUAL, 0);

        spec.depth = 1 + k % 9;
        spec.sends = k % 4;
        spec.shape.pieces = 1;
        spec.shape.count = 1 + k / 9 % 7;
        spec.shape.segment = 1;
        spec.callback = k / 189 % 2;
        well = run_case(nranks, random, &net, &spec, 1);
    }
    ok(well, "%s: depths 1 to 9, segments 1 to 7", sim_kinds[kind]);
}

/* More steps and segments than the tag has numbers for: they are counted modulo. */
static void test_wrapping(uint64_t seed, flash_kind_t kind)
{
    uint64_t random = seed + 4;
    fake_options_t net = sim_random_net(&random);
    sim_spec_t spec = random_spec(&random, 2, kind, EQUAL, 0);

    spec.shape.count = 3 * (1 << FLASH_TAG_SEG_BITS) + 17;
    spec.shape.segment = 1;
    spec.shape.row = 1;
    spec.shape.pieces = 3;
    spec.depth = 16;
    ok(run_case(3, random, &net, &spec, 1), "%s: more segments than the tag can count",
       sim_kinds[kind]);
}

/* Few but large. Work and messages grow as the square. */
static void test_large(uint64_t seed, uint32_t nranks, flash_kind_t kind, bool callback)
{
    uint64_t random = seed + nranks;
    fake_options_t net = {.inline_sends = 30,
                          .rendezvous = 30,
                          .inline_recvs = 50,
                          .late_data = 30,
                          .lazy = 10,
                          .burst = 16,
                          .unordered = FLASH_TAG_MARKS};
    sim_spec_t spec = random_spec(&random, nranks, kind, ANY, 0);

    spec.shape.count = nranks > 500 ? 2 : 6;
    spec.shape.counts = NULL;
    spec.shape.row = 1;
    spec.shape.pieces = 1;
    spec.shape.segment = nranks > 500 ? 2 : 3;
    spec.depth = 4;
    spec.callback = callback;
    ok(run_case(nranks, random, &net, &spec, 1), "%s: %u ranks%s", sim_kinds[kind], nranks,
       callback ? ", with callbacks" : "");
}

/*
 * A rank alone: nothing that it sends is received. Its own block gets to its place all the same, in
 * parts as long as segments.
 */
static void test_own_block(uint64_t seed)
{
    enum { BLOCK = 7, SEGMENT = 2, PARTS = 4 };
    fake_options_t net = {.rendezvous = 100, .burst = 1};
    sim_spec_t spec = {.kind = FLASH_ALLGATHER,
                       .shape = {.count = BLOCK, .pieces = 1, .row = 1, .segment = SEGMENT},
                       .depth = 1,
                       .odd_rank = SIM_NOBODY,
                       .fail_rank = SIM_NOBODY};
    sim_t *sim = sim_create(2, seed, &net, &spec, 1);
    const sim_instance_t *own = &sim->instances[1];
    unsigned parts = 0;

    sim_start(sim, 1, 0);
    sim_progress(sim, 1);
    while (sim_take(sim, 1, SIM_ALL_WORK)) {
        sim_finish_held(sim, 0);
        parts++;
    }
    ok(parts == PARTS && memcmp(own->output + flash_schedule_displ(&own->schedule, 1), own->input,
                                BLOCK * SIM_ELEMENT) == 0,
       "allgather: the own block is copied before it has been sent");
    sim_destroy(sim);
}

/* All ranks but that one, until nothing moves. */
static void move_others(sim_t *sim, uint32_t late)
{
    bool moved = true;

    while (moved) {
        moved = false;
        for (uint32_t rank = 0; rank < sim->nranks; rank++) {
            if (rank == late) {
                continue;
            }
            moved |= sim_progress(sim, rank);
            while (sim_take(sim, rank, SIM_ALL_WORK)) {
                sim_finish_held(sim, 0);
                moved = true;
            }
            moved |= sim_drain(sim, rank);
        }
    }
}

/*
 * At a rank that has not begun there lies one message for each block of others at most, and none of
 * a block that is cut, or of a kind with a root: others wait until it has taken these. All of a gather
 * goes to the root.
 */
static bool piles_up_at_most(uint64_t seed, flash_kind_t kind, size_t segment, size_t most)
{
    enum { RANKS = 4, LATE = 0, BLOCK = 12 };
    fake_options_t net = {.rendezvous = 100, .burst = 4, .leaving = true};
    sim_spec_t spec = {.kind = kind,
                       .shape = {.count = BLOCK, .pieces = 1, .row = 1, .segment = segment},
                       .depth = 8,
                       .root = kind == FLASH_GATHER ? LATE : LATE + 1,
                       .odd_rank = SIM_NOBODY,
                       .fail_rank = SIM_NOBODY};
    sim_t *sim = sim_create(RANKS, seed, &net, &spec, 1);
    size_t piled;
    bool well;

    for (uint32_t rank = 0; rank < RANKS; rank++) {
        if (rank != LATE) {
            sim_start(sim, rank, 0);
        }
    }
    move_others(sim, LATE);
    piled = fake_net_piled(sim->net, LATE);
    sim_run_random(sim);
    sim_check_end(sim);
    well = sim->problem[0] == '\0' && piled <= most;
    if (!well) {
        diag("%zu messages lie at the late rank, %zu may", piled, most);
        sim_describe(sim);
    }
    sim_destroy(sim);
    return well;
}

static void test_late(uint64_t seed, flash_kind_t kind)
{
    enum { OTHERS = 3, WHOLE = 12, CUT = 1 };

    size_t most = flash_schedule_has_root(kind) ? 0 : OTHERS;

    ok(piles_up_at_most(seed, kind, WHOLE, most) && piles_up_at_most(seed, kind, CUT, 0),
       "%s: what piles up at a late rank", sim_kinds[kind]);
}

int main(int argc, char **argv)
{
    unsigned long seed = tap_seed(argc, argv);

    for (flash_kind_t kind = 0; kind < FLASH_KINDS; kind++) {
        test_alone(seed, kind, EQUAL, "equal");
        test_alone(seed, kind, UNEQUAL, "unequal");
        test_alone(seed, kind, EMPTY, "empty");
        test_depths(seed, kind);
        test_wrapping(seed, kind);
        test_large(seed, 100, kind, false);
        test_large(seed, 100, kind, true);
        if (tap_stride() == 1) {
            test_large(seed, MOST_RANKS, kind, true);
        }
    }
    for (flash_kind_t kind = 0; kind < FLASH_KINDS; kind++) {
        test_late(seed, kind);
    }
    test_own_block(seed);
    test_together(seed, 0, "several operations at a time");
    test_together(seed, 60, "names used again");
    return tap_done();
}
