/*
 * layer_ways.c: the ways to communicate but flash's.
 *
 * An accelerator has its next computation waiting where the order of the layer allows it, and while
 * it computes, the host waits in MPI.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "layer_ways.h"

#include "bench_blocks.h"
#include "bench_stats.h"
#include "layer_wire.h"

#define INTERVAL 100e-6 /* seconds */

/* A slice of each rank's rows: where it begins there, and how many rows it has. */
typedef struct slice {
    int first, rows;
} slice_t;

static slice_t slice_of(const layer_t *layer, const layer_way_t *way, int number)
{
    int first = bench_share_first(layer->rows, way->slices, number);

    return (slice_t){.first = first,
                     .rows = bench_share_first(layer->rows, way->slices, number + 1) - first};
}

int layer_position(const layer_t *layer, const layer_way_t *way, int rank, int row)
{
    int number = 0;
    slice_t slice = slice_of(layer, way, 0);

    while (row >= slice.first + slice.rows) {
        slice = slice_of(layer, way, ++number);
    }
    return layer->nranks * slice.first + rank * slice.rows + row - slice.first;
}

int layer_row(const layer_t *layer, const layer_way_t *way, int position)
{
    int number = 0;
    slice_t slice = slice_of(layer, way, 0);

    while (position >= layer->nranks * (slice.first + slice.rows)) {
        slice = slice_of(layer, way, ++number);
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

/*
 * What is to travel is there, where that takes no place in the order of the device. On a stand-in
 * it is: no rows depend on what it has not done.
 */
static void have_values(const layer_t *layer, const layer_way_t *way)
{
    bool in_order = way->kind == LAYER_FLASH && !layer_wire_staged(layer, way->comm);

    if (layer->device->own_memory && way->kind != LAYER_COMPUTATION && !in_order) {
        layer_finish(layer->device);
    }
}

/* A layer computes on its own matrices, whatever travels. */
typedef struct call {
    layer_t *layer;
    const layer_way_t *way;
    int width;
    layer_rows_fn *produce, *consume;
    void (*meanwhile)(void *arg);
    void *arg;
    float *out, *in;
    bool apart, staged; /* what travels is something else, and on the host */
} call_t;

static call_t call_of(layer_t *layer, const layer_way_t *way, int width, void *arg)
{
    return (call_t){.layer = layer,
                    .way = way,
                    .width = width,
                    .arg = arg,
                    .apart = layer_wire_apart(layer, way) || layer->wire->half,
                    .staged = layer_wire_staged(layer, way->comm)};
}

static float *rows_at(const call_t *call, float *matrix, int position, void *data)
{
    return call->apart ? matrix + (size_t) position * (size_t) call->width : data;
}

static void consume_wide(void *arg, int position, int rows, void *data)
{
    const call_t *call = arg;
    float *wide = rows_at(call, call->in, position, data);

    if (call->way->kind != LAYER_COMPUTATION) {
        layer_wire_widen(call->layer, call->staged, data, wide, rows, call->width);
    }
    call->consume(call->arg, position, rows, wide);
}

static void produce_wide(void *arg, int position, int rows, void *data)
{
    const call_t *call = arg;
    float *wide = rows_at(call, call->out, position, data);

    call->produce(call->arg, position, rows, wide);
    if (call->way->kind != LAYER_COMPUTATION) {
        layer_wire_narrow(call->layer, call->staged, wide, data, rows, call->width);
    }
}

static void compute_meanwhile(void *arg)
{
    const call_t *call = arg;

    call->meanwhile(call->arg);
}

/* -------------------------------------------------------------------- gathering */

static void start_gather(const layer_t *layer, const layer_way_t *way, slice_t slice, int width,
                         const void *own, void *all, MPI_Request *request)
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
        start_gather(layer, way, slice_of(layer, way, 0), width, own, all, &request);
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

    start_gather(layer, way, slice_of(layer, way, 0), width, own, all, &request);
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

    start_gather(layer, way, slice_of(layer, way, 0), width, own, all, &request);
    for (int s = 0; s < way->slices; s++) {
        slice_t slice = slice_of(layer, way, s);
        int position = layer->nranks * slice.first;

        MPI_Wait(&request, MPI_STATUS_IGNORE);
        if (s + 1 < way->slices) {
            start_gather(layer, way, slice_of(layer, way, s + 1), width, own, all, &request);
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
    call_t call = call_of(layer, way, width, arg);
    void *sent = layer_wire_room(layer, way, own, LAYER_OUT, layer->rows, width);
    void *arrived = layer_wire_room(layer, way, all, LAYER_IN, layer->nranks * layer->rows, width);

    call.consume = consume;
    call.in = all;
    layer_wire_narrow(layer, call.staged, own, sent, layer->rows, width);
    have_values(layer, way);
    gather(layer, way, width, sent, arrived, consume_wide, &call);
}

/* ------------------------------------------------------------------- scattering */

static void start_scatter(const layer_t *layer, const layer_way_t *way, slice_t slice, int width,
                          const void *all, void *own, MPI_Request *request)
{
    MPI_Ireduce_scatter_block(layer_wire_at(layer, all, layer->nranks * slice.first, width),
                              layer_wire_at(layer, own, slice.first, width), slice.rows * width,
                              layer->wire->type, layer->wire->sum, way->comm, request);
}

static void produce_slice(const layer_t *layer, slice_t slice, int width, void *all,
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

    produce_slice(layer, slice_of(layer, way, 0), width, all, produce, arg);
    for (int s = 0; s < way->slices; s++) {
        layer_mark(layer->device);
        if (s + 1 < way->slices && layer->device->queues) {
            produce_slice(layer, slice_of(layer, way, s + 1), width, all, produce, arg);
        } else if (s + 1 == way->slices && meanwhile != NULL && layer->device->queues) {
            meanwhile(arg);
        }
        MPI_Wait(&last, MPI_STATUS_IGNORE);
        layer_wait(layer, way);
        start_scatter(layer, way, slice_of(layer, way, s), width, all, own, &request);
        last = request;
        if (s + 1 < way->slices && !layer->device->queues) {
            produce_slice(layer, slice_of(layer, way, s + 1), width, all, produce, arg);
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
        start_scatter(layer, way, slice_of(layer, way, 0), width, all, own, &request);
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
    call_t call = call_of(layer, way, width, arg);
    void *sent = layer_wire_room(layer, way, all, LAYER_OUT, layer->nranks * layer->rows, width);
    void *arrived = layer_wire_room(layer, way, own, LAYER_IN, layer->rows, width);

    call.produce = produce;
    call.meanwhile = meanwhile;
    call.out = all;
    scatter(layer, way, width, sent, arrived, produce_wide,
            meanwhile == NULL ? NULL : compute_meanwhile, &call);
    layer_wire_widen(layer, call.staged, arrived, own, layer->rows, width);
}

/* ------------------------------------------------------------------ exchanging */

/* The rows of some ranks, from one on, in a slice. */
static void for_ranks(const layer_t *layer, slice_t slice, int first, int count, int width,
                      void *matrix, layer_wire_fn *compute, void *arg)
{
    for (int rank = first; rank < first + count && compute != NULL; rank++) {
        int position = layer->nranks * slice.first + rank * slice.rows;

        compute(arg, position, slice.rows, layer_wire_at(layer, matrix, position, width));
    }
}

static void for_all(const layer_t *layer, slice_t slice, int width, void *matrix,
                    layer_wire_fn *compute, void *arg)
{
    for_ranks(layer, slice, 0, layer->nranks, width, matrix, compute, arg);
}

static void start_exchange(const layer_t *layer, const layer_way_t *way, slice_t slice, int width,
                           const void *out, void *in, MPI_Request *request)
{
    int first = layer->nranks * slice.first, count = slice.rows * width;

    MPI_Ialltoall(layer_wire_at(layer, out, first, width), count, layer->wire->type,
                  layer_wire_at(layer, in, first, width), count, layer->wire->type, way->comm,
                  request);
}

static void exchange_whole(layer_t *layer, const layer_way_t *way, int width, void *out, void *in,
                           layer_wire_fn *produce, layer_wire_fn *consume, void *arg)
{
    slice_t all = slice_of(layer, way, 0);
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
    slice_t all = slice_of(layer, way, 0);
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

    for_all(layer, slice_of(layer, way, 0), width, out, produce, arg);
    for (int s = 0; s < way->slices; s++) {
        bool more = s + 1 < way->slices;

        layer_mark(layer->device);
        if (queues && more) {
            for_all(layer, slice_of(layer, way, s + 1), width, out, produce, arg);
        }
        MPI_Wait(&last, MPI_STATUS_IGNORE);
        layer_wait(layer, way);
        start_exchange(layer, way, slice_of(layer, way, s), width, out, in, &last);
        if (!queues && more) {
            for_all(layer, slice_of(layer, way, s + 1), width, out, produce, arg);
        }
        if (s > 0) {
            for_all(layer, slice_of(layer, way, s - 1), width, in, consume, arg);
        }
    }
    MPI_Wait(&last, MPI_STATUS_IGNORE);
    for_all(layer, slice_of(layer, way, way->slices - 1), width, in, consume, arg);
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
    call_t call = call_of(layer, way, width, arg);
    int rows = layer->nranks * layer->rows;
    void *sent = layer_wire_room(layer, way, out, LAYER_OUT, rows, width);
    void *arrived = layer_wire_room(layer, way, in, LAYER_IN, rows, width);

    call.produce = produce;
    call.consume = consume;
    call.out = out;
    call.in = in;
    if (produce == NULL) {
        layer_wire_narrow(layer, call.staged, out, sent, rows, width);
        have_values(layer, way);
    }
    exchange(layer, way, width, sent, arrived, produce == NULL ? NULL : produce_wide,
             consume == NULL ? NULL : consume_wide, &call);
    if (consume == NULL) {
        layer_wire_widen(layer, call.staged, arrived, in, rows, width);
    }
}
