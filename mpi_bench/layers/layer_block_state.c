/*
 * layer_block_state.c: the parameters of a transformer, this rank's share of them, and the
 * communicators of its groups; see layer_block.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "layer_block.h"

#include <stdlib.h>

#include "bench_job.h"
#include "layer_math.h"

/* ------------------------------------------------------------------ parameters */

static size_t in_size(const layer_block_t *block)
{
    return 3 * (size_t) block->options.hidden * (size_t) (block->options.hidden / block->tp.nranks);
}

static size_t out_size(const layer_block_t *block)
{
    return in_size(block) / 3;
}

static size_t inner_size(const layer_block_t *block)
{
    return (size_t) block->options.hidden * (size_t) block->stages[0].mlp.width;
}

layer_block_weight_t layer_block_weight_at(const layer_block_t *block, size_t k)
{
    int hidden = block->options.hidden, width = hidden / block->tp.nranks;
    int inner = block->stages[0].mlp.width, first = block->stages[0].mlp.first;
    int element = block->tp.rank * width;

    if (k < in_size(block)) {
        int column = (int) (k % (size_t) (3 * width));

        return (layer_block_weight_t){(layer_weights_t) (column / width),
                                      (int) (k / (size_t) (3 * width)), element + column % width};
    }
    k -= in_size(block);
    if (k < out_size(block)) {
        return (layer_block_weight_t){LAYER_WO, element + (int) (k / (size_t) hidden),
                                      (int) (k % (size_t) hidden)};
    }
    k -= out_size(block);
    if (k < inner_size(block)) {
        return (layer_block_weight_t){LAYER_W1, (int) (k / (size_t) inner),
                                      first + (int) (k % (size_t) inner)};
    }
    k -= inner_size(block);
    if (k < inner_size(block)) {
        return (layer_block_weight_t){LAYER_W2, first + (int) (k / (size_t) hidden),
                                      (int) (k % (size_t) hidden)};
    }
    return (layer_block_weight_t){LAYER_WEIGHTS, 0, 0};
}

float *layer_block_value_at(const layer_block_t *block, const float *matrix)
{
    return layer_value_at(block->job->device, matrix, 0, 0);
}

void layer_block_fill_parameters(const layer_block_t *block, int layer, size_t first, size_t count,
                                 float *to)
{
    for (size_t k = 0; k < count; k++) {
        layer_block_weight_t weight = layer_block_weight_at(block, first + k);

        to[k] =
            weight.which == LAYER_WEIGHTS
                ? 0
                : layer_block_weight(&block->options, layer, weight.which, weight.from, weight.to);
    }
}

/* ------------------------------------------------------------------------ make */

static void make_comms(layer_block_t *block)
{
    int rank = block->job->rank, width = block->tp.nranks;

    MPI_Comm_split(MPI_COMM_WORLD, rank / width, rank, &block->tp_comms[1]);
    MPI_Comm_split(MPI_COMM_WORLD, rank % width, rank, &block->dp_comms[1]);
    block->tp_comms[0] = bench_own_communicator(block->tp_comms[1]);
    block->dp_comms[0] = bench_own_communicator(block->dp_comms[1]);
}

static layer_block_travel_t make_travel(const layer_block_t *block)
{
    const layer_device_t *device = block->job->device;
    size_t own = (size_t) block->share * sizeof(float), whole = (size_t) block->groups * own;

    return (layer_block_travel_t){layer_room(device, own, true), layer_room(device, own, true),
                                  layer_room(device, whole, true), layer_room(device, whole, true)};
}

static void free_travel(const layer_block_t *block, const layer_block_travel_t *travel)
{
    layer_room_free(block->job->device, travel->own, true);
    layer_room_free(block->job->device, travel->down, true);
    layer_room_free(block->job->device, travel->whole, true);
    layer_room_free(block->job->device, travel->dwhole, true);
}

static void make_stage(layer_block_t *block, int number)
{
    layer_block_stage_t *stage = &block->stages[number];
    size_t out = in_size(block), w1 = out + out_size(block), w2 = w1 + inner_size(block);
    int whole = block->groups * block->share;

    stage->own = layer_matrix(block->job->device, 1, block->share);
    stage->down = layer_matrix(block->job->device, 1, block->share);
    stage->whole = layer_matrix(block->job->device, 1, whole);
    stage->dwhole = layer_matrix(block->job->device, 1, whole);
    if (block->job->device->own_memory) {
        stage->travel = make_travel(block);
    }
    stage->gathering = stage->scattering = MPI_REQUEST_NULL;
    stage->attention.base.in = stage->whole;
    stage->attention.base.out = stage->whole + out;
    stage->mlp.w1 = stage->whole + w1;
    stage->mlp.w2 = stage->whole + w2;
    stage->attention.base.din = stage->dwhole;
    stage->attention.base.dout = stage->dwhole + out;
    stage->mlp.dw1 = stage->dwhole + w1;
    stage->mlp.dw2 = stage->dwhole + w2;
    layer_block_fill_parameters(block, number, (size_t) (block->group * block->share),
                                (size_t) block->share, layer_block_value_at(block, stage->own));
}

static void fill_tokens(const layer_block_t *block, float *to,
                        float (*value)(int token, int column))
{
    int first = block->job->rank * block->tp.rows;

    for (int row = 0; row < block->tp.rows; row++) {
        for (int column = 0; column < block->options.hidden; column++) {
            layer_at(layer_block_value_at(block, to), row, block->options.hidden)[column] =
                value(first + row, column);
        }
    }
}

void *layer_block_make(layer_t *layer, const layer_options_t *options)
{
    layer_block_t *block = layer_alloc(1, sizeof(*block));
    int width = layer->nranks / options->groups;
    size_t parameters;

    *block = (layer_block_t){.job = layer,
                             .tp = *layer,
                             .options = *options,
                             .group = layer->rank / width,
                             .groups = options->groups,
                             .stages =
                                 layer_alloc((size_t) options->layers, sizeof(layer_block_stage_t)),
                             .y = layer_matrix(layer->device, layer->rows, options->hidden),
                             .dx = layer_matrix(layer->device, layer->rows, options->hidden)};
    block->tp.rank = layer->rank % width;
    block->tp.nranks = width;
    block->options.tokens = options->tokens / options->groups;
    make_comms(block);
    for (int l = 0; l < options->layers; l++) {
        layer_tp_attention_make(&block->stages[l].attention, &block->tp, &block->options);
        layer_tp_mlp_make(&block->stages[l].mlp, &block->tp, &block->options);
    }
    parameters = in_size(block) + out_size(block) + 2 * inner_size(block);
    block->share = (int) ((parameters + (size_t) block->groups - 1) / (size_t) block->groups);
    for (int l = 0; l < options->layers; l++) {
        make_stage(block, l);
    }
    fill_tokens(block, block->stages[0].attention.base.x, layer_block_input);
    fill_tokens(block, block->stages[options->layers - 1].mlp.dy, layer_block_slope);
    if (!layer->device->offload) {
        block->reference = layer_block_reference_make(
            &block->options, block->group * block->options.tokens, block->dp_comms[0]);
    }
    return block;
}

void layer_block_free(void *state)
{
    layer_block_t *block = state;

    for (int l = 0; l < block->options.layers; l++) {
        layer_tp_attention_free(&block->stages[l].attention);
        free_travel(block, &block->stages[l].travel);
    }
    for (int served = 0; served <= 1; served++) {
        MPI_Comm_free(&block->tp_comms[served]);
        MPI_Comm_free(&block->dp_comms[served]);
    }
    layer_block_reference_free(block->reference);
    free(block->stages);
    free(block);
}
