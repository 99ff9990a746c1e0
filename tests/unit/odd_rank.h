/*
 * odd_rank.h: an operation whose shape one rank sees otherwise than all others, and which ends of
 * it are right.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef ODD_RANK_H
#define ODD_RANK_H

#include "judge.h"

typedef enum { OTHER_COUNT, OTHER_BLOCK, OTHER_SEGMENT, OTHER_PIECES, OTHER_ALL } oddity_t;

/*
 * Changes the shape of the odd rank in one way. Counts of blocks stand in those arrays from then
 * on.
 */
void odd_rank_make(uint64_t *random, sim_spec_t *spec, oddity_t oddity, uint32_t nranks,
                   size_t *counts, size_t *odd_counts);
judge_fn odd_rank_judge;

#endif /* ODD_RANK_H */
