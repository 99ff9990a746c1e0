/*
 * layer_exchange.c: rows are exchanged, in all ways but flash's.
 *
 * An accelerator has its next computation waiting where the order of the layer allows it, and while
 * it computes, the host waits in MPI.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "layer_ways.h"

#include "layer_wire.h"

/* The rows of some ranks, from one on, in a slice. */
static void for_ranks(const layer_t *layer, layer_slice_t slice, int first, int count, int width,
                      void *matrix, layer_wire_fn *compute, void *arg)
{
    for (int rank = first; rank < first + count && compute != NULL; rank++) {
        int position = layer->nranks * slice.first + rank * slice.rows;

        compute(arg, position, slice.rows, layer_wire_at(layer, matrix, position, width));
    }
}

static void for_all(const layer_t *layer, layer_slice_t slice, int width, void *matrix,
                    layer_wire_fn *compute, void *arg)
{
    for_ranks(layer, slice, 0, layer->nranks, width, matrix, compute, arg);
}

static void start_exchange(const layer_t *layer, const layer_way_t *way, layer_slice_t slice,
                           int width, const void *out, void *in, MPI_Request *request)
{
    int first = layer->nranks * slice.first, count = slice.rows * width;

    MPI_Ialltoall(layer_wire_at(layer, out, first, width), count, layer->wire->type,
                  layer_wire_at(layer, in, first, width), count, layer->wire->type, way->comm,
                  request);
}

static void exchange_whole(layer_t *layer, const layer_way_t *way, int width, void *out, void *in,
                           layer_wire_fn *produce, layer_wire_fn *consume, void *arg)
{
    layer_slice_t all = layer_slice_of(layer, way, 0);
    int count = layer->rows * width;

    for_all(layer, all, width, out, produce, arg);
    if (way->kind != LAYER_COMPUTATION) {
        layer_finish(layer->device);
        MPI_Alltoall(out, count, layer->wire->type, in, count, layer->wire->type, way->comm);
    }
    for_all(layer, all, width, in, consume, arg);
}

/* The own rows are used while the others' travel. */
static void exchange_behind_own(layer_t *layer, const layer_way_t *way, int width, void *out,
                                void *in, layer_wire_fn *produce, layer_wire_fn *consume, void *arg)
{
    layer_slice_t all = layer_slice_of(layer, way, 0);
    MPI_Request request;

    for_all(layer, all, width, out, produce, arg);
    layer_mark(layer->device);
    layer_wait(layer, way);
    start_exchange(layer, way, all, width, out, in, &request);
    for_ranks(layer, all, layer->rank, 1, width, out, consume, arg);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for_ranks(layer, all, 0, layer->rank, width, in, consume, arg);
    for_ranks(layer, all, layer->rank + 1, layer->nranks - layer->rank - 1, width, in, consume,
              arg);
}

/* Slice s travels while slice s + 1 is produced and slice s - 1 consumed. */
static void exchange_slices(layer_t *layer, const layer_way_t *way, int width, void *out, void *in,
                            layer_wire_fn *produce, layer_wire_fn *consume, void *arg)
{
    bool queues = layer->device->queues;
    MPI_Request last = MPI_REQUEST_NULL;

    for_all(layer, layer_slice_of(layer, way, 0), width, out, produce, arg);
    for (int s = 0; s < way->slices; s++) {
        bool more = s + 1 < way->slices;

        layer_mark(layer->device);
        if (queues && more) {
            for_all(layer, layer_slice_of(layer, way, s + 1), width, out, produce, arg);
        }
        MPI_Wait(&last, MPI_STATUS_IGNORE);
        layer_wait(layer, way);
        start_exchange(layer, way, layer_slice_of(layer, way, s), width, out, in, &last);
        if (!queues && more) {
            for_all(layer, layer_slice_of(layer, way, s + 1), width, out, produce, arg);
        }
        if (s > 0) {
            for_all(layer, layer_slice_of(layer, way, s - 1), width, in, consume, arg);
        }
    }
    MPI_Wait(&last, MPI_STATUS_IGNORE);
    for_all(layer, layer_slice_of(layer, way, way->slices - 1), width, in, consume, arg);
}

static void exchange(layer_t *layer, const layer_way_t *way, int width, void *out, void *in,
                     layer_wire_fn *produce, layer_wire_fn *consume, void *arg)
{
    switch (way->kind) {
    case LAYER_FLASH:
        layer_flash_exchange(layer, way, width, out, in, produce, consume, arg);
        break;
    case LAYER_SLICED:
        exchange_slices(layer, way, width, out, in, produce, consume, arg);
        break;
    case LAYER_NONBLOCKING:
        exchange_behind_own(layer, way, width, out, in, produce, consume, arg);
        break;
    default:
        exchange_whole(layer, way, width, out, in, produce, consume, arg);
    }
}

void layer_exchange(layer_t *layer, const layer_way_t *way, int width, float *out, float *in,
                    layer_rows_fn *produce, layer_rows_fn *consume, void *arg)
{
    layer_call_t call = layer_call_of(layer, way, width, arg);
    int rows = layer->nranks * layer->rows;
    void *sent = layer_wire_room(layer, way, out, LAYER_OUT, rows, width);
    void *arrived = layer_wire_room(layer, way, in, LAYER_IN, rows, width);

    call.produce = produce;
    call.consume = consume;
    call.out = out;
    call.in = in;
    if (produce == NULL) {
        layer_wire_narrow(layer, call.staged, out, sent, rows, width);
        layer_have_values(layer, way);
    }
    exchange(layer, way, width, sent, arrived, produce == NULL ? NULL : layer_produce_wide,
             consume == NULL ? NULL : layer_consume_wide, &call);
    if (consume == NULL) {
        layer_wire_widen(layer, call.staged, arrived, in, rows, width);
    }
}
