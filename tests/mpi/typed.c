/*
 * typed.c: see typed.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "typed.h"

static MPI_Datatype predefined(int signature)
{
    switch (signature) {
    case SIGNATURE_INT8:
        return MPI_INT8_T;
    case SIGNATURE_INT16:
        return MPI_INT16_T;
    case SIGNATURE_INT32:
        return MPI_INT32_T;
    case SIGNATURE_INT64:
        return MPI_INT64_T;
    case SIGNATURE_FLOAT:
        return MPI_FLOAT;
    case SIGNATURE_DOUBLE:
        return MPI_DOUBLE;
    default:
        return MPI_DOUBLE_INT;
    }
}

static void add_part(typed_t *typed, ptrdiff_t offset, size_t bytes)
{
    typed->part[typed->parts].offset = offset;
    typed->part[typed->parts].bytes = bytes;
    typed->parts++;
}

/* Six elements of a type of b bytes without gaps. */
static void make_plain(typed_t *typed, MPI_Datatype basic, ptrdiff_t b, int way)
{
    static const int backwards[] = {4, 2, 0};
    MPI_Datatype six;

    MPI_Type_contiguous(TYPED_BASICS, basic, &six);
    switch (way) {
    case WAY_VECTOR:
        MPI_Type_vector(3, 2, 3, basic, &typed->type);
        for (int k = 0; k < 3; k++) {
            add_part(typed, 3 * k * b, (size_t) (2 * b));
        }
        break;
    case WAY_LOWER_BOUND:
        MPI_Type_create_resized(six, -2 * b, 9 * b, &typed->type);
        add_part(typed, 0, (size_t) (6 * b));
        break;
    case WAY_DISPLACED:
        MPI_Type_create_hindexed_block(1, 1, (MPI_Aint[]){3 * b}, six, &typed->type);
        add_part(typed, 3 * b, (size_t) (6 * b));
        break;
    case WAY_BACKWARDS:
        MPI_Type_create_indexed_block(3, 2, backwards, basic, &typed->type);
        for (int k = 0; k < 3; k++) {
            add_part(typed, backwards[k] * b, (size_t) (2 * b));
        }
        break;
    case WAY_LONG_EXTENT:
        MPI_Type_create_resized(six, 0, 8 * b, &typed->type);
        add_part(typed, 0, (size_t) (6 * b));
        break;
    default:
        MPI_Type_dup(six, &typed->type);
        add_part(typed, 0, (size_t) (6 * b));
        break;
    }
    MPI_Type_free(&six);
}

/* Two of MPI_DOUBLE_INT, which has a gap of its own at the end. */
static void make_pair(typed_t *typed, int way)
{
    const ptrdiff_t extent = 16;
    ptrdiff_t second = extent, shift = 0;
    MPI_Datatype two;

    MPI_Type_contiguous(2, MPI_DOUBLE_INT, &two);
    switch (way) {
    case WAY_VECTOR:
        second = 2 * extent;
        MPI_Type_vector(2, 1, 2, MPI_DOUBLE_INT, &typed->type);
        break;
    case WAY_LOWER_BOUND:
        MPI_Type_create_resized(two, -extent, 4 * extent, &typed->type);
        break;
    case WAY_DISPLACED:
        shift = 3 * extent;
        MPI_Type_create_hindexed_block(1, 1, (MPI_Aint[]){shift}, two, &typed->type);
        break;
    case WAY_BACKWARDS:
        shift = extent;
        second = -extent;
        MPI_Type_create_indexed_block(2, 1, (int[]){1, 0}, MPI_DOUBLE_INT, &typed->type);
        break;
    case WAY_LONG_EXTENT:
        MPI_Type_create_resized(two, 0, 3 * extent, &typed->type);
        break;
    default:
        MPI_Type_dup(two, &typed->type);
        break;
    }
    add_part(typed, shift, 12);
    add_part(typed, shift + second, 12);
    MPI_Type_free(&two);
}

void typed_make(typed_t *typed, int signature, int way)
{
    MPI_Datatype basic = predefined(signature);
    MPI_Aint lb, extent;
    int size;

    *typed = (typed_t){.per_unit = 1};
    MPI_Type_size(basic, &size);
    if (way == WAY_PREDEFINED) {
        typed->per_unit = signature == SIGNATURE_DOUBLE_INT ? 2 : TYPED_BASICS;
        typed->type = basic;
        add_part(typed, 0, (size_t) size);
    } else if (signature == SIGNATURE_DOUBLE_INT) {
        make_pair(typed, way);
    } else {
        make_plain(typed, basic, size, way);
    }
    if (way != WAY_PREDEFINED) {
        MPI_Type_commit(&typed->type);
    }
    MPI_Type_get_extent(typed->type, &lb, &extent);
    MPI_Type_size(typed->type, &size);
    typed->extent = extent;
    typed->size = (size_t) size;
}

void typed_free(typed_t *typed)
{
    int integers, addresses, types, combiner;

    MPI_Type_get_envelope(typed->type, &integers, &addresses, &types, &combiner);
    if (combiner != MPI_COMBINER_NAMED) {
        MPI_Type_free(&typed->type);
    }
}

size_t typed_unit_bytes(const typed_t *typed)
{
    return typed->size * (size_t) typed->per_unit;
}

size_t typed_margin(const typed_t *typed)
{
    return (size_t) typed->extent * 4 + 64;
}

/* Whether elements leave no gaps: all of them are as one part. */
static bool is_dense(const typed_t *typed)
{
    return typed->parts == 1 && (ptrdiff_t) typed->part[0].bytes == typed->extent;
}

void typed_write(const typed_t *typed, void *base, size_t elements, int owner, unsigned salt)
{
    unsigned char *element = base;
    size_t index = 0;

    if (is_dense(typed)) {
        fill_pattern(element + typed->part[0].offset, elements * typed->size, owner, salt);
        return;
    }
    for (size_t k = 0; k < elements; k++, element += typed->extent) {
        for (int part = 0; part < typed->parts; part++) {
            fill_pattern_from(element + typed->part[part].offset, index, typed->part[part].bytes,
                              owner, salt);
            index += typed->part[part].bytes;
        }
    }
}

bool typed_is(const typed_t *typed, const void *base, size_t first, size_t elements, int owner,
              unsigned salt)
{
    const unsigned char *element = base;
    size_t index = first * typed->size;

    if (is_dense(typed)) {
        return is_pattern(element + typed->part[0].offset, index, elements * typed->size, owner,
                          salt);
    }
    for (size_t k = 0; k < elements; k++, element += typed->extent) {
        for (int part = 0; part < typed->parts; part++) {
            if (!is_pattern(element + typed->part[part].offset, index, typed->part[part].bytes,
                            owner, salt)) {
                return false;
            }
            index += typed->part[part].bytes;
        }
    }
    return true;
}
