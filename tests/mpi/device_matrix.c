/*
 * device_matrix.c: see device_matrix.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "device_matrix.h"

#include "mpitest.h"

int matrix_number(int seed, int row, int column)
{
    return (int) (mix((uint32_t) seed, (uint32_t) row, (uint32_t) column) % 7) - 3;
}

static size_t size_of(cudaDataType_t type)
{
    return type == CUDA_R_32F ? 4 : type == CUDA_R_8F_E4M3 ? 1 : 2;
}

static void put(cudaDataType_t type, void *data, size_t index, int value)
{
    static const uint16_t halves[] = {0, 0x3c00, 0x4000, 0x4200};
    static const uint8_t quarters[] = {0, 0x38, 0x40, 0x44};
    float number = (float) value;
    uint32_t bits;
    uint16_t half;

    memcpy(&bits, &number, sizeof(bits));
    if (type == CUDA_R_32F) {
        memcpy((char *) data + index * 4, &number, 4);
    } else if (type == CUDA_R_8F_E4M3) {
        ((uint8_t *) data)[index] = (uint8_t) (quarters[abs(value)] | (value < 0 ? 0x80 : 0));
    } else {
        half = type == CUDA_R_16BF ? (uint16_t) (bits >> 16)
                                   : (uint16_t) (halves[abs(value)] | (value < 0 ? 0x8000 : 0));
        memcpy((char *) data + index * 2, &half, 2);
    }
}

/* fp16, of a number that is not smaller than the smallest normal one, or 0, as bits of fp32. */
static uint32_t widen(uint16_t half)
{
    uint32_t size = half & 0x7fff;

    return ((uint32_t) (half & 0x8000) << 16) | (size == 0 ? 0 : (size << 13) + (112U << 23));
}

float matrix_element(cudaDataType_t type, const void *data, size_t index)
{
    uint32_t bits = 0;
    uint16_t half;
    float number;

    if (type == CUDA_R_32F) {
        memcpy(&bits, (const char *) data + index * 4, 4);
    } else {
        memcpy(&half, (const char *) data + index * 2, 2);
        bits = type == CUDA_R_16F ? widen(half) : (uint32_t) half << 16;
    }
    memcpy(&number, &bits, 4);
    return number;
}

matrix_t matrix_make(cudaDataType_t type, int seed, int first_row, int rows, int columns, int gap,
                     bool transposed, void *stream)
{
    int lines = transposed ? columns : rows, length = transposed ? rows : columns;
    matrix_t made = {.stride = length + gap};
    size_t bytes = (size_t) lines * (size_t) made.stride * size_of(type);

    made.content = get_memory(bytes + 1);
    memset(made.content, 0, bytes);
    for (int row = 0; row < rows; row++) {
        for (int column = 0; column < columns; column++) {
            size_t index = transposed ? (size_t) column * (size_t) made.stride + (size_t) row
                                      : (size_t) row * (size_t) made.stride + (size_t) column;

            put(type, made.content, index, matrix_number(seed, first_row + row, column));
        }
    }
    made.buffer = buffer_make(IN_DEVICE, bytes);
    stream_copy(stream, made.buffer.data, made.content, bytes);
    return made;
}

void matrix_free(matrix_t *matrix)
{
    check(buffer_free(&matrix->buffer), "wrote around a matrix");
    free(matrix->content);
}

int matrix_dot(int seed_a, int seed_b, int row, int column, int k)
{
    int sum = 0;

    for (int l = 0; l < k; l++) {
        sum += matrix_number(seed_a, row, l) * matrix_number(seed_b, l, column);
    }
    return sum;
}
