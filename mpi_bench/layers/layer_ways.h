/*
 * layer_ways.h: flash's way, for layer_ways.c.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef LAYER_WAYS_H
#define LAYER_WAYS_H

#include "layer.h"

void layer_flash_gather(layer_t *layer, const layer_way_t *way, int width, const float *own,
                        float *all, layer_rows_fn *consume, void *arg);
void layer_flash_scatter(layer_t *layer, const layer_way_t *way, int width, float *own,
                         layer_rows_fn *produce, void (*meanwhile)(void *arg), void *arg);

void layer_flash_exchange(layer_t *layer, const layer_way_t *way, int width, float *out, float *in,
                          layer_rows_fn *produce, layer_rows_fn *consume, void *arg);

#endif /* LAYER_WAYS_H */
