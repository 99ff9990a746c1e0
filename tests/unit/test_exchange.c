/*
 * test_exchange.c: all-to-alls, gathers and scatters that leave out the steps of empty blocks: the right
 * result, no message for such a step, and what becomes of them where a rank takes no part.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "engine/flash_op.h"
#include "prng.h"
#include "sim.h"
#include "tap.h"
#include "unattended.h"

#define MOST_RANKS 31

/* Each operation's counts: of many cases, all are 0 but one, or none is. */
static size_t counts_memory[SIM_MAX_OPS][MOST_RANKS];

static sim_spec_t random_spec(uint64_t *random, uint32_t nranks, uint32_t index)
{
    static const flash_kind_t kinds[] = {FLASH_ALLTOALL, FLASH_ALLTOALL, FLASH_GATHER,
                                         FLASH_SCATTER};
    sim_spec_t spec = sim_random_spec(random, kinds[prng_below(random, 4)]);
    unsigned empty = 25 * prng_below(random, 5);
    size_t *counts = counts_memory[index];

    for (uint32_t block = 0; block < nranks; block++) {
        counts[block] = prng_percent(random, empty) ? 0 : 1 + prng_below(random, 40);
    }
    spec.shape.counts = counts;
    spec.sparse = true;
    spec.name = 5 + index;
    return spec;
}

static const sim_instance_t *instance_of(const sim_t *sim, uint32_t rank, uint32_t op)
{
    return &sim->instances[(size_t) rank * sim->nspecs + op];
}

/* Whether a rank has a block for the other one, and which: its number. */
static bool has_block_for(const sim_t *sim, uint32_t op, uint32_t rank, uint32_t other,
                          uint32_t *block)
{
    const sim_spec_t *spec = &sim->specs[op];

    switch (spec->kind) {
    case FLASH_GATHER:
        *block = rank;
        return other == sim_root(sim, spec);
    case FLASH_SCATTER:
        *block = other;
        return rank == sim_root(sim, spec);
    default:
        *block = sim->nranks + other;
        return true;
    }
}

/* Segments of that block, if it is not empty; else, 0. */
static uint32_t segments_for(const sim_t *sim, uint32_t op, uint32_t rank, uint32_t other)
{
    const sim_instance_t *in = instance_of(sim, rank, op);
    flash_split_t split;
    uint32_t block;

    if (rank == other || !has_block_for(sim, op, rank, other, &block)) {
        return 0;
    }
    split = flash_schedule_split(&in->schedule, block);
    return split.count > 0 ? flash_split_segments(&split) : 0;
}

/* Messages of a rank, and ranks that it sends to: those of its blocks that are not empty, and no more. */
static void check_messages(sim_t *sim)
{
    for (uint32_t rank = 0; rank < sim->nranks; rank++) {
        fake_stats_t stats = fake_net_stats(sim->net, rank);
        uint64_t messages = 0;
        uint32_t peers = 0;

        for (uint32_t other = 0; other < sim->nranks; other++) {
            uint64_t before = messages;

            for (uint32_t op = 0; op < sim->nspecs; op++) {
                messages += segments_for(sim, op, rank, other);
            }
            peers += messages > before;
        }
        if (stats.messages != messages || stats.peers != peers) {
            sim_complain(sim, "rank %u: %llu messages to %u ranks, where %llu to %u are due", rank,
                         (unsigned long long) stats.messages, stats.peers,
                         (unsigned long long) messages, peers);
        }
    }
}

static bool run_case(uint32_t nranks, uint64_t seed, const fake_options_t *net,
                     const sim_spec_t *specs, uint32_t nspecs)
{
    sim_t *sim = sim_create(nranks, seed, net, specs, nspecs);
    bool well = sim_runs_well(sim);

    if (well) {
        check_messages(sim);
        well = sim->problem[0] == '\0';
        if (!well) {
            sim_describe(sim);
        }
    }
    sim_destroy(sim);
    return well;
}

static void test_alone(uint64_t seed)
{
    bool well = true;

    for (uint32_t nranks = 2; nranks <= MOST_RANKS && well; nranks += nranks < 16 ? 1 : 15) {
        for (uint32_t k = 0; k < 60 && well; k += tap_stride()) {
            uint64_t random = seed + 1000 * nranks + k;
            sim_spec_t spec = random_spec(&random, nranks, 0);
            fake_options_t net = sim_random_net(&random);

            well = run_case(nranks, random, &net, &spec, 1);
        }
    }
    ok(well, "blocks of any length: only those that are not empty travel, 2 to 31 ranks");
}

/* Ranks without a block are done at once, and ahead of the others in the next operations. */
static void test_together(uint64_t seed)
{
    bool well = true;

    for (uint32_t k = 0; k < 300 && well; k += tap_stride()) {
        uint64_t random = seed + 77 * k;
        uint32_t nranks = 2 + prng_below(&random, 8);
        uint32_t nspecs = 2 + prng_below(&random, SIM_MAX_OPS - 1);
        fake_options_t net = sim_random_net(&random);
        sim_spec_t specs[SIM_MAX_OPS];

        for (uint32_t op = 0; op < nspecs; op++) {
            specs[op] = random_spec(&random, nranks, op);
            if (prng_percent(&random, 50)) {
                specs[op].name = 1;
            }
        }
        well = run_case(nranks, random, &net, specs, nspecs);
    }
    ok(well, "several operations, whose names are used again");
}

/* Nothing comes to a rank that only sends: its messages wait for their receiver, however short. */
static void test_late(uint64_t seed)
{
    static const size_t counts[] = {0, 1, 0}; /* rank 0 sends to rank 1 */
    fake_options_t net = {.rendezvous = 100, .burst = 4, .leaving = true};
    sim_spec_t spec = {.kind = FLASH_ALLTOALL,
                       .shape = {.counts = counts, .pieces = 1, .row = 1, .segment = 8},
                       .depth = 8,
                       .sparse = true,
                       .odd_rank = SIM_NOBODY,
                       .fail_rank = SIM_NOBODY};
    sim_t *sim = sim_create(3, seed, &net, &spec, 1);
    bool waits;

    sim_start(sim, 0, 0);
    for (unsigned k = 0; k < 100; k++) {
        sim_progress(sim, 0);
        sim_drain(sim, 0);
    }
    waits = fake_net_piled(sim->net, 1) == 0 && fake_net_stats(sim->net, 0).messages == 1 &&
            sim_status(sim, 0, 0) == SIM_UNFINISHED;
    sim_run_random(sim);
    sim_check_end(sim);
    ok(waits && sim->problem[0] == '\0', "a message to a rank that is late does not pile up there");
    sim_destroy(sim);
}

/* `attended`: somebody waits for the refusal's end. */
static bool refusal_is_right(uint64_t seed, bool attended)
{
    uint64_t random = seed;
    uint32_t nranks = 2 + prng_below(&random, 6), refuser = prng_below(&random, nranks);
    sim_spec_t spec = random_spec(&random, nranks, 0);
    fake_options_t net = sim_random_net(&random);
    sim_t *sim;

    spec.callback = spec.other = false;
    spec.fail_rank = refuser;
    spec.refuses = true;
    sim = sim_create(nranks, random, &net, &spec, 1);
    if (!attended) {
        unattended_refuse(sim, refuser);
    }
    return unattended_refusal_ends(sim, refuser);
}

static void test_refusals(uint64_t seed, bool attended)
{
    bool well = true;

    for (uint32_t k = 0; k < 500 && well; k += tap_stride()) {
        well = refusal_is_right(seed + 67 * k, attended);
    }
    ok(well, "a rank refuses%s: who gets a block of it hears of that, and nobody else",
       attended ? "" : ", and nobody waits for that");
}

int main(int argc, char **argv)
{
    unsigned long seed = tap_seed(argc, argv);

    test_alone(seed);
    test_together(seed);
    test_late(seed);
    test_refusals(seed, true);
    test_refusals(seed, false);
    return tap_done();
}
