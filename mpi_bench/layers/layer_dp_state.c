/*
 * layer_dp_state.c: the matrices of data parallel training, and the numbers that they begin with;
 * see layer_dp.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "layer_dp.h"

#include <math.h>
#include <stdlib.h>

#include "layer_wire.h"

/* Of layer_value(); a layer's weights have a number of their own from the last one on. */
enum { INPUT = 1, GRADIENT, WEIGHTS };

size_t layer_dp_size(const layer_dp_t *dp, int rows)
{
    return (size_t) rows * (size_t) dp->width;
}

double layer_dp_weight(const layer_dp_t *dp, int layer, int row, int column)
{
    double value = layer_value(WEIGHTS + (unsigned) layer, (size_t) row, (size_t) column);

    return (double) (float) (1.7 * value / sqrt(dp->width));
}

size_t layer_dp_token(const layer_dp_t *dp, int rank, int token)
{
    return (size_t) rank * (size_t) dp->tokens + (size_t) token;
}

float layer_dp_input(size_t token, size_t column)
{
    return layer_value(INPUT, token, column);
}

float layer_dp_slope(size_t token, size_t column)
{
    return layer_value(GRADIENT, token, column);
}

static float **make_matrices(layer_device_t *device, int count, int rows, int width)
{
    float **made = layer_alloc((size_t) count, sizeof(*made));

    for (int k = 0; k < count; k++) {
        made[k] = layer_matrix(device, rows, width);
    }
    return made;
}

float *layer_dp_sent(const layer_dp_t *dp, int l)
{
    return dp->sent + (size_t) l * layer_dp_size(dp, dp->width);
}

bool layer_dp_is_apart(const layer_dp_t *dp)
{
    return dp->layer->wire->half || dp->layer->device->own_memory;
}

static void make_travels(layer_dp_t *dp)
{
    const layer_device_t *device = dp->layer->device;
    size_t own = layer_dp_size(dp, dp->layer->rows) * dp->layer->wire->size;
    size_t all = layer_dp_size(dp, dp->width) * dp->layer->wire->size;

    dp->travels = layer_alloc((size_t) dp->layers, sizeof(*dp->travels));
    for (int l = 0; l < dp->layers; l++) {
        dp->travels[l] =
            !layer_dp_is_apart(dp)
                ? (layer_dp_travel_t){dp->own[l], dp->w[l], layer_dp_sent(dp, l), dp->dw[l]}
                : (layer_dp_travel_t){layer_room(device, own, true), layer_room(device, all, true),
                                      layer_room(device, all, true), layer_room(device, own, true)};
    }
}

static void free_travels(layer_dp_t *dp)
{
    const layer_device_t *device = dp->layer->device;

    for (int l = 0; l < dp->layers && layer_dp_is_apart(dp); l++) {
        layer_room_free(device, dp->travels[l].own, true);
        layer_room_free(device, dp->travels[l].all, true);
        layer_room_free(device, dp->travels[l].sent, true);
        layer_room_free(device, dp->travels[l].reduced, true);
    }
    free(dp->travels);
}

float *layer_dp_value_at(const layer_dp_t *dp, const float *matrix, int row)
{
    return layer_value_at(dp->layer->device, matrix, row, dp->width);
}

void *layer_dp_make(layer_t *layer, const layer_options_t *options)
{
    layer_dp_t *dp = layer_alloc(1, sizeof(*dp));

    *dp = (layer_dp_t){.layer = layer,
                       .tokens = options->tokens / layer->nranks,
                       .width = layer->rows * layer->nranks,
                       .layers = options->layers};
    dp->own = make_matrices(layer->device, dp->layers, layer->rows, dp->width);
    dp->w = make_matrices(layer->device, dp->layers, dp->width, dp->width);
    dp->dw = make_matrices(layer->device, dp->layers, layer->rows, dp->width);
    dp->a = make_matrices(layer->device, dp->layers + 1, dp->tokens, dp->width);
    dp->z = make_matrices(layer->device, dp->layers, dp->tokens, dp->width);
    dp->slope = layer_matrix(layer->device, dp->tokens, dp->width);
    dp->da = layer_matrix(layer->device, dp->tokens, dp->width);
    dp->dz = layer_matrix(layer->device, dp->tokens, dp->width);
    dp->sent = layer_matrix(layer->device, dp->layers * dp->width, dp->width);
    dp->requests = layer_alloc((size_t) dp->layers, sizeof(MPI_Request));
    make_travels(dp);
    for (int l = 0; l < dp->layers; l++) {
        dp->requests[l] = MPI_REQUEST_NULL;
        for (int row = 0; row < layer->rows; row++) {
            for (int column = 0; column < dp->width; column++) {
                layer_dp_value_at(dp, dp->own[l], row)[column] =
                    (float) layer_dp_weight(dp, l, layer->rank * layer->rows + row, column);
            }
        }
    }
    for (int token = 0; token < dp->tokens; token++) {
        for (int column = 0; column < dp->width; column++) {
            size_t number = layer_dp_token(dp, layer->rank, token);

            layer_dp_value_at(dp, dp->a[0], token)[column] =
                layer_dp_input(number, (size_t) column);
            layer_dp_value_at(dp, dp->slope, token)[column] =
                layer_dp_slope(number, (size_t) column);
        }
    }
    return dp;
}

void layer_dp_free(void *state)
{
    layer_dp_t *dp = state;

    free_travels(dp);
    free(dp->own);
    free(dp->w);
    free(dp->dw);
    free(dp->a);
    free(dp->z);
    free(dp->requests);
    free(dp);
}
