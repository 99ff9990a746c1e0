/*
 * layer_ways.c: slices of rows, waiting for the device, and a layer's own matrices beside what
 * travels; see layer_ways.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "layer_ways.h"

#include "bench_blocks.h"
#include "bench_stats.h"
#include "layer_wire.h"

#define INTERVAL 100e-6 /* seconds */

layer_slice_t layer_slice_of(const layer_t *layer, const layer_way_t *way, int number)
{
    int first = bench_share_first(layer->rows, way->slices, number);

    return (layer_slice_t){.first = first,
                           .rows = bench_share_first(layer->rows, way->slices, number + 1) - first};
}

int layer_position(const layer_t *layer, const layer_way_t *way, int rank, int row)
{
    int number = 0;
    layer_slice_t slice = layer_slice_of(layer, way, 0);

    while (row >= slice.first + slice.rows) {
        slice = layer_slice_of(layer, way, ++number);
    }
    return layer->nranks * slice.first + rank * slice.rows + row - slice.first;
}

int layer_row(const layer_t *layer, const layer_way_t *way, int position)
{
    int number = 0;
    layer_slice_t slice = layer_slice_of(layer, way, 0);

    while (position >= layer->nranks * (slice.first + slice.rows)) {
        slice = layer_slice_of(layer, way, ++number);
    }
    position -= layer->nranks * slice.first;
    return position / slice.rows * layer->rows + slice.first + position % slice.rows;
}

/*
 * Open MPI's own calls go on while the host is in MPI, and so it is, at short intervals: what else
 * is under way goes on, too. Flash's have their thread.
 */
void layer_wait(const layer_t *layer, const layer_way_t *way)
{
    bool in_mpi = way->kind == LAYER_NONBLOCKING || way->kind == LAYER_SLICED;
    int flag;

    while (in_mpi && !layer->device->engine->reached(layer->device)) {
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
        bench_sleep_until(bench_now() + INTERVAL);
    }
    layer->device->engine->wait(layer->device);
}

void layer_have_values(const layer_t *layer, const layer_way_t *way)
{
    bool in_order = way->kind == LAYER_FLASH && !layer_wire_staged(layer, way->comm);

    if (layer->device->own_memory && way->kind != LAYER_COMPUTATION && !in_order) {
        layer_finish(layer->device);
    }
}

layer_call_t layer_call_of(layer_t *layer, const layer_way_t *way, int width, void *arg)
{
    return (layer_call_t){.layer = layer,
                          .way = way,
                          .width = width,
                          .arg = arg,
                          .apart = layer_wire_apart(layer, way) || layer->wire->half,
                          .staged = layer_wire_staged(layer, way->comm)};
}

static float *rows_at(const layer_call_t *call, float *matrix, int position, void *data)
{
    return call->apart ? matrix + (size_t) position * (size_t) call->width : data;
}

void layer_consume_wide(void *arg, int position, int rows, void *data)
{
    const layer_call_t *call = arg;
    float *wide = rows_at(call, call->in, position, data);

    if (call->way->kind != LAYER_COMPUTATION) {
        layer_wire_widen(call->layer, call->staged, data, wide, rows, call->width);
    }
    call->consume(call->arg, position, rows, wide);
}

void layer_produce_wide(void *arg, int position, int rows, void *data)
{
    const layer_call_t *call = arg;
    float *wide = rows_at(call, call->out, position, data);

    call->produce(call->arg, position, rows, wide);
    if (call->way->kind != LAYER_COMPUTATION) {
        layer_wire_narrow(call->layer, call->staged, wide, data, rows, call->width);
    }
}
