/*
 * layer_linear.c: see layer_linear.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "layer_linear.h"

void layer_linear(layer_device_t *device, layer_linear_t linear, int rows, const float *x,
                  float beta, float *y)
{
    layer_multiply(device, &(layer_product_t){.m = rows,
                                              .n = linear.out,
                                              .k = linear.in,
                                              .a = x,
                                              .lda = linear.in,
                                              .b = linear.w,
                                              .ldb = linear.stride,
                                              .beta = beta,
                                              .c = y,
                                              .ldc = linear.out});
}

void layer_linear_back(layer_device_t *device, layer_linear_t linear, int rows, const float *dy,
                       float beta, float *dx)
{
    layer_multiply(device, &(layer_product_t){.transpose_b = true,
                                              .m = rows,
                                              .n = linear.in,
                                              .k = linear.out,
                                              .a = dy,
                                              .lda = linear.out,
                                              .b = linear.w,
                                              .ldb = linear.stride,
                                              .beta = beta,
                                              .c = dx,
                                              .ldc = linear.in});
}

void layer_linear_slope(layer_device_t *device, layer_linear_t linear, int rows, const float *x,
                        const float *dy, float beta)
{
    layer_multiply(device, &(layer_product_t){.transpose_a = true,
                                              .m = linear.in,
                                              .n = linear.out,
                                              .k = rows,
                                              .a = x,
                                              .lda = linear.in,
                                              .b = dy,
                                              .ldb = linear.out,
                                              .beta = beta,
                                              .c = linear.dw,
                                              .ldc = linear.stride});
}
