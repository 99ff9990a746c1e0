/*
 * explore.c: see explore.h.
 *
 * In explore() a state is that of the whole ring, and there are too many from three ranks on: they
 * combine the ranks' states. explore_ranks() needs none of them. First the ring makes one run,
 * whose messages are recorded. Then each rank is explored alone: all that the record has for it may
 * arrive at any time, and what it sends may be received at any time. In each order
 *
 *   (a) all that is checked within a rank holds, and at the end its result is right;
 *   (b) the messages that it sends are, one by one, those of the record;
 *   (c) when it has done all that it can by itself, what it has *given* (messages sent, receives
 *       ended) depends on nothing but what it has *taken* (arrivals, ends of sends), whatever the
 *       order in which it took it.
 *
 * So no run of the whole ring goes wrong. A rank in it takes only what others gave it: by (b), and
 * induction over the moves, only what the record has. So its moves are in an order in which it was
 * explored alone, and (a) holds. Nor does the ring get stuck: if it came to rest before its end,
 * take the first thing that a rank gives in the recorded run and did not give in this one. All that
 * the rank had taken by then was given here, too, and so taken, perhaps with more; by (c), having
 * taken more, it has given no less. So there is no such thing.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "explore_internal.h"

static sim_t *create(const explore_case_t *what)
{
    return sim_create(what->nranks, what->seed, what->net, what->specs, what->nspecs);
}

/* Complains, too, if nothing can happen, but not all is complete. */
static void check_end(const explore_case_t *what, sim_t *sim)
{
    sim_check_end(sim);
    what->judge(sim);
}

sim_t *explorer_begin(explorer_t *ex)
{
    ex->runs++;
    return ex->recorded == NULL ? create(ex->what) : sim_create_alone(ex->recorded, ex->rank);
}

void explorer_end(explorer_t *ex, sim_t *sim, const move_t *moves, size_t count, bool ended)
{
    if (ended) {
        check_end(ex->what, sim);
    }
    sim_check_contract(sim);
    if (sim->problem[0] != '\0') {
        ex->well = false;
        sim_describe(sim);
        for (size_t k = 0; k < count; k++) { /* what led to it */
            move_print(&moves[k]);
        }
    }
    sim_destroy(sim);
}

explore_result_t explore(const explore_case_t *what, unsigned long most)
{
    explorer_t ex = {.what = what, .well = true};
    explore_result_t result = {0};

    result.complete = explore_states(&ex, most, &result.states);
    if (!result.complete) {
        ex.runs = 0;
    }
    for (unsigned delays = 0; !result.complete && explore_delays(&ex, delays, most); delays++) {
        result.delays = delays;
    }
    result.well = ex.well;
    result.runs = ex.runs;
    return result;
}

/* In any order: the others are compared with it. */
static sim_t *record(const explore_case_t *what)
{
    sim_t *sim = create(what);
    moves_t moves;

    sim_record(sim);
    for (moves_possible(sim, &moves); moves.count > 0; moves_possible(sim, &moves)) {
        move_make(sim, &moves.moves[0]);
    }
    check_end(what, sim);
    if (sim->problem[0] != '\0') {
        sim_describe(sim);
    }
    return sim;
}

explore_result_t explore_ranks(const explore_case_t *what, uint32_t first, uint32_t end,
                               unsigned long most)
{
    explorer_t ex = {.what = what};
    explore_result_t result = {.complete = true};
    sim_t *recorded = record(what);

    ex.recorded = recorded;
    ex.well = recorded->problem[0] == '\0';
    for (ex.rank = first; ex.rank < end && ex.well && result.complete; ex.rank++) {
        result.complete = explore_states(&ex, most, &result.states);
    }
    sim_destroy(recorded);
    result.well = ex.well;
    result.runs = ex.runs;
    return result;
}
