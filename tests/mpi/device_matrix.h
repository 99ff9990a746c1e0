/*
 * device_matrix.h: matrices of small integers on a device, of the types that cuBLASLt multiplies.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef DEVICE_MATRIX_H
#define DEVICE_MATRIX_H

#include <stdbool.h>
#include <stddef.h>

#include <library_types.h>

#include "device.h"

/* A matrix on the device, `stride` elements from row to row, written in the order of a stream. */
typedef struct matrix {
    buffer_t buffer;
    void *content; /* of the host; stays until the stream has read it */
    long long stride;
} matrix_t;

/* Of a matrix' elements. */
enum { SEED_A = 1000, SEED_B = 2000, SEED_C = 3000, SEED_BIAS = 4000 };

/* What a matrix of that seed has in a place: from -3 to 3. */
int matrix_number(int seed, int row, int column);
/* Of a row of A and a column of B, by their seeds. */
int matrix_dot(int seed_a, int seed_b, int row, int column, int k);
/* A product's element: of 32 bits, bf16 or fp16. */
float matrix_element(cudaDataType_t type, const void *data, size_t index);

/*
 * `rows` rows from first_row on; rows, or columns if it is stored transposed, with `gap` elements
 * between.
 */
matrix_t matrix_make(cudaDataType_t type, int seed, int first_row, int rows, int columns, int gap,
                     bool transposed, void *stream);
void matrix_free(matrix_t *matrix);

#endif /* DEVICE_MATRIX_H */
