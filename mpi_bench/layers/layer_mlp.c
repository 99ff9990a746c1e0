/*
 * layer_mlp.c: a transformer's MLP, tensor and sequence parallel (layer_tp_mlp.h), by itself.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <math.h>
#include <stdlib.h>

#include "layer_math.h"
#include "layer_tp_mlp.h"

/* Of layer_value(). */
enum { X = 1, DY, W1, W2 };
/* Rows of the results, and columns of the inner layer, that are compared. */
enum { SAMPLES = 3 };

typedef struct program {
    layer_tp_mlp_t mlp;
    int inner; /* of all ranks */
} program_t;

static double weight(unsigned which, int row, int column, int inner_dimension)
{
    return layer_value(which, (size_t) row, (size_t) column) / sqrt(inner_dimension);
}

static float *value_at(const layer_tp_mlp_t *mlp, const float *matrix, int row, int width)
{
    return layer_value_at(mlp->layer->device, matrix, row, width);
}

static void *make(layer_t *layer, const layer_options_t *options)
{
    program_t *program = layer_alloc(1, sizeof(*program));
    layer_tp_mlp_t *mlp = &program->mlp;
    int first_row = layer->rank * layer->rows;

    layer_tp_mlp_make(mlp, layer, options);
    program->inner = options->inner;
    for (int row = 0; row < layer->rows; row++) {
        for (int column = 0; column < mlp->hidden; column++) {
            value_at(mlp, mlp->x, row, mlp->hidden)[column] =
                layer_value(X, (size_t) (first_row + row), (size_t) column);
            value_at(mlp, mlp->dy, row, mlp->hidden)[column] =
                layer_value(DY, (size_t) (first_row + row), (size_t) column);
        }
    }
    for (int row = 0; row < mlp->hidden; row++) {
        for (int column = 0; column < mlp->width; column++) {
            value_at(mlp, mlp->w1, row, mlp->width)[column] =
                (float) weight(W1, row, mlp->first + column, mlp->hidden);
            value_at(mlp, mlp->w2, column, mlp->hidden)[row] =
                (float) weight(W2, mlp->first + column, row, program->inner);
        }
    }
    return program;
}

static void free_all(void *state)
{
    free(state);
}

static void run(void *state, const layer_way_t *way, int phase)
{
    program_t *program = state;

    (phase == 0 ? layer_tp_mlp_forward : layer_tp_mlp_backward)(&program->mlp, way);
}

/* ------------------------------------------------------------------- the check */

static void prepare(void *state, const layer_way_t *way)
{
    program_t *program = state;
    layer_tp_mlp_t *mlp = &program->mlp;

    layer_tp_mlp_spoil(mlp);
    for (int rank = 0; rank < mlp->layer->nranks; rank++) {
        for (int row = 0; row < mlp->layer->rows; row++) {
            int position = layer_position(mlp->layer, way, rank, row);
            size_t token = (size_t) (rank * mlp->layer->rows + row);

            for (int column = 0; column < mlp->hidden; column++) {
                bool there = way->kind == LAYER_COMPUTATION;

                value_at(mlp, mlp->all_x, position, mlp->hidden)[column] =
                    there ? layer_value(X, token, (size_t) column) : NAN;
                value_at(mlp, mlp->all_dy, position, mlp->hidden)[column] =
                    there ? layer_value(DY, token, (size_t) column) : NAN;
            }
        }
    }
}

static double inner_of(const program_t *program, size_t token, int column)
{
    double z = 0;

    for (int h = 0; h < program->mlp.hidden; h++) {
        z += (double) layer_value(X, token, (size_t) h) *
             (double) (float) weight(W1, h, column, program->mlp.hidden);
    }
    return z;
}

static double slope_of(const program_t *program, size_t token, int column, double z)
{
    double da = 0;

    for (int h = 0; h < program->mlp.hidden; h++) {
        da += (double) layer_value(DY, token, (size_t) h) *
              (double) (float) weight(W2, column, h, program->inner);
    }
    return da * layer_gelu_slope(z);
}

/* A row of Y and of dX follows from the same of X and dY. */
static void compare_row(const program_t *program, int row, layer_compared_t *y,
                        layer_compared_t *dx)
{
    const layer_tp_mlp_t *mlp = &program->mlp;
    size_t token = (size_t) (mlp->layer->rank * mlp->layer->rows + row);
    double *a = layer_alloc((size_t) program->inner, sizeof(*a));
    double *dz = layer_alloc((size_t) program->inner, sizeof(*dz));

    for (int f = 0; f < program->inner; f++) {
        double z = inner_of(program, token, f);

        a[f] = layer_gelu(z);
        dz[f] = slope_of(program, token, f, z);
    }
    for (int h = 0; h < mlp->hidden; h++) {
        double sum = 0, back = 0;

        for (int f = 0; f < program->inner; f++) {
            sum += a[f] * (double) (float) weight(W2, f, h, program->inner);
            back += dz[f] * (double) (float) weight(W1, h, f, mlp->hidden);
        }
        layer_compare(y, (double) value_at(mlp, mlp->y, row, mlp->hidden)[h], sum);
        layer_compare(dx, (double) value_at(mlp, mlp->dx, row, mlp->hidden)[h], back);
    }
    free(a);
    free(dz);
}

/* A column of dW1 and a row of dW2 follow from the same of the inner layer, of all tokens. */
static void compare_column(const program_t *program, int column, layer_compared_t *dw1,
                           layer_compared_t *dw2)
{
    const layer_tp_mlp_t *mlp = &program->mlp;
    double *first = layer_alloc((size_t) mlp->hidden, sizeof(*first));
    double *second = layer_alloc((size_t) mlp->hidden, sizeof(*second));

    for (size_t token = 0; token < (size_t) mlp->tokens; token++) {
        double z = inner_of(program, token, mlp->first + column);
        double dz = slope_of(program, token, mlp->first + column, z);

        for (int h = 0; h < mlp->hidden; h++) {
            first[h] += (double) layer_value(X, token, (size_t) h) * dz;
            second[h] += (double) layer_value(DY, token, (size_t) h) * layer_gelu(z);
        }
    }
    for (int h = 0; h < mlp->hidden; h++) {
        layer_compare(dw1, (double) value_at(mlp, mlp->dw1, h, mlp->width)[column], first[h]);
        layer_compare(dw2, (double) value_at(mlp, mlp->dw2, column, mlp->hidden)[h], second[h]);
    }
    free(first);
    free(second);
}

static double error(void *state, const layer_way_t *way)
{
    const program_t *program = state;
    const layer_tp_mlp_t *mlp = &program->mlp;
    layer_compared_t kinds[4] = {{0, 0}};

    (void) way; /* what is compared does not depend on positions */
    for (int k = 0; k < SAMPLES && k < mlp->layer->rows; k++) {
        int row = SAMPLES < mlp->layer->rows ? k * (mlp->layer->rows - 1) / (SAMPLES - 1) : k;

        compare_row(program, row, &kinds[0], &kinds[1]);
    }
    for (int k = 0; k < SAMPLES && k < mlp->width; k++) {
        int column = SAMPLES < mlp->width ? k * (mlp->width - 1) / (SAMPLES - 1) : k;

        compare_column(program, column, &kinds[2], &kinds[3]);
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
