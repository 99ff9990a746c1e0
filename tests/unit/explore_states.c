/*
 * explore_states.c: every state that a case can come to, by every move that leads there.
 *
 * The states and moves are a graph without cycles. A run walks through it from the first state,
 * along moves that were not tried yet, or else to where such are left; so each run finds several,
 * and none is made in vain. What is a state is said in state.c: what can follow does not depend on
 * the way to it.
 *
 * *Sleep sets* leave out moves: those of different ranks commute, since ranks meet only in messages
 * (which are given their place among the receiver's events by name, not by time), so that only one
 * order of the two needs to be tried. Where several moves are possible, after the kth those before
 * it sleep: they are not tried again until another move of their rank has happened. What sleeps
 * decides what is tried, so it is a part of the state here.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <stdlib.h>

#include "explore_internal.h"
#include "state.h"
#include "table.h"

#define UNTRIED UINT32_MAX

typedef struct edge {
    move_t move;
    uint32_t to; /* number of the state, or UNTRIED */
} edge_t;

typedef struct state {
    size_t first; /* of its edges */
    uint32_t edges;
    uint32_t tried;   /* so many of them */
    uint32_t visited; /* of so many, all that follows was tried */
} state_t;

typedef struct search {
    table_t numbers; /* of states */
    table_t given;   /* by a rank alone, for what it has taken */
    state_t *states;
    edge_t *edges;
    size_t nstates, nedges, states_room, edges_room;
    /* The run: the states it came through, and the moves between them. */
    uint32_t path[EXPLORE_DEPTH];
    move_t moves[EXPLORE_DEPTH];
    size_t length; /* moves */
    moves_t sleep;
    bool ended;
} search_t;

/* --- the graph --- */

static void *room_for(void *items, size_t count, size_t *room, size_t size)
{
    if (count > *room) {
        *room = 2 * count + 1000;
        items = realloc(items, *room * size);
        if (items == NULL) {
            abort();
        }
    }
    return items;
}

/* A state with the moves that do not sleep. */
static void add_state(search_t *search, const moves_t *can)
{
    state_t state = {.first = search->nedges};

    search->edges = room_for(search->edges, search->nedges + can->count, &search->edges_room,
                             sizeof(*search->edges));
    for (size_t k = 0; k < can->count; k++) {
        if (moves_find(&search->sleep, &can->moves[k]) == NULL) {
            search->edges[search->nedges++] = (edge_t){.move = can->moves[k], .to = UNTRIED};
            state.edges++;
        }
    }
    search->states = room_for(search->states, search->nstates + 1, &search->states_room,
                              sizeof(*search->states));
    search->states[search->nstates++] = state;
}

/* Whether nothing that follows is left to be tried. */
static bool is_exhausted(search_t *search, uint32_t number)
{
    state_t *state = &search->states[number];

    return state->visited == state->edges;
}

static void pass_exhausted(search_t *search, uint32_t number)
{
    state_t *state = &search->states[number];

    while (state->visited < state->tried &&
           is_exhausted(search, search->edges[state->first + state->visited].to)) {
        state->visited++;
    }
}

/* The edge to follow, or NULL. */
static edge_t *next_edge(search_t *search, uint32_t number)
{
    state_t *state = &search->states[number];

    if (state->tried < state->edges) {
        return &search->edges[state->first + state->tried++];
    }
    pass_exhausted(search, number);
    return is_exhausted(search, number) ? NULL : &search->edges[state->first + state->visited];
}

/* --- a run --- */

/* What sleeps after the move of an edge: what slept, or comes before it, and is another rank's. */
static void fall_asleep(search_t *search, sim_t *sim, const state_t *state, const edge_t *edge)
{
    size_t before = search->sleep.count;

    search->sleep.count = 0;
    for (size_t k = 0; k < before; k++) {
        if (search->sleep.moves[k].rank != edge->move.rank) {
            moves_add(sim, &search->sleep, search->sleep.moves[k]);
        }
    }
    for (const edge_t *other = &search->edges[state->first]; other < edge; other++) {
        if (other->move.rank != edge->move.rank) {
            moves_add(sim, &search->sleep, other->move);
        }
    }
}

static fingerprint_t fingerprint(const sim_t *sim, const moves_t *sleep)
{
    fingerprint_t print = {{0}}, set = {{0}};

    for (uint32_t rank = 0; rank < sim->nranks; rank++) {
        if (sim_runs(sim, rank)) {
            state_add_rank(&print, sim, rank);
        }
    }
    for (size_t k = 0; k < sleep->count; k++) {
        const move_t *move = &sleep->moves[k];
        fingerprint_t member = {{0}};

        fingerprint_add(&member, (uint64_t) move->rank << 2 | move->kind);
        fingerprint_add(&member, move->name);
        fingerprint_add_to_set(&set, member);
    }
    fingerprint_add(&print, set.half[0]);
    fingerprint_add(&print, set.half[1]);
    return print;
}

/* Of a rank alone, where it waits for others: (c) in explore.c. */
static void check_given(const explorer_t *ex, search_t *search, sim_t *sim, const moves_t *can)
{
    fake_traffic_t traffic = fake_net_traffic(sim->net, ex->rank);
    fingerprint_t taken = {{0}};

    for (size_t k = 0; k < can->count; k++) {
        if (move_is_local(&can->moves[k])) {
            return;
        }
    }
    fingerprint_add(&taken, traffic.taken);
    if (table_put(&search->given, taken, traffic.given) != traffic.given) {
        sim_complain(sim, "rank %u: what it has sent or received depends on an order", ex->rank);
    }
}

/* The number of the state that the simulation is in: of a new one if it was not seen yet. */
static uint32_t find_state(const explorer_t *ex, search_t *search, sim_t *sim)
{
    moves_t can;
    uint64_t number;

    moves_possible(sim, &can);
    if (ex->recorded != NULL) {
        check_given(ex, search, sim, &can);
    }
    number = table_put(&search->numbers, fingerprint(sim, &search->sleep), search->nstates);
    if (number == search->nstates) {
        add_state(search, &can);
        search->ended = can.count == 0;
    }
    return (uint32_t) number;
}

static void run(const explorer_t *ex, search_t *search, sim_t *sim)
{
    uint32_t at = search->nstates == 0 ? find_state(ex, search, sim) : 0;
    edge_t *edge;

    search->length = 0;
    search->sleep.count = 0;
    search->ended = false;
    search->path[0] = at;
    while (sim->problem[0] == '\0' && (edge = next_edge(search, at)) != NULL) {
        if (search->length + 1 == EXPLORE_DEPTH) {
            sim_complain(sim, "the run is longer than the test has room for");
            return;
        }
        search->moves[search->length++] = edge->move;
        move_make(sim, &edge->move);
        fall_asleep(search, sim, &search->states[at], edge);
        if (edge->to == UNTRIED) {
            size_t k = (size_t) (edge - search->edges); /* they move as there are more */

            at = find_state(ex, search, sim);
            search->edges[k].to = at;
        } else {
            at = edge->to;
        }
        search->path[search->length] = at;
    }
}

bool explore_states(explorer_t *ex, unsigned long most, unsigned long *states)
{
    static search_t search;
    sim_t *sim;

    search = (search_t){0};
    do {
        if (ex->runs == most) {
            break;
        }
        sim = explorer_begin(ex);
        run(ex, &search, sim);
        explorer_end(ex, sim, search.moves, search.length, search.ended);
        for (size_t k = search.length + 1; k-- > 0 && ex->well;) {
            pass_exhausted(&search, search.path[k]);
        }
    } while (ex->well && !is_exhausted(&search, 0));
    *states += search.nstates;
    table_clear(&search.numbers);
    table_clear(&search.given);
    free(search.states);
    free(search.edges);
    return ex->well && ex->runs < most;
}
