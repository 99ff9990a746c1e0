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
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "layer_bench.h"
#include "layer_math.h"
#include "layer_wire.h"

/* Of layer_value(); a layer's weights have a number of their own from the last one on. */
enum { INPUT = 1, GRADIENT, WEIGHTS };
/* Rows of each layer's gradients that are compared, on each rank. */
enum { SAMPLES = 3 };

/* What travels of a layer by Open MPI's own calls: its matrices, or bfloat16. */
typedef struct travel {
    void *own, *all;      /* of the weights */
    void *sent, *reduced; /* of the gradients */
} travel_t;

typedef struct dp {
    layer_t *layer;
    const layer_way_t *way; /* of the run */
    int tokens;             /* of this rank */
    int width, layers;
    int current;  /* the layer whose weights are gathered, or reduced */
    float **own;  /* layers x (rows x width): this rank's rows of the weights */
    float **w;    /* layers x (width x width): gathered, at their positions */
    float **dw;   /* layers x (rows x width): this rank's rows of the gradients */
    float **a;    /* layers + 1 x (tokens x width): what goes into a layer, and what comes out */
    float **z;    /* layers x (tokens x width) */
    float *slope; /* tokens x width: the gradient by the last output */
    float *da;    /* tokens x width */
    float *dz;    /* tokens x width */
    float *sent;  /* layers x (width x width): contributions to gradients */
    travel_t *travels;
    MPI_Request *requests;
} dp_t;

static size_t size_of(const dp_t *dp, int rows)
{
    return (size_t) rows * (size_t) dp->width;
}

static double weight_of(const dp_t *dp, int layer, int row, int column)
{
    double value = layer_value(WEIGHTS + (unsigned) layer, (size_t) row, (size_t) column);

    return (double) (float) (1.7 * value / sqrt(dp->width));
}

static size_t token_of(const dp_t *dp, int rank, int token)
{
    return (size_t) rank * (size_t) dp->tokens + (size_t) token;
}

static float **make_matrices(layer_device_t *device, int count, int rows, int width)
{
    float **made = layer_alloc((size_t) count, sizeof(*made));

    for (int k = 0; k < count; k++) {
        made[k] = layer_matrix(device, rows, width);
    }
    return made;
}

static float *sent_of(const dp_t *dp, int l)
{
    return dp->sent + (size_t) l * size_of(dp, dp->width);
}

/* Open MPI's own calls do not get a device's memory. */
static bool is_apart(const dp_t *dp)
{
    return dp->layer->wire->half || dp->layer->device->own_memory;
}

static void make_travels(dp_t *dp)
{
    const layer_device_t *device = dp->layer->device;
    size_t own = size_of(dp, dp->layer->rows) * dp->layer->wire->size;
    size_t all = size_of(dp, dp->width) * dp->layer->wire->size;

    dp->travels = layer_alloc((size_t) dp->layers, sizeof(*dp->travels));
    for (int l = 0; l < dp->layers; l++) {
        dp->travels[l] =
            !is_apart(dp)
                ? (travel_t){dp->own[l], dp->w[l], sent_of(dp, l), dp->dw[l]}
                : (travel_t){layer_room(device, own, true), layer_room(device, all, true),
                             layer_room(device, all, true), layer_room(device, own, true)};
    }
}

static void free_travels(dp_t *dp)
{
    const layer_device_t *device = dp->layer->device;

    for (int l = 0; l < dp->layers && is_apart(dp); l++) {
        layer_room_free(device, dp->travels[l].own, true);
        layer_room_free(device, dp->travels[l].all, true);
        layer_room_free(device, dp->travels[l].sent, true);
        layer_room_free(device, dp->travels[l].reduced, true);
    }
    free(dp->travels);
}

static float *value_at(const dp_t *dp, const float *matrix, int row)
{
    return layer_value_at(dp->layer->device, matrix, row, dp->width);
}

static void *make(layer_t *layer, const layer_options_t *options)
{
    dp_t *dp = layer_alloc(1, sizeof(*dp));

    *dp = (dp_t){.layer = layer,
                 .tokens = options->tokens / layer->nranks,
                 .width = layer->rows * layer->nranks,
                 .layers = options->layers};
    dp->own = make_matrices(layer->device, dp->layers, layer->rows, dp->width);
    dp->w = make_matrices(layer->device, dp->layers, dp->width, dp->width);
    dp->dw = make_matrices(layer->device, dp->layers, layer->rows, dp->width);
    dp->a = make_matrices(layer->device, dp->layers + 1, dp->tokens, dp->width);
    dp->z = make_matrices(layer->device, dp->layers, dp->tokens, dp->width);
    dp->slope = layer_matrix(layer->device, dp->tokens, dp->width);
    dp->da = layer_matrix(layer->device, dp->tokens, dp->width);
    dp->dz = layer_matrix(layer->device, dp->tokens, dp->width);
    dp->sent = layer_matrix(layer->device, dp->layers * dp->width, dp->width);
    dp->requests = layer_alloc((size_t) dp->layers, sizeof(MPI_Request));
    make_travels(dp);
    for (int l = 0; l < dp->layers; l++) {
        dp->requests[l] = MPI_REQUEST_NULL;
        for (int row = 0; row < layer->rows; row++) {
            for (int column = 0; column < dp->width; column++) {
                value_at(dp, dp->own[l], row)[column] =
                    (float) weight_of(dp, l, layer->rank * layer->rows + row, column);
            }
        }
    }
    for (int token = 0; token < dp->tokens; token++) {
        for (int column = 0; column < dp->width; column++) {
            size_t number = token_of(dp, layer->rank, token);

            value_at(dp, dp->a[0], token)[column] = layer_value(INPUT, number, (size_t) column);
            value_at(dp, dp->slope, token)[column] = layer_value(GRADIENT, number, (size_t) column);
        }
    }
    return dp;
}

static void free_all(void *state)
{
    dp_t *dp = state;

    free_travels(dp);
    free(dp->own);
    free(dp->w);
    free(dp->dw);
    free(dp->a);
    free(dp->z);
    free(dp->requests);
    free(dp);
}

/* ------------------------------------------------------------- products by rows of W */

/*
 * Calls `product` for the rows from `position` on, in parts that are neighbours in W: of a slice,
 * each rank's.
 */
static void by_rows(dp_t *dp, int position, int rows, float *data,
                    void (*product)(dp_t *dp, int first, int rows, float *data))
{
    while (rows > 0) {
        int first = layer_row(dp->layer, dp->way, position), part = 1;

        while (part < rows && layer_row(dp->layer, dp->way, position + part) == first + part) {
            part++;
        }
        product(dp, first, part, data);
        position += part;
        rows -= part;
        data += size_of(dp, part);
    }
}

/* Z += A's columns x W's rows. */
static void add_product(dp_t *dp, int first, int rows, float *w)
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
static void make_gradient(dp_t *dp, int first, int rows, float *dw)
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
static void go_back(dp_t *dp, int first, int rows, float *w)
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
    dp_t *dp = arg;

    if (dp->current > 0) {
        by_rows(dp, 0, dp->width, dp->w[dp->current], go_back);
    }
}

/* ------------------------------------------------------------------------- passes */

static void start_gather(dp_t *dp, int l)
{
    int count = dp->layer->rows * dp->width;
    MPI_Datatype type = dp->layer->wire->type;

    if (l < dp->layers) {
        MPI_Iallgather(dp->travels[l].own, count, type, dp->travels[l].all, count, type,
                       dp->way->comm, &dp->requests[l]);
    }
}

/* The weights are what they were: nothing that is computed later has a part in them. */
static void begin_gathers(dp_t *dp)
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

static void forward(dp_t *dp)
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
        layer_gelu_rows(device, dp->z[l], dp->a[l + 1], size_of(dp, dp->tokens));
    }
}

/* While a layer's gradients travel, the layer before is computed. */
static void scatter_behind(dp_t *dp, int l)
{
    const travel_t *travel = &dp->travels[l];
    const layer_wire_t *wire = dp->layer->wire;

    produce(dp, 0, dp->width, sent_of(dp, l));
    layer_wire_narrow(dp->layer, dp->layer->device->own_memory, sent_of(dp, l), travel->sent,
                      dp->width, dp->width);
    layer_finish(dp->layer->device);
    MPI_Ireduce_scatter_block(travel->sent, travel->reduced, dp->layer->rows * dp->width,
                              wire->type, wire->sum, dp->way->comm, &dp->requests[l]);
    back(dp);
}

static void finish_scatters(dp_t *dp)
{
    MPI_Waitall(dp->layers, dp->requests, MPI_STATUSES_IGNORE);
    for (int l = 0; l < dp->layers; l++) {
        layer_wire_widen(dp->layer, dp->layer->device->own_memory, dp->travels[l].reduced,
                         dp->dw[l], dp->layer->rows, dp->width);
    }
}

static void backward(dp_t *dp)
{
    const float *da = dp->slope;

    for (int l = dp->layers - 1; l >= 0; l--) {
        dp->current = l;
        layer_gelu_back(dp->layer->device, da, dp->z[l], dp->dz, size_of(dp, dp->tokens));
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
    dp_t *dp = state;

    dp->way = way;
    if (phase == 0) {
        forward(dp);
    } else {
        backward(dp);
    }
}

/* ------------------------------------------------------------------------- the check */

/* All bits set are a NAN, of whatever travels. */
static void spoil_travel(const dp_t *dp, const travel_t *travel)
{
    size_t size = is_apart(dp) ? dp->layer->wire->size : 0;

    memset(travel->all, 0xff, size_of(dp, dp->width) * size);
    memset(travel->reduced, 0xff, size_of(dp, dp->layer->rows) * size);
}

static void prepare(void *state, const layer_way_t *way)
{
    dp_t *dp = state;

    for (int l = 0; l < dp->layers; l++) {
        layer_spoil(dp->layer->device, dp->dw[l], dp->layer->rows, dp->width);
        layer_spoil(dp->layer->device, dp->w[l], dp->width, dp->width);
        layer_spoil(dp->layer->device, dp->a[l + 1], dp->tokens, dp->width);
        layer_spoil(dp->layer->device, dp->z[l], dp->tokens, dp->width);
        layer_spoil(dp->layer->device, sent_of(dp, l), dp->width, dp->width);
        spoil_travel(dp, &dp->travels[l]);
        for (int position = 0; position < dp->width && way->kind == LAYER_COMPUTATION; position++) {
            int row = layer_row(dp->layer, way, position);

            for (int column = 0; column < dp->width; column++) {
                value_at(dp, dp->w[l], position)[column] = (float) weight_of(dp, l, row, column);
            }
        }
    }
}

/* Of one token: what goes into each layer, and in `z`, what its products are. */
static void pass_forward(const dp_t *dp, size_t token, double *a, double *z)
{
    size_t width = (size_t) dp->width;

    for (size_t k = 0; k < width; k++) {
        a[k] = (double) layer_value(INPUT, token, k);
    }
    for (int l = 0; l < dp->layers; l++, a += width, z += width) {
        for (size_t k = 0; k < width; k++) {
            z[k] = 0;
            for (size_t h = 0; h < width; h++) {
                z[k] += a[h] * weight_of(dp, l, (int) h, (int) k);
            }
            a[width + k] = layer_gelu(z[k]);
        }
    }
}

/* Adds the token's part to the gradients of the weights: of `rows` sampled rows of each layer. */
static void pass_backward(const dp_t *dp, size_t token, const double *a, const double *z,
                          const int *rows, double *gradients)
{
    size_t width = (size_t) dp->width;
    double *da = layer_alloc(2 * width, sizeof(*da)), *dz = da + width;

    for (size_t k = 0; k < width; k++) {
        da[k] = (double) layer_value(GRADIENT, token, k);
    }
    for (int l = dp->layers - 1; l >= 0; l--) {
        for (size_t k = 0; k < width; k++) {
            dz[k] = da[k] * layer_gelu_slope(z[(size_t) l * width + k]);
        }
        for (int s = 0; s < SAMPLES; s++) {
            double *gradient = gradients + ((size_t) l * SAMPLES + (size_t) s) * width;

            for (size_t k = 0; k < width; k++) {
                gradient[k] += a[(size_t) l * width + (size_t) rows[s]] * dz[k];
            }
        }
        for (size_t h = 0; h < width; h++) {
            da[h] = 0;
            for (size_t k = 0; k < width; k++) {
                da[h] += dz[k] * weight_of(dp, l, (int) h, (int) k);
            }
        }
    }
    free(da);
}

static double error(void *state, const layer_way_t *way)
{
    dp_t *dp = state;
    size_t width = (size_t) dp->width, layers = (size_t) dp->layers;
    int first = dp->layer->rank * dp->layer->rows, rows[SAMPLES];
    double *a = layer_alloc((layers + 1) * width, sizeof(*a));
    double *z = layer_alloc(layers * width, sizeof(*z));
    double *gradients = layer_alloc(layers * SAMPLES * width, sizeof(*gradients));
    layer_compared_t kinds[2] = {{0, 0}};

    (void) way;
    for (int s = 0; s < SAMPLES; s++) {
        rows[s] = first + s * (dp->layer->rows - 1) / (SAMPLES - 1);
    }
    for (int rank = 0; rank < dp->layer->nranks; rank++) {
        for (int token = 0; token < dp->tokens; token++) {
            pass_forward(dp, token_of(dp, rank, token), a, z);
            const float *got = value_at(dp, dp->a[dp->layers], token);

            pass_backward(dp, token_of(dp, rank, token), a, z, rows, gradients);
            for (size_t k = 0; k < width && rank == dp->layer->rank; k++) {
                layer_compare(&kinds[0], (double) got[k], a[layers * width + k]);
            }
        }
    }
    for (size_t l = 0; l < layers; l++) {
        for (int s = 0; s < SAMPLES; s++) {
            const float *got = value_at(dp, dp->dw[l], rows[s] - first);

            for (size_t k = 0; k < width; k++) {
                layer_compare(&kinds[1], (double) got[k],
                              gradients[(l * SAMPLES + (size_t) s) * width + k]);
            }
        }
    }
    free(a);
    free(z);
    free(gradients);
    return layer_error(kinds, 2);
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
                                         .make = make,
                                         .free = free_all,
                                         .run = run,
                                         .prepare = prepare,
                                         .error = error};
