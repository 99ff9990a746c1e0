/*
 * flash_op_calls.c: an operation's callbacks: which is next, for which piece, and what is done.
 *
 * Callbacks of both kinds have numbers, in the order in which they are made. An allgather's own
 * block has the first, a reduce-scatter's the last.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "flash_op.h"

/* Of both kinds. */
static uint64_t callbacks(const flash_op_t *op)
{
    return (op->params.callback == NULL ? 0 : op->pieces) + op->own_pieces;
}

bool flash_op_has_called(const flash_op_t *op)
{
    return op->stopped || op->called == callbacks(op);
}

size_t flash_op_own_produced(const flash_op_t *op)
{
    flash_split_t split = flash_op_own_split(op);

    return op->called < op->own_pieces
               ? flash_split_piece(&split, (uint32_t) op->called).offset
               : flash_schedule_count(&op->params.schedule, flash_op_own_rank(op));
}

static bool is_own(const flash_op_t *op, uint64_t number)
{
    return flash_op_is_reduction(op) ? number >= callbacks(op) - op->own_pieces
                                     : number < op->own_pieces;
}

bool flash_op_is_produced(const flash_op_t *op, const flash_slot_t *slot)
{
    bool waits = flash_op_is_reduction(op) ? flash_op_produces(&op->params)
                                           : slot->step == 0 && op->own_pieces > 0;

    return !waits || slot->piece < op->called;
}

/* A block's piece is consumed when it is there, the own block's when it is produced, too. */
static bool wants_of_allgather(const flash_op_t *op)
{
    uint64_t piece = op->begun - op->own_pieces;

    return is_own(op, op->begun) ||
           (piece < op->settled && (piece >= op->own_pieces || piece < op->called));
}

/* The own block's pieces are the last that settle: then they are sums. */
static bool wants_of_reduction(const flash_op_t *op)
{
    uint64_t left = callbacks(op) - op->begun;

    return is_own(op, op->begun) ? op->settled > op->pieces - left
                                 : op->begun - op->settled < op->produce_buffers;
}

bool flash_op_wants_callback(const flash_op_t *op)
{
    if (op->stopped || op->calling || op->begun == callbacks(op) ||
        op->begun - op->called == FLASH_MAX_PENDING) {
        return false;
    }
    return flash_op_is_reduction(op) ? wants_of_reduction(op) : wants_of_allgather(op);
}

static void take_own(const flash_op_t *op, flash_piece_t *piece)
{
    uint64_t first = flash_op_is_reduction(op) ? callbacks(op) - op->own_pieces : 0;
    const void *base = flash_op_is_reduction(op) ? op->params.output : op->params.input;
    flash_split_t split = flash_op_own_split(op);
    flash_range_t range;

    piece->own = true;
    piece->block = flash_op_own_rank(op);
    piece->piece = (uint32_t) (op->begun - first);
    piece->pieces = split.pieces;
    range = flash_split_piece(&split, piece->piece);
    piece->offset = range.offset;
    piece->count = range.count;
    piece->data = flash_op_at(op, base, 0, range.offset);
}

static void take_any(flash_op_t *op, flash_piece_t *piece)
{
    const flash_schedule_t *schedule = &op->params.schedule;
    flash_range_t range;

    flash_cursor_find_piece(op, &op->call);
    range = flash_split_piece(&op->call.split, op->call.index);
    piece->block = flash_schedule_block(schedule, op->call.step);
    piece->piece = op->call.index++;
    piece->pieces = op->call.split.pieces;
    piece->offset = range.offset;
    piece->count = range.count;
    piece->far = flash_op_produces(&op->params) && op->params.stage_in;
    if (flash_op_is_reduction(op)) {
        piece->data = flash_op_produce_buffer(op, op->begun);
    } else if (op->call.step == 0) {
        piece->data = flash_op_at(op, op->params.input, 0, range.offset);
    } else {
        piece->data = flash_op_at(op, op->params.output,
                                  flash_schedule_displ(schedule, piece->block), range.offset);
    }
}

void flash_op_take_callback(flash_op_t *op, flash_piece_t *piece)
{
    piece->op = op;
    piece->number = op->begun;
    if (is_own(op, op->begun)) {
        take_own(op, piece);
    } else {
        take_any(op, piece);
    }
    op->calling = true;
    op->undone |= flash_pending_bit(op->begun++);
}

/* A failed piece is never done: `called` stays before it, and what needs it is spoiled. */
bool flash_op_end_piece(flash_op_t *op, uint64_t number, int status)
{
    if (number < op->called || number >= op->begun ||
        (op->undone & flash_pending_bit(number)) == 0) {
        return false;
    }
    op->undone &= ~flash_pending_bit(number);
    if (status == FLASH_OK) {
        op->done |= flash_pending_bit(number);
    } else {
        flash_op_fail(op, status, flash_op_own_rank(op));
    }
    while ((op->done & flash_pending_bit(op->called)) != 0) {
        op->done &= ~flash_pending_bit(op->called++);
    }
    return true;
}

void flash_op_finish_callback(flash_op_t *op, uint64_t number, int status)
{
    op->calling = false;
    if (status != FLASH_PENDING) {
        flash_op_end_piece(op, number, status);
    }
    flash_engine_offer(op);
}
