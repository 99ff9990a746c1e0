/*
 * explore.h: runs a simulation in every order of its moves, or in those near the usual one.
 *
 * A run is made of moves: an operation starts, a message arrives, a transfer is done, a thread
 * finishes its work. The network is in manual mode, so that a run is repeatable: depth first, each
 * run repeats the moves of the one before up to the last choice that has an alternative.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef EXPLORE_H
#define EXPLORE_H

#include "sim.h"

typedef void explore_judge_fn(sim_t *sim); /* complains of what is wrong at the end of a run */

typedef struct explore_result {
    bool well;
    bool complete;      /* every order was tried */
    unsigned delays;    /* else: all orders with so many delays were */
    unsigned long runs; /* different ones */
} explore_result_t;

/*
 * Tries all orders if that takes no more than `most` runs. If not, all orders in which at most d
 * moves are delayed, for d = 0, 1, ... while there are runs left; a delayed move is made when
 * there is no other one. Prints the run in which something is wrong.
 * `seed` makes the data; nothing else is random.
 */
explore_result_t explore(uint32_t nranks, uint64_t seed, const fake_options_t *net,
                         const sim_spec_t *specs, uint32_t nspecs, explore_judge_fn *judge,
                         unsigned long most);

#endif /* EXPLORE_H */
