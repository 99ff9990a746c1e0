/*
 * flash_cursor.c: going through an operation's segments or pieces, in the order of the ring.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "flash_op.h"

bool flash_cursor_at_end(const flash_op_t *op, const flash_cursor_t *cursor)
{
    return cursor->step == op->params.schedule.ring.nranks;
}

void flash_cursor_enter(const flash_op_t *op, flash_cursor_t *cursor, uint32_t step)
{
    const flash_schedule_t *schedule = &op->params.schedule;

    cursor->step = step;
    cursor->index = 0;
    if (step < schedule->ring.nranks) {
        cursor->split = flash_schedule_split(schedule, flash_schedule_block(schedule, step));
    }
}

void flash_cursor_next_step(const flash_op_t *op, flash_cursor_t *cursor)
{
    cursor->piece += cursor->split.pieces;
    flash_cursor_enter(op, cursor, cursor->step + 1);
}

void flash_cursor_find_piece(const flash_op_t *op, flash_cursor_t *cursor)
{
    while (!flash_cursor_at_end(op, cursor) && cursor->index == cursor->split.pieces) {
        flash_cursor_next_step(op, cursor);
    }
}
