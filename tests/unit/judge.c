/*
 * judge.c: see judge.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "judge.h"

bool judge_bounded;

sim_spec_t judge_spec(uint64_t *random, flash_kind_t kind)
{
    sim_spec_t spec = sim_random_spec(random, kind);

    if (judge_bounded) {
        sim_bound(random, &spec);
    }
    return spec;
}

const char *judge_bound(void)
{
    return judge_bounded ? ", bounded" : "";
}

bool judge_run(uint32_t nranks, uint64_t seed, const fake_options_t *net, const sim_spec_t *wrong,
               judge_fn *judge)
{
    sim_spec_t specs[2] = {*wrong, *wrong};
    sim_t *sim;
    bool well;

    /* The next operation, at once or after this one, is an ordinary one of any kind. */
    specs[1].refuses = wrong->refuses && seed / 8 % 2 == 0;
    specs[1].kind = specs[1].refuses ? wrong->kind : (flash_kind_t) (seed / 16 % FLASH_KINDS);
    specs[1].users &= flash_schedule_reduces(specs[1].kind);
    specs[1].name = wrong->name + !specs[1].refuses; /* a name once refused is good for no other */
    specs[1].wait = seed / 2 % 4 != 0 || net->failure != FAKE_FAIL_NONE;
    specs[1].odd_rank = SIM_NOBODY;
    specs[1].fail_rank = specs[1].refuses ? wrong->fail_rank : SIM_NOBODY;
    sim = sim_create(nranks, seed, net, specs, 2);
    sim_run_random(sim);
    sim_check_end(sim);
    judge(sim);
    for (uint32_t rank = 0; rank < nranks && sim_all_complete(sim); rank++) {
        if (sim_status(sim, rank, 1) != FLASH_OK && net->failure == FAKE_FAIL_NONE &&
            !specs[1].refuses) {
            sim_complain(sim, "the next operation fails on rank %u", rank);
        }
    }
    well = sim->problem[0] == '\0';
    if (!well) {
        sim_describe(sim);
    }
    sim_destroy(sim);
    return well;
}

void judge_status(sim_t *sim, uint32_t rank, int status)
{
    int got = sim_status(sim, rank, 0);

    if (got != status) {
        sim_complain(sim, "rank %u ends with %d, expected %d", rank, got, status);
    }
}

void judge_others_told(sim_t *sim, uint32_t rank)
{
    for (uint32_t k = 0; k < sim->nranks; k++) {
        int status = sim_status(sim, k, 0);

        if (k != rank && status != FLASH_OK && status != FLASH_ERR_PEER) {
            sim_complain(sim, "rank %u ends with %d, expected OK or PEER", k, status);
        }
    }
}

void judge_failed_rank(sim_t *sim, uint32_t rank)
{
    for (uint32_t k = 0; k < sim->nranks; k++) {
        uint32_t failed_rank = sim_failed_rank(sim, k, 0);

        if (k != rank && sim_status(sim, k, 0) != FLASH_OK && failed_rank != rank &&
            failed_rank != FLASH_NOBODY) {
            sim_complain(sim, "rank %u says that %u failed, not %u", k, sim_failed_rank(sim, k, 0),
                         rank);
        }
    }
}
