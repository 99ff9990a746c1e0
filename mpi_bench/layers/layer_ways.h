/*
 * layer_ways.h: flash's way, for layer_ways.c.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef LAYER_WAYS_H
#define LAYER_WAYS_H

#include "layer.h"

/* As layer_rows_fn, on what travels. */
typedef void layer_wire_fn(void *arg, int position, int rows, void *data);

void layer_flash_gather(layer_t *layer, const layer_way_t *way, int width, const void *own,
                        void *all, layer_wire_fn *consume, void *arg);
void layer_flash_scatter(layer_t *layer, const layer_way_t *way, int width, void *own,
                         layer_wire_fn *produce, void (*meanwhile)(void *arg), void *arg);
void layer_flash_exchange(layer_t *layer, const layer_way_t *way, int width, void *out, void *in,
                          layer_wire_fn *produce, layer_wire_fn *consume, void *arg);

#endif /* LAYER_WAYS_H */
