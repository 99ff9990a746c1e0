/*
 * layer_dp_check.c: what data parallel training is to come to, and what of earlier runs is made
 * unusable; see layer_dp.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "layer_dp.h"

#include <stdlib.h>
#include <string.h>

#include "layer_math.h"

/* Rows of each layer's gradients that are compared, on each rank. */
enum { SAMPLES = 3 };

/* All bits set are a NAN, of whatever travels. */
static void spoil_travel(const layer_dp_t *dp, const layer_dp_travel_t *travel)
{
    size_t size = layer_dp_is_apart(dp) ? dp->layer->wire->size : 0;

    memset(travel->all, 0xff, layer_dp_size(dp, dp->width) * size);
    memset(travel->reduced, 0xff, layer_dp_size(dp, dp->layer->rows) * size);
}

void layer_dp_prepare(void *state, const layer_way_t *way)
{
    layer_dp_t *dp = state;

    for (int l = 0; l < dp->layers; l++) {
        layer_spoil(dp->layer->device, dp->dw[l], dp->layer->rows, dp->width);
        layer_spoil(dp->layer->device, dp->w[l], dp->width, dp->width);
        layer_spoil(dp->layer->device, dp->a[l + 1], dp->tokens, dp->width);
        layer_spoil(dp->layer->device, dp->z[l], dp->tokens, dp->width);
        layer_spoil(dp->layer->device, layer_dp_sent(dp, l), dp->width, dp->width);
        spoil_travel(dp, &dp->travels[l]);
        for (int position = 0; position < dp->width && way->kind == LAYER_COMPUTATION; position++) {
            int row = layer_row(dp->layer, way, position);

            for (int column = 0; column < dp->width; column++) {
                layer_dp_value_at(dp, dp->w[l], position)[column] =
                    (float) layer_dp_weight(dp, l, row, column);
            }
        }
    }
}

/* Of one token: what goes into each layer, and in `z`, what its products are. */
static void pass_forward(const layer_dp_t *dp, size_t token, double *a, double *z)
{
    size_t width = (size_t) dp->width;

    for (size_t k = 0; k < width; k++) {
        a[k] = (double) layer_dp_input(token, k);
    }
    for (int l = 0; l < dp->layers; l++, a += width, z += width) {
        for (size_t k = 0; k < width; k++) {
            z[k] = 0;
            for (size_t h = 0; h < width; h++) {
                z[k] += a[h] * layer_dp_weight(dp, l, (int) h, (int) k);
            }
            a[width + k] = layer_gelu(z[k]);
        }
    }
}

/* Adds the token's part to the gradients of the weights: of `rows` sampled rows of each layer. */
static void pass_backward(const layer_dp_t *dp, size_t token, const double *a, const double *z,
                          const int *rows, double *gradients)
{
    size_t width = (size_t) dp->width;
    double *da = layer_alloc(2 * width, sizeof(*da)), *dz = da + width;

    for (size_t k = 0; k < width; k++) {
        da[k] = (double) layer_dp_slope(token, k);
    }
    for (int l = dp->layers - 1; l >= 0; l--) {
        for (size_t k = 0; k < width; k++) {
            dz[k] = da[k] * layer_gelu_slope(z[(size_t) l * width + k]);
        }
        for (int s = 0; s < SAMPLES; s++) {
            double *gradient = gradients + ((size_t) l * SAMPLES + (size_t) s) * width;

            for (size_t k = 0; k < width; k++) {
                gradient[k] += a[(size_t) l * width + (size_t) rows[s]] * dz[k];
            }
        }
        for (size_t h = 0; h < width; h++) {
            da[h] = 0;
            for (size_t k = 0; k < width; k++) {
                da[h] += dz[k] * layer_dp_weight(dp, l, (int) h, (int) k);
            }
        }
    }
    free(da);
}

double layer_dp_error(void *state, const layer_way_t *way)
{
    layer_dp_t *dp = state;
    size_t width = (size_t) dp->width, layers = (size_t) dp->layers;
    int first = dp->layer->rank * dp->layer->rows, rows[SAMPLES];
    double *a = layer_alloc((layers + 1) * width, sizeof(*a));
    double *z = layer_alloc(layers * width, sizeof(*z));
    double *gradients = layer_alloc(layers * SAMPLES * width, sizeof(*gradients));
    layer_compared_t kinds[2] = {{0, 0}};

    (void) way;
    for (int s = 0; s < SAMPLES; s++) {
        rows[s] = first + s * (dp->layer->rows - 1) / (SAMPLES - 1);
    }
    for (int rank = 0; rank < dp->layer->nranks; rank++) {
        for (int token = 0; token < dp->tokens; token++) {
            pass_forward(dp, layer_dp_token(dp, rank, token), a, z);
            const float *got = layer_dp_value_at(dp, dp->a[dp->layers], token);

            pass_backward(dp, layer_dp_token(dp, rank, token), a, z, rows, gradients);
            for (size_t k = 0; k < width && rank == dp->layer->rank; k++) {
                layer_compare(&kinds[0], (double) got[k], a[layers * width + k]);
            }
        }
    }
    for (size_t l = 0; l < layers; l++) {
        for (int s = 0; s < SAMPLES; s++) {
            const float *got = layer_dp_value_at(dp, dp->dw[l], rows[s] - first);

            for (size_t k = 0; k < width; k++) {
                layer_compare(&kinds[1], (double) got[k],
                              gradients[(l * SAMPLES + (size_t) s) * width + k]);
            }
        }
    }
    free(a);
    free(z);
    free(gradients);
    return layer_error(kinds, 2);
}
