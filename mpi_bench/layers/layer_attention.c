/*
 * layer_attention.c: a transformer's attention, tensor and sequence parallel.
 *
 * Each rank has its tokens' rows of X, and some of the heads with their columns of the weights that
 * make queries, keys and values, and their rows of the output's:
 *
 *   AG(X) -> Q, K, V -> softmax(Q K') V = O -> RS(O Wo) = Y
 *
 * Row-parallel, the heads are done when the reduction begins, and only the last product runs beside
 * it; query-split, each piece of the reduction is the attention of its queries, too. All but
 * flash's ways are row-parallel.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <stdlib.h>

#include "layer_attend.h"
#include "layer_math.h"

enum { ROW_PARALLEL, QUERY_SPLIT };

typedef struct attention {
    layer_t *layer;
    const layer_way_t *way;
    int tokens, hidden;
    int width;      /* of this rank's heads */
    float *x, *y;   /* rows x hidden */
    float *all_x;   /* tokens x hidden */
    float *in;      /* hidden x 3 width: weights */
    float *out;     /* width x hidden */
    float *qkv;     /* tokens x 3 width */
    float *inner;   /* tokens x width: what the heads make of it */
    float *partial; /* tokens x hidden: contributions */
    layer_heads_t heads;
    layer_reference_t reference;
} attention_t;

static float *at(float *matrix, int row, int width)
{
    return matrix + (size_t) row * (size_t) width;
}

static float *make_matrix(int rows, int width)
{
    return layer_alloc((size_t) rows * (size_t) width + 1, sizeof(float));
}

static void fill(attention_t *a)
{
    int first = a->layer->rank * a->width;

    for (int row = 0; row < a->layer->rows; row++) {
        for (int column = 0; column < a->hidden; column++) {
            at(a->x, row, a->hidden)[column] =
                layer_attention_input(a->layer->rank * a->layer->rows + row, column);
        }
    }
    for (int h = 0; h < a->hidden; h++) {
        for (int column = 0; column < a->width; column++) {
            for (int which = LAYER_QUERIES; which <= LAYER_VALUES; which++) {
                at(a->in, h, 3 * a->width)[which * a->width + column] = layer_attention_weight(
                    (layer_projection_t) which, h, first + column, a->hidden);
            }
            at(a->out, column, a->hidden)[h] =
                layer_attention_weight(LAYER_OUTPUT, first + column, h, a->hidden);
        }
    }
}

static void *make(layer_t *layer, const layer_options_t *options)
{
    attention_t *a = layer_alloc(1, sizeof(*a));

    *a = (attention_t){.layer = layer,
                       .tokens = layer->rows * layer->nranks,
                       .hidden = options->hidden,
                       .width = options->hidden / layer->nranks};
    a->x = make_matrix(layer->rows, a->hidden);
    a->y = make_matrix(layer->rows, a->hidden);
    a->all_x = make_matrix(a->tokens, a->hidden);
    a->in = make_matrix(a->hidden, 3 * a->width);
    a->out = make_matrix(a->width, a->hidden);
    a->qkv = make_matrix(a->tokens, 3 * a->width);
    a->inner = make_matrix(a->tokens, a->width);
    a->partial = make_matrix(a->tokens, a->hidden);
    a->heads = layer_heads_make(layer, options, a->qkv);
    fill(a);
    if (!layer->device.offload) {
        layer_reference_make(&a->reference, options);
    }
    return a;
}

static void free_all(void *state)
{
    attention_t *a = state;
    float *all[] = {a->x, a->y, a->all_x, a->in, a->out, a->qkv, a->inner, a->partial};

    for (size_t k = 0; k < sizeof(all) / sizeof(all[0]); k++) {
        free(all[k]);
    }
    layer_heads_free(&a->heads);
    layer_reference_free(&a->reference);
    free(a);
}

static void project(void *arg, int position, int rows, float *x)
{
    attention_t *a = arg;

    layer_multiply(&a->layer->device, &(layer_product_t){.m = rows,
                                                         .n = 3 * a->width,
                                                         .k = a->hidden,
                                                         .a = x,
                                                         .lda = a->hidden,
                                                         .b = a->in,
                                                         .ldb = 3 * a->width,
                                                         .c = at(a->qkv, position, 3 * a->width),
                                                         .ldc = 3 * a->width});
}

static void attend(attention_t *a, int position, int rows)
{
    layer_attend(&a->layer->device, &a->heads, position, rows, at(a->inner, position, a->width),
                 a->width);
}

static void contribute(void *arg, int position, int rows, float *y)
{
    attention_t *a = arg;

    if (a->way->variant == QUERY_SPLIT) {
        attend(a, position, rows);
    }
    layer_multiply(&a->layer->device, &(layer_product_t){.m = rows,
                                                         .n = a->hidden,
                                                         .k = a->width,
                                                         .a = at(a->inner, position, a->width),
                                                         .lda = a->width,
                                                         .b = a->out,
                                                         .ldb = a->hidden,
                                                         .c = y,
                                                         .ldc = a->hidden});
}

static void run(void *state, const layer_way_t *way, int phase)
{
    attention_t *a = state;

    (void) phase;
    a->way = way;
    layer_heads_place(&a->heads, a->layer, way);
    layer_gather(a->layer, way, a->hidden, a->x, a->all_x, project, a);
    if (way->variant == ROW_PARALLEL) {
        attend(a, 0, a->tokens);
    }
    layer_scatter(a->layer, way, a->hidden, a->partial, a->y, contribute, NULL, a);
}

/* ------------------------------------------------------------------- the check */

static void prepare(void *state, const layer_way_t *way)
{
    attention_t *a = state;

    layer_spoil(a->y, a->layer->rows, a->hidden);
    if (way->kind != LAYER_COMPUTATION) {
        layer_spoil(a->qkv, a->tokens, 3 * a->width);
        layer_spoil(a->inner, a->tokens, a->width);
        layer_spoil(a->partial, a->tokens, a->hidden);
        layer_spoil(a->all_x, a->tokens, a->hidden);
        return;
    }
    for (int token = 0; token < a->tokens; token++) {
        for (int column = 0; column < a->hidden; column++) {
            at(a->all_x, token, a->hidden)[column] = layer_attention_input(token, column);
        }
    }
}

static double error(void *state, const layer_way_t *way)
{
    attention_t *a = state;

    (void) way;
    return layer_reference_error(&a->reference, a->layer, a->y);
}

const layer_workload_t layer_workload = {
    .program = "flash_attention",
    .title = "attention, tensor and sequence parallel",
    .phases = 1,
    .phase_names = {"forward"},
    .flash_variants = {[ROW_PARALLEL] = "flash rows", [QUERY_SPLIT] = "flash queries"},
    .has_heads = true,
    .block_rows = layer_attention_rows,
    .make = make,
    .free = free_all,
    .run = run,
    .prepare = prepare,
    .error = error};
