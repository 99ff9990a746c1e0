/*
 * flash_op_calls.c: an operation's callbacks: which is next, for which piece, and what is done.
 *
 * Callbacks of both kinds have numbers, in the order in which they are made: first all that
 * produce, then all that consume.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "engine/flash_op.h"

/* Of both kinds. */
static uint64_t callbacks(const flash_op_t *op)
{
    return op->produced_pieces + op->consumed_pieces;
}

bool flash_op_has_called(const flash_op_t *op)
{
    return op->stopped || op->called == callbacks(op);
}

/* How many pieces of the own block have been produced: it is the last one. */
static uint32_t own_produced(const flash_op_t *op, const flash_split_t *own)
{
    uint64_t left = op->produced_pieces > op->called ? op->produced_pieces - op->called : 0;

    return left < own->pieces ? own->pieces - (uint32_t) left : 0;
}

size_t flash_op_own_produced(const flash_op_t *op)
{
    flash_split_t own = flash_op_own_split(&op->params);
    uint32_t pieces = own_produced(op, &own);

    return pieces < own.pieces ? flash_split_piece(&own, pieces).offset : own.count;
}

bool flash_op_is_produced(const flash_op_t *op, const flash_slot_t *slot)
{
    bool waits = slot->way.contributes && op->params.produce != NULL;

    return !waits || slot->piece < op->called;
}

/* It is pending, or waits for one that is; none of these has failed. */
bool flash_op_may_be_produced(const flash_op_t *op, const flash_slot_t *slot)
{
    for (uint64_t number = op->called; number <= slot->piece; number++) {
        if (number >= op->begun || ((op->undone | op->done) & flash_pending_bit(number)) == 0) {
            return false;
        }
    }
    return true;
}

/* What the engine has lent comes back in the order of the ring. */
static bool may_produce(const flash_op_t *op)
{
    return !flash_op_lends(&op->params) || op->begun - op->ready < op->produce_buffers;
}

/*
 * Results become ready in the order in which they are consumed: of a reduction, behind all that is
 * none. The own block of the other kinds counts as ready from the start, and is there once
 * produced.
 */
static bool may_consume(const flash_op_t *op)
{
    uint64_t piece = op->begun - op->produced_pieces;
    flash_split_t own = flash_op_own_split(&op->params);

    if (flash_op_reduces(&op->params)) {
        return piece + op->other_pieces < op->ready;
    }
    return piece < op->ready && (piece >= own.pieces || piece < own_produced(op, &own));
}

static bool produces_next(const flash_op_t *op)
{
    return op->begun < op->produced_pieces;
}

bool flash_op_wants_callback(const flash_op_t *op)
{
    if (op->stopped || op->calling || op->begun == callbacks(op) ||
        op->begun - op->called == FLASH_MAX_PENDING) {
        return false;
    }
    return produces_next(op) ? may_produce(op) : may_consume(op);
}

/* Where a piece is that is about to be called back for. */
static char *piece_data(const flash_op_t *op, const flash_cursor_t *cursor)
{
    const flash_schedule_t *schedule = &op->params.schedule;
    uint32_t own = flash_schedule_own_input(schedule);
    bool has_own = flash_schedule_length(schedule, FLASH_PRODUCED) > 0;

    if (cursor->walk == FLASH_PRODUCED) {
        return flash_op_input_block(op, cursor->block);
    }
    /* Nobody waits for the copy of the own block. */
    return cursor->at == 0 && has_own && !flash_op_reduces(&op->params)
               ? flash_op_input_block(op, own)
               : flash_op_output_block(op, cursor->block);
}

static void take_piece(flash_op_t *op, flash_cursor_t *cursor, flash_piece_t *piece)
{
    flash_range_t range;

    flash_cursor_find_piece(op, cursor);
    range = flash_split_piece(&cursor->split, cursor->index);
    piece->block = flash_schedule_rank(&op->params.schedule, cursor->block);
    piece->piece = cursor->index++;
    piece->pieces = cursor->split.pieces;
    piece->displ = flash_schedule_displ(&op->params.schedule, cursor->block);
    piece->offset = range.offset;
    piece->count = range.count;
    if (piece->produces && flash_op_lends(&op->params)) {
        piece->data = flash_op_produce_buffer(op, op->begun);
        piece->on_device = op->params.stage_in;
    } else {
        piece->data = piece_data(op, cursor) + range.offset * op->params.element;
    }
}

void flash_op_take_callback(flash_op_t *op, flash_piece_t *piece)
{
    piece->op = op;
    piece->number = op->begun;
    piece->produces = produces_next(op);
    take_piece(op, piece->produces ? &op->produce : &op->consume, piece);
    op->calling = true;
    atomic_store_explicit(&op->claims[op->begun % FLASH_MAX_PENDING], op->begun + 1,
                          memory_order_release);
    op->undone |= flash_pending_bit(op->begun++);
    flash_meter_computes(&op->engine->meter);
}

/* A failed piece is never done: `called` stays before it, and what needs it is poisoned. */
bool flash_op_end_piece(flash_op_t *op, uint64_t number, int status)
{
    if (number < op->called || number >= op->begun ||
        (op->undone & flash_pending_bit(number)) == 0) {
        return false;
    }
    op->undone &= ~flash_pending_bit(number);
    flash_meter_computed(&op->engine->meter, flash_meter_clock(&op->engine->meter));
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

bool flash_engine_claim_pending(flash_op_t *op, uint64_t number)
{
    uint64_t claim = number + 1;

    return atomic_compare_exchange_strong_explicit(&op->claims[number % FLASH_MAX_PENDING], &claim,
                                                   0, memory_order_acq_rel, memory_order_relaxed);
}

bool flash_op_has_local(const flash_op_t *op, const flash_slot_t *slot)
{
    if (slot->range.count == 0) {
        return true;
    }
    if (!flash_op_is_produced(op, slot)) {
        return op->stopped && !flash_op_may_be_produced(op, slot);
    }
    return !flash_slot_needs_staging_in(slot) || slot->staged_in;
}
