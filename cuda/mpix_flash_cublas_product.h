/*
 * mpix_flash_cublas_product.h: one product of matrices, for mpix_flash_cublas.c, by cuBLASLt.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef MPIX_FLASH_CUBLAS_PRODUCT_H
#define MPIX_FLASH_CUBLAS_PRODUCT_H

#include <stdbool.h>

#include "mpix_flash_cublas.h"

typedef struct flash_cublas_product {
    const MPIX_Flash_cublas_gemm *gemm;
    MPI_Count rows;
    const void *a;
    void *c;
    long long lda, ldc;
} flash_cublas_product_t;

/* Of an element; 0: there are no products of such. */
size_t flash_cublas_size_of(cudaDataType_t type);
/* Any thread. The product is in the order of the stream. False: it is not, and that is said. */
bool flash_cublas_multiply(MPIX_Flash_cublas_gemm *gemm, const flash_cublas_product_t *product,
                           cudaStream_t stream);

#endif /* MPIX_FLASH_CUBLAS_PRODUCT_H */
