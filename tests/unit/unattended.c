/*
 * unattended.c: see unattended.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "unattended.h"

#include "prng.h"

void unattended_refuse(sim_t *sim, uint32_t refuser)
{
    sim_instance_t *in = &sim->instances[refuser];
    flash_op_params_t params = sim_instance_params(in);

    params.user = NULL;
    if (!flash_engine_refuse(sim->engines[refuser], &params)) {
        sim_complain(sim, "cannot be refused");
    }
    in->taken = (flash_steps_t){.bits = {0}}; /* the caller's array is gone */
    in->status = FLASH_ERR_NO_MEMORY;
    in->failed_rank = refuser;
    sim->complete++;
}

bool unattended_refusal_ends(sim_t *sim, uint32_t refuser)
{
    bool well;

    sim_run_random(sim);
    for (uint32_t k = 0; k < 1000 * sim->nranks; k++) {
        sim_progress(sim, k % sim->nranks);
    }
    sim_check_end(sim);
    sim_check_refused(sim, 0, refuser);
    well = sim->problem[0] == '\0';
    if (!well) {
        sim_describe(sim);
    }
    sim_destroy(sim);
    return well;
}

/*
 * Nobody waits for the end of the refusal, which forgets the order of the ring: what it does depends
 * on how far from the root it stands.
 */
static bool others_end(flash_kind_t kind, uint64_t seed)
{
    uint64_t random = seed;
    uint32_t nranks = 2 + prng_below(&random, 6), refuser = prng_below(&random, nranks);
    sim_spec_t spec = sim_random_spec(&random, kind);
    fake_options_t net = sim_random_net(&random);
    sim_t *sim = sim_create(nranks, random, &net, &spec, 1);

    unattended_refuse(sim, refuser);
    return unattended_refusal_ends(sim, refuser);
}

bool unattended_ends_well(uint64_t seed, flash_kind_t kind, uint32_t stride)
{
    bool well = true;

    for (uint32_t k = 0; k < 500 && well; k += stride) {
        well = others_end(kind, seed + 67 * k);
    }
    return well;
}
