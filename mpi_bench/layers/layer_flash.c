/*
 * layer_flash.c: flash's way: computation in callbacks.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <stdio.h>
#include <stdlib.h>

#include <mpix_flash.h>

#include "bench_stats.h"
#include "layer_ways.h"
#include "layer_wire.h"

/* A piece that the accelerator was asked for. */
typedef struct queued {
    MPIX_Flash_handle handle;
    double end;
} queued_t;

enum { MOST_QUEUED = 64 }; /* as many as the extension leaves pending at most */

typedef struct call {
    layer_t *layer;
    int width;
    layer_wire_fn *compute;
    void *arg;
    bool staged; /* what travels is the host's, and the device is waited for */
    bool may_pend;
    int seen; /* rows */
    queued_t queued[MOST_QUEUED];
    unsigned head, tail;
} call_t;

static void must(int error, const char *what)
{
    if (error != MPI_SUCCESS) {
        fprintf(stderr, "%s fails\n", what);
        MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    }
}

/* Where nothing is computed, nothing else would tell. */
static void must_have_seen(const call_t *call)
{
    must(call->seen == call->layer->nranks * call->layer->rows ? MPI_SUCCESS : MPI_ERR_OTHER,
         "some callback");
}

static void compute(call_t *call, const MPIX_Flash_block *block)
{
    int position = block->rank * call->layer->rows + (int) (block->offset / call->width);
    int rows = (int) (block->count / call->width);

    call->seen += rows;
    call->compute(call->arg, position, rows, block->data);
    if (call->staged) {
        layer_finish(call->layer->device);
    }
}

static int consume(const MPIX_Flash_block *block, void *arg)
{
    compute(arg, block);
    return MPI_SUCCESS;
}

static void finish_oldest(call_t *call)
{
    queued_t *oldest = &call->queued[call->head++ % MOST_QUEUED];

    bench_sleep_until(oldest->end);
    must(MPIX_Flash_complete(oldest->handle, MPI_SUCCESS), "MPIX_Flash_complete");
}

static int produce(const MPIX_Flash_block *block, void *arg)
{
    call_t *call = arg;

    compute(call, block);
    if (!call->layer->device->offload) {
        return MPI_SUCCESS;
    }
    call->queued[call->tail++ % MOST_QUEUED] =
        (queued_t){.handle = block->handle, .end = call->layer->device->idle};
    if (!call->may_pend) {
        finish_oldest(call);
    }
    return MPIX_FLASH_PENDING;
}

/* The accelerator is asked for as much as the extension takes at a time, and then waited for. */
static void drive(call_t *call, MPI_Request *request)
{
    int done = 0, before, all = call->layer->nranks * call->layer->rows;

    while (!done && call->seen < all) {
        do {
            before = call->seen;
            must(MPI_Test(request, &done, MPI_STATUS_IGNORE), "MPI_Test");
        } while (call->seen > before);
        if (call->head != call->tail) {
            finish_oldest(call);
        }
    }
}

/* What consumes a piece of this rank's own is waiting for the accelerator as soon as that is there.
 */
static void finish_all(call_t *call, MPI_Request *request)
{
    int done;

    while (call->head != call->tail) {
        finish_oldest(call);
        must(MPI_Test(request, &done, MPI_STATUS_IGNORE), "MPI_Test");
    }
}

static call_t call_of(layer_t *layer, const layer_way_t *way, int width,
                      layer_wire_fn *compute_rows, void *arg)
{
    return (call_t){.layer = layer,
                    .width = width,
                    .compute = compute_rows,
                    .arg = arg,
                    .staged = layer_wire_staged(layer, way->comm)};
}

/* A device's memory is used in the order of its stream. */
static MPIX_Flash_hints hints_of(const call_t *call)
{
    MPIX_Flash_hints hints = MPIX_FLASH_HINTS_INIT;

    hints.pieces = call->layer->pieces;
    hints.row = call->width;
    hints.on_stream = call->layer->device->own_memory && !call->staged;
    hints.stream = call->layer->device->stream;
    return hints;
}

void layer_flash_gather(layer_t *layer, const layer_way_t *way, int width, const void *own,
                        void *all, layer_wire_fn *consume_rows, void *arg)
{
    call_t call = call_of(layer, way, width, consume_rows, arg);
    MPIX_Flash_hints hints = hints_of(&call);
    int count = layer->rows * width;

    must(MPIX_Allgather_compute(own, count, layer->wire->type, all, count, layer->wire->type,
                                consume, &call, &hints, way->comm),
         "MPIX_Allgather_compute");
    must_have_seen(&call);
}

/* What nothing depends on is the accelerator's behind all pieces, while the last ones travel. */
void layer_flash_scatter(layer_t *layer, const layer_way_t *way, int width, void *own,
                         layer_wire_fn *produce_rows, void (*meanwhile)(void *arg), void *arg)
{
    call_t call = call_of(layer, way, width, produce_rows, arg);
    MPIX_Flash_hints hints = hints_of(&call);
    MPI_Request request;
    int served;

    must(MPIX_Flash_active(way->comm, &served), "MPIX_Flash_active");
    call.may_pend = served != 0;
    must(MPIX_Ireduce_scatter_block_compute(produce, &call, &hints, own, layer->rows * width,
                                            layer->wire->type, MPI_SUM, way->comm, &request),
         "MPIX_Ireduce_scatter_block_compute");
    drive(&call, &request);
    if (meanwhile != NULL && layer->device->queues) {
        meanwhile(arg);
    }
    finish_all(&call, &request);
    must(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
    must_have_seen(&call);
    if (meanwhile != NULL && !layer->device->queues) {
        meanwhile(arg);
    }
}

/* Once all is produced, what comes is the accelerator's next. */
void layer_flash_exchange(layer_t *layer, const layer_way_t *way, int width, void *out, void *in,
                          layer_wire_fn *produce_rows, layer_wire_fn *consume_rows, void *arg)
{
    call_t makes = call_of(layer, way, width, produce_rows, arg);
    call_t uses = call_of(layer, way, width, consume_rows, arg);
    MPIX_Flash_hints hints = hints_of(&makes);
    int count = layer->rows * width, served;
    MPI_Request request;

    must(MPIX_Flash_active(way->comm, &served), "MPIX_Flash_active");
    makes.may_pend = served != 0;
    must(MPIX_Ialltoall_compute(out, count, layer->wire->type, in, count, layer->wire->type,
                                produce_rows == NULL ? NULL : produce, &makes,
                                consume_rows == NULL ? NULL : consume, &uses, &hints, way->comm,
                                &request),
         "MPIX_Ialltoall_compute");
    if (produce_rows != NULL) {
        drive(&makes, &request);
        finish_all(&makes, &request);
    }
    must(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
    if (produce_rows != NULL) {
        must_have_seen(&makes);
    }
    if (consume_rows != NULL) {
        must_have_seen(&uses);
    }
}
