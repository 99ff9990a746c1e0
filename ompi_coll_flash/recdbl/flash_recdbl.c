/*
 * flash_recdbl.c: see flash_recdbl.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "recdbl/flash_recdbl.h"

static bool is_power_of_two(uint32_t nranks)
{
    return (nranks & (nranks - 1)) == 0;
}

uint32_t flash_recdbl_rounds(uint32_t nranks)
{
    uint32_t rounds = 0;

    while (UINT64_C(1) << rounds < nranks) {
        rounds++;
    }
    return rounds;
}

/* Of an allgather, from one that has so many blocks to one that has twice as many. */
static flash_recdbl_round_t gather(uint32_t nranks, uint32_t rank, uint32_t distance)
{
    uint32_t count = distance < nranks - distance ? distance : nranks - distance;

    if (is_power_of_two(nranks)) {
        uint32_t first = rank & ~(distance - 1);

        return (flash_recdbl_round_t){.to = rank ^ distance,
                                      .from = rank ^ distance,
                                      .sends = {first, distance},
                                      .receives = {first ^ distance, distance}};
    }
    return (flash_recdbl_round_t){.to = (rank + nranks - distance) % nranks,
                                  .from = (rank + distance) % nranks,
                                  .sends = {0, count},
                                  .receives = {distance, count}};
}

flash_recdbl_round_t flash_recdbl_round(uint32_t nranks, uint32_t rank, bool gathers,
                                        uint32_t round)
{
    uint32_t step = gathers ? round : flash_recdbl_rounds(nranks) - 1 - round;
    flash_recdbl_round_t there = gather(nranks, rank, UINT32_C(1) << step);

    if (gathers) {
        return there;
    }
    return (flash_recdbl_round_t){
        .to = there.from, .from = there.to, .sends = there.receives, .receives = there.sends};
}

uint32_t flash_recdbl_block(uint32_t nranks, uint32_t rank, uint32_t place)
{
    return is_power_of_two(nranks) ? place : (rank + place) % nranks;
}
