/*
 * layer_gather.c: rows of all ranks are gathered, in all ways but flash's.
 *
 * An accelerator has its next computation waiting where the order of the layer allows it, and while
 * it computes, the host waits in MPI.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "layer_ways.h"

#include "layer_wire.h"

static void start_gather(const layer_t *layer, const layer_way_t *way, layer_slice_t slice,
                         int width, const void *own, void *all, MPI_Request *request)
{
    int count = slice.rows * width;

    MPI_Iallgather(layer_wire_at(layer, own, slice.first, width), count, layer->wire->type,
                   layer_wire_at(layer, all, layer->nranks * slice.first, width), count,
                   layer->wire->type, way->comm, request);
}

static void gather_whole(layer_t *layer, const layer_way_t *way, int width, const void *own,
                         void *all, layer_wire_fn *consume, void *arg)
{
    int count = layer->rows * width;
    MPI_Request request;

    if (way->kind == LAYER_BLOCKING) {
        MPI_Allgather(own, count, layer->wire->type, all, count, layer->wire->type, way->comm);
    } else if (way->kind == LAYER_WAITING) {
        start_gather(layer, way, layer_slice_of(layer, way, 0), width, own, all, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    consume(arg, 0, layer->nranks * layer->rows, all);
}

/* The own rows while the others' travel. */
static void gather_behind_own(layer_t *layer, const layer_way_t *way, int width, const void *own,
                              void *all, layer_wire_fn *consume, void *arg)
{
    int before = layer->rank * layer->rows, behind = before + layer->rows;
    int others = (layer->nranks - layer->rank - 1) * layer->rows;
    MPI_Request request;

    start_gather(layer, way, layer_slice_of(layer, way, 0), width, own, all, &request);
    consume(arg, before, layer->rows, layer_wire_at(layer, own, 0, width));
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (before > 0) {
        consume(arg, 0, before, all);
    }
    if (others > 0) {
        consume(arg, behind, others, layer_wire_at(layer, all, behind, width));
    }
}

/* Slice s + 1 travels while slice s is computed; nothing hides the first. */
static void gather_slices(layer_t *layer, const layer_way_t *way, int width, const void *own,
                          void *all, layer_wire_fn *consume, void *arg)
{
    MPI_Request request;

    start_gather(layer, way, layer_slice_of(layer, way, 0), width, own, all, &request);
    for (int s = 0; s < way->slices; s++) {
        layer_slice_t slice = layer_slice_of(layer, way, s);
        int position = layer->nranks * slice.first;

        MPI_Wait(&request, MPI_STATUS_IGNORE);
        if (s + 1 < way->slices) {
            start_gather(layer, way, layer_slice_of(layer, way, s + 1), width, own, all, &request);
        }
        consume(arg, position, layer->nranks * slice.rows,
                layer_wire_at(layer, all, position, width));
    }
}

static void gather(layer_t *layer, const layer_way_t *way, int width, const void *own, void *all,
                   layer_wire_fn *consume, void *arg)
{
    switch (way->kind) {
    case LAYER_FLASH:
        layer_flash_gather(layer, way, width, own, all, consume, arg);
        break;
    case LAYER_SLICED:
        gather_slices(layer, way, width, own, all, consume, arg);
        break;
    case LAYER_NONBLOCKING:
        gather_behind_own(layer, way, width, own, all, consume, arg);
        break;
    default:
        gather_whole(layer, way, width, own, all, consume, arg);
    }
}

void layer_gather(layer_t *layer, const layer_way_t *way, int width, const float *own, float *all,
                  layer_rows_fn *consume, void *arg)
{
    layer_call_t call = layer_call_of(layer, way, width, arg);
    void *sent = layer_wire_room(layer, way, own, LAYER_OUT, layer->rows, width);
    void *arrived = layer_wire_room(layer, way, all, LAYER_IN, layer->nranks * layer->rows, width);

    call.consume = consume;
    call.in = all;
    layer_wire_narrow(layer, call.staged, own, sent, layer->rows, width);
    layer_have_values(layer, way);
    gather(layer, way, width, sent, arrived, layer_consume_wide, &call);
}
