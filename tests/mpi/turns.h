/*
 * turns.h: in which order callbacks see the blocks: around the ring, an allgather's own block
 * first, a reduce-scatter's last. How the ranks stand in the ring depends on the machine.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef TURNS_H
#define TURNS_H

#include <stdbool.h>
#include <stdint.h>

/* The blocks that are done, of up to 64. */
typedef uint64_t turns_t;

static inline bool turns_all_done(turns_t done, const int *counts, int size)
{
    for (int block = 0; block < size; block++) {
        if (counts[block] > 0 && (done >> block & 1) == 0) {
            return false;
        }
    }
    return true;
}

/* Whether `block` may come next on rank `own`. */
static inline bool turns_allow(turns_t done, const int *counts, int size, int own, bool own_first,
                               int block)
{
    bool own_done = counts[own] == 0 || (done >> own & 1) != 0;

    if (block < 0 || block >= size || counts[block] == 0 || (done >> block & 1) != 0) {
        return false;
    }
    if (block == own) {
        return own_first ? done == 0 : turns_all_done(done | UINT64_C(1) << own, counts, size);
    }
    return own_done || !own_first;
}

#endif /* TURNS_H */
