/*
 * explore_internal.h: what the two ways of exploring share.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef EXPLORE_INTERNAL_H
#define EXPLORE_INTERNAL_H

#include "explore.h"
#include "moves.h"

#define EXPLORE_DEPTH 500 /* most moves in a run */

typedef struct explorer {
    const explore_case_t *what;
    const sim_t *recorded; /* for one rank alone, `rank`; else NULL */
    uint32_t rank;
    bool well;
    unsigned long runs;
} explorer_t;

sim_t *explorer_begin(explorer_t *ex);
/* After a run that made these moves; `ended` if nothing more can happen. */
void explorer_end(explorer_t *ex, sim_t *sim, const move_t *moves, size_t count, bool ended);

/*
 * explore_states.c: all orders, until every state was seen. False if that takes more than `most`
 * runs. Adds the number of states.
 */
bool explore_states(explorer_t *ex, unsigned long most, unsigned long *states);
/*
 * explore_delays.c: all orders with so many delays. False if there are more than `most` runs.
 */
bool explore_delays(explorer_t *ex, size_t delays, unsigned long most);

#endif /* EXPLORE_INTERNAL_H */
