/*
 * flash_op_window.c: an operation's segments, a window of them under way at a time: which are put
 * under way, what they wait for, and when the operation is complete.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "engine/flash_slot.h"

/* Puts the segment under `open` under way, in the slot of the one that retired `depth` ago. */
static void open_segment(flash_op_t *op)
{
    flash_slot_t *slot = &op->slots[op->opened % op->depth];
    flash_cursor_t *open = &op->open;
    uint32_t segment = open->index, per_piece = open->split.segments_per_piece;

    slot->step = open->at;
    slot->way = flash_schedule_step(&op->params.schedule, open->at);
    slot->block = open->block;
    slot->segment = segment;
    slot->overrun = 0;
    slot->range = flash_split_segment(&open->split, segment);
    slot->piece = op->open_piece + segment / per_piece;
    slot->last_of_step = segment + 1 == flash_split_segments(&open->split);
    /* Another kind's own block's pieces are ready from the start. */
    slot->last_of_piece =
        (slot->way.delivers || (slot->way.contributes && flash_op_reduces(&op->params))) &&
        open->split.pieces > 0 && (segment + 1) % per_piece == 0;
    slot->sent_again = slot->ready = slot->staged_in = false;
    slot->poisoned = op->refused || (op->params.poisoned && !slot->way.receives);
    slot->failed_rank = !slot->poisoned ? FLASH_NOBODY
                        : op->refused   ? op->failed_rank
                                        : flash_op_own_rank(op);
    flash_op_place(op, slot);
    op->opened++;
    flash_slot_open(slot);
    open->index++;
    if (slot->last_of_step) {
        op->open_piece += slot->way.contributes ? open->split.pieces : 0;
        flash_cursor_next_block(op, open);
        op->open_step_ended = false;
    }
}

/*
 * Has segments staged in as soon as what they are to contribute is there. A callback that is under
 * way when the operation fails may yet contribute.
 */
static void stage_in(flash_op_t *op)
{
    bool no_more = op->stopped && op->undone == 0;

    if (op->next_stage < op->retired) {
        op->next_stage = op->retired;
    }
    for (; op->next_stage < op->opened; op->next_stage++) {
        flash_slot_t *slot = &op->slots[op->next_stage % op->depth];
        bool there = flash_op_is_produced(op, slot);

        if (!there && !no_more && slot->range.count > 0) {
            break;
        }
        if (there && flash_slot_needs_staging_in(slot) && !flash_slot_stage_in(slot)) {
            break;
        }
    }
}

/* Lets the segments go on that waited for what is there now, or will never be; whether any did. */
static bool release_waiting(flash_op_t *op)
{
    flash_slot_queue_t waiting = op->waiting;
    flash_slot_t *slot;
    bool released = false;

    if (waiting.head == NULL) {
        return false;
    }
    flash_slot_queue_init(&op->waiting);
    while ((slot = flash_slot_queue_pop(&waiting)) != NULL) {
        if (flash_op_has_local(op, slot)) {
            flash_slot_have_local(slot);
            released = true;
        } else {
            flash_slot_queue_push(&op->waiting, slot);
        }
    }
    return released;
}

static bool is_done(const flash_slot_t *slot)
{
    return slot->state == FLASH_SLOT_DONE && slot->staging == FLASH_STAGING_NONE;
}

void flash_op_advance(flash_op_t *op)
{
    flash_slot_t *slot;

    do {
        release_waiting(op);
        while ((slot = flash_slot_queue_pop(&op->events)) != NULL) {
            flash_slot_transferred(slot);
        }
        while (op->retired < op->opened && is_done(&op->slots[op->retired % op->depth])) {
            op->retired++;
        }
        while (op->opened - op->retired < op->depth && !flash_cursor_at_end(op, &op->open) &&
               flash_op_may_open(op)) {
            open_segment(op);
        }
        stage_in(op);
    } while (op->events.head != NULL || (op->stopped && release_waiting(op)));
    flash_engine_offer(op);
}

bool flash_op_is_complete(const flash_op_t *op)
{
    bool copied = op->uncopied == 0 || (op->stopped && !flash_op_may_copy(op));

    return flash_cursor_at_end(op, &op->open) && op->retired == op->opened && op->held == 0 &&
           op->undone == 0 && copied && flash_op_has_called(op);
}
