/*
 * moves.c: see moves.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <stdio.h>

#include "moves.h"

void moves_add(sim_t *sim, moves_t *moves, move_t move)
{
    if (moves->count == MOVES_MOST) {
        sim_complain(sim, "more moves are possible than the test has room for");
        return;
    }
    moves->moves[moves->count++] = move;
}

static bool same(const move_t *a, const move_t *b)
{
    return a->rank == b->rank && a->kind == b->kind && a->name == b->name;
}

move_t *moves_find(moves_t *moves, const move_t *move)
{
    for (size_t k = 0; k < moves->count; k++) {
        if (same(&moves->moves[k], move)) {
            return &moves->moves[k];
        }
    }
    return NULL;
}

void moves_possible(sim_t *sim, moves_t *moves)
{
    uint64_t names[MOVES_MOST];

    moves->count = 0;
    for (uint32_t rank = 0; rank < sim->nranks; rank++) {
        size_t count = fake_net_events(sim->net, rank, names, MOVES_MOST);

        for (uint32_t spec = 0; spec < sim->nspecs; spec++) {
            if (sim_may_start(sim, rank, spec)) {
                moves_add(sim, moves, (move_t){.rank = rank, .kind = MOVE_START, .name = spec});
            }
        }
        for (size_t k = 0; k < count; k++) {
            moves_add(sim, moves, (move_t){.rank = rank, .kind = MOVE_DELIVER, .name = names[k]});
        }
        for (size_t k = 0; k < sim->nheld; k++) {
            if (sim->held[k].rank == rank) {
                uint64_t name = sim->held[k].name;

                moves_add(sim, moves, (move_t){.rank = rank, .kind = MOVE_FINISH, .name = name});
            }
        }
    }
}

void moves_in_turn(sim_t *sim, moves_t *moves, const moves_t *before, size_t chosen)
{
    moves_t now, old = *before;

    moves_possible(sim, &now);
    moves->count = 0;
    for (size_t k = chosen + 1; k < old.count; k++) {
        if (!old.moves[k].delayed && moves_find(&now, &old.moves[k]) != NULL) {
            moves_add(sim, moves, old.moves[k]);
        }
    }
    for (size_t k = 0; k < now.count; k++) {
        if (moves_find(&old, &now.moves[k]) == NULL) {
            moves_add(sim, moves, now.moves[k]);
        }
    }
    for (size_t k = 0; k < old.count; k++) {
        move_t move = old.moves[k];

        if (k != chosen && (move.delayed || k < chosen) && moves_find(&now, &move) != NULL) {
            move.delayed = true;
            moves_add(sim, moves, move);
        }
    }
}

bool move_is_local(const move_t *move)
{
    return move->kind != MOVE_DELIVER || fake_net_is_local(move->name);
}

static void finish(sim_t *sim, const move_t *move)
{
    for (size_t k = 0; k < sim->nheld; k++) {
        if (sim->held[k].rank == move->rank && sim->held[k].name == move->name) {
            sim_finish_held(sim, k);
            return;
        }
    }
}

/*
 * Threads take work as soon as there is some; when they finish it is what varies. Running it and
 * finishing it are one move; sim_run_random() makes them two.
 */
void move_make(sim_t *sim, const move_t *move)
{
    switch (move->kind) {
    case MOVE_START:
        sim_start(sim, move->rank, (uint32_t) move->name);
        break;
    case MOVE_DELIVER:
        fake_net_select(sim->net, move->rank, move->name);
        sim_progress(sim, move->rank);
        break;
    case MOVE_FINISH:
        finish(sim, move);
        break;
    }
    while (sim_progress(sim, move->rank) || sim_take(sim, move->rank, SIM_ALL_WORK)) {
    }
    sim_drain(sim, move->rank);
}

void move_print(const move_t *move)
{
    static const char *const kinds[] = {"start", "deliver", "finish"};

    printf("#     rank %u: %s %#llx\n", move->rank, kinds[move->kind],
           (unsigned long long) move->name);
}
