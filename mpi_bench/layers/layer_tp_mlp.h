/*
 * layer_tp_mlp.h: a transformer's MLP, tensor and sequence parallel, forward and backward.
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
#ifndef LAYER_TP_MLP_H
#define LAYER_TP_MLP_H

#include "layer_bench.h"

/* Its matrices may be replaced by the caller's. */
typedef struct layer_tp_mlp {
    layer_t *layer;
    int tokens, hidden;    /* of all ranks */
    int first, width;      /* this rank's columns of the inner layer */
    float *x, *dy;         /* rows x hidden: this rank's */
    float *all_x, *all_dy; /* tokens x hidden: gathered */
    float *w1;             /* hidden x width */
    float *w2;             /* width x hidden */
    float *z, *a, *dz;     /* tokens x width */
    float *partial;        /* tokens x hidden: contributions */
    float *y, *dx;         /* rows x hidden */
    float *dw1, *dw2;      /* as w1 and w2 */
} layer_tp_mlp_t;

/* Zeroed: its matrices last as long as the layer's device. `layer` is to outlive it. */
void layer_tp_mlp_make(layer_tp_mlp_t *mlp, layer_t *layer, const layer_options_t *options);
/* From x to y; after that, from dy to dx and the weights' gradients. */
void layer_tp_mlp_forward(layer_tp_mlp_t *mlp, const layer_way_t *way);
void layer_tp_mlp_backward(layer_tp_mlp_t *mlp, const layer_way_t *way);
/* Makes unusable whatever a run leaves. */
void layer_tp_mlp_spoil(layer_tp_mlp_t *mlp);

#endif /* LAYER_TP_MLP_H */
