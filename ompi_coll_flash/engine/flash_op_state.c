/*
 * flash_op_state.c: what changes while an operation runs, and has no consequences by itself.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "engine/flash_op.h"

#include <assert.h>

uint32_t flash_op_own_rank(const flash_op_t *op)
{
    return flash_ring_rank(&op->params.schedule.ring, 0);
}

void flash_op_fail(flash_op_t *op, int status, uint32_t failed_rank)
{
    if (op->status == FLASH_OK) {
        op->status = status;
    }
    if (op->failed_rank == FLASH_NOBODY) { /* the first message of a failure may have had no room */
        op->failed_rank = failed_rank;
    }
    op->stopped = true; /* flash_engine.c lets go of the segments that waited */
}

void flash_slot_queue_init(flash_slot_queue_t *queue)
{
    queue->head = NULL;
    queue->tail = &queue->head;
}

void flash_slot_queue_push(flash_slot_queue_t *queue, flash_slot_t *slot)
{
    slot->next = NULL;
    *queue->tail = slot;
    queue->tail = &slot->next;
}

flash_slot_t *flash_slot_queue_pop(flash_slot_queue_t *queue)
{
    flash_slot_t *slot = queue->head;

    if (slot != NULL) {
        queue->head = slot->next;
        if (queue->head == NULL) {
            queue->tail = &queue->head;
        }
    }
    return slot;
}

bool flash_op_is_turn(const flash_op_t *op, const flash_slot_t *slot)
{
    return op->sums[slot->segment].added == flash_schedule_turn(slot->step);
}

void flash_op_keep_early(flash_op_t *op, flash_slot_t *slot)
{
    flash_sum_t *sum = &op->sums[slot->segment];

    slot->next = sum->early;
    sum->early = slot;
}

/* docs/internals/architecture.md draws it; tests/unit/rooms.sh compares the two. */
#define MAY(state) (1u << FLASH_SLOT_##state)
static const unsigned followers[] = {
    [FLASH_SLOT_DONE] =
        MAY(DONE) | MAY(RECEIVING) | MAY(WAITING) | MAY(COMBINING) | MAY(KEPT) | MAY(DEPARTING),
    [FLASH_SLOT_RECEIVING] =
        MAY(DONE) | MAY(RECEIVING) | MAY(WAITING) | MAY(COMBINING) | MAY(KEPT) | MAY(DEPARTING),
    [FLASH_SLOT_WAITING] = MAY(DONE) | MAY(COMBINING) | MAY(KEPT) | MAY(DEPARTING),
    [FLASH_SLOT_COMBINING] = MAY(DONE) | MAY(KEPT) | MAY(DEPARTING),
    [FLASH_SLOT_KEPT] = MAY(DEPARTING),
    [FLASH_SLOT_DEPARTING] = MAY(SENDING),
    [FLASH_SLOT_SENDING] = MAY(DONE) | MAY(SENDING)};

/*
 * A step that the table does not have would be a wrong result: the process ends instead, unless
 * the build defines NDEBUG.
 */
void flash_slot_enter(flash_slot_t *slot, flash_slot_state_t state)
{
    assert((followers[slot->state] & 1u << state) != 0);
    slot->state = state;
}
