/*
 * layer_kernels.h: what layers compute beside products, for hosts (C) and for devices (CUDA).
 *
 * Workers share the elements, or the rows; the lanes of a worker, which on a device are a warp,
 * share a row. A host is one worker of one lane.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef LAYER_KERNELS_H
#define LAYER_KERNELS_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __CUDACC__
#define LAYER_CODE static inline __device__
#else
#define LAYER_CODE static inline
#endif

/* What a kernel is given; some need less. Passed to a device as it is. */
typedef struct layer_work {
    void *to;
    const void *from, *by;
    const int *token; /* which one stands where; NULL: no row leaves any out */
    size_t count;     /* elements; of a softmax, rows */
    int width;        /* of a row */
    int position;     /* of the first one */
    float scale;
} layer_work_t;

typedef struct layer_place {
    size_t worker, workers;
    int lane, lanes;
} layer_place_t;

/* Of elements: the first one, and from one to the next. */
LAYER_CODE size_t layer_first(layer_place_t place)
{
    return place.worker * (size_t) place.lanes + (size_t) place.lane;
}

LAYER_CODE size_t layer_stride(layer_place_t place)
{
    return place.workers * (size_t) place.lanes;
}

/* Of all lanes. */
LAYER_CODE float layer_sum(float value)
{
#ifdef __CUDACC__
    for (int mask = 16; mask > 0; mask /= 2) {
        value += __shfl_xor_sync(0xffffffff, value, mask);
    }
#endif
    return value;
}

LAYER_CODE float layer_most(float value)
{
#ifdef __CUDACC__
    for (int mask = 16; mask > 0; mask /= 2) {
        value = fmaxf(value, __shfl_xor_sync(0xffffffff, value, mask));
    }
#endif
    return value;
}

LAYER_CODE float layer_wide(uint16_t x)
{
    uint32_t bits = (uint32_t) x << 16;
    float value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}

/* To the nearest, of two to the even one. */
LAYER_CODE uint16_t layer_rounded(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return value != value ? 0x7fc0 : (uint16_t) ((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* ---------------------------------------------------------------------- kernels */

#define LAYER_KERNELS(each)                                                                 \
    each(clear) each(add) each(narrow) each(widen) each(gelu) each(gelu_back) each(softmax) \
        each(softmax_back)

LAYER_CODE void layer_run_clear(layer_work_t work, layer_place_t place)
{
    for (size_t k = layer_first(place); k < work.count; k += layer_stride(place)) {
        ((float *) work.to)[k] = 0;
    }
}

LAYER_CODE void layer_run_add(layer_work_t work, layer_place_t place)
{
    for (size_t k = layer_first(place); k < work.count; k += layer_stride(place)) {
        ((float *) work.to)[k] = ((const float *) work.from)[k] + ((const float *) work.by)[k];
    }
}

LAYER_CODE void layer_run_narrow(layer_work_t work, layer_place_t place)
{
    for (size_t k = layer_first(place); k < work.count; k += layer_stride(place)) {
        ((uint16_t *) work.to)[k] = layer_rounded(((const float *) work.from)[k]);
    }
}

LAYER_CODE void layer_run_widen(layer_work_t work, layer_place_t place)
{
    for (size_t k = layer_first(place); k < work.count; k += layer_stride(place)) {
        ((float *) work.to)[k] = layer_wide(((const uint16_t *) work.from)[k]);
    }
}

LAYER_CODE void layer_run_gelu(layer_work_t work, layer_place_t place)
{
    for (size_t k = layer_first(place); k < work.count; k += layer_stride(place)) {
        float z = ((const float *) work.from)[k];

        ((float *) work.to)[k] = 0.5f * z * (1 + erff(z * 0.70710678f));
    }
}

/* The gradient by what GeLU was given, `by`, from that by what it made of it. */
LAYER_CODE void layer_run_gelu_back(layer_work_t work, layer_place_t place)
{
    for (size_t k = layer_first(place); k < work.count; k += layer_stride(place)) {
        float z = ((const float *) work.by)[k];
        float slope = 0.5f * (1 + erff(z * 0.70710678f)) + z * expf(-0.5f * z * z) * 0.39894228f;

        ((float *) work.to)[k] = ((const float *) work.from)[k] * slope;
    }
}

/* Of each row in place: the weights of what it attends to, from its scores. */
LAYER_CODE void layer_run_softmax(layer_work_t work, layer_place_t place)
{
    for (size_t r = place.worker; r < work.count; r += place.workers) {
        float *row = (float *) work.to + r * (size_t) work.width, most = -INFINITY, sum = 0;
        int own = work.token == NULL ? 0 : work.token[(size_t) work.position + r];

        for (int k = place.lane; k < work.width; k += place.lanes) {
            row[k] = work.token != NULL && work.token[k] > own ? -INFINITY : work.scale * row[k];
            most = row[k] > most ? row[k] : most;
        }
        most = layer_most(most);
        for (int k = place.lane; k < work.width; k += place.lanes) {
            row[k] = expf(row[k] - most);
            sum += row[k];
        }
        sum = layer_sum(sum);
        for (int k = place.lane; k < work.width; k += place.lanes) {
            row[k] /= sum;
        }
    }
}

/* Of each row in place: the gradient by its scores, from that by its weights, `by`. */
LAYER_CODE void layer_run_softmax_back(layer_work_t work, layer_place_t place)
{
    for (size_t r = place.worker; r < work.count; r += place.workers) {
        float *row = (float *) work.to + r * (size_t) work.width, sum = 0;
        const float *weights = (const float *) work.by + r * (size_t) work.width;

        for (int k = place.lane; k < work.width; k += place.lanes) {
            sum += weights[k] * row[k];
        }
        sum = layer_sum(sum);
        for (int k = place.lane; k < work.width; k += place.lanes) {
            row[k] = work.scale * weights[k] * (row[k] - sum);
        }
    }
}

#endif /* LAYER_KERNELS_H */
