/*
 * reduction_floats.c: reductions of real and complex numbers, see reduction.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "reduction_list.h"

#include <complex.h>

/* Sums, products and comparisons of these are exact: 24 bits are enough for them. */
static double real(int rank, size_t index, MPI_Op op)
{
    if (op == MPI_SUM || op == MPI_PROD) {
        return small_number(rank, index, op, true) / 2.0;
    }
    return ((int) (any_bits(rank, index) % 100001) - 50000) / 8.0;
}

#define REALS(name, ctype)                                                    \
    static void name##_operand(void *to, int rank, size_t index, MPI_Op op)   \
    {                                                                         \
        *(ctype *) to = (ctype) real(rank, index, op);                        \
    }                                                                         \
    static void name##_result(void *to, int ranks, size_t index, MPI_Op op)   \
    {                                                                         \
        double result = real(0, index, op);                                   \
                                                                              \
        for (int rank = 1; rank < ranks; rank++) {                            \
            double operand = real(rank, index, op);                           \
                                                                              \
            result = op == MPI_SUM    ? result + operand                      \
                     : op == MPI_PROD ? result * operand                      \
                     : op == MPI_MAX  ? (result > operand ? result : operand) \
                                      : (result < operand ? result : operand); \
        }                                                                     \
        *(ctype *) to = (ctype) result;                                       \
    }                                                                         \
    static bool name##_equal(const void *a, const void *b)                    \
    {                                                                         \
        return *(const ctype *) a == *(const ctype *) b;                      \
    }

REALS(float, float)
REALS(double, double)
REALS(ldouble, long double)

/* ------------------------------------------------------------------- complex */

/* Parts are small integers, as are those of sums and products. */
static double complex gauss(int rank, size_t index)
{
    int random = (int) mix((uint32_t) rank, (uint32_t) index, 8) & 15;

    return (random % 2 + 1) * (random & 4 ? -1 : 1) + (random / 2 % 2) * (random & 8 ? -I : I);
}

#define COMPLEXES(name, ctype)                                              \
    static void name##_operand(void *to, int rank, size_t index, MPI_Op op) \
    {                                                                       \
        (void) op;                                                          \
        *(ctype *) to = (ctype) gauss(rank, index);                         \
    }                                                                       \
    static void name##_result(void *to, int ranks, size_t index, MPI_Op op) \
    {                                                                       \
        double complex result = gauss(0, index);                            \
                                                                            \
        for (int rank = 1; rank < ranks; rank++) {                          \
            double complex operand = gauss(rank, index);                    \
                                                                            \
            result = op == MPI_SUM ? result + operand : result * operand;   \
        }                                                                   \
        *(ctype *) to = (ctype) result;                                     \
    }                                                                       \
    static bool name##_equal(const void *a, const void *b)                  \
    {                                                                       \
        return *(const ctype *) a == *(const ctype *) b;                    \
    }

COMPLEXES(cfloat, float complex)
COMPLEXES(cdouble, double complex)
COMPLEXES(cldouble, long double complex)

/* -------------------------------------------------------------------- the list */

void add_floats(void)
{
    ADD(MPI_FLOAT, float, float, OPS_REAL);
    ADD(MPI_DOUBLE, double, double, OPS_REAL);
    ADD(MPI_LONG_DOUBLE, ldouble, long double, OPS_REAL);
    ADD(MPI_C_FLOAT_COMPLEX, cfloat, float complex, OPS_ARITHMETIC);
    ADD(MPI_C_DOUBLE_COMPLEX, cdouble, double complex, OPS_ARITHMETIC);
    ADD(MPI_C_LONG_DOUBLE_COMPLEX, cldouble, long double complex, OPS_ARITHMETIC);
    ADD_IF_THERE(MPI_REAL, float, float, OPS_REAL);
    ADD_IF_THERE(MPI_REAL4, float, float, OPS_REAL);
    ADD_IF_THERE(MPI_REAL8, double, double, OPS_REAL);
    ADD_IF_THERE(MPI_DOUBLE_PRECISION, double, double, OPS_REAL);
    ADD_IF_THERE(MPI_COMPLEX, cfloat, float complex, OPS_ARITHMETIC);
    ADD_IF_THERE(MPI_COMPLEX8, cfloat, float complex, OPS_ARITHMETIC);
    ADD_IF_THERE(MPI_COMPLEX16, cdouble, double complex, OPS_ARITHMETIC);
    ADD_IF_THERE(MPI_DOUBLE_COMPLEX, cdouble, double complex, OPS_ARITHMETIC);
}
