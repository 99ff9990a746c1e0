/*
 * layer_wire.h: what travels between the products: numbers as they are computed with, or bfloat16.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef LAYER_WIRE_H
#define LAYER_WIRE_H

#include "layer.h"

void layer_wire_open(layer_wire_t *wire, bool half);
void layer_wire_close(layer_wire_t *wire, const layer_device_t *device);
/* Makes all room unusable, whatever has travelled there before. */
void layer_wire_spoil(const layer_t *layer);

/* Of a matrix that travels: where the rows from `position` on begin. */
static inline void *layer_wire_at(const layer_t *layer, const void *matrix, int position, int width)
{
    return (char *) (size_t) matrix + (size_t) position * (size_t) width * layer->wire->size;
}

/* Whether what travels on a communicator has to be the host's: a device's memory is for flash. */
bool layer_wire_staged(const layer_t *layer, MPI_Comm comm);
/* Whether it travels as something else than the matrix. */
bool layer_wire_apart(const layer_t *layer, const layer_way_t *way);

/* Room for a matrix that travels: itself if it travels as it is, else LAYER_IN's or LAYER_OUT's. */
enum { LAYER_IN, LAYER_OUT };
void *layer_wire_room(layer_t *layer, const layer_way_t *way, const float *matrix, int which,
                      int rows, int width);
/* To what travels and back, if that differs, in the order of the device. */
void layer_wire_narrow(layer_t *layer, bool staged, const float *from, void *to, int rows,
                       int width);
void layer_wire_widen(layer_t *layer, bool staged, const void *from, float *to, int rows,
                      int width);

#endif /* LAYER_WIRE_H */
