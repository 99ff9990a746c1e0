/*
 * flash_slot_word.c: which messages wait for their receiver's word, and which before they are sent.
 *
 * A message that waits for the word is done when the receiver has matched it. Any other is done when it
 * has left, so that its buffer is the application's again while the message still travels. A receiver
 * that has not begun the operation has posted no receives, and one that is behind not all: what comes
 * to it then stays in memory of UCX's. What bounds that:
 *
 *   - No message but a brief one leaves before the receiver has given its word for another one of the
 *     same operation: it has begun.
 *   - The first messages of a block wait for the word, and then one of each group. `sends` groups are
 *     under way at a time, at most.
 *
 * Which ones wait follows from the schedule alone, so that what a rank has sent does not depend on the
 * order in which things happen to it.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "engine/flash_slot.h"

/* Up to so many bytes the one message of a block need not wait for the word. */
#define BRIEF_BYTES 8192

/* The messages of a block that wait for the word: so many at first, which keep the link busy until it
   comes, and one of each group, which has so many messages, or bytes, at most. */
#define FIRST       2
#define GROUP       4
#define GROUP_BYTES ((size_t) 1 << 20)

/*
 * Waiting for the word would double the time of a brief operation. At a receiver that is late there is
 * a message for each block of others at most. Those that have a root or leave out steps wait all the
 * same: nothing may come to a rank that sends, which could be any number of calls ahead.
 */
static bool is_brief(const flash_slot_t *slot)
{
    const flash_schedule_t *schedule = &slot->op->params.schedule;

    return slot->segment == 0 && slot->last_of_step && flash_slot_bytes(slot) <= BRIEF_BYTES &&
           !flash_schedule_has_root(schedule->kind) && schedule->taken == NULL;
}

/* The segments of a block are of about the same length. */
static bool is_first_of_group(const flash_slot_t *slot)
{
    size_t bytes = flash_slot_bytes(slot);
    size_t group = bytes > 0 ? GROUP_BYTES / bytes : GROUP;

    group = group < 1 ? 1 : group < GROUP ? group : GROUP;
    return slot->segment % group == 0;
}

/* Whether the receiver has begun the operation. In an exchange each step has another receiver. */
static bool has_begun(const flash_slot_t *slot)
{
    const flash_op_t *op = slot->op;

    return flash_schedule_exchanges(op->params.schedule.kind) ? op->heard == slot->step + 1
                                                              : op->heard > 0;
}

/* Whether all that is sent later goes to the same rank. */
static bool is_last_receiver(const flash_slot_t *slot)
{
    const flash_schedule_t *schedule = &slot->op->params.schedule;

    return !flash_schedule_exchanges(schedule->kind) ||
           (flash_schedule_has_root(schedule->kind) &&
            slot->step + 1 == flash_schedule_length(schedule, FLASH_STEPS));
}

static bool needs_word(const flash_slot_t *slot)
{
    return slot->segment < FIRST || is_first_of_group(slot);
}

bool flash_slot_waits_for_word(const flash_slot_t *slot)
{
    return !needs_word(slot) && !has_begun(slot) && is_last_receiver(slot);
}

bool flash_slot_may_leave(const flash_slot_t *slot)
{
    return is_brief(slot) || (!needs_word(slot) && has_begun(slot));
}

void flash_slot_hear(const flash_slot_t *slot)
{
    flash_op_t *op = slot->op;

    if (!slot->transfer.leaves && op->heard <= slot->step) {
        op->heard = slot->step + 1;
    }
}
