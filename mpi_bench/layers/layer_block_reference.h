/*
 * layer_block_reference.h: a transformer's training step on one rank, in double precision: what its
 * parallel forms are compared with, and the numbers that all of them begin with.
 *
 *   X -> X + attention -> that + its MLP -> the next layer
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef LAYER_BLOCK_REFERENCE_H
#define LAYER_BLOCK_REFERENCE_H

#include "layer_bench.h"

/* A layer's weights: of queries, keys and values, of the heads' output, and of the MLP. */
typedef enum layer_weights {
    LAYER_WQ,
    LAYER_WK,
    LAYER_WV,
    LAYER_WO, /* these four: hidden x hidden */
    LAYER_W1, /* hidden x inner */
    LAYER_W2, /* inner x hidden */
    LAYER_WEIGHTS
} layer_weights_t;

/* Of token `token` of all groups', and of the gradient by its output. */
float layer_block_input(int token, int column);
float layer_block_slope(int token, int column);
float layer_block_weight(const layer_options_t *options, int layer, layer_weights_t which, int from,
                         int to);

typedef struct layer_block_reference {
    int hidden, inner;
    double *y, *dx;                   /* tokens x hidden, of the group */
    double *(*slopes)[LAYER_WEIGHTS]; /* by the weights of each layer, of all groups */
    int layers;
} layer_block_reference_t;

/*
 * For a group of options->tokens tokens, from `first` on; `groups` has one rank of each, over which
 * gradients are added.
 */
layer_block_reference_t *layer_block_reference_make(const layer_options_t *options, int first,
                                                    MPI_Comm groups);
void layer_block_reference_free(layer_block_reference_t *reference);
double layer_block_reference_slope(const layer_block_reference_t *reference, int layer,
                                   layer_weights_t which, int from, int to);

#endif /* LAYER_BLOCK_REFERENCE_H */
