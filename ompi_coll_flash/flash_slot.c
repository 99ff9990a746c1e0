/*
 * flash_slot.c: the way of one segment, from its arrival to its departure.
 *
 * Each function here is entered once an event has moved the segment on, and ends by beginning the
 * next thing the segment waits for. Which things those are is said in flash_engine.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "flash_op.h"

#include <string.h>

static bool first_step(const flash_slot_t *slot)
{
    return slot->step == 0;
}

bool flash_slot_is_last(const flash_slot_t *slot)
{
    return slot->step == slot->op->params.schedule.ring.nranks - 1;
}

static bool is_reduction(const flash_slot_t *slot)
{
    return slot->op->params.schedule.kind == FLASH_REDUCE_SCATTER;
}

static uint32_t own_rank(const flash_slot_t *slot)
{
    return flash_op_own_rank(slot->op);
}

static uint32_t left_rank(const flash_slot_t *slot)
{
    const flash_schedule_t *schedule = &slot->op->params.schedule;

    return flash_ring_rank(&schedule->ring, schedule->ring.nranks - 1);
}

static uint32_t right_rank(const flash_slot_t *slot)
{
    return flash_ring_rank(&slot->op->params.schedule.ring, 1);
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
        (flash_trace_span_t){
            .kind = kind, .block = slot->block, .index = slot->segment, .bytes = slot_bytes(slot)});
}

/*
 * Only remembers what happened: a transfer may be done within the call that began it, and acting on
 * it there would nest without end.
 */
static void transfer_done(flash_transfer_t *transfer, int status, uint64_t tag, size_t length)
{
    flash_slot_t *slot = (flash_slot_t *) transfer;

    /* Ended within the call that began it, the transport never had it. */
    slot->op->haunted |= status == FLASH_ERR_LOST && !slot->beginning;
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

/* Whether what arrives and is sent on, or what is local, lies where the processor cannot reach. */
static bool is_far(const flash_slot_t *slot, bool local)
{
    const flash_op_params_t *params = &slot->op->params;

    return params->scratch_far && (local ? params->stage_in : params->stage_out);
}

static void slot_receive(flash_slot_t *slot, size_t length)
{
    flash_op_t *op = slot->op;
    flash_transport_t *transport = op->engine->transport;

    slot->state = FLASH_SLOT_RECEIVING;
    slot->posted_at = flash_trace_clock(op->engine->trace);
    slot->posted = slot->beginning = true;
    slot->transfer.far = is_far(slot, false);
    transport->ops->recv(
        transport, op->params.left,
        segment_tag(op->params.recv_tag, slot->step, slot->segment + slot->overrun),
        ~FLASH_TAG_MARKS, slot->data, length, &slot->transfer);
    slot->beginning = false;
}

/*
 * What a spoiled segment says: who is to blame, where a receiver surely has room for that. A rank
 * that refuses does not know; to those without room its message is cut short.
 */
static size_t blame_bytes(const flash_slot_t *slot)
{
    bool room = slot_bytes(slot) >= sizeof(slot->blame) || slot->op->refused;

    return room ? sizeof(slot->blame) : 0;
}

static void post_send(flash_slot_t *slot)
{
    flash_op_t *op = slot->op;
    flash_transport_t *transport = op->engine->transport;
    uint64_t tag = segment_tag(op->params.send_tag, slot->step + 1, slot->segment);
    const void *content = first_step(slot) ? slot->local : slot->data;
    size_t length = slot_bytes(slot);

    slot->transfer.far = !slot->spoiled && is_far(slot, first_step(slot));
    if (slot->spoiled) {
        content = &slot->blame;
        length = blame_bytes(slot);
    }
    tag |= slot->last_of_step ? FLASH_TAG_LAST : 0;
    tag |= slot->spoiled ? FLASH_TAG_SPOILED : 0;
    slot->state = FLASH_SLOT_SENDING;
    slot->posted_at = flash_trace_clock(op->engine->trace);
    slot->posted = slot->beginning = true;
    transport->ops->send(transport, op->params.right, tag, content, length, &slot->transfer);
    slot->beginning = false;
}

/*
 * Sends what is ready, in the order of the ring, and only so much at a time: messages under way
 * share the link, and would otherwise all arrive late instead of one after another, each on time to
 * be sent on. The order also keeps the ring from locking up: the oldest segment, which the right
 * neighbour surely has a place for, never waits behind one that it has none for yet.
 */
static void post_sends(flash_op_t *op)
{
    if (op->next_send < op->retired) {
        op->next_send = op->retired; /* past segments of the last step, which are not sent */
    }
    while (op->next_send < op->opened && op->sending < op->params.sends) {
        flash_slot_t *slot = &op->slots[op->next_send % op->depth];

        if (!flash_slot_is_last(slot)) {
            if (slot->state != FLASH_SLOT_DEPARTING) {
                break;
            }
            op->sending++;
            post_send(slot);
        }
        op->next_send++;
    }
}

static void slot_send(flash_slot_t *slot)
{
    slot->state = FLASH_SLOT_DEPARTING;
    post_sends(slot->op);
}

static void slot_done(flash_slot_t *slot)
{
    slot->state = FLASH_SLOT_DONE;
}

static void slot_spoil(flash_slot_t *slot, uint32_t blame)
{
    if (!slot->spoiled) {
        slot->spoiled = true;
        slot->blame = blame;
    }
}

static void slot_settled(flash_slot_t *slot)
{
    slot->settled = true;
    flash_op_settle(slot->op);
}

static void slot_stage(flash_slot_t *slot, flash_staging_t direction)
{
    slot->staging = direction;
    STAILQ_INSERT_TAIL(&slot->op->staging, slot, next_staging);
    flash_engine_offer(slot->op);
}

static void slot_combine(flash_slot_t *slot)
{
    slot->state = FLASH_SLOT_COMBINING;
    flash_slot_queue_push(&slot->op->combining, slot);
    flash_engine_offer(slot->op);
}

/* RS: whether a sum is still to be copied to where it belongs. */
static bool ends_by_staging(const flash_slot_t *slot)
{
    const flash_op_params_t *params = &slot->op->params;

    return is_reduction(slot) && flash_slot_is_last(slot) && !slot->spoiled &&
           slot->range.count > 0 && params->stage_out && !params->combine_far;
}

/* The content is as complete as it will get: on it goes, or here it ends. */
static void slot_leave(flash_slot_t *slot)
{
    if (!flash_slot_is_last(slot)) {
        slot_send(slot);
        return;
    }
    if (slot->spoiled) {
        flash_op_fail(slot->op, FLASH_ERR_PEER, slot->blame);
    } else if (ends_by_staging(slot)) {
        slot_stage(slot, FLASH_STAGING_OUT);
    }
    slot_done(slot);
}

void flash_slot_have_local(flash_slot_t *slot)
{
    if (!flash_op_is_produced(slot->op, slot) && slot->range.count > 0) { /* nor will it be */
        slot_spoil(slot, slot->op->blamed);
    }
    if (first_step(slot)) {
        slot_send(slot);
    } else if (slot->spoiled || slot->range.count == 0) {
        slot_settled(slot);
        slot_leave(slot);
    } else {
        slot_combine(slot);
    }
}

static void slot_need_local(flash_slot_t *slot)
{
    if (flash_op_has_local(slot->op, slot)) {
        flash_slot_have_local(slot);
    } else {
        slot->state = FLASH_SLOT_WAITING;
        flash_slot_queue_push(&slot->op->waiting, slot);
    }
}

/* A reduction needs its contribution in each step, an allgather in the first. */
bool flash_slot_needs_staging_in(const flash_slot_t *slot)
{
    const flash_op_params_t *params = &slot->op->params;

    return params->stage_in && slot->range.count > 0 && !slot->spoiled &&
           (first_step(slot) || (is_reduction(slot) && !params->combine_far));
}

void flash_slot_stage_in(flash_slot_t *slot)
{
    slot_stage(slot, FLASH_STAGING_IN);
}

void flash_slot_open(flash_slot_t *slot)
{
    flash_op_t *op = slot->op;

    if (!first_step(slot)) {
        if (op->open_step_ended) { /* the left neighbour has no such segment */
            slot_spoil(slot, op->blamed);
            slot->status = FLASH_ERR_CANCELED;
            slot->state = FLASH_SLOT_RECEIVING;
            flash_slot_queue_push(&op->events, slot);
            flash_engine_touch(op);
        } else {
            slot_receive(slot, slot_bytes(slot));
        }
        return;
    }
    if (!is_reduction(slot)) {
        slot_settled(slot);
    }
    slot_need_local(slot);
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
    op->open_step_ended |= op->open.step == last->step;
}

static uint32_t read_blame(const flash_slot_t *slot)
{
    uint32_t blame = FLASH_NOBODY;

    if (slot->status == FLASH_OK && slot->length == sizeof(blame)) {
        memcpy(&blame,
               is_far(slot, false) ? flash_op_blame_place(slot->op, slot)
                                   : (const void *) slot->data,
               sizeof(blame));
    }
    if (blame >= slot->op->params.schedule.ring.nranks) {
        blame = FLASH_NOBODY;
    }
    return blame;
}

/* Compares what came with what was expected. False if more messages of the step are to come. */
static bool check_arrival(flash_slot_t *slot)
{
    flash_op_t *op = slot->op;
    bool last = (slot->tag & FLASH_TAG_LAST) != 0;

    if (slot->status != FLASH_OK && slot->status != FLASH_ERR_TRUNCATED) {
        if (slot->status != FLASH_ERR_CANCELED) {
            bool here = slot->status == FLASH_ERR_NO_MEMORY || slot->status == FLASH_ERR_REFUSED;

            flash_op_fail(op, slot->status, here ? own_rank(slot) : left_rank(slot));
        }
        slot_spoil(slot, op->blamed);
        return true;
    }
    if (slot->overrun == 0) {
        if ((slot->tag & FLASH_TAG_SPOILED) != 0) {
            slot_spoil(slot, read_blame(slot));
        } else if (slot->status == FLASH_ERR_TRUNCATED || slot->length != slot_bytes(slot)) {
            slot_spoil(slot, own_rank(slot));
            flash_op_fail(op, FLASH_ERR_TRUNCATED, own_rank(slot));
        }
    }
    if (last && !slot->last_of_step) {
        if (slot->spoiled) { /* it may be all that there is */
            flash_op_fail(op, FLASH_ERR_PEER, slot->blame);
        } else {
            flash_op_fail(op, FLASH_ERR_TRUNCATED, own_rank(slot));
        }
        end_step(slot);
    } else if (!last && slot->last_of_step) {
        slot_spoil(slot, own_rank(slot));
        flash_op_fail(op, FLASH_ERR_TRUNCATED, own_rank(slot));
        slot->overrun++;
        slot_receive(slot, 0);
        return false;
    }
    return true;
}

/* Whether a spoiled message says, where only a copy can find it, who is to blame. */
static bool brings_far_blame(const flash_slot_t *slot)
{
    return is_far(slot, false) && slot->overrun == 0 && slot->status == FLASH_OK &&
           (slot->tag & FLASH_TAG_SPOILED) != 0 && slot->length == sizeof(slot->blame);
}

static void act_on_arrival(flash_slot_t *slot)
{
    if (!check_arrival(slot)) {
        return;
    }
    if (is_reduction(slot)) {
        slot_need_local(slot);
        return;
    }
    if (slot->spoiled) {
        flash_op_fail(slot->op, FLASH_ERR_PEER, slot->blame);
    }
    if (slot->op->params.stage_out && !slot->spoiled && slot->range.count > 0) {
        slot_stage(slot, FLASH_STAGING_OUT);
    } else {
        slot_settled(slot);
    }
    slot_leave(slot);
}

/*
 * The right neighbour waits for this segment. What is not there cannot be sent later, but that it
 * is not can be said once: true if that is under way. Where it cannot, nothing can be said in the
 * ring any more.
 */
static bool send_again(flash_slot_t *slot)
{
    flash_op_t *op = slot->op;

    if (slot->status == FLASH_ERR_LOST) {
        return false;
    }
    if (slot->sent_again) {
        op->engine->transport->ops->give_up(op->engine->transport, op->params.right);
        return false;
    }
    slot->sent_again = true;
    slot_spoil(slot, own_rank(slot));
    post_send(slot);
    return true;
}

static void slot_sent(flash_slot_t *slot)
{
    flash_op_t *op = slot->op;

    if (slot->status != FLASH_OK) {
        bool lost = slot->status == FLASH_ERR_LOST;

        flash_op_fail(op, slot->status, lost ? right_rank(slot) : own_rank(slot));
        if (send_again(slot)) {
            return;
        }
    }
    op->sending--;
    post_sends(op);
    if (first_step(slot) && is_reduction(slot)) {
        slot_settled(slot);
    }
    slot_done(slot);
}

static void slot_arrived(flash_slot_t *slot)
{
    if (brings_far_blame(slot)) {
        slot_stage(slot, FLASH_STAGING_BLAME);
    } else {
        act_on_arrival(slot);
    }
}

void flash_slot_transferred(flash_slot_t *slot)
{
    if (slot->state == FLASH_SLOT_RECEIVING) {
        slot_arrived(slot);
    } else {
        slot_sent(slot);
    }
}

void flash_slot_combined(flash_slot_t *slot, int status)
{
    if (status != FLASH_OK) {
        slot_spoil(slot, own_rank(slot));
        flash_op_fail(slot->op, status, own_rank(slot));
    }
    if (!ends_by_staging(slot)) {
        slot_settled(slot);
    }
    slot_leave(slot);
}

static void blame_staged(flash_slot_t *slot, int status)
{
    if (status != FLASH_OK) {
        *flash_op_blame_place(slot->op, slot) = FLASH_NOBODY;
    }
    act_on_arrival(slot);
}

void flash_slot_staged(flash_slot_t *slot, int status)
{
    bool in = slot->staging == FLASH_STAGING_IN;
    bool blame = slot->staging == FLASH_STAGING_BLAME;

    slot->staging = FLASH_STAGING_NONE;
    if (blame) {
        blame_staged(slot, status);
        return;
    }
    if (status != FLASH_OK) {
        flash_op_fail(slot->op, status, own_rank(slot));
        if (in) {
            slot_spoil(slot, own_rank(slot));
        }
    }
    if (in) {
        slot->staged_in = true; /* flash_op_advance() lets it go on */
    } else {
        slot_settled(slot);
    }
}

/* The transfer's completion is the same for all: set once, when the operation is made. */
void flash_slot_init(flash_slot_t *slot, flash_op_t *op)
{
    slot->op = op;
    slot->transfer.done = transfer_done;
}
