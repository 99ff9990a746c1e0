/*
 * layer_heads.h: attention of some heads, and its gradient, for some of the queries at a time.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef LAYER_HEADS_H
#define LAYER_HEADS_H

#include "layer_bench.h"

/*
 * Heads of `dimension` elements over a sequence whose tokens stand in any order: a row of `qkv` for
 * each, with the queries of all heads, then their keys, then their values. `dqkv` is the loss's
 * gradient by it.
 */
typedef struct layer_heads {
    int count, dimension;
    int tokens;
    const float *qkv;
    float *dqkv;
    int *token; /* which one stands where, if one attends to itself and those before it alone; else
                   NULL */
    float *weights, *slopes; /* tokens x tokens */
} layer_heads_t;

/* `options->heads` are those of all ranks, in as many groups. */
void layer_heads_make(layer_heads_t *heads, layer_t *layer, const layer_options_t *options,
                      const float *qkv, float *dqkv);
/* Notes where the tokens stand, if that matters. */
void layer_heads_place(layer_heads_t *heads, layer_t *layer, const layer_way_t *way);

/* What the tokens from `position` on attend to: rows of count * dimension elements into `out`. */
void layer_attend(layer_device_t *device, const layer_heads_t *heads, int position, int rows,
                  float *out);
/*
 * The same for the gradient by these rows, `dout`: sets that by the tokens' queries, and adds to
 * those by all keys and values, which layer_attend_begin() makes zero.
 */
void layer_attend_begin(layer_device_t *device, const layer_heads_t *heads);
void layer_attend_back(layer_device_t *device, const layer_heads_t *heads, int position, int rows,
                       const float *dout);

#endif /* LAYER_HEADS_H */
