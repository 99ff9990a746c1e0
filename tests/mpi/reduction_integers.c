/*
 * reduction_integers.c: reductions of integers, truth values and bytes, see reduction.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "reduction_list.h"

static bool is_logical(MPI_Op op)
{
    return op == MPI_LAND || op == MPI_LOR || op == MPI_LXOR;
}

/* Mostly true for `and`, mostly false for the others: both results occur. */
static bool truth(int rank, size_t index, MPI_Op op)
{
    bool seldom = any_bits(rank, index) % 8 == 0;

    return op == MPI_LAND ? !seldom : seldom;
}

/*
 * ONE_SIGN: of 64 bits, and the topmost is not set where they are compared: Open MPI 4.1 compares
 * MPI_UNSIGNED_LONG as signed numbers and MPI_OFFSET as unsigned ones, in MPI_Reduce_local, too.
 */
typedef enum range { SIGNED, UNSIGNED, ONE_SIGN } range_t;

/* As many of its bits as the type has are the operand. */
static uint64_t integer(int rank, size_t index, MPI_Op op, range_t range)
{
    if (op == MPI_SUM || op == MPI_PROD) {
        return (uint64_t) small_number(rank, index, op, range == SIGNED);
    }
    if (range == ONE_SIGN && (op == MPI_MAX || op == MPI_MIN)) {
        return any_bits(rank, index) >> 1;
    }
    if (is_logical(op)) { /* whatever is not 0 is true, in each of its bytes */
        return truth(rank, index, op) ? any_bits(rank, index) | 0x8000800080008080u : 0;
    }
    return any_bits(rank, index);
}

/* A macro, as each type has its own order, width and sign. */
#define INTEGERS(name, ctype, range)                                        \
    static void name##_operand(void *to, int rank, size_t index, MPI_Op op) \
    {                                                                       \
        *(ctype *) to = (ctype) integer(rank, index, op, range);            \
    }                                                                       \
    static ctype name##_fold(ctype a, ctype b, MPI_Op op)                   \
    {                                                                       \
        return op == MPI_MAX    ? (a > b ? a : b)                           \
               : op == MPI_MIN  ? (a < b ? a : b)                           \
               : op == MPI_SUM  ? (ctype) (a + b)                           \
               : op == MPI_PROD ? (ctype) (a * b)                           \
               : op == MPI_LAND ? (ctype) (a && b)                          \
               : op == MPI_LOR  ? (ctype) (a || b)                          \
               : op == MPI_LXOR ? (ctype) (!a != !b)                        \
               : op == MPI_BAND ? (ctype) (a & b)                           \
               : op == MPI_BOR  ? (ctype) (a | b)                           \
                                : (ctype) (a ^ b);                           \
    }                                                                       \
    static void name##_result(void *to, int ranks, size_t index, MPI_Op op) \
    {                                                                       \
        ctype result = (ctype) integer(0, index, op, range);                \
                                                                            \
        for (int rank = 1; rank < ranks; rank++) {                          \
            ctype operand = (ctype) integer(rank, index, op, range);        \
                                                                            \
            result = name##_fold(result, operand, op);                      \
        }                                                                   \
        *(ctype *) to = result;                                             \
    }                                                                       \
    static bool name##_equal(const void *a, const void *b)                  \
    {                                                                       \
        return *(const ctype *) a == *(const ctype *) b;                    \
    }

INTEGERS(int8, int8_t, SIGNED)
INTEGERS(int16, int16_t, SIGNED)
INTEGERS(int32, int32_t, SIGNED)
INTEGERS(int64, int64_t, SIGNED)
INTEGERS(uint8, uint8_t, UNSIGNED)
INTEGERS(uint16, uint16_t, UNSIGNED)
INTEGERS(uint32, uint32_t, UNSIGNED)
INTEGERS(uint64, uint64_t, UNSIGNED)
INTEGERS(schar, signed char, SIGNED)
INTEGERS(short, short, SIGNED)
INTEGERS(int, int, SIGNED)
INTEGERS(long, long, SIGNED)
INTEGERS(llong, long long, SIGNED)
INTEGERS(ushort, unsigned short, UNSIGNED)
INTEGERS(uint, unsigned, UNSIGNED)
INTEGERS(ulong, unsigned long, ONE_SIGN)
INTEGERS(ullong, unsigned long long, UNSIGNED)
INTEGERS(aint, MPI_Aint, SIGNED)
INTEGERS(offset, MPI_Offset, ONE_SIGN)
INTEGERS(count, MPI_Count, SIGNED)

/* --------------------------------------------------------------- truth values */

/* Those that have nothing but 1 for true, as C's and gfortran's. */
#define TRUTHS(name, ctype)                                                 \
    static void name##_operand(void *to, int rank, size_t index, MPI_Op op) \
    {                                                                       \
        *(ctype *) to = truth(rank, index, op);                             \
    }                                                                       \
    static void name##_result(void *to, int ranks, size_t index, MPI_Op op) \
    {                                                                       \
        bool result = truth(0, index, op);                                  \
                                                                            \
        for (int rank = 1; rank < ranks; rank++) {                          \
            bool operand = truth(rank, index, op);                          \
                                                                            \
            result = op == MPI_LAND  ? result && operand                    \
                     : op == MPI_LOR ? result || operand                    \
                                     : result != operand;                   \
        }                                                                   \
        *(ctype *) to = result;                                             \
    }                                                                       \
    static bool name##_equal(const void *a, const void *b)                  \
    {                                                                       \
        return *(const ctype *) a == *(const ctype *) b;                    \
    }

TRUTHS(cbool, bool)
TRUTHS(logical, int)

/* -------------------------------------------------------------------- the list */

void add_integers(void)
{
    ADD(MPI_INT8_T, int8, int8_t, OPS_INTEGER);
    ADD(MPI_INT16_T, int16, int16_t, OPS_INTEGER);
    ADD(MPI_INT32_T, int32, int32_t, OPS_INTEGER);
    ADD(MPI_INT64_T, int64, int64_t, OPS_INTEGER);
    ADD(MPI_UINT8_T, uint8, uint8_t, OPS_INTEGER);
    ADD(MPI_UINT16_T, uint16, uint16_t, OPS_INTEGER);
    ADD(MPI_UINT32_T, uint32, uint32_t, OPS_INTEGER);
    ADD(MPI_UINT64_T, uint64, uint64_t, OPS_INTEGER);
    ADD(MPI_SIGNED_CHAR, schar, signed char, OPS_INTEGER);
    ADD(MPI_SHORT, short, short, OPS_INTEGER);
    ADD(MPI_INT, int, int, OPS_INTEGER);
    ADD(MPI_LONG, long, long, OPS_INTEGER);
    ADD(MPI_LONG_LONG, llong, long long, OPS_INTEGER);
    ADD(MPI_UNSIGNED_CHAR, uint8, unsigned char, OPS_INTEGER);
    ADD(MPI_UNSIGNED_SHORT, ushort, unsigned short, OPS_INTEGER);
    ADD(MPI_UNSIGNED, uint, unsigned, OPS_INTEGER);
    ADD(MPI_UNSIGNED_LONG, ulong, unsigned long, OPS_INTEGER);
    ADD(MPI_UNSIGNED_LONG_LONG, ullong, unsigned long long, OPS_INTEGER);
    ADD(MPI_AINT, aint, MPI_Aint, OPS_FORTRAN_INTEGER);
    ADD(MPI_OFFSET, offset, MPI_Offset, OPS_FORTRAN_INTEGER);
    ADD(MPI_COUNT, count, MPI_Count, OPS_FORTRAN_INTEGER);
    ADD(MPI_C_BOOL, cbool, bool, OPS_LOGICAL);
    ADD(MPI_BYTE, uint8, unsigned char, OPS_BITS);
    ADD_IF_THERE(MPI_INTEGER, int, int, OPS_FORTRAN_INTEGER);
    ADD_IF_THERE(MPI_INTEGER1, int8, int8_t, OPS_FORTRAN_INTEGER);
    ADD_IF_THERE(MPI_INTEGER2, int16, int16_t, OPS_FORTRAN_INTEGER);
    ADD_IF_THERE(MPI_INTEGER4, int32, int32_t, OPS_FORTRAN_INTEGER);
    ADD_IF_THERE(MPI_INTEGER8, int64, int64_t, OPS_FORTRAN_INTEGER);
    ADD_IF_THERE(MPI_LOGICAL, logical, int, OPS_LOGICAL);
}
