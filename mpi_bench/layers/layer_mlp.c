/*
 * layer_mlp.c: a transformer's MLP, tensor and sequence parallel, forward and backward.
 *
 * Each rank has its tokens' rows of X and of dY, and its columns of W1 and rows of W2:
 *
 *   forward   AG(X) -> Z = X W1 -> A = GeLU(Z) -> RS(A W2) = Y
 *   backward  AG(dY) -> dZ = (dY W2') o GeLU'(Z), dW2 += A' dY -> RS(dZ W1') = dX;  dW1 = X' dZ
 *
 * so that both gathers and both reductions run beside two products.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench_blocks.h"
#include "layer_bench.h"
#include "layer_math.h"

/* Of layer_value(). */
enum { X = 1, DY, W1, W2 };
/* Rows of the results, and columns of the inner layer, that are compared. */
enum { SAMPLES = 3 };

typedef struct mlp {
    layer_t *layer;
    int tokens, hidden, inner; /* of all ranks */
    int first, width;          /* this rank's columns of the inner layer */
    float *x, *dy;             /* rows x hidden: this rank's */
    float *all_x, *all_dy;     /* tokens x hidden: gathered */
    float *w1;                 /* hidden x width */
    float *w2;                 /* width x hidden */
    float *z, *a, *dz;         /* tokens x width */
    float *partial;            /* tokens x hidden: contributions */
    float *y, *dx;             /* rows x hidden */
    float *dw1, *dw2;          /* as w1 and w2 */
} mlp_t;

static double weight(unsigned which, int row, int column, int inner_dimension)
{
    return layer_value(which, (size_t) row, (size_t) column) / sqrt(inner_dimension);
}

static void *make(layer_t *layer, const layer_options_t *options)
{
    mlp_t *mlp = layer_alloc(1, sizeof(*mlp));
    int last = bench_share_first(options->inner, layer->nranks, layer->rank + 1);
    int first_row = layer->rank * layer->rows;

    *mlp = (mlp_t){.layer = layer,
                   .tokens = layer->rows * layer->nranks,
                   .hidden = options->hidden,
                   .inner = options->inner,
                   .first = bench_share_first(options->inner, layer->nranks, layer->rank)};
    mlp->width = last - mlp->first;
    mlp->x = layer_matrix(layer->rows, mlp->hidden);
    mlp->dy = layer_matrix(layer->rows, mlp->hidden);
    mlp->y = layer_matrix(layer->rows, mlp->hidden);
    mlp->dx = layer_matrix(layer->rows, mlp->hidden);
    mlp->all_x = layer_matrix(mlp->tokens, mlp->hidden);
    mlp->all_dy = layer_matrix(mlp->tokens, mlp->hidden);
    mlp->partial = layer_matrix(mlp->tokens, mlp->hidden);
    mlp->z = layer_matrix(mlp->tokens, mlp->width);
    mlp->a = layer_matrix(mlp->tokens, mlp->width);
    mlp->dz = layer_matrix(mlp->tokens, mlp->width);
    mlp->w1 = layer_matrix(mlp->hidden, mlp->width);
    mlp->w2 = layer_matrix(mlp->width, mlp->hidden);
    mlp->dw1 = layer_matrix(mlp->hidden, mlp->width);
    mlp->dw2 = layer_matrix(mlp->width, mlp->hidden);
    for (int row = 0; row < layer->rows; row++) {
        for (int column = 0; column < mlp->hidden; column++) {
            layer_at(mlp->x, row, mlp->hidden)[column] =
                layer_value(X, (size_t) (first_row + row), (size_t) column);
            layer_at(mlp->dy, row, mlp->hidden)[column] =
                layer_value(DY, (size_t) (first_row + row), (size_t) column);
        }
    }
    for (int row = 0; row < mlp->hidden; row++) {
        for (int column = 0; column < mlp->width; column++) {
            layer_at(mlp->w1, row, mlp->width)[column] =
                (float) weight(W1, row, mlp->first + column, mlp->hidden);
            layer_at(mlp->w2, column, mlp->hidden)[row] =
                (float) weight(W2, mlp->first + column, row, mlp->inner);
        }
    }
    return mlp;
}

static void free_all(void *state)
{
    mlp_t *mlp = state;
    float *all[] = {mlp->x, mlp->dy, mlp->y,  mlp->dx, mlp->all_x, mlp->all_dy, mlp->partial,
                    mlp->z, mlp->a,  mlp->dz, mlp->w1, mlp->w2,    mlp->dw1,    mlp->dw2};

    layer_matrices_free(all, sizeof(all) / sizeof(all[0]));
    free(mlp);
}

/* ------------------------------------------------------------------- forward */

static void activate(mlp_t *mlp, int position, int rows)
{
    size_t count = (size_t) rows * (size_t) mlp->width;
    const float *z = layer_at(mlp->z, position, mlp->width);
    float *a = layer_at(mlp->a, position, mlp->width);

    for (size_t k = 0; k < count && !mlp->layer->device.offload; k++) {
        a[k] = (float) layer_gelu(z[k]);
    }
}

static void inward(void *arg, int position, int rows, float *x)
{
    mlp_t *mlp = arg;

    layer_multiply(&mlp->layer->device,
                   &(layer_product_t){.m = rows,
                                      .n = mlp->width,
                                      .k = mlp->hidden,
                                      .a = x,
                                      .lda = mlp->hidden,
                                      .b = mlp->w1,
                                      .ldb = mlp->width,
                                      .c = layer_at(mlp->z, position, mlp->width),
                                      .ldc = mlp->width});
    activate(mlp, position, rows);
}

static void outward(void *arg, int position, int rows, float *y)
{
    mlp_t *mlp = arg;

    layer_multiply(&mlp->layer->device,
                   &(layer_product_t){.m = rows,
                                      .n = mlp->hidden,
                                      .k = mlp->width,
                                      .a = layer_at(mlp->a, position, mlp->width),
                                      .lda = mlp->width,
                                      .b = mlp->w2,
                                      .ldb = mlp->hidden,
                                      .c = y,
                                      .ldc = mlp->hidden});
}

/* ------------------------------------------------------------------ backward */

static void back_to_inner(void *arg, int position, int rows, float *dy)
{
    mlp_t *mlp = arg;
    size_t count = (size_t) rows * (size_t) mlp->width;
    const float *z = layer_at(mlp->z, position, mlp->width);
    float *dz = layer_at(mlp->dz, position, mlp->width);

    layer_multiply(&mlp->layer->device, &(layer_product_t){.transpose_b = true,
                                                           .m = rows,
                                                           .n = mlp->width,
                                                           .k = mlp->hidden,
                                                           .a = dy,
                                                           .lda = mlp->hidden,
                                                           .b = mlp->w2,
                                                           .ldb = mlp->hidden,
                                                           .c = dz,
                                                           .ldc = mlp->width});
    for (size_t k = 0; k < count && !mlp->layer->device.offload; k++) {
        dz[k] *= (float) layer_gelu_slope(z[k]);
    }
    layer_multiply(&mlp->layer->device,
                   &(layer_product_t){.transpose_a = true,
                                      .m = mlp->width,
                                      .n = mlp->hidden,
                                      .k = rows,
                                      .a = layer_at(mlp->a, position, mlp->width),
                                      .lda = mlp->width,
                                      .b = dy,
                                      .ldb = mlp->hidden,
                                      .beta = 1,
                                      .c = mlp->dw2,
                                      .ldc = mlp->hidden});
}

static void back_to_input(void *arg, int position, int rows, float *dx)
{
    mlp_t *mlp = arg;

    layer_multiply(&mlp->layer->device,
                   &(layer_product_t){.transpose_b = true,
                                      .m = rows,
                                      .n = mlp->hidden,
                                      .k = mlp->width,
                                      .a = layer_at(mlp->dz, position, mlp->width),
                                      .lda = mlp->width,
                                      .b = mlp->w1,
                                      .ldb = mlp->width,
                                      .c = dx,
                                      .ldc = mlp->hidden});
}

static void first_weights(void *arg)
{
    mlp_t *mlp = arg;

    layer_multiply(&mlp->layer->device, &(layer_product_t){.transpose_a = true,
                                                           .m = mlp->hidden,
                                                           .n = mlp->width,
                                                           .k = mlp->tokens,
                                                           .a = mlp->all_x,
                                                           .lda = mlp->hidden,
                                                           .b = mlp->dz,
                                                           .ldb = mlp->width,
                                                           .c = mlp->dw1,
                                                           .ldc = mlp->width});
}

static void run(void *state, const layer_way_t *way, int phase)
{
    mlp_t *mlp = state;

    if (phase == 0) {
        layer_gather(mlp->layer, way, mlp->hidden, mlp->x, mlp->all_x, inward, mlp);
        layer_scatter(mlp->layer, way, mlp->hidden, mlp->partial, mlp->y, outward, NULL, mlp);
        return;
    }
    memset(mlp->dw2, 0, (size_t) mlp->width * (size_t) mlp->hidden * sizeof(float));
    layer_gather(mlp->layer, way, mlp->hidden, mlp->dy, mlp->all_dy, back_to_inner, mlp);
    layer_scatter(mlp->layer, way, mlp->hidden, mlp->partial, mlp->dx, back_to_input, first_weights,
                  mlp);
}

/* ------------------------------------------------------------------- the check */

static void prepare(void *state, const layer_way_t *way)
{
    mlp_t *mlp = state;

    layer_spoil(mlp->y, mlp->layer->rows, mlp->hidden);
    layer_spoil(mlp->dx, mlp->layer->rows, mlp->hidden);
    layer_spoil(mlp->dw1, mlp->hidden, mlp->width);
    if (way->kind != LAYER_COMPUTATION) {
        layer_spoil(mlp->z, mlp->tokens, mlp->width);
        layer_spoil(mlp->a, mlp->tokens, mlp->width);
        layer_spoil(mlp->dz, mlp->tokens, mlp->width);
        layer_spoil(mlp->partial, mlp->tokens, mlp->hidden);
    }
    for (int rank = 0; rank < mlp->layer->nranks; rank++) {
        for (int row = 0; row < mlp->layer->rows; row++) {
            int position = layer_position(mlp->layer, way, rank, row);
            size_t token = (size_t) (rank * mlp->layer->rows + row);

            for (int column = 0; column < mlp->hidden; column++) {
                bool there = way->kind == LAYER_COMPUTATION;

                layer_at(mlp->all_x, position, mlp->hidden)[column] =
                    there ? layer_value(X, token, (size_t) column) : NAN;
                layer_at(mlp->all_dy, position, mlp->hidden)[column] =
                    there ? layer_value(DY, token, (size_t) column) : NAN;
            }
        }
    }
}

static double inner_of(const mlp_t *mlp, size_t token, int column)
{
    double z = 0;

    for (int h = 0; h < mlp->hidden; h++) {
        z += (double) layer_value(X, token, (size_t) h) *
             (double) (float) weight(W1, h, column, mlp->hidden);
    }
    return z;
}

static double slope_of(const mlp_t *mlp, size_t token, int column, double z)
{
    double da = 0;

    for (int h = 0; h < mlp->hidden; h++) {
        da += (double) layer_value(DY, token, (size_t) h) *
              (double) (float) weight(W2, column, h, mlp->inner);
    }
    return da * layer_gelu_slope(z);
}

/* A row of Y and of dX follows from the same of X and dY. */
static void compare_row(const mlp_t *mlp, int row, layer_compared_t *y, layer_compared_t *dx)
{
    size_t token = (size_t) (mlp->layer->rank * mlp->layer->rows + row);
    double *a = layer_alloc((size_t) mlp->inner, sizeof(*a));
    double *dz = layer_alloc((size_t) mlp->inner, sizeof(*dz));

    for (int f = 0; f < mlp->inner; f++) {
        double z = inner_of(mlp, token, f);

        a[f] = layer_gelu(z);
        dz[f] = slope_of(mlp, token, f, z);
    }
    for (int h = 0; h < mlp->hidden; h++) {
        double sum = 0, back = 0;

        for (int f = 0; f < mlp->inner; f++) {
            sum += a[f] * (double) (float) weight(W2, f, h, mlp->inner);
            back += dz[f] * (double) (float) weight(W1, h, f, mlp->hidden);
        }
        layer_compare(y, (double) layer_at(mlp->y, row, mlp->hidden)[h], sum);
        layer_compare(dx, (double) layer_at(mlp->dx, row, mlp->hidden)[h], back);
    }
    free(a);
    free(dz);
}

/* A column of dW1 and a row of dW2 follow from the same of the inner layer, of all tokens. */
static void compare_column(const mlp_t *mlp, int column, layer_compared_t *dw1,
                           layer_compared_t *dw2)
{
    double *first = layer_alloc((size_t) mlp->hidden, sizeof(*first));
    double *second = layer_alloc((size_t) mlp->hidden, sizeof(*second));

    for (size_t token = 0; token < (size_t) mlp->tokens; token++) {
        double z = inner_of(mlp, token, mlp->first + column);
        double dz = slope_of(mlp, token, mlp->first + column, z);

        for (int h = 0; h < mlp->hidden; h++) {
            first[h] += (double) layer_value(X, token, (size_t) h) * dz;
            second[h] += (double) layer_value(DY, token, (size_t) h) * layer_gelu(z);
        }
    }
    for (int h = 0; h < mlp->hidden; h++) {
        layer_compare(dw1, (double) layer_at(mlp->dw1, h, mlp->width)[column], first[h]);
        layer_compare(dw2, (double) layer_at(mlp->dw2, column, mlp->hidden)[h], second[h]);
    }
    free(first);
    free(second);
}

static double error(void *state, const layer_way_t *way)
{
    mlp_t *mlp = state;
    layer_compared_t kinds[4] = {{0, 0}};

    (void) way; /* what is compared does not depend on positions */
    for (int k = 0; k < SAMPLES && k < mlp->layer->rows; k++) {
        int row = SAMPLES < mlp->layer->rows ? k * (mlp->layer->rows - 1) / (SAMPLES - 1) : k;

        compare_row(mlp, row, &kinds[0], &kinds[1]);
    }
    for (int k = 0; k < SAMPLES && k < mlp->width; k++) {
        int column = SAMPLES < mlp->width ? k * (mlp->width - 1) / (SAMPLES - 1) : k;

        compare_column(mlp, column, &kinds[2], &kinds[3]);
    }
    return layer_error(kinds, 4);
}

/* The blocks are rows of tokens. */
static int block_rows(const layer_options_t *options, int nranks)
{
    return options->tokens / nranks;
}

const layer_workload_t layer_workload = {.program = "flash_mlp",
                                         .title = "MLP, tensor and sequence parallel",
                                         .phases = 2,
                                         .phase_names = {"forward", "backward"},
                                         .block_rows = block_rows,
                                         .make = make,
                                         .free = free_all,
                                         .run = run,
                                         .prepare = prepare,
                                         .error = error};
