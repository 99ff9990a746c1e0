/*
 * layer_ulysses.c: attention whose sequence is split, and whose heads are exchanged (Ulysses).
 *
 * Each rank has its tokens' rows of X, and all weights. It makes queries, keys and values of all
 * heads for its tokens, and exchanges them for those of its own heads for all tokens; and what the
 * heads make of these, the other way round:
 *
 *   X -> Q, K, V -> A2A -> softmax(Q K') V = O -> A2A -> Y = sum of O Wo over the heads' groups
 *
 * The first exchange runs beside the projection, which is made for one receiver after another; the
 * second beside the attention, which is that of one receiver's queries after another, and beside
 * the output's projection of what has come.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <stdlib.h>
#include <string.h>

#include "layer_attend.h"
#include "layer_math.h"

typedef struct ulysses {
    layer_t *layer;
    const layer_way_t *way;
    int tokens, hidden;
    int width;    /* of a rank's heads */
    float *x, *y; /* rows x hidden */
    float *in;    /* hidden x 3 hidden: weights, by groups of heads */
    float *out;   /* hidden x hidden */
    float *made;  /* tokens x 3 width: for all ranks' heads, of this rank's tokens */
    float *qkv;   /* tokens x 3 width: of this rank's heads, of all tokens */
    float *inner; /* tokens x width: of this rank's heads */
    float *mine;  /* tokens x width: of all heads, of this rank's tokens */
    layer_heads_t heads;
    layer_reference_t reference;
} ulysses_t;

static float *at(float *matrix, int row, int width)
{
    return matrix + (size_t) row * (size_t) width;
}

static float *make_matrix(int rows, int width)
{
    return layer_alloc((size_t) rows * (size_t) width + 1, sizeof(float));
}

static void fill(ulysses_t *u)
{
    for (int row = 0; row < u->layer->rows; row++) {
        for (int column = 0; column < u->hidden; column++) {
            at(u->x, row, u->hidden)[column] =
                layer_attention_input(u->layer->rank * u->layer->rows + row, column);
        }
    }
    for (int h = 0; h < u->hidden; h++) {
        for (int column = 0; column < u->hidden; column++) {
            int group = column / u->width, place = column % u->width;

            for (int which = LAYER_QUERIES; which <= LAYER_VALUES; which++) {
                at(u->in, h, 3 * u->hidden)[(3 * group + which) * u->width + place] =
                    layer_attention_weight((layer_projection_t) which, h, column, u->hidden);
            }
            at(u->out, h, u->hidden)[column] =
                layer_attention_weight(LAYER_OUTPUT, h, column, u->hidden);
        }
    }
}

static void *make(layer_t *layer, const layer_options_t *options)
{
    ulysses_t *u = layer_alloc(1, sizeof(*u));

    *u = (ulysses_t){.layer = layer,
                     .tokens = layer->rows * layer->nranks,
                     .hidden = options->hidden,
                     .width = options->hidden / layer->nranks};
    u->x = make_matrix(layer->rows, u->hidden);
    u->y = make_matrix(layer->rows, u->hidden);
    u->in = make_matrix(u->hidden, 3 * u->hidden);
    u->out = make_matrix(u->hidden, u->hidden);
    u->made = make_matrix(u->tokens, 3 * u->width);
    u->qkv = make_matrix(u->tokens, 3 * u->width);
    u->inner = make_matrix(u->tokens, u->width);
    u->mine = make_matrix(u->tokens, u->width);
    u->heads = layer_heads_make(layer, options, u->qkv);
    fill(u);
    if (!layer->device.offload) {
        layer_reference_make(&u->reference, options);
    }
    return u;
}

static void free_all(void *state)
{
    ulysses_t *u = state;
    float *all[] = {u->x, u->y, u->in, u->out, u->made, u->qkv, u->inner, u->mine};

    for (size_t k = 0; k < sizeof(all) / sizeof(all[0]); k++) {
        free(all[k]);
    }
    layer_heads_free(&u->heads);
    layer_reference_free(&u->reference);
    free(u);
}

/* For the heads of the rank whose rows these are; the tokens are this rank's. */
static void project(void *arg, int position, int rows, float *made)
{
    ulysses_t *u = arg;
    int row = layer_row(u->layer, u->way, position);
    int rank = row / u->layer->rows, token = row % u->layer->rows;

    layer_multiply(&u->layer->device, &(layer_product_t){.m = rows,
                                                         .n = 3 * u->width,
                                                         .k = u->hidden,
                                                         .a = at(u->x, token, u->hidden),
                                                         .lda = u->hidden,
                                                         .b = u->in + 3 * rank * u->width,
                                                         .ldb = 3 * u->hidden,
                                                         .c = made,
                                                         .ldc = 3 * u->width});
}

/* For the tokens of the rank whose rows these are; the heads are this rank's. */
static void attend(void *arg, int position, int rows, float *inner)
{
    ulysses_t *u = arg;

    layer_attend(&u->layer->device, &u->heads, position, rows, inner, u->width);
}

/* What the heads of the rank whose rows these are make of this rank's tokens. */
static void project_out(void *arg, int position, int rows, float *inner)
{
    ulysses_t *u = arg;
    int row = layer_row(u->layer, u->way, position);
    int rank = row / u->layer->rows, token = row % u->layer->rows;

    layer_multiply(&u->layer->device,
                   &(layer_product_t){.m = rows,
                                      .n = u->hidden,
                                      .k = u->width,
                                      .a = inner,
                                      .lda = u->width,
                                      .b = at(u->out, rank * u->width, u->hidden),
                                      .ldb = u->hidden,
                                      .beta = 1,
                                      .c = at(u->y, token, u->hidden),
                                      .ldc = u->hidden});
}

static void run(void *state, const layer_way_t *way, int phase)
{
    ulysses_t *u = state;

    u->way = way;
    layer_heads_place(&u->heads, u->layer, way);
    if (phase == 0) {
        layer_exchange(u->layer, way, 3 * u->width, u->made, u->qkv, project, NULL, u);
        return;
    }
    memset(u->y, 0, (size_t) u->layer->rows * (size_t) u->hidden * sizeof(float));
    layer_exchange(u->layer, way, u->width, u->inner, u->mine, attend, project_out, u);
}

/* ------------------------------------------------------------------- the check */

static void prepare(void *state, const layer_way_t *way)
{
    ulysses_t *u = state;

    layer_spoil(u->y, u->layer->rows, u->hidden);
    if (way->kind != LAYER_COMPUTATION) {
        layer_spoil(u->made, u->tokens, 3 * u->width);
        layer_spoil(u->qkv, u->tokens, 3 * u->width);
        layer_spoil(u->inner, u->tokens, u->width);
        layer_spoil(u->mine, u->tokens, u->width);
        return;
    }
    for (int row = 0; row < u->tokens; row++) {
        for (int column = 0; column < 3 * u->width; column++) {
            at(u->qkv, row, 3 * u->width)[column] = layer_attention_input(row, column);
            if (column < u->width) {
                at(u->mine, row, u->width)[column] = layer_attention_input(row, column);
            }
        }
    }
}

static double error(void *state, const layer_way_t *way)
{
    ulysses_t *u = state;

    (void) way;
    return layer_reference_error(&u->reference, u->layer, u->y);
}

const layer_workload_t layer_workload = {.program = "flash_ulysses",
                                         .title = "attention, its heads exchanged (Ulysses)",
                                         .phases = 2,
                                         .phase_names = {"projection", "attention"},
                                         .has_heads = true,
                                         .block_rows = layer_attention_rows,
                                         .make = make,
                                         .free = free_all,
                                         .run = run,
                                         .prepare = prepare,
                                         .error = error};
