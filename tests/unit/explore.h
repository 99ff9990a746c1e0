/*
 * explore.h: runs a simulation in every order of its moves (moves.h), or in those near the usual
 * one.
 *
 * The network is in manual mode, so that a run is repeatable: depth first, each run repeats the
 * moves of the one before up to the last choice that has an alternative. A run ends where it comes
 * to a state that was seen before (state.h): what can follow was, or will be, tried from there.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef EXPLORE_H
#define EXPLORE_H

#include "sim.h"

/* What is explored. `seed` makes the data; nothing else is random. */
typedef struct explore_case {
    uint32_t nranks;
    uint64_t seed;
    const fake_options_t *net;
    const sim_spec_t *specs;
    uint32_t nspecs;
    void (*judge)(sim_t *sim); /* complains of what is wrong at the end of a run */
} explore_case_t;

typedef struct explore_result {
    bool well;
    bool complete;      /* every order was tried */
    unsigned delays;    /* explore(), else: all orders with so many delays were */
    unsigned long runs; /* to a state seen before, or to the end */
    unsigned long states;
} explore_result_t;

/*
 * Tries all orders if that takes no more than `most` runs. If not, all orders in which at most d
 * moves are delayed, for d = 0, 1, ... while there are `most` runs left; a delayed move is made
 * when there is no other one. Prints the run in which something is wrong.
 */
explore_result_t explore(const explore_case_t *what, unsigned long most);

/*
 * Tries all orders of a case in which nothing fails, rank by rank, of ranks from `first` to before
 * `end`: see explore.c for why no order of the whole ring's moves can do what these cannot.
 * Complete if that takes less than `most` runs.
 */
explore_result_t explore_ranks(const explore_case_t *what, uint32_t first, uint32_t end,
                               unsigned long most);

#endif /* EXPLORE_H */
