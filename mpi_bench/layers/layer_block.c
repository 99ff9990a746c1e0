/*
 * layer_block.c: a transformer of a few layers, one training step, tensor and data parallel.
 *
 * Ranks stand in groups. Within one, layers are tensor and sequence parallel (layer_tp_attention.h,
 * layer_tp_mlp.h), each with what came into it added to what comes out. Groups have tokens of their
 * own, and a group's rank shares its part of the weights with the same rank of the others: before a
 * layer's forward its parameters are gathered, and after its backward their gradients are added up
 * and scattered, in the order of ZeRO and FSDP. Where a way overlaps, parameters travel under the
 * layer before, gradients under the layer before that one in the model's order.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <limits.h>

#include "layer_block.h"
#include "layer_wire.h"

enum { FORWARD, BACKWARD };

static bool overlaps(const layer_block_t *block)
{
    return block->way.kind == LAYER_FLASH || block->way.kind == LAYER_NONBLOCKING ||
           block->way.kind == LAYER_SLICED;
}

static bool is_staged(const layer_block_t *block)
{
    return block->way.kind != LAYER_COMPUTATION &&
           layer_wire_staged(block->job, block->dp_comms[block->by_flash]);
}

/* What a plain call is given: the matrices, or what travels for them. */
static layer_block_travel_t given(const layer_block_t *block, int l)
{
    const layer_block_stage_t *stage = &block->stages[l];

    return is_staged(block)
               ? stage->travel
               : (layer_block_travel_t){stage->own, stage->down, stage->whole, stage->dwhole};
}

static void copy(const layer_block_t *block, bool staged, float *to, const float *from, int count)
{
    if (staged) {
        layer_copy(block->job->device, to, from, (size_t) count * sizeof(float));
    }
}

static void gather(layer_block_t *block, int l)
{
    MPI_Comm comm = block->dp_comms[block->by_flash];
    layer_block_stage_t *stage = &block->stages[l];
    layer_block_travel_t by = given(block, l);

    if (block->way.kind == LAYER_BLOCKING) {
        MPI_Allgather(by.own, block->share, MPI_FLOAT, by.whole, block->share, MPI_FLOAT, comm);
    } else if (block->way.kind != LAYER_COMPUTATION) {
        MPI_Iallgather(by.own, block->share, MPI_FLOAT, by.whole, block->share, MPI_FLOAT, comm,
                       &stage->gathering);
    }
}

/* The parameters are what they were: nothing that is computed later has a part in them. */
static void begin_gathers(layer_block_t *block)
{
    bool staged = is_staged(block);

    for (int l = 0; l < block->options.layers; l++) {
        copy(block, staged, block->stages[l].travel.own, block->stages[l].own, block->share);
    }
    if (staged) {
        layer_finish(block->job->device);
    }
}

/* A layer's parameters are there, and the next one's on their way. */
static void have_parameters(layer_block_t *block, int l)
{
    if (block->way.kind == LAYER_BLOCKING || block->way.kind == LAYER_WAITING) {
        layer_finish(block->job->device);
        gather(block, l);
    }
    MPI_Wait(&block->stages[l].gathering, MPI_STATUS_IGNORE);
    copy(block, is_staged(block), block->stages[l].whole, block->stages[l].travel.whole,
         block->groups * block->share);
    if (overlaps(block) && l + 1 < block->options.layers) {
        gather(block, l + 1);
    }
}

static void scatter(layer_block_t *block, int l)
{
    MPI_Comm comm = block->dp_comms[block->by_flash];
    layer_block_stage_t *stage = &block->stages[l];
    layer_block_travel_t by = given(block, l);

    if (block->way.kind == LAYER_COMPUTATION) {
        return;
    }
    copy(block, is_staged(block), by.dwhole, stage->dwhole, block->groups * block->share);
    layer_mark(block->job->device);
    layer_wait(block->job, &block->way);
    if (block->way.kind == LAYER_BLOCKING) {
        MPI_Reduce_scatter_block(by.dwhole, by.down, block->share, MPI_FLOAT, MPI_SUM, comm);
        return;
    }
    MPI_Ireduce_scatter_block(by.dwhole, by.down, block->share, MPI_FLOAT, MPI_SUM, comm,
                              &stage->scattering);
    if (!overlaps(block)) {
        MPI_Wait(&stage->scattering, MPI_STATUS_IGNORE);
    }
}

/* c = a + b, of this rank's tokens. */
static void add(const layer_block_t *block, const float *a, const float *b, float *c)
{
    layer_add(block->job->device, a, b, c,
              (size_t) block->tp.rows * (size_t) block->options.hidden);
}

static void forward(layer_block_t *block)
{
    begin_gathers(block);
    if (overlaps(block)) {
        gather(block, 0);
    }
    for (int l = 0; l < block->options.layers; l++) {
        layer_block_stage_t *stage = &block->stages[l];
        layer_attention_t *attention = &stage->attention.base;
        bool last = l + 1 == block->options.layers;

        have_parameters(block, l);
        layer_tp_attention_forward(&stage->attention, &block->way);
        add(block, attention->x, attention->y, stage->mlp.x);
        layer_tp_mlp_forward(&stage->mlp, &block->way);
        add(block, stage->mlp.x, stage->mlp.y,
            last ? block->y : block->stages[l + 1].attention.base.x);
    }
}

static void backward(layer_block_t *block)
{
    for (int l = block->options.layers - 1; l >= 0; l--) {
        layer_block_stage_t *stage = &block->stages[l];
        layer_attention_t *attention = &stage->attention.base;

        layer_tp_mlp_backward(&stage->mlp, &block->way);
        add(block, stage->mlp.dy, stage->mlp.dx, attention->dy);
        layer_tp_attention_backward(&stage->attention, &block->way);
        add(block, attention->dy, attention->dx, l == 0 ? block->dx : block->stages[l - 1].mlp.dy);
        scatter(block, l);
    }
    for (int l = 0; l < block->options.layers; l++) {
        layer_block_stage_t *stage = &block->stages[l];

        MPI_Wait(&stage->scattering, MPI_STATUS_IGNORE);
        copy(block, is_staged(block), stage->down, stage->travel.down, block->share);
    }
}

static void run(void *state, const layer_way_t *way, int phase)
{
    layer_block_t *block = state;

    block->way = *way;
    block->by_flash = way->comm == MPI_COMM_WORLD;
    block->way.comm = block->tp_comms[block->by_flash];
    block->way.variant = way->kind == LAYER_FLASH ? LAYER_QUERY_SPLIT : LAYER_ROW_PARALLEL;
    (phase == FORWARD ? forward : backward)(block);
}

/* Of tokens; the groups divide the ranks, and each has the heads and the inner layer to itself. */
static int block_rows(const layer_options_t *options, int nranks)
{
    bool divides = nranks % options->groups == 0 && options->inner >= nranks / options->groups &&
                   options->heads % (nranks / options->groups) == 0 &&
                   options->hidden % options->heads == 0;
    double elements =
        4.0 * options->hidden * options->hidden + 2.0 * options->hidden * options->inner;

    return divides && elements < INT_MAX ? options->tokens / nranks : 0;
}

const layer_workload_t layer_workload = {
    .program = "flash_block",
    .title = "a transformer's training step, tensor and data parallel",
    .phases = 2,
    .phase_names = {[FORWARD] = "forward", [BACKWARD] = "backward"},
    .has_heads = true,
    .has_groups = true,
    .block_rows = block_rows,
    .make = layer_block_make,
    .free = layer_block_free,
    .run = run,
    .prepare = layer_block_prepare,
    .error = layer_block_error};
