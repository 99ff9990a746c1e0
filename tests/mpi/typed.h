/*
 * typed.h: datatypes that describe the same data differently, and where each puts its bytes.
 *
 * MPI asks for equal type *signatures* on all ranks, not for equal types. A block is a stream of
 * `units`; each way of a signature is a datatype that holds one unit, or a whole fraction of one.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef TYPED_H
#define TYPED_H

#include "mpitest.h"

enum { TYPED_BASICS = 6, TYPED_MOST_PARTS = 6 }; /* a unit has 6 elements of a predefined type */

/* The signature's predefined types: six of one, or two of MPI_DOUBLE_INT. */
enum {
    SIGNATURE_INT8,
    SIGNATURE_INT16,
    SIGNATURE_INT32,
    SIGNATURE_INT64,
    SIGNATURE_FLOAT,
    SIGNATURE_DOUBLE,
    SIGNATURE_DOUBLE_INT,
    SIGNATURES
};

enum {
    WAY_PREDEFINED,  /* six elements (two for MPI_DOUBLE_INT) */
    WAY_CONTIGUOUS,  /* MPI_Type_contiguous */
    WAY_VECTOR,      /* gaps inside */
    WAY_LOWER_BOUND, /* lower bound below 0, a gap after */
    WAY_DISPLACED,   /* the data begin behind the buffer's address; without gaps */
    WAY_BACKWARDS,   /* without gaps, but the last elements come first in memory */
    WAY_LONG_EXTENT, /* a gap after */
    WAYS
};

/* `size` bytes of the stream, in order, lie in `parts` ranges of memory. */
typedef struct typed {
    MPI_Datatype type;
    int per_unit; /* elements of `type` in a unit */
    size_t size;
    ptrdiff_t extent;
    int parts;
    struct {
        ptrdiff_t offset;
        size_t bytes;
    } part[TYPED_MOST_PARTS];
} typed_t;

void typed_make(typed_t *typed, int signature, int way);
void typed_free(typed_t *typed);

/* Bytes of a unit of the signature. */
size_t typed_unit_bytes(const typed_t *typed);

/* Where no offset of a type leads out of: bytes to leave before and after `elements`. */
size_t typed_margin(const typed_t *typed);

/* Writes the pattern of `owner` into memory at `base` as `elements` of the type. */
void typed_write(const typed_t *typed, void *base, size_t elements, int owner, unsigned salt);

/*
 * Whether `elements` at `base`, the first of which is element `first` of a block, hold what
 * typed_write() writes there.
 */
bool typed_is(const typed_t *typed, const void *base, size_t first, size_t elements, int owner,
              unsigned salt);

#endif /* TYPED_H */
