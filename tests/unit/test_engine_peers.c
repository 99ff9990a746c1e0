/*
 * test_engine_peers.c: ranks that are lost, refuse to take part, or are silent: the others come to
 * their end, and learn whom they waited for.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <stdio.h>
#include <string.h>

#include "judge.h"
#include "prng.h"
#include "tap.h"

#define MOST_RANKS 8

/* --- a rank is lost --- */

/* Whoever's result lacks something says so, and says that it is the lost rank's fault. */
static void judge_loss(sim_t *sim)
{
    uint32_t lost = sim->loss.rank, n = sim->nranks;

    for (uint32_t k = 0; k < n; k++) {
        int status = sim_status(sim, k, 0);
        bool neighbour = sim_exchanges_with_all(sim) || k == lost ||
                         k == sim_neighbour(sim, lost, 1) || k == sim_neighbour(sim, lost, n - 1);

        if (status != FLASH_OK && status != FLASH_ERR_PEER &&
            !(status == FLASH_ERR_LOST && neighbour)) {
            sim_complain(sim, "rank %u ends with %d", k, status);
        }
    }
    judge_failed_rank(sim, lost);
}

static void test_loss(uint64_t seed, flash_kind_t kind)
{
    /* With a root, the right neighbour of many a rank needs nothing of it. */
    unsigned failed = 0, least = flash_schedule_has_root(kind) ? 500 : 1000;
    bool well = true;

    for (uint32_t k = 0; k < 3000 && well; k++) {
        uint64_t random = seed + 29 * k;
        uint32_t nranks = 2 + k % (MOST_RANKS - 1);
        sim_spec_t spec = judge_spec(&random, kind);
        fake_options_t net = sim_random_net(&random);
        sim_t *sim;

        net.rendezvous = 0;
        sim = sim_create(nranks, random, &net, &spec, 1);
        sim->loss.rank = prng_below(&random, nranks);
        sim->loss.turn = prng_below(&random, 40 * nranks);
        sim_run_random(sim);
        sim_check_end(sim);
        judge_loss(sim);
        failed += sim_status(sim, sim_neighbour(sim, sim->loss.rank, 1), 0) != FLASH_OK;
        well = sim->problem[0] == '\0';
        if (!well) {
            sim_describe(sim);
        }
        sim_destroy(sim);
    }
    ok(well && failed > least, "%s: a rank is lost (%u of 3000 fail by it)%s", sim_kinds[kind],
       failed, judge_bound());
}

/* --- a rank refuses --- */

/* Its own block, or its part of each block, is missing everywhere else; where there is a root, see
   sim_check_refused(). */
static void judge_refusal(sim_t *sim)
{
    sim_check_refused(sim, 0, sim->specs[0].fail_rank);
}

static void test_refusal(uint64_t seed, flash_kind_t kind)
{
    bool well = true;

    for (uint32_t k = 0; k < 3000 && well; k += tap_stride()) {
        uint64_t random = seed + 31 * k;
        uint32_t nranks = 2 + k % (MOST_RANKS - 1);
        sim_spec_t spec = judge_spec(&random, kind);
        fake_options_t net = sim_random_net(&random);

        spec.fail_rank = prng_below(&random, nranks);
        spec.refuses = true;
        well = judge_run(nranks, random, &net, &spec, judge_refusal);
    }
    ok(well, "%s: a rank refuses%s", sim_kinds[kind], judge_bound());
}

/*
 * Two ranks refuse three times as much as they have memory set aside for; one finds no more, once.
 * When that is through, as much again.
 */
static void test_all_refusals(void)
{
    static const fake_options_t options = {.rendezvous = 100,
                                           .unordered = FLASH_TAG_MARKS,
                                           .failure = FAKE_FAIL_RESERVE,
                                           .fail_rank = 1,
                                           .fail_nth = 2}; /* the first time it is set aside */
    fake_net_t *net = fake_net_create(2, 1, &options);
    flash_engine_t *engines[2];
    unsigned failed = 0, wrong = 0;

    for (uint32_t rank = 0; rank < 2; rank++) {
        engines[rank] = flash_engine_create(fake_net_transport(net, rank));
    }
    for (uint64_t name = 0; name < 6 * FLASH_REFUSALS; name++) {
        for (uint32_t rank = 0; rank < 2; rank++) {
            flash_op_params_t params = {.schedule = {.ring = {.nranks = 2, .place = rank}},
                                        .left = fake_net_peer(net, rank, 1 - rank),
                                        .right = fake_net_peer(net, rank, 1 - rank),
                                        .recv_tag = name << FLASH_TAG_SHIFT,
                                        .send_tag = name << FLASH_TAG_SHIFT};

            if (!flash_engine_refuse(engines[rank], &params)) {
                failed++;
                wrong += rank != 1 || name != FLASH_REFUSALS;
                wrong += !flash_engine_refuse(engines[rank], &params);
            }
        }
        while (name == 3 * FLASH_REFUSALS - 1 &&
               (flash_engine_progress(engines[0]) != 0 || flash_engine_progress(engines[1]) != 0)) {
        }
    }
    ok(failed == 1 && wrong == 0, "memory is set aside for %d refusals at a time, and more is had",
       FLASH_REFUSALS);
    while (flash_engine_progress(engines[0]) != 0 || flash_engine_progress(engines[1]) != 0) {
    }
    ok(fake_net_leftovers(net) == 0, "they leave nothing behind");
    for (uint32_t rank = 0; rank < 2; rank++) {
        flash_engine_destroy(engines[rank]);
    }
    fake_net_destroy(net);
}

/* --- a rank is silent --- */

/* Until all that the rank can do by itself is done. */
static void move_alone(sim_t *sim, uint32_t rank)
{
    for (int k = 0; k < 100; k++) {
        sim_progress(sim, rank);
        if (sim_take(sim, rank, SIM_ALL_WORK)) {
            sim_finish_held(sim, 0);
        }
    }
}

/* Bounded: the scratch has room for two segments that arrive, where more than that are to come. */
static void test_silence(flash_kind_t kind, const char *name)
{
    sim_spec_t spec = {.kind = kind,
                       .shape = {.count = 10, .pieces = 1, .row = 1, .segment = 4},
                       .depth = 8, /* all of the second rank's segments may come */
                       .device_input = judge_bounded,
                       .device_output = judge_bounded,
                       .device_sums = judge_bounded,
                       .bounded = judge_bounded ? 3 : 0,
                       .bound = 4,
                       .odd_rank = SIM_NOBODY,
                       .fail_rank = SIM_NOBODY};
    fake_options_t net = {.rendezvous = 100, .unordered = FLASH_TAG_MARKS};
    sim_t *sim = sim_create(3, 1, &net, &spec, 1);
    bool pairwise = kind == FLASH_PAIRWISE_REDUCE_SCATTER; /* begins with the other one */
    uint32_t right = sim_neighbour(sim, 0, pairwise ? 2 : 1);
    uint32_t left = sim_neighbour(sim, 0, pairwise ? 1 : 2);
    flash_silence_t silence[2];
    size_t at_first, then, still, afterwards;

    sim_start(sim, 0, 0);
    move_alone(sim, 0);
    at_first = flash_engine_watch(sim->engines[0], silence, 2);
    flash_engine_watch(sim->engines[0], silence, 2);
    then = flash_engine_watch(sim->engines[0], silence, 2);
    ok(at_first == 0 && then == 2 && silence[0].watches == 2 && silence[0].sending &&
           !silence[0].not_oldest && silence[0].rank == right && silence[0].step == 0 &&
           silence[0].segment == 0 &&
           silence[0].block == sim_block(sim, kind, true, 0, 0) % sim->nranks &&
           silence[0].user != NULL && silence[0].peer == fake_net_peer(sim->net, 0, right),
       "%s: nobody takes the first segment, and it shows", name);
    ok(silence[1].not_oldest && !silence[1].sending && silence[1].rank == left &&
           silence[1].peer == fake_net_peer(sim->net, 0, left),
       "%s: and that a later one is to come from the left", name);
    sim_start(sim, right, 0);
    for (int k = 0; k < 10; k++) {
        move_alone(sim, right);
        move_alone(sim, 0);
    }
    flash_engine_watch(sim->engines[0], silence, 2);
    still = flash_engine_watch(sim->engines[0], silence, 2);
    ok(still == 1 && silence[0].watches == 1 && !silence[0].sending && silence[0].rank == left &&
           silence[0].step == 1,
       "%s: nothing comes from the left, and it shows", name);
    sim_start(sim, left, 0);
    sim_run_random(sim);
    sim_check_end(sim);
    afterwards = flash_engine_watch(sim->engines[0], silence, 2);
    ok(afterwards == 0 && sim->problem[0] == '\0', "%s: it goes on, and ends", name);
    sim_destroy(sim);
}

/* A rank in the middle of a chain waits for the one before it, and then for the one behind it. */
static void test_chain_silence(flash_kind_t kind)
{
    sim_spec_t spec = {.kind = kind,
                       .shape = {.count = 10, .pieces = 1, .row = 1, .segment = 4},
                       .depth = 8,
                       .odd_rank = SIM_NOBODY,
                       .fail_rank = SIM_NOBODY};
    fake_options_t net = {.rendezvous = 100, .unordered = FLASH_TAG_MARKS};
    sim_t *sim = sim_create(3, 1, &net, &spec, 1);
    bool reduces = flash_schedule_reduces(kind);
    uint32_t middle = sim_neighbour(sim, 0, reduces ? 2 : 1), before, behind;
    flash_silence_t silence[2];
    size_t then, still;

    before = sim_neighbour(sim, middle, 2);
    behind = sim_neighbour(sim, middle, 1);
    sim_start(sim, middle, 0);
    move_alone(sim, middle);
    flash_engine_watch(sim->engines[middle], silence, 2);
    then = flash_engine_watch(sim->engines[middle], silence, 2);
    ok(then == 1 && silence[0].watches == 1 && !silence[0].sending && silence[0].rank == before &&
           silence[0].step == 0 && silence[0].segment == 0 && silence[0].block == 0 &&
           silence[0].steps == 1,
       "%s: nothing comes from the rank before, and it shows", sim_kinds[kind]);
    sim_start(sim, before, 0);
    for (int k = 0; k < 10; k++) {
        move_alone(sim, before);
        move_alone(sim, middle);
    }
    flash_engine_watch(sim->engines[middle], silence, 2);
    still = flash_engine_watch(sim->engines[middle], silence, 2);
    ok(still == 1 && silence[0].sending && silence[0].rank == behind && silence[0].segment == 0,
       "%s: the rank behind takes nothing, and it shows", sim_kinds[kind]);
    sim_start(sim, behind, 0);
    sim_run_random(sim);
    sim_check_end(sim);
    ok(sim->problem[0] == '\0', "%s: it goes on, and ends", sim_kinds[kind]);
    sim_destroy(sim);
}

/* The root of a gather or a scatter waits for one rank after another, and each other rank for it. */
static void test_root_silence(flash_kind_t kind)
{
    sim_spec_t spec = {.kind = kind,
                       .shape = {.count = 10, .pieces = 1, .row = 1, .segment = 4},
                       .depth = 1,
                       .odd_rank = SIM_NOBODY,
                       .fail_rank = SIM_NOBODY};
    fake_options_t net = {.rendezvous = 100, .unordered = FLASH_TAG_MARKS};
    sim_t *sim = sim_create(4, 1, &net, &spec, 1);
    bool gathers = kind == FLASH_GATHER;
    uint32_t first = sim_neighbour(sim, 0, gathers ? 3 : 1), second = sim_neighbour(sim, 0, 2);
    uint32_t third = sim_neighbour(sim, 0, gathers ? 1 : 3);
    flash_silence_t silence[3];
    size_t then, others, still;

    sim_start(sim, 0, 0);
    sim_start(sim, third, 0);
    for (int k = 0; k < 10; k++) {
        move_alone(sim, third);
        move_alone(sim, 0);
    }
    flash_engine_watch(sim->engines[third], silence, 3);
    others = flash_engine_watch(sim->engines[third], silence, 3);
    ok(others == 1 && silence[0].sending == gathers && silence[0].rank == 0 &&
           silence[0].step == 0 && silence[0].steps == 1 && silence[0].block == third &&
           silence[0].peer == fake_net_peer(sim->net, third, 0),
       "%s: a rank waits for the root, which has two others before it, and it shows",
       sim_kinds[kind]);
    flash_engine_watch(sim->engines[0], silence, 3);
    then = flash_engine_watch(sim->engines[0], silence, 3);
    ok(then == 2 && silence[0].sending != gathers && silence[0].rank == first &&
           silence[0].step == 0 && silence[0].steps == 3 && silence[0].block == first &&
           !silence[0].not_oldest && silence[1].rank == second && silence[1].step == 1 &&
           silence[1].not_oldest,
       "%s: the root waits for the first rank, and for the second one beside it", sim_kinds[kind]);
    sim_start(sim, first, 0);
    for (int k = 0; k < 10; k++) {
        move_alone(sim, first);
        move_alone(sim, third);
        move_alone(sim, 0);
    }
    flash_engine_watch(sim->engines[0], silence, 3);
    still = flash_engine_watch(sim->engines[0], silence, 3);
    ok(still == 1 && silence[0].rank == second && silence[0].step == 1 && !silence[0].not_oldest &&
           flash_engine_active(sim->engines[third]) == 0,
       "%s: then for the second one, and the third one's block has moved", sim_kinds[kind]);
    sim_start(sim, second, 0);
    sim_run_random(sim);
    sim_check_end(sim);
    ok(sim->problem[0] == '\0', "%s: it goes on, and ends", sim_kinds[kind]);
    sim_destroy(sim);
}

static void test_all(uint64_t seed)
{
    for (flash_kind_t kind = 0; kind < FLASH_KINDS; kind++) {
        char name[64];

        if (judge_bounded && kind == FLASH_PAIRWISE_REDUCE_SCATTER) {
            continue; /* it has no such way */
        }
        snprintf(name, sizeof(name), "%s%s", sim_kinds[kind], judge_bound());
        test_loss(seed, kind);
        test_refusal(seed, kind);
        if (!flash_schedule_has_root(kind)) {
            test_silence(kind, name);
        } else if (!judge_bounded && flash_schedule_chains(kind)) {
            test_chain_silence(kind);
        } else if (!judge_bounded) {
            test_root_silence(kind);
        }
    }
}

int main(int argc, char **argv)
{
    unsigned long seed = tap_seed(argc, argv);

    test_all(seed);
    judge_bounded = true;
    test_all(seed);
    test_all_refusals();
    return tap_done();
}
