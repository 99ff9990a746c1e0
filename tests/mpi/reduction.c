/*
 * reduction.c: see reduction.h: the list of predefined operations.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "reduction_list.h"

static reduction_t list[400];
static size_t listed;

uint64_t any_bits(int rank, size_t index)
{
    return (uint64_t) mix((uint32_t) rank, (uint32_t) index, 5) << 32 |
           mix((uint32_t) rank, (uint32_t) index, 6);
}

int small_number(int rank, size_t index, MPI_Op op, bool negative)
{
    int random = (int) (mix((uint32_t) rank, (uint32_t) index, 7) % 32);

    if (op == MPI_SUM) {
        return negative ? random - 16 : random;
    }
    /* No more than six twos, so that 127 is enough. */
    return (rank < 6 ? 1 + random % 2 : 1) * (negative && random / 2 % 2 == 1 ? -1 : 1);
}

static void add_one(const char *name, MPI_Datatype type, size_t size, MPI_Op op,
                    const char *op_name, const reduction_t *functions)
{
    reduction_t *reduction = &list[listed++];

    if (listed > LENGTH(list)) {
        abort();
    }
    *reduction = *functions;
    reduction->name = name;
    reduction->type = type;
    reduction->extent = size;
    reduction->op = op;
    reduction->op_name = op_name;
}

void add_reductions(const char *name, MPI_Datatype type, size_t size, unsigned ops,
                    const reduction_t *functions)
{
    const struct {
        const char *name;
        MPI_Op op;
        unsigned set;
    } all[] = {{"sum", MPI_SUM, OPS_ARITHMETIC},  {"product", MPI_PROD, OPS_ARITHMETIC},
               {"maximum", MPI_MAX, OPS_ORDER},   {"minimum", MPI_MIN, OPS_ORDER},
               {"land", MPI_LAND, OPS_LOGICAL},   {"lor", MPI_LOR, OPS_LOGICAL},
               {"lxor", MPI_LXOR, OPS_LOGICAL},   {"band", MPI_BAND, OPS_BITS},
               {"bor", MPI_BOR, OPS_BITS},        {"bxor", MPI_BXOR, OPS_BITS},
               {"maxloc", MPI_MAXLOC, OPS_PLACE}, {"minloc", MPI_MINLOC, OPS_PLACE}};
    MPI_Aint lb, extent;

    MPI_Type_get_extent(type, &lb, &extent);
    check(lb == 0 && extent == (MPI_Aint) size, "%s has %ld bytes, not %zu", name, (long) extent,
          size);
    for (size_t k = 0; k < LENGTH(all); k++) {
        if ((all[k].set & ops) != 0) {
            add_one(name, type, size, all[k].op, all[k].name, functions);
        }
    }
}

void add_if_there(const char *name, MPI_Datatype type, size_t size, unsigned ops,
                  const reduction_t *functions)
{
    MPI_Aint lb, extent = 0;

    if (type != MPI_DATATYPE_NULL) {
        MPI_Type_get_extent(type, &lb, &extent);
    }
    if (extent == (MPI_Aint) size) {
        add_reductions(name, type, size, ops, functions);
    }
}

const reduction_t *reductions(size_t *count)
{
    if (listed == 0) {
        add_integers();
        add_floats();
        add_pairs();
    }
    *count = listed;
    return list;
}
