/*
 * layer_reference.h: a layer of attention in double precision, without any parallel layer's order:
 * each rank has some queries, and sums are formed by MPI's blocking calls.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef LAYER_REFERENCE_H
#define LAYER_REFERENCE_H

#include "layer_bench.h"

/* The numbers that all begins with: of the input, of the gradient by the output, and of a weight
   from one element to another. */
typedef enum { LAYER_QUERIES, LAYER_KEYS, LAYER_VALUES, LAYER_OUTPUT } layer_projection_t;
float layer_attention_input(int token, int column);
float layer_attention_slope(int token, int column);
float layer_attention_weight(layer_projection_t which, int from, int to, int hidden);

/* Of all tokens, hidden elements each: what is projected, the heads' results, and the gradients
   by these. */
typedef struct layer_reference {
    int tokens, hidden, heads;
    bool causal;
    double *made[3], *slopes[3]; /* queries, keys, values */
    double *inner, *dinner;
} layer_reference_t;

/* Collective over MPI_COMM_WORLD. */
layer_reference_t *layer_reference_make(const layer_options_t *options);
void layer_reference_free(layer_reference_t *reference);

/* An element of the results, or of the gradients by the input and by the weights; of the latter,
   as far as the tokens from `first` to before `last` contribute. */
double layer_reference_output(const layer_reference_t *reference, int token, int column);
double layer_reference_input_slope(const layer_reference_t *reference, int token, int column);
double layer_reference_weight_slope(const layer_reference_t *reference, layer_projection_t which,
                                    int from, int to, int first, int last);

#endif /* LAYER_REFERENCE_H */
