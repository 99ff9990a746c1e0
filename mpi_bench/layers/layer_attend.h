/*
 * layer_attend.h: what the layers of attention have in common: weights, and this rank's heads.
 *
 *   X -> Q, K, V -> softmax(Q K') V = O -> O Wo = Y
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef LAYER_ATTEND_H
#define LAYER_ATTEND_H

#include "layer_heads.h"
#include "layer_linear.h"
#include "layer_reference.h"

/*
 * Heads come in nranks groups, of `width` elements each. The input, the output, the weights and
 * the gradients by them may be replaced by the caller's.
 */
typedef struct layer_attention {
    layer_t *layer;
    const layer_way_t *way; /* the current one */
    int tokens, hidden;
    int width;
    int groups;    /* whose weights this rank has: all, or its own alone */
    int in_width;  /* groups x 3 width */
    int out_width; /* groups x width */
    /* Of this rank's tokens, rows x hidden: */
    float *x, *y, *dy, *dx;
    /* Of its heads, tokens x 3 width: */
    float *qkv, *dqkv;
    /* hidden x in_width, by groups their queries, keys and values; out_width x hidden: */
    float *in, *out, *din, *dout;
    layer_heads_t heads;
    layer_reference_t *reference; /* of layer_attention_fill(); NULL where nothing is computed */
} layer_attention_t;

/* Of one group's heads, by its number among those whose weights this rank has. */
static inline layer_linear_t layer_attention_in_of(const layer_attention_t *base, int group)
{
    return (layer_linear_t){.in = base->hidden,
                            .out = 3 * base->width,
                            .w = base->in + 3 * group * base->width,
                            .dw = base->din + 3 * group * base->width,
                            .stride = base->in_width};
}

static inline layer_linear_t layer_attention_out_of(const layer_attention_t *base, int group)
{
    size_t first = (size_t) group * (size_t) base->width * (size_t) base->hidden;

    return (layer_linear_t){.in = base->width,
                            .out = base->hidden,
                            .w = base->out + first,
                            .dw = base->dout + first,
                            .stride = base->hidden};
}

/* Zeroed. `layer` is to outlive it. */
void layer_attention_make(layer_attention_t *base, layer_t *layer, const layer_options_t *options,
                          bool all_weights);
void layer_attention_free(layer_attention_t *base);
/* Makes unusable whatever a run leaves. */
void layer_attention_spoil(const layer_attention_t *base);
/* Before a pass in that way. */
void layer_attention_begin(layer_attention_t *base, const layer_way_t *way);
/* Of this rank's heads: what follows from tokens' attention, tokens x width, `inner`. */
void layer_attention_forward(layer_attention_t *base, int position, int rows, float *inner);
void layer_attention_backward(layer_attention_t *base, int position, int rows, const float *dinner);

/* A layer by itself: what is given to it, and what is to come of it. Collective. */
void layer_attention_fill(layer_attention_t *base, const layer_options_t *options);
double layer_attention_error(const layer_attention_t *base);

/* layer_workload_t's. */
int layer_attention_rows(const layer_options_t *options, int nranks);

#endif /* LAYER_ATTEND_H */
