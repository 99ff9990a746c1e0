/*
 * flash_cursor.c: going through an operation's segments or pieces, in one of its orders.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "engine/flash_op.h"

bool flash_cursor_at_end(const flash_op_t *op, const flash_cursor_t *cursor)
{
    return cursor->at == flash_schedule_length(&op->params.schedule, cursor->walk);
}

static void enter(const flash_op_t *op, flash_cursor_t *cursor, uint32_t at)
{
    const flash_schedule_t *schedule = &op->params.schedule;

    cursor->at = at;
    cursor->index = 0;
    while (!flash_cursor_at_end(op, cursor) &&
           !flash_schedule_takes(schedule, cursor->walk, cursor->at)) {
        cursor->at++;
    }
    if (!flash_cursor_at_end(op, cursor)) {
        cursor->block = flash_schedule_block(schedule, cursor->walk, cursor->at);
        cursor->split = flash_schedule_split(schedule, cursor->block);
    }
}

void flash_cursor_init(const flash_op_t *op, flash_cursor_t *cursor, flash_walk_t walk)
{
    cursor->walk = walk;
    enter(op, cursor, 0);
}

void flash_cursor_next_block(const flash_op_t *op, flash_cursor_t *cursor)
{
    enter(op, cursor, cursor->at + 1);
}

void flash_cursor_find_piece(const flash_op_t *op, flash_cursor_t *cursor)
{
    while (!flash_cursor_at_end(op, cursor) && cursor->index == cursor->split.pieces) {
        flash_cursor_next_block(op, cursor);
    }
}
