/*
 * layer_attend.c: see layer_attend.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "layer_attend.h"

#include <math.h>
#include <stdlib.h>

#include "layer_math.h"

/* Of layer_value(). */
enum { X = 1, WEIGHTS = 2 };
/* Rows of the output that are compared. */
enum { SAMPLES = 3 };

float layer_attention_input(int token, int column)
{
    return layer_value(X, (size_t) token, (size_t) column);
}

float layer_attention_weight(layer_projection_t which, int from, int to, int hidden)
{
    double value = layer_value(WEIGHTS + (unsigned) which, (size_t) from, (size_t) to);

    return (float) (value / sqrt(hidden));
}

int layer_attention_rows(const layer_options_t *options, int nranks)
{
    bool divides = options->heads % nranks == 0 && options->hidden % options->heads == 0;

    return divides ? options->tokens / nranks : 0;
}

/* --------------------------------------------------------------------- heads */

layer_heads_t layer_heads_make(const layer_t *layer, const layer_options_t *options,
                               const float *qkv)
{
    size_t tokens = (size_t) options->tokens;

    return (layer_heads_t){
        .count = options->heads / layer->nranks,
        .dimension = options->hidden / options->heads,
        .tokens = options->tokens,
        .qkv = qkv,
        .causal = options->causal,
        .token = layer_alloc(tokens, sizeof(int)),
        .scores = layer->device.offload ? NULL : layer_alloc(tokens * tokens, sizeof(float))};
}

void layer_heads_free(layer_heads_t *heads)
{
    free(heads->token);
    free(heads->scores);
}

void layer_heads_place(layer_heads_t *heads, const layer_t *layer, const layer_way_t *way)
{
    for (int position = 0; position < heads->tokens; position++) {
        heads->token[position] = layer_row(layer, way, position);
    }
}

/* Of one row: the weights of what it attends to. */
static void softmax(const layer_heads_t *heads, int position, float *scores)
{
    const int *token = heads->token;
    float most = -INFINITY, sum = 0;

    for (int k = 0; k < heads->tokens; k++) {
        if (heads->causal && token[k] > token[position]) {
            scores[k] = -INFINITY;
        }
        most = scores[k] > most ? scores[k] : most;
    }
    for (int k = 0; k < heads->tokens; k++) {
        scores[k] = expf(scores[k] - most);
        sum += scores[k];
    }
    for (int k = 0; k < heads->tokens; k++) {
        scores[k] /= sum;
    }
}

void layer_attend(layer_device_t *device, const layer_heads_t *heads, int position, int rows,
                  float *out, int stride)
{
    int width = heads->count * heads->dimension;
    const float *queries = heads->qkv + (size_t) position * 3 * (size_t) width;
    float scale = 1 / sqrtf((float) heads->dimension);

    for (int head = 0; head < heads->count; head++) {
        const float *keys = heads->qkv + width + head * heads->dimension;

        layer_multiply(device, &(layer_product_t){.transpose_b = true,
                                                  .m = rows,
                                                  .n = heads->tokens,
                                                  .k = heads->dimension,
                                                  .a = queries + head * heads->dimension,
                                                  .lda = 3 * width,
                                                  .b = keys,
                                                  .ldb = 3 * width,
                                                  .c = heads->scores,
                                                  .ldc = heads->tokens});
        for (int row = 0; row < rows && !device->offload; row++) {
            float *scores = heads->scores + (size_t) row * (size_t) heads->tokens;

            for (int k = 0; k < heads->tokens; k++) {
                scores[k] *= scale;
            }
            softmax(heads, position + row, scores);
        }
        layer_multiply(device, &(layer_product_t){.m = rows,
                                                  .n = heads->dimension,
                                                  .k = heads->tokens,
                                                  .a = heads->scores,
                                                  .lda = heads->tokens,
                                                  .b = keys + width,
                                                  .ldb = 3 * width,
                                                  .c = out + head * heads->dimension,
                                                  .ldc = stride});
    }
}

/* ----------------------------------------------------------------- reference */

static double project(const layer_reference_t *reference, layer_projection_t which, int token,
                      int to)
{
    double sum = 0;

    for (int from = 0; from < reference->hidden; from++) {
        sum += (double) layer_attention_input(token, from) *
               (double) layer_attention_weight(which, from, to, reference->hidden);
    }
    return sum;
}

void layer_reference_make(layer_reference_t *reference, const layer_options_t *options)
{
    size_t count = (size_t) options->tokens * (size_t) options->hidden;

    *reference = (layer_reference_t){.tokens = options->tokens,
                                     .hidden = options->hidden,
                                     .heads = options->heads,
                                     .causal = options->causal,
                                     .keys = layer_alloc(count, sizeof(double)),
                                     .values = layer_alloc(count, sizeof(double))};
    for (size_t k = 0; k < count; k++) {
        int token = (int) (k / (size_t) options->hidden), to = (int) (k % (size_t) options->hidden);

        reference->keys[k] = project(reference, LAYER_KEYS, token, to);
        reference->values[k] = project(reference, LAYER_VALUES, token, to);
    }
}

void layer_reference_free(layer_reference_t *reference)
{
    free(reference->keys);
    free(reference->values);
}

/* What one head of a token's attends to, by its queries. */
static void attend(const layer_reference_t *reference, int token, int head, double *out)
{
    int dimension = reference->hidden / reference->heads, first = head * dimension;
    int seen = reference->causal ? token + 1 : reference->tokens;
    double *weights = layer_alloc((size_t) seen, sizeof(*weights)), most = -INFINITY, sum = 0;

    for (int d = 0; d < dimension; d++) {
        double query = project(reference, LAYER_QUERIES, token, first + d) / sqrt(dimension);

        for (int k = 0; k < seen; k++) {
            weights[k] +=
                query *
                reference->keys[(size_t) k * (size_t) reference->hidden + (size_t) (first + d)];
        }
    }
    for (int k = 0; k < seen; k++) {
        most = weights[k] > most ? weights[k] : most;
    }
    for (int k = 0; k < seen; k++) {
        weights[k] = exp(weights[k] - most);
        sum += weights[k];
    }
    for (int d = 0; d < dimension; d++) {
        out[first + d] = 0;
        for (int k = 0; k < seen; k++) {
            out[first + d] +=
                weights[k] / sum *
                reference->values[(size_t) k * (size_t) reference->hidden + (size_t) (first + d)];
        }
    }
    free(weights);
}

/* The output of a token: `hidden` elements. */
static void make_row(const layer_reference_t *reference, int token, double *out)
{
    double *inner = layer_alloc((size_t) reference->hidden, sizeof(*inner));

    for (int head = 0; head < reference->heads; head++) {
        attend(reference, token, head, inner);
    }
    for (int to = 0; to < reference->hidden; to++) {
        out[to] = 0;
        for (int from = 0; from < reference->hidden; from++) {
            out[to] += inner[from] *
                       (double) layer_attention_weight(LAYER_OUTPUT, from, to, reference->hidden);
        }
    }
    free(inner);
}

double layer_reference_error(const layer_reference_t *reference, const layer_t *layer,
                             const float *y)
{
    double *expected = layer_alloc((size_t) reference->hidden, sizeof(*expected));
    layer_compared_t compared = {0, 0};

    for (int k = 0; k < SAMPLES && k < layer->rows; k++) {
        int row = SAMPLES < layer->rows ? k * (layer->rows - 1) / (SAMPLES - 1) : k;

        make_row(reference, layer->rank * layer->rows + row, expected);
        for (int h = 0; h < reference->hidden; h++) {
            layer_compare(&compared,
                          (double) y[(size_t) row * (size_t) reference->hidden + (size_t) h],
                          expected[h]);
        }
    }
    free(expected);
    return layer_error(&compared, 1);
}
