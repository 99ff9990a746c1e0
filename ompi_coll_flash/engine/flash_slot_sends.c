/*
 * flash_slot_sends.c: which segments are sent when, and which of them wait for the receiver's word.
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

void flash_slot_post_send(flash_slot_t *slot)
{
    flash_op_t *op = slot->op;
    flash_transport_t *transport = op->engine->transport;
    uint64_t tag = flash_slot_tag(slot, true);
    const void *content = slot->way.receives ? slot->data : slot->local;
    size_t length = flash_slot_bytes(slot);

    slot->transfer.on_device =
        !slot->poisoned && flash_slot_is_on_device(slot, !slot->way.receives);
    if (slot->poisoned) {
        content = &slot->failed_rank;
        length = flash_slot_failed_rank_bytes(slot);
    }
    tag |= slot->last_of_step ? FLASH_TAG_LAST : 0;
    tag |= slot->poisoned ? FLASH_TAG_POISONED : 0;
    flash_slot_enter(slot, FLASH_SLOT_SENDING);
    slot->posted_at = flash_trace_clock(op->engine->trace);
    slot->posted = slot->beginning = true;
    transport->ops->send(transport, flash_slot_peer(slot, true), tag, content, length,
                         &slot->transfer);
    slot->beginning = false;
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
    return !is_brief(slot) && (slot->segment < FIRST || is_first_of_group(slot));
}

/*
 * False: it is not sent before its receiver has begun. Where other ranks would wait for that, too, it is
 * sent now, and waits for the word.
 */
static bool may_send(const flash_slot_t *slot)
{
    return slot->op->sending < slot->op->params.sends &&
           (is_brief(slot) || needs_word(slot) || has_begun(slot) || !is_last_receiver(slot));
}

static void begin_send(flash_slot_t *slot)
{
    slot->op->sending++;
    slot->transfer.leaves = is_brief(slot) || (!needs_word(slot) && has_begun(slot));
    flash_slot_post_send(slot);
}

/*
 * Sends what is ready, in the order of the ring, and only so much at a time: messages under way
 * share the link, and would otherwise all arrive late instead of one after another, each on time to
 * be sent on. The order also keeps the ring from locking up: the oldest segment, which the right
 * neighbour surely has a place for, never waits behind one that it has none for yet.
 */
void flash_slot_post_sends(flash_op_t *op)
{
    if (op->next_send < op->retired) {
        op->next_send = op->retired; /* past segments that are not sent */
    }
    for (; op->next_send < op->opened; op->next_send++) {
        flash_slot_t *slot = &op->slots[op->next_send % op->depth];

        if (slot->way.sends) {
            if (slot->state != FLASH_SLOT_DEPARTING || !may_send(slot) ||
                !flash_flow_send(op, flash_slot_bytes(slot))) {
                break;
            }
            begin_send(slot);
        }
    }
}

/* Behind a send that is done: the oldest first, until one has to wait again. */
static void post_blocked_sends(flash_op_t *op)
{
    flash_op_t *other;

    do {
        other = flash_flow_unblock(op);
        if (other != NULL) {
            flash_slot_post_sends(other);
        }
    } while (other != NULL && !other->blocked);
}

void flash_slot_end_send(flash_slot_t *slot)
{
    flash_op_t *op = slot->op;

    op->sending--;
    if (!slot->transfer.leaves && op->heard <= slot->step) {
        op->heard = slot->step + 1;
    }
    flash_flow_sent(op, flash_slot_bytes(slot));
    flash_slot_post_sends(op);
    post_blocked_sends(op);
}
