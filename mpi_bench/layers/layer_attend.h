/*
 * layer_attend.h: attention of some heads, and what one rank would make of all of it.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef LAYER_ATTEND_H
#define LAYER_ATTEND_H

#include "layer_bench.h"

/*
 * Heads of `dimension` elements over a sequence whose tokens stand in any order: a row of `qkv` for
 * each, with the queries of all heads, then their keys, then their values.
 */
typedef struct layer_heads {
    int count, dimension;
    int tokens;
    const float *qkv;
    bool causal;   /* a token attends to itself and to those before it */
    int *token;    /* which one stands where; for `causal` */
    float *scores; /* tokens x tokens; NULL where nothing is computed */
} layer_heads_t;

/* What the tokens from `position` on attend to: rows of count * dimension elements into `out`,
 * which are `stride` apart. */
void layer_attend(layer_device_t *device, const layer_heads_t *heads, int position, int rows,
                  float *out, int stride);

/* A layer of attention as one rank in double precision has it: X -> Q, K, V -> heads -> output. */
typedef struct layer_reference {
    int tokens, hidden, heads;
    bool causal;
    double *keys, *values; /* of all tokens, hidden elements each */
} layer_reference_t;
void layer_reference_make(layer_reference_t *reference, const layer_options_t *options);
void layer_reference_free(layer_reference_t *reference);
/* How far some rows of `y`, this rank's rows of the output, are from it. */
double layer_reference_error(const layer_reference_t *reference, const layer_t *layer,
                             const float *y);

/* The numbers that all of it begins with: of the input, and of a weight from one element to
   another. */
float layer_attention_input(int token, int column);
typedef enum { LAYER_QUERIES, LAYER_KEYS, LAYER_VALUES, LAYER_OUTPUT } layer_projection_t;
float layer_attention_weight(layer_projection_t which, int from, int to, int hidden);

/* This rank's heads, of all tokens, on their `qkv`. */
layer_heads_t layer_heads_make(const layer_t *layer, const layer_options_t *options,
                               const float *qkv);
void layer_heads_free(layer_heads_t *heads);
/* Notes where the tokens stand. */
void layer_heads_place(layer_heads_t *heads, const layer_t *layer, const layer_way_t *way);

/* layer_workload_t's. */
int layer_attention_rows(const layer_options_t *options, int nranks);

#endif /* LAYER_ATTEND_H */
