/*
 * flash_board_watch.c: ranks that are lost, or fall silent.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "shm/flash_board_internal.h"

void flash_board_lose(flash_board_t *board, uint32_t rank)
{
    flash_board_op_t *op;

    board->lost = rank;
    atomic_store_explicit(&board->sides[board->rank]->lost, rank + 1, memory_order_relaxed);
    /* Before this rank's memory is its user's, see flash_board_read.c. */
    atomic_thread_fence(memory_order_seq_cst);
    while ((op = flash_board_get_running(board)) != NULL) {
        flash_board_fail(op, FLASH_ERR_LOST, rank);
        flash_board_put(&board->ended, op);
    }
}

/* Whom another rank has lost, or which one has lost this; FLASH_NOBODY. */
static uint32_t lost_elsewhere(const flash_board_t *board)
{
    for (uint32_t rank = 0; rank < board->nranks; rank++) {
        uint32_t lost = atomic_load_explicit(&board->sides[rank]->lost, memory_order_relaxed);

        if (lost > 0) {
            return lost - 1 == board->rank ? rank : lost - 1;
        }
    }
    return FLASH_NOBODY;
}

/* The rank that is to post the next part, or to take what is in the slot for it. */
static uint32_t awaited(const flash_board_t *board, const flash_board_op_t *op)
{
    uint32_t slowest = flash_ring_rank(&op->params.schedule.ring, op->ahead);

    for (uint32_t rank = 0; rank < board->nranks && op->taken == op->rounds; rank++) {
        if (rank != board->rank &&
            flash_board_rounds_taken(board, rank) < flash_board_rounds_taken(board, slowest)) {
            slowest = rank;
        }
    }
    return slowest;
}

bool flash_board_watch(flash_board_t *board, flash_silence_t *silence)
{
    const flash_board_op_t *op = board->running.head, *told = op;
    uint64_t done;

    if (op == NULL) {
        return false;
    }
    while (told != NULL && flash_board_is_refusal(told)) { /* it keeps those behind it waiting */
        told = told->next;
    }
    done = (board->posted + board->taken) * board->nranks + op->ahead;
    board->watches = done == board->watched ? board->watches + 1 : 0;
    if (told == NULL && board->watches > 1) {
        board->watches = 1; /* who comes behind the refusal has not waited yet */
    }
    board->watched = done;
    *silence = (flash_silence_t){.user = told == NULL ? NULL : told->params.user,
                                 .watches = board->watches,
                                 .rank = awaited(board, op),
                                 .sending = op->taken == op->rounds,
                                 .step = (uint32_t) op->taken,
                                 .steps = (uint32_t) op->rounds};
    silence->block = op->params.schedule.kind == FLASH_ALLGATHER ? silence->rank : board->rank;
    if (board->watches > 0 && lost_elsewhere(board) != FLASH_NOBODY) {
        flash_board_lose(board, lost_elsewhere(board));
        return false;
    }
    return board->watches > 0 && told != NULL;
}
