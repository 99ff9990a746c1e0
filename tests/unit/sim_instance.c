/*
 * sim_instance.c: one operation on one rank: its blocks, its buffers, its parameters.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/flash_op.h"
#include "sim_instance.h"

const char *const sim_kinds[FLASH_KINDS] = {[FLASH_ALLGATHER] = "allgather",
                                            [FLASH_REDUCE_SCATTER] = "reduce-scatter",
                                            [FLASH_ALLREDUCE] = "allreduce",
                                            [FLASH_ALLTOALL] = "all-to-all",
                                            [FLASH_BCAST] = "broadcast",
                                            [FLASH_REDUCE] = "reduce",
                                            [FLASH_GATHER] = "gather",
                                            [FLASH_SCATTER] = "scatter",
                                            [FLASH_PAIRWISE_REDUCE_SCATTER] =
                                                "pairwise reduce-scatter"};

bool sim_spec_calls(const sim_spec_t *spec, bool produces)
{
    return produces == flash_schedule_reduces(spec->kind) ? spec->callback : spec->other;
}

uint32_t sim_block(const sim_t *sim, flash_kind_t kind, bool produces, uint32_t rank, uint32_t at)
{
    if (flash_schedule_chains(kind)) {
        return 0;
    }
    if (produces && (kind == FLASH_ALLTOALL || kind == FLASH_SCATTER)) {
        return (kind == FLASH_ALLTOALL ? sim->nranks : 0) + sim_neighbour(sim, rank, at + 1);
    }
    return sim_neighbour(sim, rank,
                         sim->nranks - (produces && flash_schedule_reduces(kind) ? at + 1 : at));
}

/* --- layout --- */

static size_t count_of(const sim_shape_t *shape, uint32_t block)
{
    return shape->counts == NULL ? shape->count : shape->counts[block];
}

static sim_layout_t layout_of(const sim_shape_t *shape, uint32_t nranks)
{
    return (sim_layout_t){.counts = malloc(nranks * sizeof(size_t)),
                          .displs = malloc(nranks * sizeof(ptrdiff_t)),
                          .gap = shape->scattered ? 3 : 0};
}

/* With its counts there. */
static void place_blocks(sim_layout_t *layout, const sim_shape_t *shape, uint32_t nranks)
{
    size_t at = 0;

    for (uint32_t k = 0; k < nranks; k++) {
        uint32_t block = shape->scattered ? nranks - 1 - k : k;

        layout->displs[block] = (ptrdiff_t) at;
        at += layout->counts[block] + layout->gap;
    }
    layout->span = at;
}

/* A2A: any mix of the counts, so that what a rank sends differs from what it receives. */
static void create_layouts(sim_instance_t *in, const sim_shape_t *shape)
{
    uint32_t n = in->sim->nranks;
    bool pairs = in->spec->kind == FLASH_ALLTOALL;

    in->in_layout = layout_of(shape, n);
    in->out_layout = layout_of(shape, n);
    for (uint32_t rank = 0; rank < n; rank++) {
        in->in_layout.counts[rank] = count_of(shape, pairs ? (2 * rank + in->rank) % n : rank);
        in->out_layout.counts[rank] = count_of(shape, pairs ? (2 * in->rank + rank) % n : rank);
    }
    place_blocks(&in->in_layout, shape, sim_blocks(in));
    place_blocks(&in->out_layout, shape, sim_blocks(in));
}

static flash_blocks_t blocks_by(const sim_layout_t *layout, const sim_shape_t *shape)
{
    flash_blocks_t made = {.count = shape->count};

    if (shape->counts != NULL) {
        made.counts = layout->counts;
    }
    if (shape->counts != NULL || shape->scattered) {
        made.displs = layout->displs;
    }
    return made;
}

/* --- life --- */

/* Elements of the output, gaps included. */
static size_t output_count(const sim_instance_t *in)
{
    flash_kind_t kind = in->spec->kind;

    if ((kind == FLASH_REDUCE || kind == FLASH_GATHER) && !sim_is_root(in)) {
        return 0;
    }
    if (kind == FLASH_SCATTER && sim_is_in_place(in)) {
        return 0; /* it is in the input */
    }
    return flash_schedule_scatters(kind) ? in->in_layout.counts[in->rank] : in->in_layout.span;
}

static void create_input(sim_instance_t *in)
{
    bool one = flash_schedule_gathers(in->spec->kind);

    in->input_count = one ? in->in_layout.counts[in->rank] : in->out_layout.span;
    in->input_memory = sim_guarded(in->input_count, &in->input);
}

/* Memory, and in it what the rank brings along. */
static void create_buffers(sim_instance_t *in)
{
    flash_kind_t kind = in->spec->kind;
    bool produces = sim_spec_calls(in->spec, true);

    in->output_count = output_count(in);
    in->output_memory = sim_guarded(in->output_count, &in->output);
    if (kind == FLASH_SCATTER) {
        if (sim_is_root(in)) {
            create_input(in);
        }
        if (sim_is_in_place(in)) {
            in->output = in->input + in->out_layout.displs[in->rank];
        }
    } else if (sim_is_in_place(in)) {
        bool one = flash_schedule_gathers(kind);

        in->input = in->output + (one ? in->in_layout.displs[in->rank] : 0);
    } else if (!flash_schedule_reduces(kind) || !produces) {
        create_input(in);
    }
    for (uint32_t block = 0; block < sim_blocks(in) && !produces; block++) {
        for (size_t k = 0; k < in->out_layout.counts[block] && sim_contributes(in, block); k++) {
            sim_input_of(in, block)[k] =
                sim_stored(in, true, sim_contribution(in, in->rank, block, k));
        }
    }
}

/* Gather, scatter: likewise. */
static void take_steps_with_root(sim_instance_t *in)
{
    uint32_t n = in->sim->nranks;

    if (!sim_is_root(in)) {
        if (in->in_layout.counts[in->rank] > 0) {
            flash_steps_add(&in->taken, 0);
        }
        return;
    }
    for (uint32_t distance = 1; distance < n; distance++) {
        if (in->in_layout.counts[sim_neighbour(in->sim, in->rank, distance)] > 0) {
            flash_steps_add(&in->taken, flash_schedule_roots_step(in->spec->kind, n, distance));
        }
    }
}

/* A2A: the steps whose blocks are not empty. */
static void take_steps(sim_instance_t *in)
{
    if (flash_schedule_has_root(in->spec->kind)) {
        take_steps_with_root(in);
        return;
    }
    for (uint32_t distance = 1; distance < in->sim->nranks; distance++) {
        uint32_t left = sim_neighbour(in->sim, in->rank, in->sim->nranks - distance);
        uint32_t right = sim_neighbour(in->sim, in->rank, distance);

        if (in->out_layout.counts[right] > 0) {
            flash_steps_add(&in->taken, flash_schedule_exchange_step(distance, true));
        }
        if (in->in_layout.counts[left] > 0) {
            flash_steps_add(&in->taken, flash_schedule_exchange_step(distance, false));
        }
    }
}

void sim_instance_create(sim_t *sim, uint32_t rank, uint32_t spec)
{
    sim_instance_t *in = &sim->instances[(size_t) rank * sim->nspecs + spec];
    const sim_spec_t *s = &sim->specs[spec];
    const sim_shape_t *shape = rank == s->odd_rank ? &s->odd_shape : &s->shape;

    *in = (sim_instance_t){
        .sim = sim, .spec = s, .index = spec, .rank = rank, .status = SIM_UNSTARTED};
    create_layouts(in, shape);
    in->schedule = (flash_schedule_t){
        .kind = s->kind,
        .ring = {.nranks = sim->nranks,
                 .place = sim->places[rank],
                 .ranks = sim->shuffled ? sim->ring : NULL},
        .pieces = shape->pieces,
        .row = shape->row,
        .segment_elements = shape->segment,
        .longest_segment = shape->longest,
        .parts = FLASH_USUAL_PARTS,
        .blocks = blocks_by(&in->in_layout, shape),
        .out = blocks_by(&in->out_layout, shape),
        .from_root =
            (sim->places[rank] + sim->nranks - sim->places[sim_root(sim, s)]) % sim->nranks,
        .taken = s->sparse ? &in->taken : NULL};
    if (s->sparse) {
        take_steps(in);
    }
    create_buffers(in);
}

static void destroy_layout(sim_layout_t *layout)
{
    free(layout->counts);
    free(layout->displs);
}

void sim_instance_destroy(sim_instance_t *in)
{
    destroy_layout(&in->in_layout);
    destroy_layout(&in->out_layout);
    free(in->input_memory);
    free(in->output_memory);
    free(in->pieces);
    free(in->scratch);
    free(in->store);
    free(in->failed_ranks);
    free(in->pairs);
}

/*
 * Odd names differ by edge of the ring, even ones are the same all around: both are allowed. Of
 * those that exchange with all they are apart: whoever is ahead may be nobody's neighbour in a
 * ring.
 */
static uint64_t tag_towards(const sim_spec_t *spec, uint32_t receiver)
{
    uint64_t name = spec->name << 1 | flash_schedule_exchanges(spec->kind);

    return (name << 12 | (spec->name % 2 == 1 ? receiver : 0)) << FLASH_TAG_SHIFT;
}

/* Who exchanges with all: the neighbours. */
static const flash_pair_t *make_pairs(sim_instance_t *in)
{
    uint32_t n = in->sim->nranks;

    in->pairs = malloc((n - 1) * sizeof(*in->pairs));
    for (uint32_t distance = 1; distance < n; distance++) {
        uint32_t left = sim_neighbour(in->sim, in->rank, n - distance);
        uint32_t right = sim_neighbour(in->sim, in->rank, distance);

        in->pairs[distance - 1] =
            (flash_pair_t){.left = fake_net_peer(in->sim->net, in->rank, left),
                           .right = fake_net_peer(in->sim->net, in->rank, right),
                           .recv_tag = tag_towards(in->spec, in->rank),
                           .send_tag = tag_towards(in->spec, right)};
    }
    return in->pairs;
}

/* What nobody wrote is the same in each run. */
static void *make_unwritten(size_t bytes)
{
    size_t whole = (bytes + SIM_PAD) / SIM_PAD * SIM_PAD;

    return memset(aligned_alloc(SIM_PAD, whole), SIM_UNWRITTEN, whole);
}

flash_op_params_t sim_instance_params(sim_instance_t *in)
{
    const sim_spec_t *s = in->spec;
    uint32_t right = sim_neighbour(in->sim, in->rank, 1);
    uint32_t left = sim_neighbour(in->sim, in->rank, in->sim->nranks - 1);
    flash_op_params_t params = {
        .schedule = in->schedule,
        .element = SIM_ELEMENT,
        .left = fake_net_peer(in->sim->net, in->rank, left),
        .right = fake_net_peer(in->sim->net, in->rank, right),
        .recv_tag = tag_towards(s, in->rank),
        .send_tag = tag_towards(s, right),
        .depth = s->depth,
        .sends = s->sends,
        .stage_in = sim_instance_is_on_device(in, true),
        .stage_out = sim_instance_is_on_device(in, false),
        .combine_on_device = sim_makes_device_sums(in),
        .scratch_on_device = sim_has_device_scratch(in),
        .input = in->input,
        .output = in->output,
        .combine = flash_schedule_reduces(s->kind) ? sim_on_combine : NULL,
        .combine_arg = in,
        .combine_is_users = s->users,
        .on_callback_thread = s->on_callback_thread,
        .produce = sim_spec_calls(s, true) ? sim_on_callback : NULL,
        .produce_arg = in,
        .consume = sim_spec_calls(s, false) ? sim_on_callback : NULL,
        .consume_arg = in,
        .user = in,
    };

    if (flash_schedule_exchanges(s->kind)) {
        params.recv_tag = params.send_tag = 0;
        params.pairs = make_pairs(in);
    }
    if (s->kind == FLASH_PAIRWISE_REDUCE_SCATTER && s->wide) {
        params.wide = SIM_WIDE;
        params.widen = sim_on_widen;
        params.narrow = sim_on_narrow;
        params.combine = sim_on_combine_wide;
    }
    if (sim_is_among(in, s->bounded)) {
        params.bound = s->bound * flash_op_segment_bytes(&params);
    }
    if (flash_op_store_size(&params) > 0) {
        in->store = make_unwritten(flash_op_store_size(&params));
        in->store_elements = flash_op_store_size(&params) / SIM_ELEMENT;
        params.store = in->store;
    }
    if (params.stage_in && flash_schedule_reduces(s->kind) && s->callback) {
        size_t bytes = flash_op_pieces_size(&params);

        in->pieces = make_unwritten(bytes);
        in->piece_elements = bytes / SIM_ELEMENT;
        params.pieces = in->pieces;
    }
    if (params.scratch_on_device) {
        in->scratch = make_unwritten(flash_op_scratch_size(&params));
        params.scratch = in->scratch;
        in->failed_ranks = make_unwritten(flash_op_failed_ranks_size(&params));
        params.failed_ranks = in->failed_ranks;
    }
    return params;
}
