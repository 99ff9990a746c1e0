/*
 * board_rig.h: random operations on boards, and what must come of them.
 *
 * Results are compared with what each rank is known to have sent. Sums are made by an operation that
 * shows the order of its operands: the ring's.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef BOARD_RIG_H
#define BOARD_RIG_H

#include "shm/flash_board.h"

enum { BOARD_RANKS = 8 };

/* What all ranks know of an operation. */
typedef struct board_plan {
    flash_kind_t kind;
    size_t counts[BOARD_RANKS];
    ptrdiff_t displs[BOARD_RANKS];
    bool equal; /* blocks of counts[0], one after another */
    uint64_t seed;
    uint32_t hidden; /* a bit for each rank: its input is not to be read by others */
} board_plan_t;

/* One of a rank's. */
typedef struct board_call {
    flash_board_op_t op;
    const board_plan_t *plan;
    size_t counts[BOARD_RANKS];
    uint64_t *memory, *input, *output;
    bool started, ended;
} board_call_t;

/* A random one. */
board_plan_t board_plan(uint64_t *random, uint32_t nranks);
/* With memory of the call's, which holds what the rank contributes. */
flash_op_params_t board_params(board_call_t *call, const board_plan_t *plan, uint32_t nranks,
                               uint32_t rank);
/* Of one that has ended. */
bool board_is_right(const board_call_t *call, uint32_t nranks, uint32_t rank);
void board_free_call(board_call_t *call);

/*
 * What ranks of one process read each other's memory with, see flash_board_read_above(): what a plan
 * hides is FLASH_ERR_UNREADABLE, and told by its address. The copy of it is not hidden.
 */
int board_read(void *arg, uint32_t rank, void *to, const void *from, size_t bytes);

/* Of so many ranks, to be freed. */
flash_board_side_t *board_sides(uint32_t count);
/* Marks the calls that have ended. */
void board_collect(flash_board_t *board);

#endif /* BOARD_RIG_H */
