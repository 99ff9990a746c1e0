/*
 * test_float16.c: 16-bit floating point as datatypes: sums that are the nearest to the right ones,
 * by ring and without, against double precision.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <math.h>

#include <mpix_flash.h>

#include "aftermath.h"
#include "mpitest.h"

/* By the definition of the format. */
static double decode(int which, uint16_t x)
{
    int fraction_bits = which == MPIX_FLASH_BF16 ? 7 : 10;
    int bias = which == MPIX_FLASH_BF16 ? 127 : 15, top = 2 * bias + 1;
    int exponent = x >> fraction_bits & top, fraction = x & ((1 << fraction_bits) - 1);
    double sign = x >> 15 ? -1 : 1;

    if (exponent == top) {
        return fraction != 0 ? NAN : sign * INFINITY;
    }
    if (exponent == 0) {
        return sign * ldexp(fraction, 1 - bias - fraction_bits);
    }
    return sign * ldexp(fraction + (1 << fraction_bits), exponent - bias - fraction_bits);
}

/* Whether none of the numbers beside it is nearer, nor as near and even. */
static bool is_nearest(int which, uint16_t x, double exact)
{
    uint16_t size = x & 0x7fff, sign = x & 0x8000;
    uint16_t infinity = which == MPIX_FLASH_BF16 ? 0x7f80 : 0x7c00;
    double largest = decode(which, infinity - 1);
    double step = largest - decode(which, infinity - 2), error = fabs(decode(which, x) - exact);

    if (isnan(exact)) {
        return isnan(decode(which, x));
    }
    if (size == infinity) {
        return fabs(exact) >= largest + step / 2 && (exact < 0) == (sign != 0);
    }
    for (int way = -1; way <= 1; way += 2) {
        double other = size == 0 && way < 0     ? decode(which, (uint16_t) ((sign ^ 0x8000) + 1))
                       : size + way == infinity ? copysign(largest + step, decode(which, x))
                                                : decode(which, (uint16_t) (sign + size + way));

        if (fabs(other - exact) < error ||
            (fabs(other - exact) == error && (x & 1) != 0 && size > 0)) {
            return false;
        }
    }
    return true;
}

/* What a rank contributes: all numbers there are, each rank in another order. */
enum { NUMBERS = 1 << 16 };

static uint16_t number(int rank, int index)
{
    return (uint16_t) (index * (2 * rank + 1) + 77 * rank);
}

static int produce(const MPIX_Flash_block *block, void *arg)
{
    uint16_t *data = block->data;

    for (MPI_Count k = 0; k < block->count; k++) {
        data[k] = number(world_rank, (int) (block->displ + block->offset + k));
    }
    (void) arg;
    return MPI_SUCCESS;
}

/* Two ranks: one addition, of each number to some other. */
static void rounding(void)
{
    const MPI_Op real[] = {MPI_SUM, MPI_PROD, MPI_MAX, MPI_MIN};
    uint16_t *got = get_memory(NUMBERS * sizeof(*got));
    MPI_Comm pair;

    MPI_Comm_split(MPI_COMM_WORLD, world_rank < 2 ? 0 : MPI_UNDEFINED, 0, &pair);
    for (int which = MPIX_FLASH_BF16; which <= MPIX_FLASH_FP16 && pair != MPI_COMM_NULL; which++) {
        int size, wrong = 0;
        MPI_Datatype type;

        MPI_Comm_size(pair, &size);
        check_class(MPIX_Flash_type(which, &type), MPI_SUCCESS, "a type");
        for (size_t op = 0; op < LENGTH(real) && size == 2; op++) {
            check_class(MPIX_Allreduce_compute(produce, NULL, NULL, NULL, NULL, got, NUMBERS, type,
                                               real[op], pair),
                        MPI_SUCCESS, "an allreduce");
            for (int k = 0; k < NUMBERS; k++) {
                double a = decode(which, number(0, k)), b = decode(which, number(1, k));
                double exact = op == 0   ? (double) ((float) a + (float) b)
                               : op == 1 ? (double) ((float) a * (float) b)
                               : op == 2 ? fmax(a, b)
                                         : fmin(a, b);

                if (op >= 2 && (isnan(a) || isnan(b))) {
                    continue;
                }
                wrong += !is_nearest(which, got[k], exact);
            }
            check(wrong == 0, "type %d, operation %zu: %d results are not the nearest", which, op,
                  wrong);
        }
    }
    if (pair != MPI_COMM_NULL) {
        MPI_Comm_free(&pair);
    }
    free(got);
}

/* Numbers from 1 to 2. */
static int produce_small(const MPIX_Flash_block *block, void *arg)
{
    int which = *(int *) arg;
    uint16_t *data = block->data, one = which == MPIX_FLASH_BF16 ? 0x3f80 : 0x3c00;
    uint32_t span = which == MPIX_FLASH_BF16 ? 0x80 : 0x400;

    for (MPI_Count k = 0; k < block->count; k++) {
        uint32_t at = (uint32_t) (block->displ + block->offset + k);

        data[k] = (uint16_t) (one + mix((uint32_t) world_rank, at, 1) % span);
    }
    return MPI_SUCCESS;
}

static double small_sum(int which, int index)
{
    uint16_t one = which == MPIX_FLASH_BF16 ? 0x3f80 : 0x3c00;
    uint32_t span = which == MPIX_FLASH_BF16 ? 0x80 : 0x400;
    double sum = 0;

    for (int rank = 0; rank < world_size; rank++) {
        sum += decode(which, (uint16_t) (one + mix((uint32_t) rank, (uint32_t) index, 1) % span));
    }
    return sum;
}

/* Any number of ranks: each addition rounds by half a unit at most. */
static void sums(void)
{
    enum { COUNT = 5003 };
    int *counts = get_memory((size_t) world_size * sizeof(*counts)), all = 0, first = 0;
    uint16_t *got = get_memory(COUNT * sizeof(*got)), *own = get_memory(COUNT * sizeof(*own));

    for (int rank = 0; rank < world_size; rank++) {
        counts[rank] = rank % 3 == 1 ? 0 : 700 + rank;
        first += rank < world_rank ? counts[rank] : 0;
        all += counts[rank];
    }
    for (int which = MPIX_FLASH_BF16; which <= MPIX_FLASH_FP16; which++) {
        double unit = which == MPIX_FLASH_BF16 ? 0x1p-8 : 0x1p-11;
        MPIX_Flash_hints hints = MPIX_FLASH_HINTS_INIT;
        MPI_Datatype type;

        hints.pieces = 3;
        MPIX_Flash_type(which, &type);
        check_class(MPIX_Allreduce_compute(produce_small, &which, NULL, NULL, &hints, got, COUNT,
                                           type, MPI_SUM, MPI_COMM_WORLD),
                    MPI_SUCCESS, "an allreduce");
        check_class(MPIX_Reduce_scatter_compute(produce_small, &which, &hints, own, counts, type,
                                                MPI_SUM, MPI_COMM_WORLD),
                    MPI_SUCCESS, "a reduce-scatter");
        for (int k = 0; k < COUNT; k++) {
            double exact = small_sum(which, k);

            check(fabs(decode(which, got[k]) - exact) <= world_size * unit * exact,
                  "allreduce, type %d, element %d: %g, not %g", which, k, decode(which, got[k]),
                  exact);
        }
        for (int k = 0; k < counts[world_rank]; k++) {
            double exact = small_sum(which, first + k);

            check(fabs(decode(which, own[k]) - exact) <= world_size * unit * exact,
                  "reduce-scatter, type %d, element %d: %g, not %g", which, k,
                  decode(which, own[k]), exact);
        }
    }
    check(all >= 0, "blocks of %d", all);
    free(counts);
    free(got);
    free(own);
}

/*
 * The pairwise schedule rounds once: to the number next to the sum, which single precision has
 * without an error.
 */
static void rounds_once(void)
{
    enum { COUNT = 3001 };
    uint16_t *own = get_memory(COUNT * sizeof(*own));
    MPI_Comm comm = make_counted_comm();
    MPI_Info info;
    int active;

    MPI_Info_create(&info);
    MPI_Info_set(info, "mpix_flash_algorithm", "pairwise");
    MPI_Comm_set_info(comm, info);
    MPI_Info_free(&info);
    MPIX_Flash_active(comm, &active);
    for (int which = MPIX_FLASH_BF16; which <= MPIX_FLASH_FP16 && active; which++) {
        MPIX_Flash_hints hints = MPIX_FLASH_HINTS_INIT;
        MPI_Datatype type;

        hints.pieces = 4;
        MPIX_Flash_type(which, &type);
        check_class(MPIX_Reduce_scatter_block_compute(produce_small, &which, &hints, own, COUNT,
                                                      type, MPI_SUM, comm),
                    MPI_SUCCESS, "a pairwise reduce-scatter");
        for (int k = 0; k < COUNT; k++) {
            double exact = small_sum(which, world_rank * COUNT + k);

            check(is_nearest(which, own[k], exact), "type %d, element %d: %g, not %g", which, k,
                  decode(which, own[k]), exact);
        }
    }
    free(own);
    MPI_Comm_free(&comm);
}

/* What else MPI does with them, and what nobody does. */
static void handles(void)
{
    MPI_Comm comm = make_counted_comm();
    MPI_Datatype type, again;
    MPI_Request request;
    uint16_t mine = (uint16_t) (world_rank + 1);
    uint16_t *all = get_memory((size_t) world_size * sizeof(*all));
    char name[MPI_MAX_OBJECT_NAME];
    int length, size;

    check_class(MPIX_Flash_type(MPIX_FLASH_BF16, &type), MPI_SUCCESS, "a type");
    check_class(MPIX_Flash_type(MPIX_FLASH_BF16, &again), MPI_SUCCESS, "the type again");
    MPI_Type_get_name(type, name, &length);
    MPI_Type_size(type, &size);
    check(type == again && size == 2 && strcmp(name, "MPIX_FLASH_BF16") == 0,
          "%s of %d bytes, or another handle", name, size);
    MPI_Iallgather(&mine, 1, type, all, 1, type, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int rank = 0; rank < world_size; rank++) {
        check(all[rank] == rank + 1, "gathered %d from rank %d", all[rank], rank);
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    check_class(MPIX_Flash_type(0, &type), MPI_ERR_ARG, "no such type");
    check_class(MPIX_Flash_type(MPIX_FLASH_FP16, NULL), MPI_ERR_ARG, "no place for a type");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    check_class(MPIX_Iallreduce_compute(produce, NULL, NULL, NULL, NULL, all, 1, again, MPI_BAND,
                                        comm, &request),
                MPI_ERR_OP, "an operation on bits");
    free(all);
    MPI_Comm_free(&comm);
}

TEST_PROGRAM(test_float16, MPI_THREAD_SINGLE, {"rounding", rounding}, {"sums", sums},
             {"rounds_once", rounds_once}, {"handles", handles});
