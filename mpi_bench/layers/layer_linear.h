/*
 * layer_linear.h: weights between two widths, and the three products that are made with them.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef LAYER_LINEAR_H
#define LAYER_LINEAR_H

#include "layer.h"

/* W, and the gradient by it: in x out, whose rows are `stride` apart. */
typedef struct layer_linear {
    int in, out;
    const float *w;
    float *dw;
    int stride;
} layer_linear_t;

/* Of `rows` rows without gaps: Y = X W + beta Y; dX = dY W' + beta dX; dW = X' dY + beta dW. */
void layer_linear(layer_device_t *device, layer_linear_t linear, int rows, const float *x,
                  float beta, float *y);
void layer_linear_back(layer_device_t *device, layer_linear_t linear, int rows, const float *dy,
                       float beta, float *dx);
void layer_linear_slope(layer_device_t *device, layer_linear_t linear, int rows, const float *x,
                        const float *dy, float beta);

#endif /* LAYER_LINEAR_H */
