/*
 * layer_scatter.c: contributions are added and scattered, in all ways but flash's.
 *
 * An accelerator has its next computation waiting where the order of the layer allows it, and while
 * it computes, the host waits in MPI.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "layer_ways.h"

#include "layer_wire.h"

static void compute_meanwhile(void *arg)
{
    const layer_call_t *call = arg;

    call->meanwhile(call->arg);
}

static void start_scatter(const layer_t *layer, const layer_way_t *way, layer_slice_t slice,
                          int width, const void *all, void *own, MPI_Request *request)
{
    MPI_Ireduce_scatter_block(layer_wire_at(layer, all, layer->nranks * slice.first, width),
                              layer_wire_at(layer, own, slice.first, width), slice.rows * width,
                              layer->wire->type, layer->wire->sum, way->comm, request);
}

static void produce_slice(const layer_t *layer, layer_slice_t slice, int width, void *all,
                          layer_wire_fn *produce, void *arg)
{
    int position = layer->nranks * slice.first;

    produce(arg, position, layer->nranks * slice.rows, layer_wire_at(layer, all, position, width));
}

/* Slice s travels while slice s + 1 is computed; what nothing depends on hides a part of the last.
 */
static void scatter_slices(layer_t *layer, const layer_way_t *way, int width, void *all, void *own,
                           layer_wire_fn *produce, void (*meanwhile)(void *arg), void *arg)
{
    MPI_Request request, last = MPI_REQUEST_NULL;

    produce_slice(layer, layer_slice_of(layer, way, 0), width, all, produce, arg);
    for (int s = 0; s < way->slices; s++) {
        layer_mark(layer->device);
        if (s + 1 < way->slices && layer->device->queues) {
            produce_slice(layer, layer_slice_of(layer, way, s + 1), width, all, produce, arg);
        } else if (s + 1 == way->slices && meanwhile != NULL && layer->device->queues) {
            meanwhile(arg);
        }
        MPI_Wait(&last, MPI_STATUS_IGNORE);
        layer_wait(layer, way);
        start_scatter(layer, way, layer_slice_of(layer, way, s), width, all, own, &request);
        last = request;
        if (s + 1 < way->slices && !layer->device->queues) {
            produce_slice(layer, layer_slice_of(layer, way, s + 1), width, all, produce, arg);
        }
    }
    if (meanwhile != NULL && !layer->device->queues) {
        meanwhile(arg);
    }
    MPI_Wait(&last, MPI_STATUS_IGNORE);
}

static void scatter_whole(layer_t *layer, const layer_way_t *way, int width, void *all, void *own,
                          layer_wire_fn *produce, void (*meanwhile)(void *arg), void *arg)
{
    MPI_Request request;

    produce(arg, 0, layer->nranks * layer->rows, all);
    if (way->kind != LAYER_COMPUTATION) {
        layer_finish(layer->device);
    }
    if (way->kind == LAYER_BLOCKING) {
        MPI_Reduce_scatter_block(all, own, layer->rows * width, layer->wire->type, layer->wire->sum,
                                 way->comm);
    } else if (way->kind == LAYER_WAITING) {
        start_scatter(layer, way, layer_slice_of(layer, way, 0), width, all, own, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    if (meanwhile != NULL) {
        meanwhile(arg);
    }
}

/* A non-blocking call is a slicing into one. */
static void scatter(layer_t *layer, const layer_way_t *way, int width, void *all, void *own,
                    layer_wire_fn *produce, void (*meanwhile)(void *arg), void *arg)
{
    switch (way->kind) {
    case LAYER_FLASH:
        layer_flash_scatter(layer, way, width, own, produce, meanwhile, arg);
        break;
    case LAYER_SLICED:
    case LAYER_NONBLOCKING:
        scatter_slices(layer, way, width, all, own, produce, meanwhile, arg);
        break;
    default:
        scatter_whole(layer, way, width, all, own, produce, meanwhile, arg);
    }
}

void layer_scatter(layer_t *layer, const layer_way_t *way, int width, float *all, float *own,
                   layer_rows_fn *produce, void (*meanwhile)(void *arg), void *arg)
{
    layer_call_t call = layer_call_of(layer, way, width, arg);
    void *sent = layer_wire_room(layer, way, all, LAYER_OUT, layer->nranks * layer->rows, width);
    void *arrived = layer_wire_room(layer, way, own, LAYER_IN, layer->rows, width);

    call.produce = produce;
    call.meanwhile = meanwhile;
    call.out = all;
    scatter(layer, way, width, sent, arrived, layer_produce_wide,
            meanwhile == NULL ? NULL : compute_meanwhile, &call);
    layer_wire_widen(layer, call.staged, arrived, own, layer->rows, width);
}
