/*
 * layer_dp.c: data parallel training with sharded parameters, in the order of ZeRO and FSDP.
 *
 * Each rank has its tokens, and its rows of each layer's weights, which are square. A layer's
 * weights are gathered for its products, and its gradients are added up and scattered:
 *
 *   forward   layer by layer: AG(W) -> Z = A W -> A of the next one = GeLU(Z)
 *   backward  the other way: dZ = dA o GeLU'(Z) -> RS(A' dZ) = dW;  dA of the one before = dZ W'
 *
 * The products go by rows of W: what has arrived is multiplied by its columns of A, and the rows of
 * dW are made just before they leave. So there is neither a head nor a tail, not even in the first
 * layer. Open MPI's own calls are given what the order of the layers allows: the next layer's
 * weights travel under a layer's product, a layer's gradients under the products of those before.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "layer_dp.h"
#include "layer_wire.h"

/* ------------------------------------------------------------- products by rows of W */

/*
 * Calls `product` for the rows from `position` on, in parts that are neighbours in W: of a slice,
 * each rank's.
 */
static void by_rows(layer_dp_t *dp, int position, int rows, float *data,
                    void (*product)(layer_dp_t *dp, int first, int rows, float *data))
{
    while (rows > 0) {
        int first = layer_row(dp->layer, dp->way, position), part = 1;

        while (part < rows && layer_row(dp->layer, dp->way, position + part) == first + part) {
            part++;
        }
        product(dp, first, part, data);
        position += part;
        rows -= part;
        data += layer_dp_size(dp, part);
    }
}

/* Z += A's columns x W's rows. */
static void add_product(layer_dp_t *dp, int first, int rows, float *w)
{
    layer_multiply(dp->layer->device, &(layer_product_t){.m = dp->tokens,
                                                         .n = dp->width,
                                                         .k = rows,
                                                         .a = dp->a[dp->current] + first,
                                                         .lda = dp->width,
                                                         .b = w,
                                                         .ldb = dp->width,
                                                         .beta = 1,
                                                         .c = dp->z[dp->current],
                                                         .ldc = dp->width});
}

static void consume(void *arg, int position, int rows, float *w)
{
    by_rows(arg, position, rows, w, add_product);
}

/* dW's rows = A's columns' x dZ. */
static void make_gradient(layer_dp_t *dp, int first, int rows, float *dw)
{
    layer_multiply(dp->layer->device, &(layer_product_t){.transpose_a = true,
                                                         .m = rows,
                                                         .n = dp->width,
                                                         .k = dp->tokens,
                                                         .a = dp->a[dp->current] + first,
                                                         .lda = dp->width,
                                                         .b = dp->dz,
                                                         .ldb = dp->width,
                                                         .c = dw,
                                                         .ldc = dp->width});
}

static void produce(void *arg, int position, int rows, float *dw)
{
    by_rows(arg, position, rows, dw, make_gradient);
}

/* dA's columns of the layer before = dZ x W's rows'. */
static void go_back(layer_dp_t *dp, int first, int rows, float *w)
{
    layer_multiply(dp->layer->device, &(layer_product_t){.transpose_b = true,
                                                         .m = dp->tokens,
                                                         .n = rows,
                                                         .k = dp->width,
                                                         .a = dp->dz,
                                                         .lda = dp->width,
                                                         .b = w,
                                                         .ldb = dp->width,
                                                         .c = dp->da + first,
                                                         .ldc = dp->width});
}

static void back(void *arg)
{
    layer_dp_t *dp = arg;

    if (dp->current > 0) {
        by_rows(dp, 0, dp->width, dp->w[dp->current], go_back);
    }
}

/* ------------------------------------------------------------------------- passes */

static void start_gather(layer_dp_t *dp, int l)
{
    int count = dp->layer->rows * dp->width;
    MPI_Datatype type = dp->layer->wire->type;

    if (l < dp->layers) {
        MPI_Iallgather(dp->travels[l].own, count, type, dp->travels[l].all, count, type,
                       dp->way->comm, &dp->requests[l]);
    }
}

/* The weights are what they were: nothing that is computed later has a part in them. */
static void begin_gathers(layer_dp_t *dp)
{
    for (int l = 0; l < dp->layers; l++) {
        layer_wire_narrow(dp->layer, dp->layer->device->own_memory, dp->own[l], dp->travels[l].own,
                          dp->layer->rows, dp->width);
    }
    if (dp->layer->device->own_memory) {
        layer_finish(dp->layer->device);
    }
    start_gather(dp, 0);
}

static void forward(layer_dp_t *dp)
{
    layer_device_t *device = dp->layer->device;

    if (dp->way->kind == LAYER_NONBLOCKING) {
        begin_gathers(dp);
    }
    for (int l = 0; l < dp->layers; l++) {
        dp->current = l;
        layer_clear(device, dp->z[l], dp->tokens, dp->width);
        if (dp->way->kind == LAYER_NONBLOCKING) {
            MPI_Wait(&dp->requests[l], MPI_STATUS_IGNORE);
            start_gather(dp, l + 1);
            layer_wire_widen(dp->layer, device->own_memory, dp->travels[l].all, dp->w[l], dp->width,
                             dp->width);
            consume(dp, 0, dp->width, dp->w[l]);
        } else {
            layer_gather(dp->layer, dp->way, dp->width, dp->own[l], dp->w[l], consume, dp);
        }
        layer_gelu_rows(device, dp->z[l], dp->a[l + 1], layer_dp_size(dp, dp->tokens));
    }
}

/* While a layer's gradients travel, the layer before is computed. */
static void scatter_behind(layer_dp_t *dp, int l)
{
    const layer_dp_travel_t *travel = &dp->travels[l];
    const layer_wire_t *wire = dp->layer->wire;

    produce(dp, 0, dp->width, layer_dp_sent(dp, l));
    layer_wire_narrow(dp->layer, dp->layer->device->own_memory, layer_dp_sent(dp, l), travel->sent,
                      dp->width, dp->width);
    layer_finish(dp->layer->device);
    MPI_Ireduce_scatter_block(travel->sent, travel->reduced, dp->layer->rows * dp->width,
                              wire->type, wire->sum, dp->way->comm, &dp->requests[l]);
    back(dp);
}

static void finish_scatters(layer_dp_t *dp)
{
    MPI_Waitall(dp->layers, dp->requests, MPI_STATUSES_IGNORE);
    for (int l = 0; l < dp->layers; l++) {
        layer_wire_widen(dp->layer, dp->layer->device->own_memory, dp->travels[l].reduced,
                         dp->dw[l], dp->layer->rows, dp->width);
    }
}

static void backward(layer_dp_t *dp)
{
    const float *da = dp->slope;

    for (int l = dp->layers - 1; l >= 0; l--) {
        dp->current = l;
        layer_gelu_back(dp->layer->device, da, dp->z[l], dp->dz, layer_dp_size(dp, dp->tokens));
        da = dp->da;
        if (dp->way->kind == LAYER_NONBLOCKING) {
            scatter_behind(dp, l);
        } else {
            layer_scatter(dp->layer, dp->way, dp->width, dp->sent, dp->dw[l], produce, back, dp);
        }
    }
    if (dp->way->kind == LAYER_NONBLOCKING) {
        finish_scatters(dp);
    }
}

static void run(void *state, const layer_way_t *way, int phase)
{
    layer_dp_t *dp = state;

    dp->way = way;
    if (phase == 0) {
        forward(dp);
    } else {
        backward(dp);
    }
}

/* The blocks are rows of the weights. */
static int block_rows(const layer_options_t *options, int nranks)
{
    return options->hidden % nranks == 0 ? options->hidden / nranks : 0;
}

const layer_workload_t layer_workload = {.program = "flash_dp",
                                         .title = "Data parallel, sharded parameters",
                                         .phases = 2,
                                         .phase_names = {"forward", "backward"},
                                         .block_rows = block_rows,
                                         .make = layer_dp_make,
                                         .free = layer_dp_free,
                                         .run = run,
                                         .prepare = layer_dp_prepare,
                                         .error = layer_dp_error};
