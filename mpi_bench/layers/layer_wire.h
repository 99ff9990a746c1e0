/*
 * layer_wire.h: what travels between the products: numbers as they are computed with, or bfloat16.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef LAYER_WIRE_H
#define LAYER_WIRE_H

#include "layer.h"

void layer_wire_open(layer_wire_t *wire, bool half);
void layer_wire_close(layer_wire_t *wire);
/* Makes all room unusable, whatever has travelled there before. */
void layer_wire_spoil(const layer_wire_t *wire);

/* Of a matrix that travels: where the rows from `position` on begin. */
static inline void *layer_wire_at(const layer_t *layer, const void *matrix, int position, int width)
{
    return (char *) (size_t) matrix + (size_t) position * (size_t) width * layer->wire->size;
}

/* Room for a matrix that travels: itself if it travels as it is, else LAYER_IN's or LAYER_OUT's. */
enum { LAYER_IN, LAYER_OUT };
void *layer_wire_room(layer_t *layer, const layer_way_t *way, const float *matrix, int which,
                      int rows, int width);
/* To what travels and back, if that differs. */
void layer_wire_narrow(const layer_t *layer, const float *from, void *to, int rows, int width);
void layer_wire_widen(const layer_t *layer, const void *from, float *to, int rows, int width);

#endif /* LAYER_WIRE_H */
