/*
 * layer_attend.h: what the programs of attention have in common: the input, the weights, this
 * rank's heads, and the check.
 *
 *   X -> Q, K, V -> softmax(Q K') V = O -> O Wo = Y
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef LAYER_ATTEND_H
#define LAYER_ATTEND_H

#include "layer_heads.h"
#include "layer_reference.h"

/* What each program's state begins with. Heads come in nranks groups, of `width` elements each. */
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
    layer_reference_t *reference; /* NULL where nothing is computed */
} layer_attention_t;

/* What is given is filled in. */
void layer_attention_make(layer_attention_t *base, layer_t *layer, const layer_options_t *options,
                          bool all_weights);
void layer_attention_free(layer_attention_t *base);
/* layer_workload_t's `prepare`, of this part. */
void layer_attention_prepare(layer_attention_t *base);
/* Of this rank's heads: what follows from tokens' attention, tokens x width, `inner`. */
void layer_attention_forward(layer_attention_t *base, int position, int rows, float *inner);
void layer_attention_backward(layer_attention_t *base, int position, int rows, const float *dinner);

/* layer_workload_t's. */
int layer_attention_rows(const layer_options_t *options, int nranks);
double layer_attention_error(void *state, const layer_way_t *way);

#endif /* LAYER_ATTEND_H */
