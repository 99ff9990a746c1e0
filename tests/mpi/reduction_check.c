/*
 * reduction_check.c: buffers of reductions, and whether the right elements are in them.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "reduction.h"

enum { CANARY = 0x5a, GUARD = 64 };

unsigned char *reduction_memory(const reduction_t *reduction, size_t count)
{
    size_t bytes = count * reduction->extent + GUARD;

    return memset(get_memory(bytes), CANARY, bytes);
}

bool reduction_is_intact(const reduction_t *reduction, const unsigned char *memory, size_t count)
{
    const unsigned char *guard = memory + count * reduction->extent;
    unsigned wrong = 0;

    for (size_t k = 0; k < GUARD; k++) {
        wrong |= guard[k] ^ CANARY;
    }
    return wrong == 0;
}

void reduction_check(const reduction_t *reduction, const unsigned char *result, size_t first,
                     size_t count, const char *what)
{
    _Alignas(16) unsigned char wanted[REDUCTION_MOST_BYTES] = {0};

    for (size_t k = 0; k < count; k++) {
        reduction->result(wanted, world_size, first + k, reduction->op);
        if (!check(reduction->equal(wanted, result + k * reduction->extent),
                   "%s of %s, %s: element %zu of %zu is wrong", what, reduction->name,
                   reduction->op_name, k, count)) {
            return;
        }
    }
}
