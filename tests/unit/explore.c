/*
 * explore.c: see explore.h.
 *
 * Moves of different ranks commute, since ranks meet only in messages: the order of the two makes
 * no difference, and only one needs to be tried. Sleep sets do that: a move that was tried at one
 * point is not tried again until another move of its rank has happened. With a bound on the delays
 * they are of no use: the order that is left out may be the only one within the bound.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <stdio.h>

#include "explore.h"

#define MOST_MOVES 64  /* possible at a time */
#define MOST_DEPTH 500 /* in a run */
#define UNBOUNDED  UINT32_MAX

typedef enum { START, DELIVER, FINISH } move_kind_t;

typedef struct moved {
    uint32_t rank;
    move_kind_t kind;
    uint64_t name; /* of the operation, the event, the work: the same in each order */
    bool delayed;
} move_t;

typedef struct moves {
    move_t moves[MOST_MOVES];
    size_t count;
} moves_t;

/* A point of the run: what may happen, what was chosen, what need not be tried. */
typedef struct point {
    moves_t can, sleep;
    size_t chosen;
    size_t delays; /* before this point */
} point_t;

typedef struct explorer {
    uint32_t nranks, nspecs;
    uint64_t seed;
    const fake_options_t *net;
    const sim_spec_t *specs;
    explore_judge_fn *judge;
    bool well;
    size_t bound; /* of the delays */
    point_t points[MOST_DEPTH];
    size_t depth;
    unsigned long runs, redundant;
} explorer_t;

/* --- moves --- */

static void add_move(sim_t *sim, moves_t *moves, move_t move)
{
    if (moves->count == MOST_MOVES) {
        sim_complain(sim, "more moves are possible than the test has room for");
        return;
    }
    moves->moves[moves->count++] = move;
}

static move_t *find_move(moves_t *moves, const move_t *move)
{
    for (size_t k = 0; k < moves->count; k++) {
        move_t *other = &moves->moves[k];

        if (other->rank == move->rank && other->kind == move->kind && other->name == move->name) {
            return other;
        }
    }
    return NULL;
}

static void possible_moves(sim_t *sim, moves_t *moves)
{
    uint64_t names[MOST_MOVES];

    moves->count = 0;
    for (uint32_t rank = 0; rank < sim->nranks; rank++) {
        size_t count = fake_net_events(sim->net, rank, names, MOST_MOVES);

        for (uint32_t spec = 0; spec < sim->nspecs; spec++) {
            if (sim_may_start(sim, rank, spec)) {
                add_move(sim, moves, (move_t){.rank = rank, .kind = START, .name = spec});
            }
        }
        for (size_t k = 0; k < count; k++) {
            add_move(sim, moves, (move_t){.rank = rank, .kind = DELIVER, .name = names[k]});
        }
        for (size_t k = 0; k < sim->nheld; k++) {
            if (sim->held[k].rank == rank) {
                add_move(sim, moves,
                         (move_t){.rank = rank, .kind = FINISH, .name = sim->held[k].name});
            }
        }
    }
}

/* First what waited longest, then what is new, at last what was delayed. */
static void order_moves(sim_t *sim, point_t *point, point_t *before)
{
    moves_t now;

    possible_moves(sim, &now);
    point->can.count = 0;
    for (size_t k = before->chosen + 1; k < before->can.count; k++) {
        const move_t *move = &before->can.moves[k];

        if (!move->delayed && find_move(&now, move) != NULL) {
            add_move(sim, &point->can, *move);
        }
    }
    for (size_t k = 0; k < now.count; k++) {
        if (find_move(&before->can, &now.moves[k]) == NULL) {
            add_move(sim, &point->can, now.moves[k]);
        }
    }
    for (size_t k = 0; k < before->can.count; k++) {
        move_t move = before->can.moves[k];

        if (k != before->chosen && (move.delayed || k < before->chosen) &&
            find_move(&now, &move) != NULL) {
            move.delayed = true;
            add_move(sim, &point->can, move);
        }
    }
}

/* Threads take work as soon as there is some; when they finish it is what varies. */
static void make_move(sim_t *sim, const move_t *move)
{
    switch (move->kind) {
    case START:
        sim_start(sim, move->rank, (uint32_t) move->name);
        break;
    case DELIVER:
        fake_net_select(sim->net, move->rank, move->name);
        sim_progress(sim, move->rank);
        break;
    case FINISH:
        for (size_t k = 0; k < sim->nheld; k++) {
            if (sim->held[k].rank == move->rank && sim->held[k].name == move->name) {
                sim_finish_held(sim, k);
                break;
            }
        }
        break;
    }
    while (sim_progress(sim, move->rank) || sim_take(sim, move->rank, SIM_ALL_WORK)) {
    }
    sim_drain(sim, move->rank);
}

/* --- choices --- */

/* Chooses the next move from number `from` that is to be tried. */
static bool choose(const explorer_t *ex, point_t *point, size_t from)
{
    for (point->chosen = from; point->chosen < point->can.count; point->chosen++) {
        if (ex->bound != UNBOUNDED) {
            return point->delays + point->chosen <= ex->bound;
        }
        if (find_move(&point->sleep, &point->can.moves[point->chosen]) == NULL) {
            return true;
        }
    }
    return false;
}

/* What sleeps after the choice at `before`: what slept or was tried there, and commutes. */
static void inherit_sleep(sim_t *sim, point_t *point, point_t *before)
{
    uint32_t rank = before->can.moves[before->chosen].rank;

    for (size_t k = 0; k < before->sleep.count; k++) {
        if (before->sleep.moves[k].rank != rank) {
            add_move(sim, &point->sleep, before->sleep.moves[k]);
        }
    }
    for (size_t k = 0; k < before->chosen; k++) {
        const move_t *tried = &before->can.moves[k];

        if (tried->rank != rank && find_move(&before->sleep, tried) == NULL) {
            add_move(sim, &point->sleep, *tried);
        }
    }
}

/* Fills in a new point. False if no move there is to be tried. */
static bool new_point(explorer_t *ex, sim_t *sim, point_t *point, point_t *before)
{
    static point_t none;

    order_moves(sim, point, before == NULL ? &none : before);
    point->sleep.count = 0;
    point->delays = 0;
    if (before != NULL) {
        point->delays = before->delays + before->chosen;
        inherit_sleep(sim, point, before);
    }
    return choose(ex, point, 0);
}

/* Nothing new lies ahead: any way to the end will do, since operations cannot be left half way. */
static void run_to_end(sim_t *sim)
{
    moves_t moves;

    for (possible_moves(sim, &moves); moves.count > 0; possible_moves(sim, &moves)) {
        make_move(sim, &moves.moves[0]);
    }
}

/* Repeats the moves of the points so far, and goes on with new points to the end. */
static void run(explorer_t *ex, sim_t *sim)
{
    for (size_t at = 0; sim->problem[0] == '\0'; at++) {
        if (at == MOST_DEPTH) {
            sim_complain(sim, "the run is longer than the test has room for");
            return;
        }
        if (at >= ex->depth) {
            if (!new_point(ex, sim, &ex->points[at], at == 0 ? NULL : &ex->points[at - 1])) {
                ex->redundant += ex->points[at].can.count > 0;
                run_to_end(sim);
                return;
            }
            ex->depth = at + 1;
        }
        make_move(sim, &ex->points[at].can.moves[ex->points[at].chosen]);
    }
}

/* Turns to the last choice that has an alternative. False if there is none. */
static bool next_run(explorer_t *ex)
{
    for (; ex->depth > 0; ex->depth--) {
        point_t *point = &ex->points[ex->depth - 1];

        if (choose(ex, point, point->chosen + 1)) {
            return true;
        }
    }
    return false;
}

/* The moves that led to what is wrong. */
static void print_run(const explorer_t *ex)
{
    static const char *const kinds[] = {"start", "deliver", "finish"};

    for (size_t k = 0; k < ex->depth; k++) {
        const move_t *move = &ex->points[k].can.moves[ex->points[k].chosen];

        printf("#     rank %u: %s %#llx\n", move->rank, kinds[move->kind],
               (unsigned long long) move->name);
    }
}

static void one_run(explorer_t *ex)
{
    sim_t *sim = sim_create(ex->nranks, ex->seed, ex->net, ex->specs, ex->nspecs);

    run(ex, sim);
    ex->runs++;
    sim_check_end(sim); /* complains if nothing could happen, but not all is complete */
    ex->judge(sim);
    if (sim->problem[0] != '\0') {
        ex->well = false;
        sim_describe(sim);
        print_run(ex);
    }
    sim_destroy(sim);
}

/* Makes the runs within a bound on the delays. False if there are more than `most` in all. */
static bool run_within(explorer_t *ex, size_t bound, unsigned long most)
{
    ex->bound = bound;
    ex->depth = 0;
    do {
        if (!ex->well || ex->runs == most) {
            return false;
        }
        one_run(ex);
    } while (next_run(ex));
    return true;
}

explore_result_t explore(uint32_t nranks, uint64_t seed, const fake_options_t *net,
                         const sim_spec_t *specs, uint32_t nspecs, explore_judge_fn *judge,
                         unsigned long most)
{
    static explorer_t ex; /* large */
    explore_result_t result = {0};

    ex.nranks = nranks;
    ex.nspecs = nspecs;
    ex.seed = seed;
    ex.net = net;
    ex.specs = specs;
    ex.judge = judge;
    ex.well = true;
    ex.runs = ex.redundant = 0;
    result.complete = run_within(&ex, UNBOUNDED, most / 3);
    for (unsigned bound = 0; !result.complete && run_within(&ex, bound, most); bound++) {
        result.delays = bound;
    }
    result.well = ex.well;
    result.runs = ex.runs - ex.redundant;
    return result;
}
