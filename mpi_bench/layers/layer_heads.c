/*
 * layer_heads.c: see layer_heads.h. The gradient computes the weights once more, rather than keep
 * those of all queries of all heads.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "layer_heads.h"

#include <math.h>

#include "layer_math.h"

static int width_of(const layer_heads_t *heads)
{
    return heads->count * heads->dimension;
}

static size_t row_at(const layer_heads_t *heads, int position)
{
    return (size_t) position * 3 * (size_t) width_of(heads);
}

void layer_heads_make(layer_heads_t *heads, layer_t *layer, const layer_options_t *options,
                      const float *qkv, float *dqkv)
{
    int tokens = layer->device->offload ? 0 : options->tokens;

    *heads = (layer_heads_t){.count = options->heads / layer->nranks,
                             .dimension = options->hidden / options->heads,
                             .tokens = options->tokens,
                             .qkv = qkv,
                             .dqkv = dqkv,
                             .weights = layer_scratch(layer->device, tokens, tokens),
                             .slopes = layer_scratch(layer->device, tokens, tokens)};
    if (options->causal) { /* of the same size as a number */
        heads->token = (int *) layer_matrix(layer->device, 1, options->tokens);
    }
}

static bool is_placed(const int *token, int tokens, layer_t *layer, const layer_way_t *way)
{
    for (int position = 0; position < tokens; position++) {
        if (token[position] != layer_row(layer, way, position)) {
            return false;
        }
    }
    return true;
}

/* The device may still be copying the former table, of another way to compute the layer. */
void layer_heads_place(layer_heads_t *heads, layer_t *layer, const layer_way_t *way)
{
    const float *table = (const float *) heads->token;
    int *token = table == NULL ? NULL : (int *) layer_value_at(layer->device, table, 0, 0);

    if (token == NULL || is_placed(token, heads->tokens, layer, way)) {
        return;
    }
    layer_finish(layer->device);
    for (int position = 0; position < heads->tokens; position++) {
        token[position] = layer_row(layer, way, position);
    }
    layer_upload(layer->device, table);
}

/* Of `rows` tokens, from one on: their weights, or with `weights`, the gradient by their scores. */
static void weigh_rows(layer_device_t *device, const layer_heads_t *heads, int position, int rows,
                       float *scores, const float *weights)
{
    layer_compute(device, weights == NULL ? LAYER_KERNEL_softmax : LAYER_KERNEL_softmax_back,
                  &(layer_work_t){.to = scores,
                                  .by = weights,
                                  .token = heads->token,
                                  .count = (size_t) rows,
                                  .width = heads->tokens,
                                  .position = position,
                                  .scale = 1 / sqrtf((float) heads->dimension)});
}

/* `rows` x tokens = A B', of two matrices whose rows belong to tokens. */
static void pair(layer_device_t *device, const layer_heads_t *heads, int rows, const float *a,
                 int lda, const float *b, float *c)
{
    layer_multiply(device, &(layer_product_t){.transpose_b = true,
                                              .m = rows,
                                              .n = heads->tokens,
                                              .k = heads->dimension,
                                              .a = a,
                                              .lda = lda,
                                              .b = b,
                                              .ldb = 3 * width_of(heads),
                                              .c = c,
                                              .ldc = heads->tokens});
}

/* Of one head, for the tokens whose queries these are. */
static void weigh(layer_device_t *device, const layer_heads_t *heads, int head, int position,
                  int rows)
{
    const float *queries = heads->qkv + row_at(heads, position) + head * heads->dimension;
    const float *keys = heads->qkv + width_of(heads) + head * heads->dimension;

    pair(device, heads, rows, queries, 3 * width_of(heads), keys, heads->weights);
    weigh_rows(device, heads, position, rows, heads->weights, NULL);
}

/* --------------------------------------------------------------------- heads */

/* C = weights B. */
static void mix(layer_device_t *device, const layer_heads_t *heads, int rows, const float *weights,
                const float *b, float *c, int ldc)
{
    layer_multiply(device, &(layer_product_t){.m = rows,
                                              .n = heads->dimension,
                                              .k = heads->tokens,
                                              .a = weights,
                                              .lda = heads->tokens,
                                              .b = b,
                                              .ldb = 3 * width_of(heads),
                                              .c = c,
                                              .ldc = ldc});
}

/* C += weights' B. */
static void unmix(layer_device_t *device, const layer_heads_t *heads, int rows,
                  const float *weights, const float *b, int ldb, float *c)
{
    layer_multiply(device, &(layer_product_t){.transpose_a = true,
                                              .m = heads->tokens,
                                              .n = heads->dimension,
                                              .k = rows,
                                              .a = weights,
                                              .lda = heads->tokens,
                                              .b = b,
                                              .ldb = ldb,
                                              .beta = 1,
                                              .c = c,
                                              .ldc = 3 * width_of(heads)});
}

void layer_attend(layer_device_t *device, const layer_heads_t *heads, int position, int rows,
                  float *out)
{
    int width = width_of(heads);

    for (int head = 0; head < heads->count; head++) {
        int at = head * heads->dimension;

        weigh(device, heads, head, position, rows);
        mix(device, heads, rows, heads->weights, heads->qkv + 2 * width + at, out + at, width);
    }
}

void layer_attend_begin(layer_device_t *device, const layer_heads_t *heads)
{
    layer_clear(device, heads->dqkv, heads->tokens, 3 * width_of(heads));
}

void layer_attend_back(layer_device_t *device, const layer_heads_t *heads, int position, int rows,
                       const float *dout)
{
    int width = width_of(heads);
    size_t first = row_at(heads, position);

    for (int head = 0; head < heads->count; head++) {
        int at = head * heads->dimension;

        weigh(device, heads, head, position, rows);
        unmix(device, heads, rows, heads->weights, dout + at, width, heads->dqkv + 2 * width + at);
        pair(device, heads, rows, dout + at, width, heads->qkv + 2 * width + at, heads->slopes);
        weigh_rows(device, heads, position, rows, heads->slopes, heads->weights);
        mix(device, heads, rows, heads->slopes, heads->qkv + width + at, heads->dqkv + first + at,
            3 * width);
        unmix(device, heads, rows, heads->slopes, heads->qkv + first + at, 3 * width,
              heads->dqkv + width + at);
    }
}
