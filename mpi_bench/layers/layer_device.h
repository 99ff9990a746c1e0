/*
 * layer_device.h: where a layer's matrices are, and what computes on them: the host by BLAS, a
 * stand-in for an accelerator, or a CUDA device.
 *
 * The stand-in takes the time that products need at some rate, works off in order what it is given,
 * and computes nothing. A CUDA device works likewise, on a stream, and its memory is out of the
 * host's reach: what is to be filled or looked at there has a copy here.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef LAYER_DEVICE_H
#define LAYER_DEVICE_H

#include <stdbool.h>
#include <stddef.h>

#include "layer_kernels.h"

typedef enum layer_compute { LAYER_BLAS, LAYER_OFFLOAD, LAYER_CUBLAS } layer_compute_t;

/* C = A B + beta C, of row-major matrices, either of A and B transposed or not. */
typedef struct layer_product {
    bool transpose_a, transpose_b;
    int m, n, k;
    const float *a, *b;
    int lda, ldb;
    float beta;
    float *c;
    int ldc;
} layer_product_t;

typedef enum layer_kernel {
#define LAYER_NUMBER(name) LAYER_KERNEL_##name,
    LAYER_KERNELS(LAYER_NUMBER)
#undef LAYER_NUMBER
        LAYER_KERNEL_COUNT
} layer_kernel_t;

typedef struct layer_device layer_device_t;

typedef struct layer_engine {
    /* NULL: there is none. On the host, it is memory that the device copies fast. */
    void *(*allocate)(size_t bytes, bool on_host);
    void (*release)(void *memory, bool on_host);
    /* What is given to the device, which does it in this order. */
    void (*multiply)(layer_device_t *device, const layer_product_t *product);
    void (*compute)(layer_device_t *device, layer_kernel_t kernel, const layer_work_t *work);
    void (*copy)(layer_device_t *device, void *to, const void *from, size_t bytes);
    void (*mark)(layer_device_t *device);
    bool (*reached)(const layer_device_t *device); /* about */
    void (*wait)(const layer_device_t *device);
    void (*finish)(const layer_device_t *device);
    void (*close)(layer_device_t *device);
} layer_engine_t;

struct layer_device {
    const layer_engine_t *engine;
    bool offload;    /* it takes time alone: nothing has a value */
    bool queues;     /* it works while the host does something else */
    bool own_memory; /* the host cannot reach its memory */
    bool half;       /* products of bfloat16, where it has them */
    double rate;     /* of the stand-in: floating-point operations a second */
    double idle;     /* of bench_now(): when all that it has been given is done */
    double marked;
    void *stream; /* CUDA's */
    struct layer_matrix *matrices;
};

/* False: there is none, which it says. */
bool layer_device_open(layer_device_t *device, const char *program, int rank,
                       layer_compute_t compute, double rate, bool half);
/* With all matrices. */
void layer_device_close(layer_device_t *device);
/* layer_device_open()'s, of LAYER_CUBLAS. */
bool layer_cuda_open(layer_device_t *device, const char *program, int rank);

/* Row-major and zeroed, or the program ends: it lasts until the device is closed. */
float *layer_matrix(layer_device_t *device, int rows, int width);
/* The same for what the host neither writes nor reads. */
float *layer_scratch(layer_device_t *device, int rows, int width);
/* What the host is to write to, or to read: row `row` of a matrix, or of a part of one. */
float *layer_value_at(const layer_device_t *device, const float *matrix, int row, int width);
/* Between there and the device, of all matrices; with a part of one, of that matrix. */
void layer_upload(layer_device_t *device, const float *matrix);
void layer_download(layer_device_t *device);
/* Makes it unusable. */
void layer_spoil(const layer_device_t *device, float *matrix, int rows, int width);
/* Memory without a copy: of the device, or of the host for what comes from it. */
void *layer_room(const layer_device_t *device, size_t bytes, bool on_host);
void layer_room_free(const layer_device_t *device, void *room, bool on_host);

/* What the device is given to do, in this order. */
void layer_copy(layer_device_t *device, void *to, const void *from, size_t bytes);
void layer_multiply(layer_device_t *device, const layer_product_t *product);
void layer_compute(layer_device_t *device, layer_kernel_t kernel, const layer_work_t *work);
/* C = A + B; A = GeLU(Z); dZ = dA o GeLU'(Z); C = 0. */
void layer_add(layer_device_t *device, const float *a, const float *b, float *c, size_t count);
void layer_gelu_rows(layer_device_t *device, const float *z, float *a, size_t count);
void layer_gelu_back(layer_device_t *device, const float *da, const float *z, float *dz,
                     size_t count);
void layer_clear(layer_device_t *device, float *matrix, int rows, int width);
/* Until the device has done all that it was given. */
void layer_finish(const layer_device_t *device);
/* Notes that; layer_wait() waits for what the latest mark has noted. */
void layer_mark(layer_device_t *device);

#endif /* LAYER_DEVICE_H */
