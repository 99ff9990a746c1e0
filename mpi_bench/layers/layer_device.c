/*
 * layer_device.c: products, by BLAS or in an accelerator's time.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <cblas.h>

#include "bench_stats.h"
#include "layer.h"

void layer_multiply(layer_device_t *device, const layer_product_t *product)
{
    double now;

    if (product->m == 0 || product->n == 0 || product->k == 0) {
        return;
    }
    if (!device->offload) {
        cblas_sgemm(CblasRowMajor, product->transpose_a ? CblasTrans : CblasNoTrans,
                    product->transpose_b ? CblasTrans : CblasNoTrans, product->m, product->n,
                    product->k, 1.0f, product->a, product->lda, product->b, product->ldb,
                    product->beta, product->c, product->ldc);
        return;
    }
    now = bench_now();
    device->idle = (now > device->idle ? now : device->idle) +
                   2.0 * product->m * product->n * product->k / device->rate;
}

void layer_finish(const layer_device_t *device)
{
    bench_sleep_until(device->idle);
}
