/*
 * sim.c: a simulation is made; its operations are started, and taken when they are complete;
 * see sim.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/flash_op.h"
#include "prng.h"
#include "sim.h"

/* Every other seed makes a ring in which the ranks stand in any order. */
static void form_ring(sim_t *sim)
{
    uint64_t random = sim->seed;

    sim->shuffled = prng_mix(sim->seed) % 2 == 0;
    sim->ring = calloc(sim->nranks, sizeof(*sim->ring));
    sim->places = calloc(sim->nranks, sizeof(*sim->places));
    for (uint32_t place = 0; place < sim->nranks; place++) {
        uint32_t other = sim->shuffled ? prng_below(&random, place + 1) : place;

        sim->ring[place] = sim->ring[other];
        sim->ring[other] = place;
    }
    for (uint32_t place = 0; place < sim->nranks; place++) {
        sim->places[sim->ring[place]] = place;
    }
}

bool sim_runs(const sim_t *sim, uint32_t rank)
{
    return sim->alone == SIM_NOBODY || sim->alone == rank;
}

static void create_rank(sim_t *sim, uint32_t rank)
{
    sim->engines[rank] = flash_engine_create(fake_net_transport(sim->net, rank));
    for (uint32_t k = 0; k < sim->nspecs; k++) {
        sim_instance_create(sim, rank, k);
    }
}

static sim_t *create(uint32_t nranks, uint64_t seed, const fake_options_t *options,
                     const sim_spec_t *specs, uint32_t nspecs, uint32_t alone)
{
    sim_t *sim = calloc(1, sizeof(*sim));

    sim->net = fake_net_create(nranks, seed, options);
    sim->options = *options;
    sim->nranks = nranks;
    sim->nspecs = nspecs;
    sim->seed = seed;
    sim->random = ~seed;
    sim->loss.rank = SIM_NOBODY;
    sim->alone = alone;
    form_ring(sim);
    sim->engines = calloc(nranks, sizeof(*sim->engines));
    sim->active = calloc(nranks, sizeof(*sim->active));
    sim->instances = calloc((size_t) nranks * nspecs, sizeof(*sim->instances));
    for (uint32_t k = 0; k < nspecs; k++) {
        sim->specs[k] = specs[k];
    }
    for (uint32_t rank = 0; rank < nranks; rank++) {
        if (sim_runs(sim, rank)) {
            create_rank(sim, rank);
        }
    }
    return sim;
}

sim_t *sim_create(uint32_t nranks, uint64_t seed, const fake_options_t *options,
                  const sim_spec_t *specs, uint32_t nspecs)
{
    return create(nranks, seed, options, specs, nspecs, SIM_NOBODY);
}

void sim_record(sim_t *sim)
{
    fake_net_record(sim->net);
}

sim_t *sim_create_alone(const sim_t *recorded, uint32_t rank)
{
    sim_t *sim = create(recorded->nranks, recorded->seed, &recorded->options, recorded->specs,
                        recorded->nspecs, rank);

    fake_net_play(sim->net, recorded->net, rank);
    return sim;
}

/* Half way, or after a hang, operations still exist: nothing touches them any more. */
static void abandon(flash_engine_t *engine)
{
    flash_op_t *op;

    while ((op = flash_engine_completed(engine)) != NULL) {
        flash_op_destroy(op);
    }
    while ((op = engine->running.head) != NULL) {
        engine->running.head = op->next_running;
        if (!op->refused) {
            flash_op_free(op);
        }
    }
}

void sim_destroy(sim_t *sim)
{
    for (uint32_t rank = 0; rank < sim->nranks; rank++) {
        if (sim_runs(sim, rank)) {
            abandon(sim->engines[rank]);
            flash_engine_destroy(sim->engines[rank]);
        }
        for (uint32_t k = 0; k < sim->nspecs; k++) {
            sim_instance_destroy(&sim->instances[(size_t) rank * sim->nspecs + k]);
        }
    }
    free(sim->ring);
    free(sim->places);
    fake_net_destroy(sim->net);
    free(sim->engines);
    free(sim->active);
    free(sim->instances);
    free(sim->held);
    free(sim);
}

void sim_complain(sim_t *sim, const char *what, ...)
{
    va_list args;

    if (sim->problem[0] == '\0') {
        va_start(args, what);
        vsnprintf(sim->problem, sizeof(sim->problem), what, args);
        va_end(args);
    }
}

static sim_instance_t *instance_of(const sim_t *sim, uint32_t rank, uint32_t spec)
{
    return &sim->instances[(size_t) rank * sim->nspecs + spec];
}

uint32_t sim_neighbour(const sim_t *sim, uint32_t rank, uint32_t ahead)
{
    return sim->ring[(sim->places[rank] + ahead) % sim->nranks];
}

uint32_t sim_root(const sim_t *sim, const sim_spec_t *spec)
{
    return spec->root % sim->nranks;
}

int sim_status(const sim_t *sim, uint32_t rank, uint32_t spec)
{
    return instance_of(sim, rank, spec)->status;
}

uint32_t sim_failed_rank(const sim_t *sim, uint32_t rank, uint32_t spec)
{
    return instance_of(sim, rank, spec)->failed_rank;
}

bool sim_all_complete(const sim_t *sim)
{
    return sim->complete == (uint64_t) (sim->alone == SIM_NOBODY ? sim->nranks : 1) * sim->nspecs;
}

/* Specs start in order, but those of one name wait for each other. */
bool sim_may_start(sim_t *sim, uint32_t rank, uint32_t spec)
{
    if (!sim_runs(sim, rank)) {
        return false;
    }
    for (uint32_t k = 0; k < spec; k++) {
        int status = sim_status(sim, rank, k);
        bool wait = sim->specs[spec].wait || sim->specs[k].name == sim->specs[spec].name;

        if (status == SIM_UNSTARTED || (status == SIM_UNFINISHED && wait)) {
            return false;
        }
    }
    return sim_status(sim, rank, spec) == SIM_UNSTARTED;
}

/* Of scratch: as much as the bound says, or one segment for each use that there is for them. */
static void check_bound(sim_t *sim, const sim_instance_t *in, const flash_op_t *op)
{
    enum { USES = 3 };
    size_t least = USES * op->segment_bytes, bound = op->params.bound;

    sim->bounded += op->bounded;
    if (op->bounded && flash_op_scratch_size(&op->params) > (bound > least ? bound : least)) {
        sim_complain(sim, "op %u rank %u: more scratch than it may have", in->index, in->rank);
    }
}

/* False if there is no memory for it, as the network's options may say. */
static bool start(sim_t *sim, sim_instance_t *in, const flash_op_params_t *params)
{
    flash_op_t *op = NULL;

    if (flash_op_create(sim->engines[in->rank], params, &op) != FLASH_OK) {
        if (sim->options.failure != FAKE_FAIL_RESERVE || sim->options.fail_rank != in->rank) {
            sim_complain(sim, "op %u rank %u: cannot be created", in->index, in->rank);
        }
        return false;
    }
    if (flash_op_user(op) != in) {
        sim_complain(sim, "op %u rank %u: flash_op_user() is wrong", in->index, in->rank);
    }
    if (op->scratch_size > 0) { /* what nobody wrote is the same in each run */
        memset(op->scratch, SIM_UNWRITTEN, op->scratch_size);
    }
    if (op->near_size > 0) {
        memset(op->near, SIM_UNWRITTEN, op->near_size);
    }
    check_bound(sim, in, op);
    flash_op_start(op);
    return true;
}

void sim_start(sim_t *sim, uint32_t rank, uint32_t spec)
{
    sim_instance_t *in = instance_of(sim, rank, spec);
    flash_op_params_t params = sim_instance_params(in);
    bool refuses = in->spec->refuses && rank == in->spec->fail_rank;

    in->status = SIM_UNFINISHED;
    sim->active[rank]++;
    if ((refuses || !start(sim, in, &params)) &&
        !flash_engine_refuse(sim->engines[rank], &params)) {
        sim_complain(sim, "op %u rank %u: cannot be refused", spec, rank);
    }
}

static void complete(sim_t *sim, uint32_t rank, flash_op_t *op)
{
    sim_instance_t *in = flash_op_user(op);

    if (in->rank != rank || in->status != SIM_UNFINISHED) {
        sim_complain(sim, "rank %u: an operation completed twice, or elsewhere", rank);
        return;
    }
    in->status = flash_op_status(op);
    in->failed_rank = flash_op_failed_rank(op);
    if (in->works > 0) {
        sim_complain(sim, "op %u rank %u: complete while its work runs", in->index, rank);
    }
    if (in->status == FLASH_OK && !sim_instance_called(in)) {
        sim_complain(sim, "op %u rank %u: complete before its callbacks", in->index, rank);
    }
    sim_instance_check(in); /* now: later the buffers are the caller's again */
    flash_op_destroy(op);
    sim->active[rank]--;
    sim->complete++;
}

bool sim_drain(sim_t *sim, uint32_t rank)
{
    uint64_t before = sim->complete;
    flash_op_t *op;

    while ((op = flash_engine_completed(sim->engines[rank])) != NULL) {
        complete(sim, rank, op);
    }
    if (flash_engine_active(sim->engines[rank]) != sim->active[rank]) {
        sim_complain(sim, "rank %u: %zu operations active, expected %u", rank,
                     flash_engine_active(sim->engines[rank]), sim->active[rank]);
    }
    return sim->complete > before;
}

bool sim_progress(sim_t *sim, uint32_t rank)
{
    return flash_engine_progress(sim->engines[rank]) > 0;
}
