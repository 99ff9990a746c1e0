/*
 * flash_slot_messages.c: a segment's messages: how they are named, posted and checked, and what one says
 * whose content is lost.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "engine/flash_slot.h"

#include <string.h>

uint32_t flash_slot_neighbour(const flash_slot_t *slot, bool sending)
{
    const flash_schedule_t *schedule = &slot->op->params.schedule;
    uint32_t distance = flash_schedule_distance(schedule, slot->step);

    return flash_ring_rank(&schedule->ring, sending ? distance : schedule->ring.nranks - distance);
}

flash_pair_t flash_slot_pair(const flash_slot_t *slot)
{
    const flash_op_params_t *params = &slot->op->params;
    flash_pair_t pair = {.left = params->left,
                         .right = params->right,
                         .recv_tag = params->recv_tag,
                         .send_tag = params->send_tag};

    if (flash_schedule_exchanges(params->schedule.kind)) {
        pair = params->pairs[flash_schedule_distance(&params->schedule, slot->step) - 1];
        pair.recv_tag |= params->recv_tag;
        pair.send_tag |= params->send_tag;
    }
    return pair;
}

/* A message's step, as its sender and its receiver both count. */
static uint32_t tag_step(const flash_slot_t *slot, bool sending)
{
    if (flash_schedule_exchanges(slot->op->params.schedule.kind)) {
        return flash_schedule_distance(&slot->op->params.schedule, slot->step);
    }
    return slot->step + sending;
}

static size_t slot_bytes(const flash_slot_t *slot)
{
    return slot->range.count * slot->op->params.element;
}

/* The tag of a segment, whose `step` is counted by the rank that receives it. */
static uint64_t segment_tag(uint64_t operation, uint32_t step, uint32_t segment)
{
    uint64_t steps = step & ((UINT32_C(1) << FLASH_TAG_STEP_BITS) - 1);
    uint64_t segments = segment & ((UINT32_C(1) << FLASH_TAG_SEG_BITS) - 1);

    return operation | (steps << FLASH_TAG_SEG_BITS | segments) << 2;
}

void flash_slot_note(const flash_slot_t *slot, flash_trace_kind_t kind, uint64_t begin)
{
    flash_engine_note(
        slot->op, begin,
        (flash_trace_span_t){.kind = kind,
                             .block = flash_schedule_rank(&slot->op->params.schedule, slot->block),
                             .index = slot->segment,
                             .bytes = slot_bytes(slot)});
}

/*
 * Only remembers what happened: a transfer may be done within the call that began it, and acting on
 * it there would nest without end.
 */
static void transfer_done(flash_transfer_t *transfer, int status, uint64_t tag, size_t length)
{
    flash_slot_t *slot = (flash_slot_t *) transfer;

    /* Ended within the call that began it, the transport never had it. */
    slot->op->has_orphans |= status == FLASH_ERR_LOST && !slot->beginning;
    slot->posted = false;
    slot->status = status;
    slot->tag = tag;
    slot->length = length;
    flash_slot_note(slot,
                    slot->state == FLASH_SLOT_RECEIVING ? FLASH_TRACE_RECEIVE : FLASH_TRACE_SEND,
                    slot->posted_at);
    flash_slot_queue_push(&slot->op->events, slot);
    flash_engine_touch(slot->op);
}

/* The transfer's completion is the same for all: set once, when the operation is made. */
void flash_slot_init(flash_slot_t *slot, flash_op_t *op)
{
    slot->op = op;
    slot->transfer.done = transfer_done;
}

/* Whether what arrives and is sent on, or what is local, lies where the processor cannot reach. */
static bool is_on_device(const flash_slot_t *slot, bool local)
{
    const flash_op_params_t *params = &slot->op->params;

    return params->scratch_on_device && (local ? params->stage_in : params->stage_out);
}

static void receive(flash_slot_t *slot, size_t length)
{
    flash_op_t *op = slot->op;
    flash_transport_t *transport = op->engine->transport;
    flash_pair_t pair = flash_slot_pair(slot);
    uint64_t tag = segment_tag(pair.recv_tag, tag_step(slot, false), slot->segment + slot->overrun);

    if (slot->home != NULL && length > 0) {
        slot->data = flash_slot_borrow(slot, FLASH_BOUNCE_ARRIVAL);
    }
    flash_slot_enter(slot, FLASH_SLOT_RECEIVING);
    slot->posted_at = flash_trace_clock(op->engine->trace);
    slot->posted = slot->beginning = true;
    slot->transfer.on_device = is_on_device(slot, false);
    transport->ops->recv(transport, pair.left, tag, ~FLASH_TAG_MARKS, slot->data, length,
                         &slot->transfer);
    slot->beginning = false;
}

void flash_slot_receive(flash_slot_t *slot)
{
    receive(slot, slot_bytes(slot));
}

void flash_slot_poison(flash_slot_t *slot, uint32_t failed_rank)
{
    flash_op_t *op = slot->op;

    if (!slot->poisoned) {
        slot->poisoned = true;
        slot->failed_rank = failed_rank;
    }
    if (slot->way.adds && !op->sum_poisoned) {
        op->sum_poisoned = true;
        op->sum_failed_rank = failed_rank;
    }
}

/*
 * What a poisoned segment says: which rank failed, where a receiver surely has room for that. A
 * rank that refuses does not know; to those without room its message is cut short.
 */
static size_t failed_rank_bytes(const flash_slot_t *slot)
{
    bool room = slot_bytes(slot) >= sizeof(slot->failed_rank) || slot->op->refused;

    return room ? sizeof(slot->failed_rank) : 0;
}

static void post_send(flash_slot_t *slot)
{
    flash_op_t *op = slot->op;
    flash_transport_t *transport = op->engine->transport;
    flash_pair_t pair = flash_slot_pair(slot);
    uint64_t tag = segment_tag(pair.send_tag, tag_step(slot, true), slot->segment);
    const void *content = slot->way.receives ? slot->data : slot->local;
    size_t length = slot_bytes(slot);

    slot->transfer.on_device = !slot->poisoned && is_on_device(slot, !slot->way.receives);
    /* Waiting for the receiver's word would double the time of a brief operation. Those of longer
       blocks do: at a receiver that is late there is a message for each block of others at most. */
    slot->transfer.leaves = slot->segment == 0 && slot->last_of_step;
    if (slot->poisoned) {
        content = &slot->failed_rank;
        length = failed_rank_bytes(slot);
    }
    tag |= slot->last_of_step ? FLASH_TAG_LAST : 0;
    tag |= slot->poisoned ? FLASH_TAG_POISONED : 0;
    flash_slot_enter(slot, FLASH_SLOT_SENDING);
    slot->posted_at = flash_trace_clock(op->engine->trace);
    slot->posted = slot->beginning = true;
    transport->ops->send(transport, pair.right, tag, content, length, &slot->transfer);
    slot->beginning = false;
}

/*
 * Sends what is ready, in the order of the ring, and only so much at a time: messages under way
 * share the link, and would otherwise all arrive late instead of one after another, each on time to
 * be sent on. The order also keeps the ring from locking up: the oldest segment, which the right
 * neighbour surely has a place for, never waits behind one that it has none for yet.
 */
void flash_op_post_sends(flash_op_t *op)
{
    if (op->next_send < op->retired) {
        op->next_send = op->retired; /* past segments that are not sent */
    }
    while (op->next_send < op->opened && op->sending < op->params.sends) {
        flash_slot_t *slot = &op->slots[op->next_send % op->depth];

        if (slot->way.sends) {
            if (slot->state != FLASH_SLOT_DEPARTING) {
                break;
            }
            op->sending++;
            post_send(slot);
        }
        op->next_send++;
    }
}

void flash_slot_depart(flash_slot_t *slot)
{
    flash_slot_enter(slot, FLASH_SLOT_DEPARTING);
    flash_op_post_sends(slot->op);
}

/*
 * The right neighbour waits for this segment. What is not there cannot be sent later, but that it
 * is not can be said once: true if that is under way. Where it cannot, nothing can be said in the
 * ring any more.
 */
bool flash_slot_send_again(flash_slot_t *slot)
{
    flash_op_t *op = slot->op;

    if (slot->status == FLASH_ERR_LOST) {
        return false;
    }
    if (slot->sent_again) {
        op->engine->transport->ops->give_up(op->engine->transport, flash_slot_pair(slot).right);
        return false;
    }
    slot->sent_again = true;
    flash_slot_poison(slot, flash_op_own_rank(op));
    post_send(slot);
    return true;
}

/*
 * The left neighbour's step ended before this rank expected it to: the receives for the rest of
 * the step would wait forever.
 */
static void end_step(flash_slot_t *last)
{
    flash_op_t *op = last->op;
    flash_transport_t *transport = op->engine->transport;

    for (uint64_t number = op->retired; number < op->opened; number++) {
        flash_slot_t *slot = &op->slots[number % op->depth];

        if (slot->step == last->step && slot->segment > last->segment &&
            slot->state == FLASH_SLOT_RECEIVING && slot->posted) {
            transport->ops->cancel(transport, &slot->transfer);
        }
    }
    op->open_step_ended |= op->open.at == last->step;
}

static uint32_t read_failed_rank(const flash_slot_t *slot)
{
    uint32_t failed_rank = FLASH_NOBODY;

    if (slot->status == FLASH_OK && slot->length == sizeof(failed_rank)) {
        memcpy(&failed_rank,
               is_on_device(slot, false) ? flash_op_failed_rank_place(slot->op, slot)
                                         : (const void *) slot->data,
               sizeof(failed_rank));
    }
    if (failed_rank >= slot->op->params.schedule.ring.nranks) {
        failed_rank = FLASH_NOBODY;
    }
    return failed_rank;
}

bool flash_slot_check_arrival(flash_slot_t *slot)
{
    flash_op_t *op = slot->op;
    bool last = (slot->tag & FLASH_TAG_LAST) != 0;

    if (slot->status != FLASH_OK && slot->status != FLASH_ERR_TRUNCATED) {
        if (slot->status != FLASH_ERR_CANCELED) {
            bool here = slot->status == FLASH_ERR_NO_MEMORY || slot->status == FLASH_ERR_REFUSED;

            flash_op_fail(op, slot->status,
                          here ? flash_op_own_rank(op) : flash_slot_neighbour(slot, false));
        }
        flash_slot_poison(slot, op->failed_rank);
        return true;
    }
    if (slot->overrun == 0) {
        if ((slot->tag & FLASH_TAG_POISONED) != 0) {
            flash_slot_poison(slot, read_failed_rank(slot));
        } else if (slot->status == FLASH_ERR_TRUNCATED || slot->length != slot_bytes(slot)) {
            flash_slot_poison(slot, flash_op_own_rank(op));
            flash_op_fail(op, FLASH_ERR_TRUNCATED, flash_op_own_rank(op));
        }
    }
    if (last && !slot->last_of_step) {
        if (slot->poisoned) { /* it may be all that there is */
            flash_op_fail(op, FLASH_ERR_PEER, slot->failed_rank);
        } else {
            flash_op_fail(op, FLASH_ERR_TRUNCATED, flash_op_own_rank(op));
        }
        end_step(slot);
    } else if (!last && slot->last_of_step) {
        flash_slot_poison(slot, flash_op_own_rank(op));
        flash_op_fail(op, FLASH_ERR_TRUNCATED, flash_op_own_rank(op));
        slot->overrun++;
        receive(slot, 0);
        return false;
    }
    return true;
}

bool flash_slot_brings_failed_rank_on_device(const flash_slot_t *slot)
{
    return is_on_device(slot, false) && slot->overrun == 0 && slot->status == FLASH_OK &&
           (slot->tag & FLASH_TAG_POISONED) != 0 && slot->length == sizeof(slot->failed_rank);
}
