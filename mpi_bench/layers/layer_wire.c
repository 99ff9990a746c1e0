/*
 * layer_wire.c: see layer_wire.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "layer_wire.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <mpix_flash.h>

#include "layer_bench.h"

/* ------------------------------------------------------------------- arithmetic */

static float widen(uint16_t x)
{
    uint32_t bits = (uint32_t) x << 16;
    float value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}

/* To the nearest, of two to the even one. */
static uint16_t narrow(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return value != value ? 0x7fc0 : (uint16_t) ((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static void add(void *in, void *inout, int *count, MPI_Datatype *type)
{
    const uint16_t *from = in;
    uint16_t *to = inout;

    (void) type;
    for (int k = 0; k < *count; k++) {
        to[k] = narrow(widen(from[k]) + widen(to[k]));
    }
}

/* --------------------------------------------------------------------- matrices */

void layer_wire_open(layer_wire_t *wire, bool half)
{
    *wire = (layer_wire_t){.half = half, .type = MPI_FLOAT, .sum = MPI_SUM, .size = sizeof(float)};
    if (half) {
        wire->size = sizeof(uint16_t);
        MPIX_Flash_type(MPIX_FLASH_BF16, &wire->type);
        MPI_Op_create(add, 1, &wire->sum);
    }
}

void layer_wire_close(layer_wire_t *wire)
{
    if (wire->half) {
        MPI_Op_free(&wire->sum);
    }
    free(wire->room[LAYER_IN]);
    free(wire->room[LAYER_OUT]);
}

/* All bits set are a NAN. */
void layer_wire_spoil(const layer_wire_t *wire)
{
    for (int which = LAYER_IN; which <= LAYER_OUT; which++) {
        if (wire->room_size[which] > 0) {
            memset(wire->room[which], 0xff, wire->room_size[which]);
        }
    }
}

void *layer_wire_room(layer_t *layer, const layer_way_t *way, const float *matrix, int which,
                      int rows, int width)
{
    layer_wire_t *wire = layer->wire;
    size_t size = (size_t) rows * (size_t) width * wire->size;

    if (!wire->half || way->kind == LAYER_COMPUTATION) {
        return (void *) (size_t) matrix;
    }
    if (size > wire->room_size[which]) {
        free(wire->room[which]);
        wire->room[which] = layer_alloc(size, 1);
        wire->room_size[which] = size;
    }
    return wire->room[which];
}

/* How many elements to convert: where an accelerator's time is all there is, nothing has a value.
 */
static size_t elements(const layer_t *layer, const void *from, const void *to, int rows, int width)
{
    bool converts = from != to && !layer->device.offload;

    return converts ? (size_t) rows * (size_t) width : 0;
}

void layer_wire_narrow(const layer_t *layer, const float *from, void *to, int rows, int width)
{
    size_t count = elements(layer, from, to, rows, width);
    uint16_t *out = to;

    for (size_t k = 0; k < count; k++) {
        out[k] = narrow(from[k]);
    }
}

void layer_wire_widen(const layer_t *layer, const void *from, float *to, int rows, int width)
{
    size_t count = elements(layer, from, to, rows, width);
    const uint16_t *in = from;

    for (size_t k = 0; k < count; k++) {
        to[k] = widen(in[k]);
    }
}
