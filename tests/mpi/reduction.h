/*
 * reduction.h: operands of reductions, and what their reduction must be, worked out in plain C.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef REDUCTION_H
#define REDUCTION_H

#include "mpitest.h"

enum { REDUCTION_MOST_BYTES = 32 }; /* of an element: a long double complex */

typedef struct reduction {
    const char *name, *op_name;
    MPI_Datatype type;
    size_t extent;
    MPI_Op op;
    /* Writes element `index` of what `rank` contributes. All results are exact in any order. */
    void (*operand)(void *to, int rank, size_t index, MPI_Op op);
    /* Reduces the operands of `ranks` ranks. */
    void (*result)(void *to, int ranks, size_t index, MPI_Op op);
    /* Whether two elements are equal; padding does not count. */
    bool (*equal)(const void *a, const void *b);
} reduction_t;

/* Each predefined operation on each predefined type that it is for; `*count` of them. */
const reduction_t *reductions(size_t *count);

/* Buffers of `count` elements, behind which nothing is written. To be freed. */
unsigned char *reduction_memory(const reduction_t *reduction, size_t count);
/* Whether nothing was. */
bool reduction_is_intact(const reduction_t *reduction, const unsigned char *memory, size_t count);
/* check() that these are the result's elements from number `first` on. */
void reduction_check(const reduction_t *reduction, const unsigned char *result, size_t first,
                     size_t count, const char *what);

/* Operations of the user's own: a commutative one; one that is not, on a type without and with
   gaps. */
enum { USER_MODULO, USER_MAPS, USER_SPACED_MAPS, USER_REDUCTIONS };

/* With an operation and a type that have to be freed. */
void user_reduction_make(reduction_t *reduction, int kind);
void user_reduction_free(reduction_t *reduction);

#endif /* REDUCTION_H */
