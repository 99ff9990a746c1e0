/*
 * layer_tp_mlp.c: see layer_tp_mlp.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "layer_tp_mlp.h"

#include "bench_blocks.h"
#include "layer_linear.h"
#include "layer_math.h"

void layer_tp_mlp_make(layer_tp_mlp_t *mlp, layer_t *layer, const layer_options_t *options)
{
    int last = bench_share_first(options->inner, layer->nranks, layer->rank + 1);

    *mlp = (layer_tp_mlp_t){.layer = layer,
                            .tokens = layer->rows * layer->nranks,
                            .hidden = options->hidden,
                            .first = bench_share_first(options->inner, layer->nranks, layer->rank)};
    mlp->width = last - mlp->first;
    mlp->x = layer_matrix(layer->device, layer->rows, mlp->hidden);
    mlp->dy = layer_matrix(layer->device, layer->rows, mlp->hidden);
    mlp->y = layer_matrix(layer->device, layer->rows, mlp->hidden);
    mlp->dx = layer_matrix(layer->device, layer->rows, mlp->hidden);
    mlp->all_x = layer_matrix(layer->device, mlp->tokens, mlp->hidden);
    mlp->all_dy = layer_matrix(layer->device, mlp->tokens, mlp->hidden);
    mlp->partial = layer_matrix(layer->device, mlp->tokens, mlp->hidden);
    mlp->z = layer_matrix(layer->device, mlp->tokens, mlp->width);
    mlp->a = layer_matrix(layer->device, mlp->tokens, mlp->width);
    mlp->dz = layer_matrix(layer->device, mlp->tokens, mlp->width);
    mlp->w1 = layer_matrix(layer->device, mlp->hidden, mlp->width);
    mlp->w2 = layer_matrix(layer->device, mlp->width, mlp->hidden);
    mlp->dw1 = layer_matrix(layer->device, mlp->hidden, mlp->width);
    mlp->dw2 = layer_matrix(layer->device, mlp->width, mlp->hidden);
}

/* ------------------------------------------------------------------- forward */

static layer_linear_t first(const layer_tp_mlp_t *mlp)
{
    return (layer_linear_t){
        .in = mlp->hidden, .out = mlp->width, .w = mlp->w1, .dw = mlp->dw1, .stride = mlp->width};
}

static layer_linear_t second(const layer_tp_mlp_t *mlp)
{
    return (layer_linear_t){
        .in = mlp->width, .out = mlp->hidden, .w = mlp->w2, .dw = mlp->dw2, .stride = mlp->hidden};
}

static void activate(layer_tp_mlp_t *mlp, int position, int rows)
{
    layer_gelu_rows(mlp->layer->device, layer_at(mlp->z, position, mlp->width),
                    layer_at(mlp->a, position, mlp->width), (size_t) rows * (size_t) mlp->width);
}

static void inward(void *arg, int position, int rows, float *x)
{
    layer_tp_mlp_t *mlp = arg;

    layer_linear(mlp->layer->device, first(mlp), rows, x, 0,
                 layer_at(mlp->z, position, mlp->width));
    activate(mlp, position, rows);
}

static void outward(void *arg, int position, int rows, float *y)
{
    layer_tp_mlp_t *mlp = arg;

    layer_linear(mlp->layer->device, second(mlp), rows, layer_at(mlp->a, position, mlp->width), 0,
                 y);
}

/* ------------------------------------------------------------------ backward */

static void back_to_inner(void *arg, int position, int rows, float *dy)
{
    layer_tp_mlp_t *mlp = arg;
    float *dz = layer_at(mlp->dz, position, mlp->width);

    layer_linear_back(mlp->layer->device, second(mlp), rows, dy, 0, dz);
    layer_gelu_back(mlp->layer->device, dz, layer_at(mlp->z, position, mlp->width), dz,
                    (size_t) rows * (size_t) mlp->width);
    layer_linear_slope(mlp->layer->device, second(mlp), rows,
                       layer_at(mlp->a, position, mlp->width), dy, 1);
}

static void back_to_input(void *arg, int position, int rows, float *dx)
{
    layer_tp_mlp_t *mlp = arg;

    layer_linear_back(mlp->layer->device, first(mlp), rows, layer_at(mlp->dz, position, mlp->width),
                      0, dx);
}

static void first_weights(void *arg)
{
    layer_tp_mlp_t *mlp = arg;

    layer_linear_slope(mlp->layer->device, first(mlp), mlp->tokens, mlp->all_x, mlp->dz, 0);
}

void layer_tp_mlp_forward(layer_tp_mlp_t *mlp, const layer_way_t *way)
{
    layer_gather(mlp->layer, way, mlp->hidden, mlp->x, mlp->all_x, inward, mlp);
    layer_scatter(mlp->layer, way, mlp->hidden, mlp->partial, mlp->y, outward, NULL, mlp);
}

void layer_tp_mlp_backward(layer_tp_mlp_t *mlp, const layer_way_t *way)
{
    layer_clear(mlp->layer->device, mlp->dw2, mlp->width, mlp->hidden);
    layer_gather(mlp->layer, way, mlp->hidden, mlp->dy, mlp->all_dy, back_to_inner, mlp);
    layer_scatter(mlp->layer, way, mlp->hidden, mlp->partial, mlp->dx, back_to_input, first_weights,
                  mlp);
}

/* All that a run leaves, so that none finds what another one has left. */
void layer_tp_mlp_spoil(layer_tp_mlp_t *mlp)
{
    layer_spoil(mlp->layer->device, mlp->y, mlp->layer->rows, mlp->hidden);
    layer_spoil(mlp->layer->device, mlp->dx, mlp->layer->rows, mlp->hidden);
    layer_spoil(mlp->layer->device, mlp->all_x, mlp->tokens, mlp->hidden);
    layer_spoil(mlp->layer->device, mlp->all_dy, mlp->tokens, mlp->hidden);
    layer_spoil(mlp->layer->device, mlp->partial, mlp->tokens, mlp->hidden);
    layer_spoil(mlp->layer->device, mlp->z, mlp->tokens, mlp->width);
    layer_spoil(mlp->layer->device, mlp->a, mlp->tokens, mlp->width);
    layer_spoil(mlp->layer->device, mlp->dz, mlp->tokens, mlp->width);
    layer_spoil(mlp->layer->device, mlp->dw1, mlp->hidden, mlp->width);
    layer_spoil(mlp->layer->device, mlp->dw2, mlp->width, mlp->hidden);
}
