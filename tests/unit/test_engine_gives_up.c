/*
 * test_engine_gives_up.c: a transport that fails for good, or has no memory: each operation ends on
 * each rank, and never says OK of wrong data.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "prng.h"
#include "sim.h"
#include "tap.h"

#define MOST_RANKS 8
#define RUNS       1000

static bool ends_well(sim_t *sim)
{
    bool well = sim->problem[0] == '\0';

    if (!well) {
        sim_describe(sim);
    }
    sim_destroy(sim);
    return well;
}

/* --- neighbours are given up --- */

/* The rank that failed says so, and names no other; the others may have lost it, or its data.
 */
static void judge_loss(sim_t *sim, int status)
{
    uint32_t failed = sim->options.fail_rank;

    for (uint32_t rank = 0; rank < sim->nranks; rank++) {
        int got = sim_status(sim, rank, 0);

        if (rank == failed ? got != status || sim_failed_rank(sim, rank, 0) != failed
                           : got != FLASH_OK && got != FLASH_ERR_PEER && got != FLASH_ERR_LOST) {
            sim_complain(sim, "rank %u ends with %d and says that %u failed", rank, got,
                         sim_failed_rank(sim, rank, 0));
        }
    }
}

static void test_loss(uint64_t seed, flash_kind_t kind, fake_failure_t failure, int status,
                      const char *name)
{
    unsigned failed = 0, tried = 0;
    bool well = true;

    for (uint32_t k = 0; k < RUNS && well; k += tap_stride(), tried++) {
        uint64_t random = seed + 37 * k;
        uint32_t nranks = 2 + k % (MOST_RANKS - 1);
        sim_spec_t spec = sim_random_spec(&random, kind);
        fake_options_t net = sim_random_net(&random);
        sim_t *sim;

        net.rendezvous = 0; /* see fake_net_lose() */
        net.failure = failure;
        net.fail_rank = prng_below(&random, nranks);
        if (kind == (failure == FAKE_REFUSE_RECV ? FLASH_GATHER : FLASH_SCATTER)) {
            net.fail_rank = spec.root % nranks; /* others have no such messages */
        }
        /* With a root, most ranks have one step's messages. */
        net.fail_nth = 1 + k / 7 % (flash_schedule_has_root(kind) ? 2 : 10);
        sim = sim_create(nranks, random, &net, &spec, 1);
        sim->loss = (sim_loss_t){.rank = net.fail_rank, .turn = UINT64_MAX}; /* whenever it is */
        sim_run_random(sim);
        sim_check_end(sim);
        if (fake_net_failed(sim->net)) {
            judge_loss(sim, status);
            failed++;
        }
        well = ends_well(sim);
    }
    ok(well && failed > tried / 2, "%s: %s (%u of %u fail by it)", sim_kinds[kind], name, failed,
       tried);
}

/* --- nothing can be reserved --- */

/* One of two operations is refused by one rank, and all hear of it; the other works. */
static void judge_memory(sim_t *sim)
{
    uint32_t refused = sim->options.fail_nth == 3; /* the first time was for refusals */

    sim_check_refused(sim, refused, sim->options.fail_rank);
    for (uint32_t rank = 0; rank < sim->nranks; rank++) {
        if (sim_status(sim, rank, !refused) != FLASH_OK) {
            sim_complain(sim, "rank %u ends with %d and %d", rank, sim_status(sim, rank, 0),
                         sim_status(sim, rank, 1));
        }
    }
}

static void test_memory(uint64_t seed, flash_kind_t kind)
{
    bool well = true;

    for (uint32_t k = 0; k < RUNS && well; k += tap_stride()) {
        uint64_t random = seed + 41 * k;
        uint32_t nranks = 2 + k % (MOST_RANKS - 1);
        sim_spec_t specs[2] = {sim_random_spec(&random, kind), sim_random_spec(&random, kind)};
        fake_options_t net = sim_random_net(&random);
        sim_t *sim;

        net.failure = FAKE_FAIL_RESERVE;
        net.fail_rank = prng_below(&random, nranks);
        net.fail_nth = 2 + k % 2;
        specs[0].name = 1;
        specs[1].name = 2; /* a name once refused is good for no other */
        sim = sim_create(nranks, random, &net, specs, 2);
        sim_run_random(sim);
        sim_check_end(sim);
        judge_memory(sim);
        well = ends_well(sim);
    }
    ok(well, "%s: the transport has no memory", sim_kinds[kind]);
}

static void test_no_engine(void)
{
    fake_options_t options = {.failure = FAKE_FAIL_RESERVE, .fail_nth = 1};
    fake_net_t *net = fake_net_create(1, 1, &options);
    flash_transport_t *transport = fake_net_transport(net, 0);
    flash_engine_t *engine = flash_engine_create(transport);

    ok(engine == NULL, "no engine without memory for refusals");
    engine = flash_engine_create(transport);
    ok(engine != NULL, "another try");
    flash_engine_destroy(engine);
    fake_net_destroy(net);
}

int main(int argc, char **argv)
{
    unsigned long seed = tap_seed(argc, argv);

    for (flash_kind_t kind = 0; kind < FLASH_KINDS; kind++) {
        test_loss(seed, kind, FAKE_FAIL_SENDS, FLASH_ERR_TRANSPORT, "all sends fail");
        test_loss(seed, kind, FAKE_REFUSE_SEND, FLASH_ERR_REFUSED, "all sends are refused");
        test_loss(seed, kind, FAKE_REFUSE_RECV, FLASH_ERR_REFUSED, "a receive is refused");
        test_memory(seed, kind);
    }
    test_no_engine();
    return tap_done();
}
