/*
 * layer_ways.h: what the ways to communicate share: layer_gather.c, layer_scatter.c and
 * layer_exchange.c, which have all ways but flash's, and layer_flash.c, which has flash's.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef LAYER_WAYS_H
#define LAYER_WAYS_H

#include "layer.h"

/* A slice of each rank's rows: where it begins there, and how many rows it has. */
typedef struct layer_slice {
    int first, rows;
} layer_slice_t;

layer_slice_t layer_slice_of(const layer_t *layer, const layer_way_t *way, int number);

/* As layer_rows_fn, on what travels. */
typedef void layer_wire_fn(void *arg, int position, int rows, void *data);

/* A layer computes on its own matrices, whatever travels. */
typedef struct layer_call {
    layer_t *layer;
    const layer_way_t *way;
    int width;
    layer_rows_fn *produce, *consume;
    void (*meanwhile)(void *arg);
    void *arg;
    float *out, *in;
    bool apart, staged; /* what travels is something else, and on the host */
} layer_call_t;

layer_call_t layer_call_of(layer_t *layer, const layer_way_t *way, int width, void *arg);
/* layer_wire_fn's whose `arg` is a call: what the layer consumes or produces, on its matrices. */
void layer_consume_wide(void *arg, int position, int rows, void *data);
void layer_produce_wide(void *arg, int position, int rows, void *data);

/*
 * What is to travel is there, where that takes no place in the order of the device. On a stand-in
 * it is: no rows depend on what it has not done.
 */
void layer_have_values(const layer_t *layer, const layer_way_t *way);

void layer_flash_gather(layer_t *layer, const layer_way_t *way, int width, const void *own,
                        void *all, layer_wire_fn *consume, void *arg);
void layer_flash_scatter(layer_t *layer, const layer_way_t *way, int width, void *own,
                         layer_wire_fn *produce, void (*meanwhile)(void *arg), void *arg);
void layer_flash_exchange(layer_t *layer, const layer_way_t *way, int width, void *out, void *in,
                          layer_wire_fn *produce, layer_wire_fn *consume, void *arg);

#endif /* LAYER_WAYS_H */
