/*
 * moves.h: what can happen next in a simulation with a manual network: an operation starts, a
 * message arrives, a transfer is done, a thread finishes its work.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef MOVES_H
#define MOVES_H

#include "sim.h"

#define MOVES_MOST 64 /* possible at a time */

typedef enum { MOVE_START, MOVE_DELIVER, MOVE_FINISH } move_kind_t;

typedef struct moved {
    uint32_t rank;
    move_kind_t kind;
    uint64_t name; /* of the operation, the event, the work: the same in each order */
    bool delayed;
} move_t;

typedef struct moves {
    move_t moves[MOVES_MOST];
    size_t count;
} moves_t;

void moves_add(sim_t *sim, moves_t *moves, move_t move);
move_t *moves_find(moves_t *moves, const move_t *move); /* NULL: it is not among them */
void moves_possible(sim_t *sim, moves_t *moves);
/*
 * Those that are possible after move number `chosen` of `before`: first what waited longest, then
 * what is new, at last what was delayed because a later one of `before` was chosen.
 */
void moves_in_turn(sim_t *sim, moves_t *moves, const moves_t *before, size_t chosen);
/* Whether it needs nothing but its own rank. */
bool move_is_local(const move_t *move);
void move_make(sim_t *sim, const move_t *move);
void move_print(const move_t *move);

#endif /* MOVES_H */
