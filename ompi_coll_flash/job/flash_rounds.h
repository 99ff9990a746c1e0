/*
 * flash_rounds.h: whom a rank tells what it knows, until all know of all. In round k it sends to the rank
 * 2^k above it, and receives from the one 2^k below: there are ceil(log2(N)) rounds. Knows no MPI.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef FLASH_ROUNDS_H
#define FLASH_ROUNDS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct flash_round {
    uint32_t to, from; /* ranks */
    uint32_t
        seats; /* a message has those of its sender and of the ranks below that one, so many in all */
} flash_round_t;

/* Round k of a rank among `size`. False: there are not so many. */
static inline bool flash_round_of(uint32_t rank, uint32_t size, uint32_t k, flash_round_t *round)
{
    uint64_t distance = k < 32 ? (uint64_t) 1 << k : UINT64_MAX;

    if (distance >= size) {
        return false;
    }
    *round = (flash_round_t){
        .to = (uint32_t) ((rank + distance) % size),
        .from = (uint32_t) ((rank + size - distance) % size),
        .seats = (uint32_t) (distance < size - distance ? distance : size - distance)};
    return true;
}

#endif /* FLASH_ROUNDS_H */
