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
#include <stdlib.h>
#include <string.h>

#include "bench_job.h"
#include "layer_block_reference.h"
#include "layer_math.h"
#include "layer_tp_attention.h"
#include "layer_tp_mlp.h"
#include "layer_wire.h"

enum { FORWARD, BACKWARD };

/* What travels of them by Open MPI's own calls, which do not get a device's memory. */
typedef struct travel {
    float *own, *down, *whole, *dwhole;
} travel_t;

/* The parameters lie one after another: as layer_attention_t and layer_tp_mlp_t have them. */
typedef struct stage {
    layer_tp_attention_t attention;
    layer_tp_mlp_t mlp;
    float *own, *down;     /* this rank's share of the parameters, and of the gradients */
    float *whole, *dwhole; /* all of them, with room for a share of each group */
    travel_t travel;
    MPI_Request gathering, scattering;
} stage_t;

typedef struct block {
    layer_t *job;
    layer_t tp;
    layer_options_t options; /* of a group */
    layer_way_t way;         /* within the group */
    bool by_flash;           /* its calls, plain ones included */
    int group, groups;
    int share;                         /* elements */
    MPI_Comm tp_comms[2], dp_comms[2]; /* Open MPI's own, and flash's */
    stage_t *stages;
    float *y, *dx; /* rows x hidden: what comes out of the last, and the gradient by the input */
    layer_block_reference_t *reference;
} block_t;

/* ------------------------------------------------------------------ parameters */

typedef struct weight {
    layer_weights_t which; /* LAYER_WEIGHTS: none, but room */
    int from, to;
} weight_t;

static size_t in_size(const block_t *block)
{
    return 3 * (size_t) block->options.hidden * (size_t) (block->options.hidden / block->tp.nranks);
}

static size_t out_size(const block_t *block)
{
    return in_size(block) / 3;
}

static size_t inner_size(const block_t *block)
{
    return (size_t) block->options.hidden * (size_t) block->stages[0].mlp.width;
}

/* Number `k` of this rank's parameters. */
static weight_t weight_at(const block_t *block, size_t k)
{
    int hidden = block->options.hidden, width = hidden / block->tp.nranks;
    int inner = block->stages[0].mlp.width, first = block->stages[0].mlp.first;
    int element = block->tp.rank * width;

    if (k < in_size(block)) {
        int column = (int) (k % (size_t) (3 * width));

        return (weight_t){(layer_weights_t) (column / width), (int) (k / (size_t) (3 * width)),
                          element + column % width};
    }
    k -= in_size(block);
    if (k < out_size(block)) {
        return (weight_t){LAYER_WO, element + (int) (k / (size_t) hidden),
                          (int) (k % (size_t) hidden)};
    }
    k -= out_size(block);
    if (k < inner_size(block)) {
        return (weight_t){LAYER_W1, (int) (k / (size_t) inner), first + (int) (k % (size_t) inner)};
    }
    k -= inner_size(block);
    if (k < inner_size(block)) {
        return (weight_t){LAYER_W2, first + (int) (k / (size_t) hidden),
                          (int) (k % (size_t) hidden)};
    }
    return (weight_t){LAYER_WEIGHTS, 0, 0};
}

static float *value_at(const block_t *block, const float *matrix)
{
    return layer_value_at(block->job->device, matrix, 0, 0);
}

static void fill_parameters(const block_t *block, int layer, size_t first, size_t count, float *to)
{
    for (size_t k = 0; k < count; k++) {
        weight_t weight = weight_at(block, first + k);

        to[k] =
            weight.which == LAYER_WEIGHTS
                ? 0
                : layer_block_weight(&block->options, layer, weight.which, weight.from, weight.to);
    }
}

/* ------------------------------------------------------------------------ make */

static void make_comms(block_t *block)
{
    int rank = block->job->rank, width = block->tp.nranks;

    MPI_Comm_split(MPI_COMM_WORLD, rank / width, rank, &block->tp_comms[1]);
    MPI_Comm_split(MPI_COMM_WORLD, rank % width, rank, &block->dp_comms[1]);
    block->tp_comms[0] = bench_own_communicator(block->tp_comms[1]);
    block->dp_comms[0] = bench_own_communicator(block->dp_comms[1]);
}

static travel_t make_travel(const block_t *block)
{
    const layer_device_t *device = block->job->device;
    size_t own = (size_t) block->share * sizeof(float), whole = (size_t) block->groups * own;

    return (travel_t){layer_room(device, own, true), layer_room(device, own, true),
                      layer_room(device, whole, true), layer_room(device, whole, true)};
}

static void free_travel(const block_t *block, const travel_t *travel)
{
    layer_room_free(block->job->device, travel->own, true);
    layer_room_free(block->job->device, travel->down, true);
    layer_room_free(block->job->device, travel->whole, true);
    layer_room_free(block->job->device, travel->dwhole, true);
}

static void make_stage(block_t *block, int number)
{
    stage_t *stage = &block->stages[number];
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
    fill_parameters(block, number, (size_t) (block->group * block->share), (size_t) block->share,
                    value_at(block, stage->own));
}

static void fill_tokens(const block_t *block, float *to, float (*value)(int token, int column))
{
    int first = block->job->rank * block->tp.rows;

    for (int row = 0; row < block->tp.rows; row++) {
        for (int column = 0; column < block->options.hidden; column++) {
            layer_at(value_at(block, to), row, block->options.hidden)[column] =
                value(first + row, column);
        }
    }
}

static void *make(layer_t *layer, const layer_options_t *options)
{
    block_t *block = layer_alloc(1, sizeof(*block));
    int width = layer->nranks / options->groups;
    size_t parameters;

    *block = (block_t){.job = layer,
                       .tp = *layer,
                       .options = *options,
                       .group = layer->rank / width,
                       .groups = options->groups,
                       .stages = layer_alloc((size_t) options->layers, sizeof(stage_t)),
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

static void free_all(void *state)
{
    block_t *block = state;

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

/* ---------------------------------------------------------------------- passes */

static bool overlaps(const block_t *block)
{
    return block->way.kind == LAYER_FLASH || block->way.kind == LAYER_NONBLOCKING ||
           block->way.kind == LAYER_SLICED;
}

static bool is_staged(const block_t *block)
{
    return block->way.kind != LAYER_COMPUTATION &&
           layer_wire_staged(block->job, block->dp_comms[block->by_flash]);
}

/* What a plain call is given: the matrices, or what travels for them. */
static travel_t given(const block_t *block, int l)
{
    const stage_t *stage = &block->stages[l];

    return is_staged(block) ? stage->travel
                            : (travel_t){stage->own, stage->down, stage->whole, stage->dwhole};
}

static void copy(const block_t *block, bool staged, float *to, const float *from, int count)
{
    if (staged) {
        layer_copy(block->job->device, to, from, (size_t) count * sizeof(float));
    }
}

static void gather(block_t *block, int l)
{
    MPI_Comm comm = block->dp_comms[block->by_flash];
    stage_t *stage = &block->stages[l];
    travel_t by = given(block, l);

    if (block->way.kind == LAYER_BLOCKING) {
        MPI_Allgather(by.own, block->share, MPI_FLOAT, by.whole, block->share, MPI_FLOAT, comm);
    } else if (block->way.kind != LAYER_COMPUTATION) {
        MPI_Iallgather(by.own, block->share, MPI_FLOAT, by.whole, block->share, MPI_FLOAT, comm,
                       &stage->gathering);
    }
}

/* The parameters are what they were: nothing that is computed later has a part in them. */
static void begin_gathers(block_t *block)
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
static void have_parameters(block_t *block, int l)
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

static void scatter(block_t *block, int l)
{
    MPI_Comm comm = block->dp_comms[block->by_flash];
    stage_t *stage = &block->stages[l];
    travel_t by = given(block, l);

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
static void add(const block_t *block, const float *a, const float *b, float *c)
{
    layer_add(block->job->device, a, b, c,
              (size_t) block->tp.rows * (size_t) block->options.hidden);
}

static void forward(block_t *block)
{
    begin_gathers(block);
    if (overlaps(block)) {
        gather(block, 0);
    }
    for (int l = 0; l < block->options.layers; l++) {
        stage_t *stage = &block->stages[l];
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

static void backward(block_t *block)
{
    for (int l = block->options.layers - 1; l >= 0; l--) {
        stage_t *stage = &block->stages[l];
        layer_attention_t *attention = &stage->attention.base;

        layer_tp_mlp_backward(&stage->mlp, &block->way);
        add(block, stage->mlp.dy, stage->mlp.dx, attention->dy);
        layer_tp_attention_backward(&stage->attention, &block->way);
        add(block, attention->dy, attention->dx, l == 0 ? block->dx : block->stages[l - 1].mlp.dy);
        scatter(block, l);
    }
    for (int l = 0; l < block->options.layers; l++) {
        stage_t *stage = &block->stages[l];

        MPI_Wait(&stage->scattering, MPI_STATUS_IGNORE);
        copy(block, is_staged(block), stage->down, stage->travel.down, block->share);
    }
}

static void run(void *state, const layer_way_t *way, int phase)
{
    block_t *block = state;

    block->way = *way;
    block->by_flash = way->comm == MPI_COMM_WORLD;
    block->way.comm = block->tp_comms[block->by_flash];
    block->way.variant = way->kind == LAYER_FLASH ? LAYER_QUERY_SPLIT : LAYER_ROW_PARALLEL;
    (phase == FORWARD ? forward : backward)(block);
}

/* ------------------------------------------------------------------- the check */

/* Without communication, some numbers stand for what would come. */
static void fill_gathered(const block_t *block, float *all)
{
    for (int token = 0; token < block->options.tokens; token++) {
        for (int column = 0; column < block->options.hidden; column++) {
            layer_at(value_at(block, all), token, block->options.hidden)[column] =
                layer_block_input(token, column);
        }
    }
}

static void prepare(void *state, const layer_way_t *way)
{
    block_t *block = state;
    int whole = block->groups * block->share;

    layer_spoil(block->job->device, block->y, block->tp.rows, block->options.hidden);
    layer_spoil(block->job->device, block->dx, block->tp.rows, block->options.hidden);
    for (int l = 0; l < block->options.layers; l++) {
        stage_t *stage = &block->stages[l];

        layer_tp_attention_spoil(&stage->attention);
        layer_tp_mlp_spoil(&stage->mlp);
        layer_spoil(block->job->device, stage->down, 1, block->share);
        layer_spoil(block->job->device, stage->whole, 1, whole);
        if (way->kind == LAYER_COMPUTATION) {
            fill_parameters(block, l, 0, (size_t) whole, value_at(block, stage->whole));
            fill_gathered(block, stage->attention.all_x);
            fill_gathered(block, stage->attention.all_dy);
            fill_gathered(block, stage->mlp.all_x);
            fill_gathered(block, stage->mlp.all_dy);
        }
    }
}

static void compare_tokens(const block_t *block, float *got, const double *expected,
                           layer_compared_t *compared)
{
    int hidden = block->options.hidden;
    size_t first = (size_t) (block->tp.rank * block->tp.rows) * (size_t) hidden;
    const float *values = value_at(block, got);

    for (size_t k = 0; k < (size_t) block->tp.rows * (size_t) hidden; k++) {
        layer_compare(compared, (double) values[k], expected[first + k]);
    }
}

/* All results: those of the tokens, and each kind of gradient. */
static double error(void *state, const layer_way_t *way)
{
    const block_t *block = state;
    layer_compared_t kinds[LAYER_WEIGHTS + 2] = {{0, 0}};

    (void) way; /* what is compared does not depend on positions */
    compare_tokens(block, block->y, block->reference->y, &kinds[LAYER_WEIGHTS]);
    compare_tokens(block, block->dx, block->reference->dx, &kinds[LAYER_WEIGHTS + 1]);
    for (int l = 0; l < block->options.layers; l++) {
        const float *down = value_at(block, block->stages[l].down);

        for (int k = 0; k < block->share; k++) {
            weight_t weight = weight_at(block, (size_t) (block->group * block->share + k));

            if (weight.which != LAYER_WEIGHTS) {
                layer_compare(&kinds[weight.which], (double) down[k],
                              layer_block_reference_slope(block->reference, l, weight.which,
                                                          weight.from, weight.to));
            }
        }
    }
    return layer_error(kinds, LAYER_WEIGHTS + 2);
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
    .make = make,
    .free = free_all,
    .run = run,
    .prepare = prepare,
    .error = error};
