/*
 * flash_queue.c: which operations have something to do: events to act on, work to be had.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "engine/flash_queue.h"
#include "engine/flash_slot.h"

void flash_engine_note(const flash_op_t *op, uint64_t begin, flash_trace_span_t span)
{
    if (op->engine->trace != NULL) {
        span.begin = begin;
        span.end = flash_trace_now();
        span.operation = op->number;
        flash_trace_add(op->engine->trace, &span);
    }
}

void flash_engine_touch(flash_op_t *op)
{
    op->events_had++;
    dirty_push(&op->engine->dirty, op);
}

void flash_engine_offer(flash_op_t *op)
{
    if (op->combining.head != NULL || flash_op_may_copy(op)) {
        combine_push(combine_queue(op), op);
    }
    if (flash_op_wants_callback(op)) {
        callback_push(callback_queue(op), op);
    }
    if (!STAILQ_EMPTY(&op->staging)) {
        staging_push(&op->engine->staging, op);
    }
}

void flash_op_note_ready(flash_op_t *op)
{
    while (op->ready_slots < op->opened) {
        const flash_slot_t *slot = &op->slots[op->ready_slots % op->depth];

        if (!slot->ready) {
            break;
        }
        op->ready_slots++;
        op->ready += slot->last_of_piece;
    }
    flash_engine_offer(op);
}

void flash_op_added(flash_op_t *op, const flash_slot_t *added)
{
    flash_sum_t *sum = &op->sums[added->segment];
    flash_slot_t **link = &sum->early, *slot;

    sum->added++;
    while (*link != NULL && flash_schedule_turn((*link)->step) != sum->added) {
        link = &(*link)->next;
    }
    slot = *link;
    if (slot != NULL) {
        *link = slot->next;
        flash_slot_queue_push(&op->waiting, slot);
    }
    flash_engine_touch(op); /* nor may anything else come that lets the last one retire */
}
