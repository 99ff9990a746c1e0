/*
 * reduction_list.h: how the list of reductions (reduction.h) is put together, a file for each kind
 * of types.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef REDUCTION_LIST_H
#define REDUCTION_LIST_H

#include "reduction.h"

/* The three functions of a type, by the name that they begin with. */
#define FUNCTIONS(name)                                                           \
    &(reduction_t)                                                                \
    {                                                                             \
        .operand = name##_operand, .result = name##_result, .equal = name##_equal \
    }

/* Sets of operations, as MPI 3.1, section 5.9.2, names them. */
enum {
    OPS_ORDER = 1,      /* maximum, minimum */
    OPS_ARITHMETIC = 2, /* sum, product */
    OPS_LOGICAL = 4,
    OPS_BITS = 8,
    OPS_PLACE = 16, /* MPI_MAXLOC, MPI_MINLOC */
    OPS_INTEGER = OPS_ORDER | OPS_ARITHMETIC | OPS_LOGICAL | OPS_BITS,
    OPS_FORTRAN_INTEGER = OPS_ORDER | OPS_ARITHMETIC | OPS_BITS,
    OPS_REAL = OPS_ORDER | OPS_ARITHMETIC
};

/* All operations of those sets on a type whose C counterpart has `size` bytes. */
void add_reductions(const char *name, MPI_Datatype type, size_t size, unsigned ops,
                    const reduction_t *functions);
/* Likewise, of a type that not each Open MPI has (Fortran's), or not as that C type. */
void add_if_there(const char *name, MPI_Datatype type, size_t size, unsigned ops,
                  const reduction_t *functions);

#define ADD(type, name, ctype, ops) add_reductions(#type, type, sizeof(ctype), ops, FUNCTIONS(name))
#define ADD_IF_THERE(type, name, ctype, ops) \
    add_if_there(#type, type, sizeof(ctype), ops, FUNCTIONS(name))

void add_integers(void); /* reduction_integers.c */
void add_floats(void);   /* reduction_floats.c */
void add_pairs(void);    /* reduction_pairs.c */

/* Any bits, for what no rounding or overflow can spoil. */
uint64_t any_bits(int rank, size_t index);

/*
 * Operands of sums and products that are exact in any order and, with up to eight ranks, fit eight
 * bits: Open MPI 4.1's AVX sums of these do not wrap around. Half of them are negative if that is
 * asked for.
 */
int small_number(int rank, size_t index, MPI_Op op, bool negative);

#endif /* REDUCTION_LIST_H */
