/*
 * layer_attend.c: see layer_attend.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "layer_attend.h"

#include <stdlib.h>

#include "layer_math.h"

/* Rows and columns of the results that are compared. */
enum { SAMPLES = 3 };

int layer_attention_rows(const layer_options_t *options, int nranks)
{
    bool divides = options->heads % nranks == 0 && options->hidden % options->heads == 0;

    return divides ? options->tokens / nranks : 0;
}

/* Which of all heads' elements one of this rank's weights belongs to. */
static int element_of(const layer_attention_t *base, int column)
{
    return (base->groups == 1 ? base->layer->rank * base->width : 0) + column;
}

/* Where the weight to an element stands in a row of `in`. */
static int place_of(const layer_attention_t *base, int which, int column)
{
    return (3 * (column / base->width) + which) * base->width + column % base->width;
}

static float *value_at(const layer_attention_t *base, const float *matrix, int row, int width)
{
    return layer_value_at(base->layer->device, matrix, row, width);
}

void layer_attention_make(layer_attention_t *base, layer_t *layer, const layer_options_t *options,
                          bool all_weights)
{
    int width = options->hidden / layer->nranks, groups = all_weights ? layer->nranks : 1;

    *base = (layer_attention_t){.layer = layer,
                                .tokens = options->tokens,
                                .hidden = options->hidden,
                                .width = width,
                                .groups = groups,
                                .in_width = 3 * groups * width,
                                .out_width = groups * width};
    base->x = layer_matrix(layer->device, layer->rows, base->hidden);
    base->y = layer_matrix(layer->device, layer->rows, base->hidden);
    base->dy = layer_matrix(layer->device, layer->rows, base->hidden);
    base->dx = layer_matrix(layer->device, layer->rows, base->hidden);
    base->qkv = layer_matrix(layer->device, base->tokens, 3 * width);
    base->dqkv = layer_matrix(layer->device, base->tokens, 3 * width);
    base->in = layer_matrix(layer->device, base->hidden, base->in_width);
    base->din = layer_matrix(layer->device, base->hidden, base->in_width);
    base->out = layer_matrix(layer->device, base->out_width, base->hidden);
    base->dout = layer_matrix(layer->device, base->out_width, base->hidden);
    layer_heads_make(&base->heads, layer, options, base->qkv, base->dqkv);
}

void layer_attention_free(layer_attention_t *base)
{
    layer_reference_free(base->reference);
}

void layer_attention_spoil(const layer_attention_t *base)
{
    layer_spoil(base->layer->device, base->y, base->layer->rows, base->hidden);
    layer_spoil(base->layer->device, base->dx, base->layer->rows, base->hidden);
    layer_spoil(base->layer->device, base->qkv, base->tokens, 3 * base->width);
    layer_spoil(base->layer->device, base->dqkv, base->tokens, 3 * base->width);
    layer_spoil(base->layer->device, base->din, base->hidden, base->in_width);
    layer_spoil(base->layer->device, base->dout, base->out_width, base->hidden);
}

void layer_attention_begin(layer_attention_t *base, const layer_way_t *way)
{
    base->way = way;
    layer_heads_place(&base->heads, base->layer, way);
}

void layer_attention_forward(layer_attention_t *base, int position, int rows, float *inner)
{
    layer_attend(base->layer->device, &base->heads, position, rows, inner);
}

void layer_attention_backward(layer_attention_t *base, int position, int rows, const float *dinner)
{
    layer_attend_back(base->layer->device, &base->heads, position, rows, dinner);
}

/* ------------------------------------------------------------- a layer by itself */

void layer_attention_fill(layer_attention_t *base, const layer_options_t *options)
{
    int first = base->layer->rank * base->layer->rows;

    for (int row = 0; row < base->layer->rows; row++) {
        for (int column = 0; column < base->hidden; column++) {
            value_at(base, base->x, row, base->hidden)[column] =
                layer_attention_input(first + row, column);
            value_at(base, base->dy, row, base->hidden)[column] =
                layer_attention_slope(first + row, column);
        }
    }
    for (int column = 0; column < base->out_width; column++) {
        int element = element_of(base, column);

        for (int h = 0; h < base->hidden; h++) {
            for (int which = LAYER_QUERIES; which <= LAYER_VALUES; which++) {
                value_at(base, base->in, h, base->in_width)[place_of(base, which, column)] =
                    layer_attention_weight((layer_projection_t) which, h, element, base->hidden);
            }
            value_at(base, base->out, column, base->hidden)[h] =
                layer_attention_weight(LAYER_OUTPUT, element, h, base->hidden);
        }
    }
    if (!base->layer->device->offload) {
        base->reference = layer_reference_make(options);
    }
}

static int sample(int number, int count)
{
    return SAMPLES < count ? number * (count - 1) / (SAMPLES - 1) : number;
}

static void compare_row(const layer_attention_t *base, int row, layer_compared_t *y,
                        layer_compared_t *dx)
{
    int token = base->layer->rank * base->layer->rows + row;

    for (int h = 0; h < base->hidden; h++) {
        layer_compare(y, (double) value_at(base, base->y, row, base->hidden)[h],
                      layer_reference_output(base->reference, token, h));
        layer_compare(dx, (double) value_at(base, base->dx, row, base->hidden)[h],
                      layer_reference_input_slope(base->reference, token, h));
    }
}

/* Who has all weights adds what its own tokens contribute; else that of all tokens. */
static void compare_column(const layer_attention_t *base, int column, layer_compared_t *in,
                           layer_compared_t *out)
{
    bool all_weights = base->groups == base->layer->nranks;
    int first = all_weights ? base->layer->rank * base->layer->rows : 0;
    int last = all_weights ? first + base->layer->rows : base->tokens;
    int element = element_of(base, column);

    for (int h = 0; h < base->hidden; h++) {
        for (int which = LAYER_QUERIES; which <= LAYER_VALUES; which++) {
            const float *row = value_at(base, base->din, h, base->in_width);

            layer_compare(in, (double) row[place_of(base, which, column)],
                          layer_reference_weight_slope(base->reference, (layer_projection_t) which,
                                                       h, element, first, last));
        }
        layer_compare(
            out, (double) value_at(base, base->dout, column, base->hidden)[h],
            layer_reference_weight_slope(base->reference, LAYER_OUTPUT, element, h, first, last));
    }
}

double layer_attention_error(const layer_attention_t *base)
{
    layer_compared_t kinds[4] = {{0, 0}};

    for (int k = 0; k < SAMPLES && k < base->layer->rows; k++) {
        compare_row(base, sample(k, base->layer->rows), &kinds[0], &kinds[1]);
    }
    for (int k = 0; k < SAMPLES && k < base->out_width; k++) {
        compare_column(base, sample(k, base->out_width), &kinds[2], &kinds[3]);
    }
    return layer_error(kinds, 4);
}
