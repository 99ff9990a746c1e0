/*
 * reduction.c: see reduction.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "reduction.h"

#include <complex.h>

/*
 * Small integers, not negative, as uint8 wants them: sums of eight ranks' stay below 256, products
 * do not exceed it.
 */
static int64_t small(int rank, size_t index, MPI_Op op)
{
    uint32_t random = mix((uint32_t) rank, (uint32_t) index, 7);

    if (op == MPI_PROD) {
        return 1 + random % 2;
    }
    if (op == MPI_LAND || op == MPI_LOR || op == MPI_LXOR) {
        /* Mostly true for the one, mostly false for the other: both results occur. */
        return random % 8 == 0 ? op != MPI_LAND : op == MPI_LAND ? 3 : 0;
    }
    return random % 32; /* Open MPI 4.1's AVX sums of 8-bit integers do not wrap around */
}

static int64_t fold(int64_t a, int64_t b, MPI_Op op)
{
    return op == MPI_MAX    ? (a > b ? a : b)
           : op == MPI_MIN  ? (a < b ? a : b)
           : op == MPI_SUM  ? a + b
           : op == MPI_PROD ? a * b
           : op == MPI_LAND ? a && b
           : op == MPI_LOR  ? a || b
           : op == MPI_LXOR ? !a != !b
           : op == MPI_BAND ? (a & b)
           : op == MPI_BOR  ? (a | b)
                            : (a ^ b);
}

static int64_t fold_all(int ranks, size_t index, MPI_Op op)
{
    int64_t result = small(0, index, op);

    for (int rank = 1; rank < ranks; rank++) {
        result = fold(result, small(rank, index, op), op);
    }
    return result;
}

/* For a number type: operands and results are integers converted to it. */
#define NUMBERS(name, ctype)                                                \
    static void name##_operand(void *to, int rank, size_t index, MPI_Op op) \
    {                                                                       \
        *(ctype *) to = (ctype) small(rank, index, op);                     \
    }                                                                       \
    static void name##_result(void *to, int ranks, size_t index, MPI_Op op) \
    {                                                                       \
        *(ctype *) to = (ctype) fold_all(ranks, index, op);                 \
    }                                                                       \
    static bool name##_equal(const void *a, const void *b)                  \
    {                                                                       \
        return *(const ctype *) a == *(const ctype *) b;                    \
    }

NUMBERS(int32, int32_t)
NUMBERS(int64, int64_t)
NUMBERS(uint8, uint8_t)
NUMBERS(float, float)
NUMBERS(double, double)

/* ------------------------------------------------------------------- complex */

static double complex gauss(int rank, size_t index)
{
    uint32_t random = mix((uint32_t) rank, (uint32_t) index, 8);

    return (1 + random % 2) + (double) (random / 2 % 2) * I;
}

static void complex_operand(void *to, int rank, size_t index, MPI_Op op)
{
    (void) op;
    *(double complex *) to = gauss(rank, index);
}

static void complex_result(void *to, int ranks, size_t index, MPI_Op op)
{
    double complex result = gauss(0, index);

    for (int rank = 1; rank < ranks; rank++) {
        result = op == MPI_SUM ? result + gauss(rank, index) : result * gauss(rank, index);
    }
    *(double complex *) to = result;
}

static bool complex_equal(const void *a, const void *b)
{
    return *(const double complex *) a == *(const double complex *) b;
}

/* ------------------------------------------------------- a value and its place */

typedef struct double_int {
    double value;
    int place;
} double_int_t;

typedef struct int_int {
    int value, place;
} int_int_t;

/* Few values, so that many are equal: the smallest place wins then. Places fall with the ranks. */
static int located(int rank, size_t index, int *place)
{
    *place = 1000 - rank;
    return (int) (mix((uint32_t) rank, (uint32_t) index, 9) % 4);
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

#define LOCATED(name, ctype)                                                \
    static void name##_operand(void *to, int rank, size_t index, MPI_Op op) \
    {                                                                       \
        ctype *pair = to;                                                   \
                                                                            \
        (void) op;                                                          \
        pair->value = located(rank, index, &pair->place);                   \
    }                                                                       \
    static void name##_result(void *to, int ranks, size_t index, MPI_Op op) \
    {                                                                       \
        ctype *pair = to;                                                   \
                                                                            \
        pair->value = best(ranks, index, op, &pair->place);                 \
    }                                                                       \
    static bool name##_equal(const void *a, const void *b)                  \
    {                                                                       \
        const ctype *left = a, *right = b;                                  \
                                                                            \
        return left->value == right->value && left->place == right->place;  \
    }

LOCATED(double_int, double_int_t)
LOCATED(int_int, int_int_t)

/* --------------------------------------------------------------------- the list */

static reduction_t list[64];
static size_t listed;

static void add(const char *name, MPI_Datatype type, size_t extent, MPI_Op op, const char *op_name,
                const reduction_t *functions)
{
    reduction_t *reduction = &list[listed++];

    *reduction = *functions;
    reduction->name = name;
    reduction->type = type;
    reduction->extent = extent;
    reduction->op = op;
    reduction->op_name = op_name;
}

static void add_numbers(const char *name, MPI_Datatype type, size_t extent, bool integer,
                        const reduction_t *functions)
{
    const struct {
        const char *name;
        MPI_Op op;
    } ops[] = {{"sum", MPI_SUM},     {"product", MPI_PROD}, {"maximum", MPI_MAX},
               {"minimum", MPI_MIN}, {"land", MPI_LAND},    {"lor", MPI_LOR},
               {"lxor", MPI_LXOR},   {"band", MPI_BAND},    {"bor", MPI_BOR},
               {"bxor", MPI_BXOR}};

    for (size_t k = 0; k < (integer ? LENGTH(ops) : 4); k++) {
        add(name, type, extent, ops[k].op, ops[k].name, functions);
    }
}

#define FUNCTIONS(name)                                                           \
    &(reduction_t)                                                                \
    {                                                                             \
        .operand = name##_operand, .result = name##_result, .equal = name##_equal \
    }

const reduction_t *reductions(size_t *count)
{
    if (listed == 0) {
        add_numbers("MPI_INT32_T", MPI_INT32_T, 4, true, FUNCTIONS(int32));
        add_numbers("MPI_INT64_T", MPI_INT64_T, 8, true, FUNCTIONS(int64));
        add_numbers("MPI_UINT8_T", MPI_UINT8_T, 1, true, FUNCTIONS(uint8));
        add_numbers("MPI_FLOAT", MPI_FLOAT, 4, false, FUNCTIONS(float));
        add_numbers("MPI_DOUBLE", MPI_DOUBLE, 8, false, FUNCTIONS(double));
        add("MPI_C_DOUBLE_COMPLEX", MPI_C_DOUBLE_COMPLEX, 16, MPI_SUM, "sum", FUNCTIONS(complex));
        add("MPI_C_DOUBLE_COMPLEX", MPI_C_DOUBLE_COMPLEX, 16, MPI_PROD, "product",
            FUNCTIONS(complex));
        add("MPI_DOUBLE_INT", MPI_DOUBLE_INT, 16, MPI_MAXLOC, "MAXLOC", FUNCTIONS(double_int));
        add("MPI_DOUBLE_INT", MPI_DOUBLE_INT, 16, MPI_MINLOC, "MINLOC", FUNCTIONS(double_int));
        add("MPI_2INT", MPI_2INT, 8, MPI_MAXLOC, "MAXLOC", FUNCTIONS(int_int));
        add("MPI_2INT", MPI_2INT, 8, MPI_MINLOC, "MINLOC", FUNCTIONS(int_int));
    }
    *count = listed;
    return list;
}
