/*
 * layer_ulysses.c: attention whose sequence is split, and whose heads are exchanged (Ulysses), with
 * its gradients.
 *
 * Each rank has its tokens' rows of X, and all weights. It makes queries, keys and values of all
 * heads for its tokens, and exchanges them for those of its own heads for all tokens; and what the
 * heads make of these, the other way round. The gradients go the same way back:
 *
 *   X -> Q, K, V -> A2A -> softmax(Q K') V = O -> A2A -> Y = sum of O Wo over the heads' groups
 *   dY -> dO = dY Wo', dWo = O' dY -> A2A -> dQ, dK, dV -> A2A -> dX, dWq, dWk, dWv
 *
 * The first exchange runs beside the projection, which is made for one receiver after another; the
 * second beside the attention, which is that of one receiver's queries after another, and beside
 * the output's projection of what has come; the third beside what makes dO, and the gradient of the
 * attention of the queries that have come; the last beside the products with what has come. The
 * weights' gradients are those of this rank's tokens: to add them over the ranks is not a part.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <math.h>
#include <stdlib.h>

#include "layer_attend.h"
#include "layer_math.h"

enum { PROJECTION, ATTENTION, ATTENTION_BACK, PROJECTION_BACK };

/* What is of all heads is of this rank's tokens, group by group: nranks x rows. */
typedef struct ulysses {
    layer_attention_t base;
    float *made, *dmade;   /* tokens x 3 width: all heads' queries, keys and values */
    float *inner, *dinner; /* tokens x width: of this rank's heads, of all tokens */
    float *mine, *dmine;   /* tokens x width: all heads' */
} ulysses_t;

static void *make(layer_t *layer, const layer_options_t *options)
{
    ulysses_t *u = layer_alloc(1, sizeof(*u));

    layer_attention_make(&u->base, layer, options, true);
    layer_attention_fill(&u->base, options);
    u->made = layer_matrix(layer->device, u->base.tokens, 3 * u->base.width);
    u->dmade = layer_matrix(layer->device, u->base.tokens, 3 * u->base.width);
    u->inner = layer_matrix(layer->device, u->base.tokens, u->base.width);
    u->dinner = layer_matrix(layer->device, u->base.tokens, u->base.width);
    u->mine = layer_matrix(layer->device, u->base.tokens, u->base.width);
    u->dmine = layer_matrix(layer->device, u->base.tokens, u->base.width);
    return u;
}

static void free_all(void *state)
{
    ulysses_t *u = state;

    layer_attention_free(&u->base);
    free(u);
}

/* What stands at a position of all heads': a group, and this rank's row of X and Y. */
typedef struct part {
    int group, row;
} part_t;

static part_t part_of(const layer_attention_t *base, int position)
{
    int row = layer_row(base->layer, base->way, position);

    return (part_t){.group = row / base->layer->rows, .row = row % base->layer->rows};
}

/* --------------------------------------------------------------------- forward */

static void project(void *arg, int position, int rows, float *made)
{
    const layer_attention_t *base = &((ulysses_t *) arg)->base;
    part_t part = part_of(base, position);

    layer_linear(base->layer->device, layer_attention_in_of(base, part.group), rows,
                 layer_at(base->x, part.row, base->hidden), 0, made);
}

static void attend(void *arg, int position, int rows, float *inner)
{
    ulysses_t *u = arg;

    layer_attention_forward(&u->base, position, rows, inner);
}

static void project_out(void *arg, int position, int rows, float *mine)
{
    const layer_attention_t *base = &((ulysses_t *) arg)->base;
    part_t part = part_of(base, position);

    layer_linear(base->layer->device, layer_attention_out_of(base, part.group), rows, mine, 1,
                 layer_at(base->y, part.row, base->hidden));
}

/* -------------------------------------------------------------------- backward */

static void project_out_back(void *arg, int position, int rows, float *dmine)
{
    ulysses_t *u = arg;
    const layer_attention_t *base = &u->base;
    part_t part = part_of(base, position);
    layer_linear_t out = layer_attention_out_of(base, part.group);
    const float *dy = layer_at(base->dy, part.row, base->hidden);

    layer_linear_back(base->layer->device, out, rows, dy, 0, dmine);
    layer_linear_slope(base->layer->device, out, rows, layer_at(u->mine, position, base->width), dy,
                       1);
}

static void attend_back(void *arg, int position, int rows, float *dinner)
{
    ulysses_t *u = arg;

    layer_attention_backward(&u->base, position, rows, dinner);
}

static void project_back(void *arg, int position, int rows, float *dmade)
{
    const layer_attention_t *base = &((ulysses_t *) arg)->base;
    part_t part = part_of(base, position);
    layer_linear_t in = layer_attention_in_of(base, part.group);

    layer_linear_back(base->layer->device, in, rows, dmade, 1,
                      layer_at(base->dx, part.row, base->hidden));
    layer_linear_slope(base->layer->device, in, rows, layer_at(base->x, part.row, base->hidden),
                       dmade, 1);
}

/* -------------------------------------------------------------------------- run */

static void run(void *state, const layer_way_t *way, int phase)
{
    ulysses_t *u = state;
    layer_attention_t *base = &u->base;
    layer_t *layer = base->layer;

    layer_attention_begin(base, way);
    switch (phase) {
    case PROJECTION:
        layer_exchange(layer, way, 3 * base->width, u->made, base->qkv, project, NULL, u);
        break;
    case ATTENTION:
        layer_clear(layer->device, base->y, layer->rows, base->hidden);
        layer_exchange(layer, way, base->width, u->inner, u->mine, attend, project_out, u);
        break;
    case ATTENTION_BACK:
        layer_clear(layer->device, base->dout, base->out_width, base->hidden);
        layer_attend_begin(base->layer->device, &base->heads);
        layer_exchange(layer, way, base->width, u->dmine, u->dinner, project_out_back, attend_back,
                       u);
        break;
    default:
        layer_clear(layer->device, base->dx, layer->rows, base->hidden);
        layer_clear(layer->device, base->din, base->hidden, base->in_width);
        layer_exchange(layer, way, 3 * base->width, base->dqkv, u->dmade, NULL, project_back, u);
    }
}

/* What comes is unusable; without communication, it is there. */
static void prepare_coming(const ulysses_t *u, const layer_way_t *way, float *matrix, int rows,
                           int width)
{
    for (int row = 0; row < rows; row++) {
        for (int column = 0; column < width; column++) {
            layer_value_at(u->base.layer->device, matrix, row, width)[column] =
                way->kind == LAYER_COMPUTATION ? layer_attention_input(row, column) : NAN;
        }
    }
}

static void prepare(void *state, const layer_way_t *way)
{
    ulysses_t *u = state;
    layer_attention_t *base = &u->base;
    int tokens = base->tokens, width = base->width;

    layer_attention_spoil(base);
    layer_spoil(base->layer->device, u->made, tokens, 3 * width);
    layer_spoil(base->layer->device, u->inner, tokens, width);
    layer_spoil(base->layer->device, u->dmine, tokens, width);
    prepare_coming(u, way, base->qkv, tokens, 3 * width);
    prepare_coming(u, way, u->mine, tokens, width);
    prepare_coming(u, way, u->dinner, tokens, width);
    prepare_coming(u, way, u->dmade, tokens, 3 * width);
}

static double error(void *state, const layer_way_t *way)
{
    const ulysses_t *u = state;

    (void) way;
    return layer_attention_error(&u->base);
}

const layer_workload_t layer_workload = {.program = "flash_ulysses",
                                         .title = "attention, its heads exchanged (Ulysses)",
                                         .phases = 4,
                                         .phase_names = {[PROJECTION] = "projection",
                                                         [ATTENTION] = "attention",
                                                         [ATTENTION_BACK] = "attention back",
                                                         [PROJECTION_BACK] = "projection back"},
                                         .has_heads = true,
                                         .exchanges = true,
                                         .block_rows = layer_attention_rows,
                                         .make = make,
                                         .free = free_all,
                                         .run = run,
                                         .prepare = prepare,
                                         .error = error};
