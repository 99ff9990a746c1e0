/*
 * flash_slot_word.c: which messages wait for their receiver's word, and which before they are sent.
 *
 * A message that waits for the word is done when the receiver has matched it. Any other is done when it
 * has left, so that its buffer is the application's again while the message still travels: a rank that
 * only sends is done early. A receiver that has not begun the operation has posted no receives, and one
 * that is behind not all: what comes to it then stays in memory of UCX's. What bounds that:
 *
 *   - No message but a brief one leaves before the receiver has given its word for another one of the
 *     same operation: it has begun.
 *   - The first messages of a block wait for the word, and then one of each group. `sends` groups are
 *     under way at a time, at most.
 *   - What has left is in the flow until the word for a later message, whichever rank's, or until nothing
 *     is under way.
 *
 * In calls with a root, all messages but the first ones are held back until the receiver has begun: sent
 * before, they would wait for the word.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "engine/flash_slot.h"

/* Up to so many bytes the one message of a block need not wait for the word. */
#define BRIEF_BYTES 8192

/* The messages of a block that wait for the word: so many at first, which keep the link busy until it
   comes, and one of each group of so many messages, or about so many bytes, but for the last one. */
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

static bool needs_word(const flash_slot_t *slot)
{
    return slot->segment < FIRST || (is_first_of_group(slot) && !slot->last_of_step);
}

/*
 * Whether the operation has a root, and its rank sends all that is left to this receiver: no other rank
 * waits if the message is held back.
 */
static bool is_held_back(const flash_slot_t *slot)
{
    const flash_schedule_t *schedule = &slot->op->params.schedule;

    return flash_schedule_has_root(schedule->kind) &&
           (flash_schedule_chains(schedule->kind) ||
            slot->step + 1 == flash_schedule_length(schedule, FLASH_STEPS));
}

bool flash_slot_waits_for_word(const flash_slot_t *slot)
{
    return slot->op->engine->transport->lets_leave && !needs_word(slot) && !has_begun(slot) &&
           is_held_back(slot);
}

static bool may_leave(const flash_slot_t *slot)
{
    return is_brief(slot) ||
           (slot->op->engine->transport->lets_leave && !needs_word(slot) && has_begun(slot));
}

void flash_slot_begin_send(flash_slot_t *slot)
{
    flash_op_t *op = slot->op;

    op->sending++;
    slot->transfer.leaves = may_leave(slot);
    if (slot->transfer.leaves) {
        op->left = true;
        op->leaving += flash_slot_bytes(slot);
    } else {
        slot->before = op->leaving;
        op->leaving = 0;
    }
}

void flash_slot_end_send(flash_slot_t *slot)
{
    flash_op_t *op = slot->op;

    op->sending--;
    if (!slot->transfer.leaves) { /* if it has failed, too: nothing is to wait for that receiver */
        op->heard = op->heard > slot->step ? op->heard : slot->step + 1;
        flash_flow_sent(op, slot->before + flash_slot_bytes(slot));
    }
    if (op->sending == 0) {
        flash_flow_sent(op, op->leaving);
        op->leaving = 0;
    }
}
