/*
 * user_reduction.c: operations of the user's own, see reduction.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "reduction.h"

/* --------------------------------------------------------- sums modulo 1009 */

static void add_modulo(void *in, void *inout, int *length, MPI_Datatype *type)
{
    (void) type;
    for (int k = 0; k < *length; k++) {
        ((int *) inout)[k] = (((int *) in)[k] + ((int *) inout)[k]) % 1009;
    }
}

static void modulo_operand(void *to, int rank, size_t index, MPI_Op op)
{
    (void) op;
    *(int *) to = (int) (mix((uint32_t) rank, (uint32_t) index, 4) % 1009);
}

static void modulo_result(void *to, int ranks, size_t index, MPI_Op op)
{
    int operand, sum = 0;

    for (int rank = 0; rank < ranks; rank++) {
        modulo_operand(&operand, rank, index, op);
        sum += operand;
    }
    *(int *) to = sum % 1009;
}

static bool int_equal(const void *a, const void *b)
{
    return *(const int *) a == *(const int *) b;
}

/* ---------------------------------------------------------------------- maps */

/* Maps x -> slope * x + offset modulo 1009, one after another: the order matters. */
typedef struct affine {
    int slope, offset;
} affine_t;

static affine_t compose(affine_t first, affine_t second)
{
    return (affine_t){first.slope * second.slope % 1009,
                      (second.slope * first.offset + second.offset) % 1009};
}

static void compose_all(void *in, void *inout, int *length, MPI_Datatype *type)
{
    MPI_Aint lb, extent;

    MPI_Type_get_extent(*type, &lb, &extent);
    for (int k = 0; k < *length; k++) {
        affine_t *first = (affine_t *) ((char *) in + k * extent);
        affine_t *second = (affine_t *) ((char *) inout + k * extent);

        *second = compose(*first, *second);
    }
}

static affine_t affine(int rank, size_t index)
{
    uint32_t random = mix((uint32_t) rank, (uint32_t) index, 3);

    return (affine_t){(int) (random % 1008) + 1, (int) (random / 1009 % 1009)};
}

static void affine_operand(void *to, int rank, size_t index, MPI_Op op)
{
    (void) op;
    *(affine_t *) to = affine(rank, index);
}

static void affine_result(void *to, int ranks, size_t index, MPI_Op op)
{
    affine_t result = affine(0, index);

    (void) op;
    for (int rank = 1; rank < ranks; rank++) {
        result = compose(result, affine(rank, index));
    }
    *(affine_t *) to = result;
}

static bool affine_equal(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(affine_t)) == 0;
}

/* --------------------------------------------------------------------- the list */

void user_reduction_make(reduction_t *reduction, int kind)
{
    MPI_Datatype two;

    if (kind == USER_MODULO) {
        *reduction = (reduction_t){"MPI_INT",   "modulo 1009",  MPI_INT,       sizeof(int),
                                   MPI_OP_NULL, modulo_operand, modulo_result, int_equal};
        MPI_Op_create(add_modulo, 1, &reduction->op);
        return;
    }
    *reduction = (reduction_t){"pairs",     "affine maps",  MPI_DATATYPE_NULL, sizeof(affine_t),
                               MPI_OP_NULL, affine_operand, affine_result,     affine_equal};
    MPI_Op_create(compose_all, 0, &reduction->op);
    MPI_Type_contiguous(2, MPI_INT, &two);
    if (kind == USER_SPACED_MAPS) {
        reduction->name = "pairs with gaps";
        reduction->extent = sizeof(affine_t) + sizeof(int);
    }
    MPI_Type_create_resized(two, 0, (MPI_Aint) reduction->extent, &reduction->type);
    MPI_Type_free(&two);
    MPI_Type_commit(&reduction->type);
}

void user_reduction_free(reduction_t *reduction)
{
    MPI_Op_free(&reduction->op);
    if (reduction->type != MPI_INT) {
        MPI_Type_free(&reduction->type);
    }
}
