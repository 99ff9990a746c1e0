/*
 * sim_check.c: what must hold of a simulation at any time, and at its end; see sim.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "sim.h"

void sim_check_contract(sim_t *sim)
{
    const char *first;

    if (fake_net_violations(sim->net, &first) > 0) {
        sim_complain(sim, "contract of the transport: %s", first);
    }
}

bool sim_exchanges_with_all(const sim_t *sim)
{
    for (uint32_t k = 0; k < sim->nspecs; k++) {
        if (flash_schedule_exchanges(sim->specs[k].kind)) {
            return true;
        }
    }
    return false;
}

static void check_rank_end(sim_t *sim, uint32_t rank)
{
    flash_work_t work;

    if (flash_engine_take(sim->engines[rank], SIM_ALL_WORK, &work) ||
        flash_engine_active(sim->engines[rank]) != 0 || sim_progress(sim, rank) ||
        flash_engine_completed(sim->engines[rank]) != NULL) {
        sim_complain(sim, "rank %u: the engine is not at rest at the end", rank);
    }
    if (fake_net_stats(sim->net, rank).peers > 1 && !sim_exchanges_with_all(sim)) {
        sim_complain(sim, "rank %u: sent to more peers than it has", rank);
    }
}

void sim_check_end(sim_t *sim)
{
    sim_check_contract(sim);
    if (!sim_all_complete(sim)) {
        sim_complain(sim, "only %llu operations complete", (unsigned long long) sim->complete);
        return;
    }
    if (sim->loss.rank == SIM_NOBODY && fake_net_leftovers(sim->net) > 0) {
        sim_complain(sim, "%zu messages or receives left over", fake_net_leftovers(sim->net));
    }
    for (uint32_t rank = 0; rank < sim->nranks && sim->loss.rank == SIM_NOBODY; rank++) {
        if (sim_runs(sim, rank)) {
            check_rank_end(sim, rank);
        }
    }
}

/* How many ranks of a chain come before one. */
static uint32_t ranks_before(const sim_t *sim, const sim_spec_t *spec, uint32_t rank)
{
    uint32_t n = sim->nranks, root = sim->places[sim_root(sim, spec)];
    uint32_t from_root = (sim->places[rank] + n - root) % n;

    return spec->kind == FLASH_REDUCE ? (from_root + n - 1) % n : from_root;
}

/* A2A, gather, scatter: whether a block comes to the rank, the one from that other rank or of its number;
   an empty one does where no steps are left out. */
static bool gets_block(const sim_t *sim, uint32_t index, uint32_t rank, uint32_t block)
{
    return !sim->specs[index].sparse ||
           sim->instances[(size_t) rank * sim->nspecs + index].in_layout.counts[block] > 0;
}

/* Whether the one rank gets what comes from the other, or goes by it. */
static bool hears_of(const sim_t *sim, uint32_t index, uint32_t rank, uint32_t refuser)
{
    const sim_spec_t *spec = &sim->specs[index];

    switch (spec->kind) {
    case FLASH_BCAST:
    case FLASH_REDUCE:
        return ranks_before(sim, spec, rank) > ranks_before(sim, spec, refuser);
    case FLASH_GATHER:
        return rank == sim_root(sim, spec) && gets_block(sim, index, rank, refuser);
    case FLASH_SCATTER:
        return refuser == sim_root(sim, spec) && gets_block(sim, index, rank, rank);
    default:
        return gets_block(sim, index, rank, refuser);
    }
}

void sim_check_refused(sim_t *sim, uint32_t spec, uint32_t refuser)
{
    const sim_spec_t *s = &sim->specs[spec];

    for (uint32_t rank = 0; rank < sim->nranks; rank++) {
        int status = sim_status(sim, rank, spec);
        bool hears = hears_of(sim, spec, rank, refuser);
        bool misses = hears && (s->kind != FLASH_REDUCE || rank == sim_root(sim, s));
        bool right = rank == refuser ? status == FLASH_ERR_NO_MEMORY
                     : misses        ? status == FLASH_ERR_PEER
                                     : status == FLASH_OK || (hears && status == FLASH_ERR_PEER);

        if (!right || (status != FLASH_OK && sim_failed_rank(sim, rank, spec) != refuser)) {
            sim_complain(sim, "op %u rank %u: status %d by rank %u, and rank %u took no part", spec,
                         rank, status, sim_failed_rank(sim, rank, spec), refuser);
        }
    }
}

bool sim_runs_well(sim_t *sim)
{
    bool well;

    sim_run_random(sim);
    sim_check_end(sim);
    for (uint32_t k = 0; k < sim->nspecs; k++) {
        for (uint32_t rank = 0; rank < sim->nranks; rank++) {
            if (sim_status(sim, rank, k) != FLASH_OK) {
                sim_complain(sim, "op %u rank %u: status %d", k, rank, sim_status(sim, rank, k));
            }
        }
    }
    well = sim->problem[0] == '\0';
    if (!well) {
        sim_describe(sim);
    }
    return well;
}
