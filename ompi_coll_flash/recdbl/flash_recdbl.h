/*
 * flash_recdbl.h: gathering and reducing in ceil(log2(N)) rounds: pure arithmetic.
 *
 * Each rank has the N blocks at *places* of its own. An allgather begins with the own block; in
 * each round a rank sends all that it has to another one, as far as that one lacks it, and has
 * twice as much afterwards. A reduce-scatter is the same backwards: in each round a rank sends half
 * of its sums to another one, which adds them to its own, and at last its own block's is left.
 *
 * Where N is a power of two, ranks exchange with each other, and places are the blocks' numbers
 * (recursive doubling, and halving). Otherwise place k is that of the block of the rank k to the
 * right, and what comes from the right goes to the left (Bruck, Ho, Kipnis, Upfal, Weathersby, IEEE
 * TPDS 8 (11), 1997): no two rounds have the same pair of ranks, in the same direction.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef FLASH_RECDBL_H
#define FLASH_RECDBL_H

#include <stdbool.h>
#include <stdint.h>

/* Blocks at consecutive places. */
typedef struct flash_recdbl_blocks {
    uint32_t first, count;
} flash_recdbl_blocks_t;

typedef struct flash_recdbl_round {
    uint32_t to, from; /* ranks */
    flash_recdbl_blocks_t sends, receives;
} flash_recdbl_round_t;

/* 0 for one rank. */
uint32_t flash_recdbl_rounds(uint32_t nranks);
/* Of a rank: its `round` of an allgather (`gathers`) or of a reduce-scatter, from 0. */
flash_recdbl_round_t flash_recdbl_round(uint32_t nranks, uint32_t rank, bool gathers,
                                        uint32_t round);
/* Whose block is at that place of the rank's. */
uint32_t flash_recdbl_block(uint32_t nranks, uint32_t rank, uint32_t place);

#endif /* FLASH_RECDBL_H */
