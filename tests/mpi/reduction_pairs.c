/*
 * reduction_pairs.c: reductions of a value and its place, see reduction.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "reduction_list.h"

/* Few values, so that many are equal: the smallest place wins then. Places fall with the ranks. */
static int located(int rank, size_t index, int *place)
{
    *place = 1000 - rank;
    return (int) (mix((uint32_t) rank, (uint32_t) index, 9) % 4) - 2;
}

static int best(int ranks, size_t index, MPI_Op op, int *place)
{
    int value = located(0, index, place);

    for (int rank = 1; rank < ranks; rank++) {
        int other_place, other = located(rank, index, &other_place);
        bool better = op == MPI_MAXLOC ? other > value : other < value;

        if (better || (other == value && other_place < *place)) {
            value = other;
            *place = other_place;
        }
    }
    return value;
}

/* Fortran's places have the type of the values. */
#define PAIRS(name, value_type, place_type)                                 \
    typedef struct name {                                                   \
        value_type value;                                                   \
        place_type place;                                                   \
    } name##_t;                                                             \
    static void name##_operand(void *to, int rank, size_t index, MPI_Op op) \
    {                                                                       \
        name##_t *pair = to;                                                \
        int place;                                                          \
                                                                            \
        (void) op;                                                          \
        pair->value = (value_type) located(rank, index, &place);            \
        pair->place = (place_type) place;                                   \
    }                                                                       \
    static void name##_result(void *to, int ranks, size_t index, MPI_Op op) \
    {                                                                       \
        name##_t *pair = to;                                                \
        int place;                                                          \
                                                                            \
        pair->value = (value_type) best(ranks, index, op, &place);          \
        pair->place = (place_type) place;                                   \
    }                                                                       \
    static bool name##_equal(const void *a, const void *b)                  \
    {                                                                       \
        const name##_t *left = a, *right = b;                               \
                                                                            \
        return left->value == right->value && left->place == right->place;  \
    }

PAIRS(float_int, float, int)
PAIRS(double_int, double, int)
PAIRS(long_int, long, int)
PAIRS(short_int, short, int)
PAIRS(int_int, int, int)
PAIRS(ldouble_int, long double, int)
PAIRS(float_float, float, float)
PAIRS(double_double, double, double)

void add_pairs(void)
{
    ADD(MPI_FLOAT_INT, float_int, float_int_t, OPS_PLACE);
    ADD(MPI_DOUBLE_INT, double_int, double_int_t, OPS_PLACE);
    ADD(MPI_LONG_INT, long_int, long_int_t, OPS_PLACE);
    ADD(MPI_SHORT_INT, short_int, short_int_t, OPS_PLACE);
    ADD(MPI_2INT, int_int, int_int_t, OPS_PLACE);
    ADD(MPI_LONG_DOUBLE_INT, ldouble_int, ldouble_int_t, OPS_PLACE);
    ADD_IF_THERE(MPI_2INTEGER, int_int, int_int_t, OPS_PLACE);
    ADD_IF_THERE(MPI_2REAL, float_float, float_float_t, OPS_PLACE);
    ADD_IF_THERE(MPI_2DOUBLE_PRECISION, double_double, double_double_t, OPS_PLACE);
}
