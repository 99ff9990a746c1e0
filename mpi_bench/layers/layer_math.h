/*
 * layer_math.h: matrices, an activation, and how far results are from what they should be.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef LAYER_MATH_H
#define LAYER_MATH_H

#include "layer.h"

/* Row-major and zeroed, or the program ends. */
float *layer_matrix(int rows, int width);
void layer_matrices_free(float *const matrices[], size_t count);
float *layer_at(float *matrix, int row, int width);

double layer_gelu(double z);
double layer_gelu_slope(double z);

/* The largest difference and the largest value so far, of one kind of result. */
typedef struct layer_compared {
    double difference, largest;
} layer_compared_t;
void layer_compare(layer_compared_t *compared, double got, double expected);
/* The worst of the kinds, each relative to its largest; NAN if some result was. */
double layer_error(const layer_compared_t *kinds, int count);

/* Makes it zero, where the host computes: an accelerator has time of its own for that. */
void layer_clear(const layer_device_t *device, float *matrix, int rows, int width);
/* Makes it unusable. */
void layer_spoil(float *matrix, int rows, int width);

#endif /* LAYER_MATH_H */
