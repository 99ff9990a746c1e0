/*
 * layer_device.c: see layer_device.h; the host's engine, and the stand-in's.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "layer_device.h"

#include <cblas.h>
#include <stdlib.h>

#include "bench_stats.h"
#include "layer_bench.h"

/* ------------------------------------------------------------------ the engines */

static void *host_allocate(size_t bytes, bool on_host)
{
    (void) on_host;
    return calloc(bytes, 1);
}

static void host_release(void *memory, bool on_host)
{
    (void) on_host;
    free(memory);
}

static void host_multiply(layer_device_t *device, const layer_product_t *product)
{
    (void) device;
    cblas_sgemm(CblasRowMajor, product->transpose_a ? CblasTrans : CblasNoTrans,
                product->transpose_b ? CblasTrans : CblasNoTrans, product->m, product->n,
                product->k, 1.0f, product->a, product->lda, product->b, product->ldb, product->beta,
                product->c, product->ldc);
}

static void host_compute(layer_device_t *device, layer_kernel_t kernel, const layer_work_t *work)
{
    static const layer_place_t alone = {.workers = 1, .lanes = 1};

    (void) device;
    switch (kernel) {
#define CASE(name)                      \
    case LAYER_KERNEL_##name:           \
        layer_run_##name(*work, alone); \
        break;
        LAYER_KERNELS(CASE)
#undef CASE
    default:
        break;
    }
}

static void host_copy(layer_device_t *device, void *to, const void *from, size_t bytes)
{
    (void) device;
    memcpy(to, from, bytes);
}

static void host_mark(layer_device_t *device)
{
    (void) device;
}

static bool host_reached(const layer_device_t *device)
{
    (void) device;
    return true;
}

static void host_wait(const layer_device_t *device)
{
    (void) device;
}

static const layer_engine_t host = {.allocate = host_allocate,
                                    .release = host_release,
                                    .multiply = host_multiply,
                                    .compute = host_compute,
                                    .copy = host_copy,
                                    .mark = host_mark,
                                    .reached = host_reached,
                                    .wait = host_wait,
                                    .finish = host_wait,
                                    .close = host_mark};

static void offload_multiply(layer_device_t *device, const layer_product_t *product)
{
    double now = bench_now();

    device->idle = (now > device->idle ? now : device->idle) +
                   2.0 * product->m * product->n * product->k / device->rate;
}

static void offload_compute(layer_device_t *device, layer_kernel_t kernel, const layer_work_t *work)
{
    (void) device;
    (void) kernel;
    (void) work;
}

static void offload_mark(layer_device_t *device)
{
    device->marked = device->idle;
}

/* The rest is slept off at once. */
static bool offload_reached(const layer_device_t *device)
{
    return bench_now() >= device->marked - 100e-6;
}

static void offload_wait(const layer_device_t *device)
{
    bench_sleep_until(device->marked);
}

static void offload_finish(const layer_device_t *device)
{
    bench_sleep_until(device->idle);
}

static const layer_engine_t offload = {.allocate = host_allocate,
                                       .release = host_release,
                                       .multiply = offload_multiply,
                                       .compute = offload_compute,
                                       .copy = host_copy,
                                       .mark = offload_mark,
                                       .reached = offload_reached,
                                       .wait = offload_wait,
                                       .finish = offload_finish,
                                       .close = host_mark};

/* --------------------------------------------------------------------- matrices */

typedef struct layer_matrix {
    float *matrix, *values; /* the same where the host reaches it; NULL: scratch */
    size_t count;
    struct layer_matrix *next;
} layer_matrix_t;

bool layer_device_open(layer_device_t *device, const char *program, int rank,
                       layer_compute_t compute, double rate, bool half)
{
    *device = (layer_device_t){.engine = compute == LAYER_BLAS ? &host : &offload,
                               .offload = compute == LAYER_OFFLOAD,
                               .queues = compute != LAYER_BLAS,
                               .own_memory = compute == LAYER_CUBLAS,
                               .half = half,
                               .rate = rate};
    return compute != LAYER_CUBLAS || layer_cuda_open(device, program, rank);
}

void layer_device_close(layer_device_t *device)
{
    layer_matrix_t *next;

    for (layer_matrix_t *it = device->matrices; it != NULL; it = next) {
        next = it->next;
        if (device->own_memory) {
            free(it->values);
        }
        device->engine->release(it->matrix, false);
        free(it);
    }
    device->engine->close(device);
}

void *layer_room(const layer_device_t *device, size_t bytes, bool on_host)
{
    return layer_must_have(device->engine->allocate(bytes, on_host));
}

void layer_room_free(const layer_device_t *device, void *room, bool on_host)
{
    if (room != NULL) {
        device->engine->release(room, on_host);
    }
}

float *layer_scratch(layer_device_t *device, int rows, int width)
{
    layer_matrix_t *made = layer_alloc(1, sizeof(*made));

    made->count = (size_t) rows * (size_t) width + 1;
    made->matrix = layer_room(device, made->count * sizeof(float), false);
    made->values = device->own_memory ? NULL : made->matrix;
    made->next = device->matrices;
    device->matrices = made;
    return made->matrix;
}

float *layer_matrix(layer_device_t *device, int rows, int width)
{
    float *matrix = layer_scratch(device, rows, width);

    if (device->own_memory) {
        device->matrices->values = layer_alloc(device->matrices->count, sizeof(float));
    }
    return matrix;
}

static const layer_matrix_t *find(const layer_device_t *device, const float *place)
{
    const layer_matrix_t *it = device->matrices;

    while (place < it->matrix || place >= it->matrix + it->count) {
        it = it->next;
    }
    return it;
}

float *layer_value_at(const layer_device_t *device, const float *matrix, int row, int width)
{
    size_t first = (size_t) row * (size_t) width;

    if (device->own_memory) {
        const layer_matrix_t *whole = find(device, matrix);

        return whole->values + (matrix - whole->matrix) + first;
    }
    return (float *) (size_t) matrix + first;
}

void layer_upload(layer_device_t *device, const float *matrix)
{
    for (layer_matrix_t *it = device->own_memory ? device->matrices : NULL; it != NULL;
         it = it->next) {
        if (it->values != NULL && (matrix == NULL || it == find(device, matrix))) {
            layer_copy(device, it->matrix, it->values, it->count * sizeof(float));
        }
    }
}

void layer_download(layer_device_t *device)
{
    for (layer_matrix_t *it = device->own_memory ? device->matrices : NULL; it != NULL;
         it = it->next) {
        if (it->values != NULL) {
            layer_copy(device, it->values, it->matrix, it->count * sizeof(float));
        }
    }
    layer_finish(device);
}

void layer_spoil(const layer_device_t *device, float *matrix, int rows, int width)
{
    float *values = layer_value_at(device, matrix, 0, width);

    for (size_t k = 0; k < (size_t) rows * (size_t) width; k++) {
        values[k] = NAN;
    }
}

/* ------------------------------------------------------------------ computation */

void layer_copy(layer_device_t *device, void *to, const void *from, size_t bytes)
{
    if (bytes > 0) {
        device->engine->copy(device, to, from, bytes);
    }
}

void layer_multiply(layer_device_t *device, const layer_product_t *product)
{
    if (product->m > 0 && product->n > 0 && product->k > 0) {
        device->engine->multiply(device, product);
    }
}

void layer_compute(layer_device_t *device, layer_kernel_t kernel, const layer_work_t *work)
{
    if (work->count > 0) {
        device->engine->compute(device, kernel, work);
    }
}

void layer_add(layer_device_t *device, const float *a, const float *b, float *c, size_t count)
{
    layer_compute(device, LAYER_KERNEL_add,
                  &(layer_work_t){.to = c, .from = a, .by = b, .count = count});
}

void layer_gelu_rows(layer_device_t *device, const float *z, float *a, size_t count)
{
    layer_compute(device, LAYER_KERNEL_gelu, &(layer_work_t){.to = a, .from = z, .count = count});
}

void layer_gelu_back(layer_device_t *device, const float *da, const float *z, float *dz,
                     size_t count)
{
    layer_compute(device, LAYER_KERNEL_gelu_back,
                  &(layer_work_t){.to = dz, .from = da, .by = z, .count = count});
}

void layer_clear(layer_device_t *device, float *matrix, int rows, int width)
{
    layer_compute(device, LAYER_KERNEL_clear,
                  &(layer_work_t){.to = matrix, .count = (size_t) rows * (size_t) width});
}

void layer_finish(const layer_device_t *device)
{
    device->engine->finish(device);
}

void layer_mark(layer_device_t *device)
{
    device->engine->mark(device);
}
