/*
 * explore_delays.c: the orders in which few moves are delayed.
 *
 * For cases with too many states. Depth first; no run is left out: with a bound on the delays, the
 * one that is left out for another, which comes to the same, may be the only one within the bound.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "explore_internal.h"

/* A point of the run: what may happen, what was chosen. */
typedef struct point {
    moves_t can;
    size_t chosen;
    size_t delays; /* before this point */
} point_t;

typedef struct search {
    size_t bound; /* of the delays */
    point_t points[EXPLORE_DEPTH];
    size_t depth;
} search_t;

/* Chooses move number `chosen`, if there is one that delays no more than is allowed. */
static bool choose(const search_t *search, point_t *point, size_t chosen)
{
    point->chosen = chosen;
    return chosen < point->can.count && point->delays + chosen <= search->bound;
}

/* Fills in a new point. False if nothing can happen there. */
static bool new_point(search_t *search, sim_t *sim, size_t at)
{
    static const moves_t none;
    point_t *point = &search->points[at];
    const point_t *before = at == 0 ? NULL : &search->points[at - 1];

    moves_in_turn(sim, &point->can, before == NULL ? &none : &before->can,
                  before == NULL ? 0 : before->chosen);
    point->delays = before == NULL ? 0 : before->delays + before->chosen;
    return choose(search, point, 0);
}

/*
 * Repeats the moves of the points so far, and goes on with new points. Whether that came to the
 * end, where nothing can happen any more.
 */
static bool run(search_t *search, sim_t *sim)
{
    for (size_t at = 0; sim->problem[0] == '\0'; at++) {
        if (at == EXPLORE_DEPTH) {
            sim_complain(sim, "the run is longer than the test has room for");
            break;
        }
        if (at >= search->depth) {
            if (!new_point(search, sim, at)) {
                return true;
            }
            search->depth = at + 1;
        }
        move_make(sim, &search->points[at].can.moves[search->points[at].chosen]);
    }
    return false;
}

/* Turns to the last choice that has an alternative. False if there is none. */
static bool next_run(search_t *search)
{
    for (; search->depth > 0; search->depth--) {
        point_t *point = &search->points[search->depth - 1];

        if (choose(search, point, point->chosen + 1)) {
            return true;
        }
    }
    return false;
}

static void one_run(explorer_t *ex, search_t *search)
{
    sim_t *sim = explorer_begin(ex);
    bool ended = run(search, sim);
    move_t moves[EXPLORE_DEPTH];

    for (size_t k = 0; k < search->depth; k++) {
        moves[k] = search->points[k].can.moves[search->points[k].chosen];
    }
    explorer_end(ex, sim, moves, search->depth, ended);
}

bool explore_delays(explorer_t *ex, size_t delays, unsigned long most)
{
    static search_t search; /* large */

    search.bound = delays;
    search.depth = 0;
    do {
        if (!ex->well || ex->runs == most) {
            return false;
        }
        one_run(ex, &search);
    } while (next_run(&search));
    return ex->well;
}
