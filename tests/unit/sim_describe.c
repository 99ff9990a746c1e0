/*
 * sim_describe.c: a simulation in words, for whoever has to repeat its run; see sim.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <stdio.h>

#include "sim.h"

static void describe_shape(const char *name, const sim_shape_t *shape, uint32_t nranks)
{
    printf("#     %s: pieces %u, row %zu, segment %zu to %zu%s, counts", name, shape->pieces,
           shape->row, shape->segment, shape->longest, shape->scattered ? ", scattered" : "");
    for (uint32_t block = 0; block < (shape->counts != NULL && nranks < 20 ? nranks : 0); block++) {
        printf(" %zu", shape->counts[block]);
    }
    if (shape->counts == NULL) {
        printf(" %zu each", shape->count);
    }
    printf("\n");
}

static void describe_op(const sim_t *sim, uint32_t k)
{
    const sim_spec_t *s = &sim->specs[k];

    printf("#   op %u: %s, depth %u, sends %u, pending %u, name %llu%s%s%s%s%s%s%s\n", k,
           sim_kinds[s->kind], s->depth, s->sends, s->pending, (unsigned long long) s->name,
           s->callback ? ", callback" : "", s->other ? ", other callback" : "",
           s->in_place ? ", in place" : "", s->mix ? ", mix" : "", s->users ? ", user's" : "",
           s->on_callback_thread ? ", on a callback thread" : "", s->wait ? ", waits" : "");
    printf("#     input %s, output %s, sums %s, scratch %u\n", s->device_input ? "device" : "host",
           s->device_output ? "device" : "host", s->device_sums ? "device" : "host",
           s->device_scratch);
    printf("#     bound %u on ranks %u, near ranks %u, root %u%s\n", s->bound, s->bounded, s->near,
           sim_root(sim, s), s->sparse ? ", steps of empty blocks left out" : "");
    describe_shape("shape", &s->shape, sim->nranks);
    if (s->odd_rank != SIM_NOBODY) {
        printf("#     on rank %u:\n", s->odd_rank);
        describe_shape("shape", &s->odd_shape, sim->nranks);
    }
    if (s->fail_rank != SIM_NOBODY) {
        printf("#     rank %u %s in callback %llu, combine %llu, stage %llu\n", s->fail_rank,
               s->refuses ? "refuses, or fails" : "fails", (unsigned long long) s->fail_callback,
               (unsigned long long) s->fail_combine, (unsigned long long) s->fail_stage);
    }
    printf("#     statuses");
    for (uint32_t rank = 0; rank < sim->nranks && rank < 32; rank++) {
        printf(" %d", sim_status(sim, rank, k));
    }
    printf("\n");
}

void sim_describe(const sim_t *sim)
{
    printf("#   %s\n#   %u ranks, seed %#llx\n",
           sim->problem[0] != '\0' ? sim->problem : "no problem", sim->nranks,
           (unsigned long long) sim->seed);
    if (sim->options.failure != FAKE_FAIL_NONE) {
        printf("#   transport failure %d, rank %u, call %llu\n", (int) sim->options.failure,
               sim->options.fail_rank, (unsigned long long) sim->options.fail_nth);
    }
    if (sim->loss.rank != SIM_NOBODY) {
        printf("#   rank %u is lost after turn %llu\n", sim->loss.rank,
               (unsigned long long) sim->loss.turn);
    }
    for (uint32_t k = 0; k < sim->nspecs; k++) {
        describe_op(sim, k);
    }
}
