/*
 * layer_attention.c: a transformer's attention, tensor and sequence parallel, with its gradients.
 *
 * Each rank has its tokens' rows of X, and some of the heads with their columns of the weights that
 * make queries, keys and values, and their rows of the output's:
 *
 *   forward:   AG(X) -> Q, K, V -> softmax(Q K') V = O -> RS(O Wo) = Y
 *   backward:  AG(dY) -> dO = dY Wo', dWo = O' dY -> dQ, dK, dV -> RS(dQ Wq' + ...) = dX,
 *              dWq = X' dQ, ...
 *
 * Row-parallel, the heads are done between the gathering and the reduction, and only products run
 * beside these; query-split, each piece of the forward's reduction is the attention of its queries,
 * too, and so is each piece of what the backward gathers. All but flash's ways are row-parallel.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "layer_attend.h"
#include "layer_math.h"

enum { ROW_PARALLEL, QUERY_SPLIT };
enum { FORWARD, BACKWARD };

typedef struct attention {
    layer_attention_t base;
    float *all_x, *all_dy; /* tokens x hidden */
    float *inner, *dinner; /* tokens x width: what the heads make of it */
    float *partial;        /* tokens x hidden: contributions */
} attention_t;

static void *make(layer_t *layer, const layer_options_t *options)
{
    attention_t *a = layer_alloc(1, sizeof(*a));

    layer_attention_make(&a->base, layer, options, false);
    a->all_x = layer_matrix(a->base.tokens, a->base.hidden);
    a->all_dy = layer_matrix(a->base.tokens, a->base.hidden);
    a->inner = layer_matrix(a->base.tokens, a->base.width);
    a->dinner = layer_matrix(a->base.tokens, a->base.width);
    a->partial = layer_matrix(a->base.tokens, a->base.hidden);
    return a;
}

static void free_all(void *state)
{
    attention_t *a = state;
    float *all[] = {a->all_x, a->all_dy, a->inner, a->dinner, a->partial};

    layer_matrices_free(all, sizeof(all) / sizeof(all[0]));
    layer_attention_free(&a->base);
    free(a);
}

/* --------------------------------------------------------------------- forward */

static void project(void *arg, int position, int rows, float *x)
{
    attention_t *a = arg;
    const layer_attention_t *base = &a->base;

    layer_multiply(&base->layer->device,
                   &(layer_product_t){.m = rows,
                                      .n = base->in_width,
                                      .k = base->hidden,
                                      .a = x,
                                      .lda = base->hidden,
                                      .b = base->in,
                                      .ldb = base->in_width,
                                      .c = layer_at(base->qkv, position, base->in_width),
                                      .ldc = base->in_width});
}

static void attend(attention_t *a, int position, int rows)
{
    layer_attention_forward(&a->base, position, rows, layer_at(a->inner, position, a->base.width));
}

static void contribute(void *arg, int position, int rows, float *y)
{
    attention_t *a = arg;
    const layer_attention_t *base = &a->base;

    if (base->way->variant == QUERY_SPLIT) {
        attend(a, position, rows);
    }
    layer_multiply(&base->layer->device,
                   &(layer_product_t){.m = rows,
                                      .n = base->hidden,
                                      .k = base->width,
                                      .a = layer_at(a->inner, position, base->width),
                                      .lda = base->width,
                                      .b = base->out,
                                      .ldb = base->hidden,
                                      .c = y,
                                      .ldc = base->hidden});
}

static void forward(attention_t *a, const layer_way_t *way)
{
    layer_attention_t *base = &a->base;

    layer_gather(base->layer, way, base->hidden, base->x, a->all_x, project, a);
    if (way->variant == ROW_PARALLEL) {
        attend(a, 0, base->tokens);
    }
    layer_scatter(base->layer, way, base->hidden, a->partial, base->y, contribute, NULL, a);
}

/* -------------------------------------------------------------------- backward */

static void attend_back(attention_t *a, int position, int rows)
{
    layer_attention_backward(&a->base, position, rows,
                             layer_at(a->dinner, position, a->base.width));
}

static void back_to_heads(void *arg, int position, int rows, float *dy)
{
    attention_t *a = arg;
    const layer_attention_t *base = &a->base;
    float *dinner = layer_at(a->dinner, position, base->width);

    layer_multiply(&base->layer->device, &(layer_product_t){.transpose_b = true,
                                                            .m = rows,
                                                            .n = base->width,
                                                            .k = base->hidden,
                                                            .a = dy,
                                                            .lda = base->hidden,
                                                            .b = base->out,
                                                            .ldb = base->hidden,
                                                            .c = dinner,
                                                            .ldc = base->width});
    if (base->way->variant == QUERY_SPLIT) {
        attend_back(a, position, rows);
    }
    layer_multiply(&base->layer->device,
                   &(layer_product_t){.transpose_a = true,
                                      .m = base->width,
                                      .n = base->hidden,
                                      .k = rows,
                                      .a = layer_at(a->inner, position, base->width),
                                      .lda = base->width,
                                      .b = dy,
                                      .ldb = base->hidden,
                                      .beta = 1,
                                      .c = base->dout,
                                      .ldc = base->hidden});
}

static void back_to_input(void *arg, int position, int rows, float *dx)
{
    attention_t *a = arg;
    const layer_attention_t *base = &a->base;

    layer_multiply(&base->layer->device,
                   &(layer_product_t){.transpose_b = true,
                                      .m = rows,
                                      .n = base->hidden,
                                      .k = base->in_width,
                                      .a = layer_at(base->dqkv, position, base->in_width),
                                      .lda = base->in_width,
                                      .b = base->in,
                                      .ldb = base->in_width,
                                      .c = dx,
                                      .ldc = base->hidden});
}

static void back_to_weights(void *arg)
{
    attention_t *a = arg;
    const layer_attention_t *base = &a->base;

    layer_multiply(&base->layer->device, &(layer_product_t){.transpose_a = true,
                                                            .m = base->hidden,
                                                            .n = base->in_width,
                                                            .k = base->tokens,
                                                            .a = a->all_x,
                                                            .lda = base->hidden,
                                                            .b = base->dqkv,
                                                            .ldb = base->in_width,
                                                            .c = base->din,
                                                            .ldc = base->in_width});
}

static void backward(attention_t *a, const layer_way_t *way)
{
    layer_attention_t *base = &a->base;

    memset(base->dout, 0, (size_t) base->width * (size_t) base->hidden * sizeof(float));
    layer_attend_begin(&base->heads);
    layer_gather(base->layer, way, base->hidden, base->dy, a->all_dy, back_to_heads, a);
    if (way->variant == ROW_PARALLEL) {
        attend_back(a, 0, base->tokens);
    }
    layer_scatter(base->layer, way, base->hidden, a->partial, base->dx, back_to_input,
                  back_to_weights, a);
}

static void run(void *state, const layer_way_t *way, int phase)
{
    attention_t *a = state;

    a->base.way = way;
    layer_heads_place(&a->base.heads, a->base.layer, way);
    (phase == FORWARD ? forward : backward)(a, way);
}

/* ------------------------------------------------------------------- the check */

static void prepare(void *state, const layer_way_t *way)
{
    attention_t *a = state;
    layer_attention_t *base = &a->base;

    layer_attention_prepare(base);
    layer_spoil(a->inner, base->tokens, base->width);
    layer_spoil(a->dinner, base->tokens, base->width);
    layer_spoil(a->partial, base->tokens, base->hidden);
    for (int token = 0; token < base->tokens; token++) {
        for (int column = 0; column < base->hidden; column++) {
            bool there = way->kind == LAYER_COMPUTATION;

            layer_at(a->all_x, token, base->hidden)[column] =
                there ? layer_attention_input(token, column) : NAN;
            layer_at(a->all_dy, token, base->hidden)[column] =
                there ? layer_attention_slope(token, column) : NAN;
        }
    }
}

const layer_workload_t layer_workload = {
    .program = "flash_attention",
    .title = "attention, tensor and sequence parallel",
    .phases = 2,
    .phase_names = {[FORWARD] = "forward", [BACKWARD] = "backward"},
    .flash_variants = {[ROW_PARALLEL] = "flash rows", [QUERY_SPLIT] = "flash queries"},
    .has_heads = true,
    .block_rows = layer_attention_rows,
    .make = make,
    .free = free_all,
    .run = run,
    .prepare = prepare,
    .error = layer_attention_error};
