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

static void add(void *in, void *inout, int *count, MPI_Datatype *type)
{
    const uint16_t *from = in;
    uint16_t *to = inout;

    (void) type;
    for (int k = 0; k < *count; k++) {
        to[k] = layer_rounded(layer_wide(from[k]) + layer_wide(to[k]));
    }
}

void layer_wire_open(layer_wire_t *wire, bool half)
{
    *wire = (layer_wire_t){.half = half, .type = MPI_FLOAT, .sum = MPI_SUM, .size = sizeof(float)};
    if (half) {
        wire->size = sizeof(uint16_t);
        MPIX_Flash_type(MPIX_FLASH_BF16, &wire->type);
        MPI_Op_create(add, 1, &wire->sum);
    }
}

void layer_wire_close(layer_wire_t *wire, const layer_device_t *device)
{
    if (wire->half) {
        MPI_Op_free(&wire->sum);
    }
    for (int k = 0; k < 4; k++) {
        layer_room_free(device, wire->room[k / 2][k % 2], k % 2);
    }
    layer_room_free(device, wire->between, false);
}

bool layer_wire_staged(const layer_t *layer, MPI_Comm comm)
{
    int served = 0;

    if (layer->device->own_memory && comm != MPI_COMM_NULL) {
        MPIX_Flash_active(comm, &served);
        return !served;
    }
    return false;
}

bool layer_wire_apart(const layer_t *layer, const layer_way_t *way)
{
    return way->kind != LAYER_COMPUTATION &&
           (layer->wire->half || layer_wire_staged(layer, way->comm));
}

/* All bits set are a NAN, of either size. */
void layer_wire_spoil(const layer_t *layer)
{
    layer_wire_t *wire = layer->wire;

    for (int k = 0; k < 4; k++) {
        size_t size = wire->room_size[k / 2][k % 2];
        void *spoilt = layer_alloc(size, 1);

        memset(spoilt, 0xff, size);
        layer_copy(layer->device, wire->room[k / 2][k % 2], spoilt, size);
        layer_finish(layer->device);
        free(spoilt);
    }
}

/* Room that is large enough: what was there is lost. */
static void *have_room(const layer_device_t *device, void **room, size_t *room_size, size_t size,
                       bool on_host)
{
    if (size > *room_size) {
        layer_finish(device);
        layer_room_free(device, *room, on_host);
        *room = layer_room(device, size, on_host);
        *room_size = size;
    }
    return *room;
}

void *layer_wire_room(layer_t *layer, const layer_way_t *way, const float *matrix, int which,
                      int rows, int width)
{
    layer_wire_t *wire = layer->wire;
    bool staged = layer_wire_staged(layer, way->comm);

    if (!layer_wire_apart(layer, way)) {
        return (void *) (size_t) matrix;
    }
    return have_room(layer->device, &wire->room[which][staged], &wire->room_size[which][staged],
                     (size_t) rows * (size_t) width * wire->size, staged);
}

/* Where bfloat16 are on the device that travel by the host. */
static void *between(layer_t *layer, size_t size)
{
    return have_room(layer->device, &layer->wire->between, &layer->wire->between_size, size, false);
}

void layer_wire_narrow(layer_t *layer, bool staged, const float *from, void *to, int rows,
                       int width)
{
    size_t count = (size_t) rows * (size_t) width, size = count * layer->wire->size;
    const void *made = from;

    if (from == to || count == 0) {
        return;
    }
    if (layer->wire->half) {
        void *place = staged ? between(layer, size) : to;

        layer_compute(layer->device, LAYER_KERNEL_narrow,
                      &(layer_work_t){.to = place, .from = from, .count = count});
        made = place;
    }
    if (staged) {
        layer_copy(layer->device, to, made, size);
    }
}

void layer_wire_widen(layer_t *layer, bool staged, const void *from, float *to, int rows, int width)
{
    size_t count = (size_t) rows * (size_t) width, size = count * layer->wire->size;
    const void *there = from;

    if (from == to || count == 0) {
        return;
    }
    if (staged) {
        void *place = layer->wire->half ? between(layer, size) : to;

        layer_copy(layer->device, place, from, size);
        there = place;
    }
    if (layer->wire->half) {
        layer_compute(layer->device, LAYER_KERNEL_widen,
                      &(layer_work_t){.to = to, .from = there, .count = count});
    }
}
