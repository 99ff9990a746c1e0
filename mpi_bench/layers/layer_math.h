/*
 * layer_math.h: rows of matrices, an activation, and how far results are from what they should be.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef LAYER_MATH_H
#define LAYER_MATH_H

#include "layer.h"

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

#endif /* LAYER_MATH_H */
