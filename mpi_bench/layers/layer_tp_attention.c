/*
 * layer_tp_attention.c: see layer_tp_attention.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "layer_tp_attention.h"

#include "layer_math.h"

void layer_tp_attention_make(layer_tp_attention_t *a, layer_t *layer,
                             const layer_options_t *options)
{
    layer_attention_make(&a->base, layer, options, false);
    a->all_x = layer_matrix(layer->device, a->base.tokens, a->base.hidden);
    a->all_dy = layer_matrix(layer->device, a->base.tokens, a->base.hidden);
    a->inner = layer_matrix(layer->device, a->base.tokens, a->base.width);
    a->dinner = layer_matrix(layer->device, a->base.tokens, a->base.width);
    a->partial = layer_matrix(layer->device, a->base.tokens, a->base.hidden);
}

void layer_tp_attention_free(layer_tp_attention_t *a)
{
    layer_attention_free(&a->base);
}

void layer_tp_attention_spoil(layer_tp_attention_t *a)
{
    const layer_attention_t *base = &a->base;

    layer_attention_spoil(base);
    layer_spoil(base->layer->device, a->inner, base->tokens, base->width);
    layer_spoil(base->layer->device, a->dinner, base->tokens, base->width);
    layer_spoil(base->layer->device, a->partial, base->tokens, base->hidden);
    layer_spoil(base->layer->device, a->all_x, base->tokens, base->hidden);
    layer_spoil(base->layer->device, a->all_dy, base->tokens, base->hidden);
}

/* --------------------------------------------------------------------- forward */

static void project(void *arg, int position, int rows, float *x)
{
    const layer_attention_t *base = &((layer_tp_attention_t *) arg)->base;

    layer_linear(base->layer->device, layer_attention_in_of(base, 0), rows, x, 0,
                 layer_at(base->qkv, position, base->in_width));
}

static void attend(layer_tp_attention_t *a, int position, int rows)
{
    layer_attention_forward(&a->base, position, rows, layer_at(a->inner, position, a->base.width));
}

static void contribute(void *arg, int position, int rows, float *y)
{
    layer_tp_attention_t *a = arg;
    const layer_attention_t *base = &a->base;

    if (base->way->variant == LAYER_QUERY_SPLIT) {
        attend(a, position, rows);
    }
    layer_linear(base->layer->device, layer_attention_out_of(base, 0), rows,
                 layer_at(a->inner, position, base->width), 0, y);
}

void layer_tp_attention_forward(layer_tp_attention_t *a, const layer_way_t *way)
{
    layer_attention_t *base = &a->base;

    layer_attention_begin(base, way);
    layer_gather(base->layer, way, base->hidden, base->x, a->all_x, project, a);
    if (way->variant == LAYER_ROW_PARALLEL) {
        attend(a, 0, base->tokens);
    }
    layer_scatter(base->layer, way, base->hidden, a->partial, base->y, contribute, NULL, a);
}

/* -------------------------------------------------------------------- backward */

static void attend_back(layer_tp_attention_t *a, int position, int rows)
{
    layer_attention_backward(&a->base, position, rows,
                             layer_at(a->dinner, position, a->base.width));
}

static void back_to_heads(void *arg, int position, int rows, float *dy)
{
    layer_tp_attention_t *a = arg;
    const layer_attention_t *base = &a->base;
    layer_linear_t out = layer_attention_out_of(base, 0);

    layer_linear_back(base->layer->device, out, rows, dy, 0,
                      layer_at(a->dinner, position, base->width));
    if (base->way->variant == LAYER_QUERY_SPLIT) {
        attend_back(a, position, rows);
    }
    layer_linear_slope(base->layer->device, out, rows, layer_at(a->inner, position, base->width),
                       dy, 1);
}

static void back_to_input(void *arg, int position, int rows, float *dx)
{
    const layer_attention_t *base = &((layer_tp_attention_t *) arg)->base;

    layer_linear_back(base->layer->device, layer_attention_in_of(base, 0), rows,
                      layer_at(base->dqkv, position, base->in_width), 0, dx);
}

static void back_to_weights(void *arg)
{
    layer_tp_attention_t *a = arg;
    const layer_attention_t *base = &a->base;

    layer_linear_slope(base->layer->device, layer_attention_in_of(base, 0), base->tokens, a->all_x,
                       base->dqkv, 0);
}

void layer_tp_attention_backward(layer_tp_attention_t *a, const layer_way_t *way)
{
    layer_attention_t *base = &a->base;

    layer_attention_begin(base, way);
    layer_clear(base->layer->device, base->dout, base->width, base->hidden);
    layer_attend_begin(base->layer->device, &base->heads);
    layer_gather(base->layer, way, base->hidden, base->dy, a->all_dy, back_to_heads, a);
    if (way->variant == LAYER_ROW_PARALLEL) {
        attend_back(a, 0, base->tokens);
    }
    layer_scatter(base->layer, way, base->hidden, a->partial, base->dx, back_to_input,
                  back_to_weights, a);
}
