/*
 * layer_tp_attention.h: a transformer's attention, tensor and sequence parallel, with its
 * gradients.
 *
 * Each rank has its tokens' rows of X, and some of the heads with their columns of the weights that
 * make queries, keys and values, and their rows of the output's:
 *
 *   forward:   AG(X) -> Q, K, V -> softmax(Q K') V = O -> RS(O Wo) = Y
 *   backward:  AG(dY) -> dO = dY Wo', dWo = O' dY -> dQ, dK, dV -> RS(dQ Wq' + ...) = dX,
 *              dWq = X' dQ, ...
 *
 * Row-parallel, the heads are done between the gathering and the reduction, and only products run
 * beside these; query-split, each piece of the forward's reduction is the attention of its queries,
 * too, and so is each piece of what the backward gathers.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef LAYER_TP_ATTENTION_H
#define LAYER_TP_ATTENTION_H

#include "layer_attend.h"

/* Of layer_way_t. */
enum { LAYER_ROW_PARALLEL, LAYER_QUERY_SPLIT };

/* The matrices of `base` may be replaced by the caller's. */
typedef struct layer_tp_attention {
    layer_attention_t base;
    float *all_x, *all_dy; /* tokens x hidden */
    float *inner, *dinner; /* tokens x width: what the heads make of it */
    float *partial;        /* tokens x hidden: contributions */
} layer_tp_attention_t;

/* `layer` is to outlive it. */
void layer_tp_attention_make(layer_tp_attention_t *a, layer_t *layer,
                             const layer_options_t *options);
void layer_tp_attention_free(layer_tp_attention_t *a);
/* From base.x to base.y; after that, from base.dy to base.dx and the weights' gradients. */
void layer_tp_attention_forward(layer_tp_attention_t *a, const layer_way_t *way);
void layer_tp_attention_backward(layer_tp_attention_t *a, const layer_way_t *way);
/* Makes unusable whatever a run leaves. */
void layer_tp_attention_spoil(layer_tp_attention_t *a);

#endif /* LAYER_TP_ATTENTION_H */
