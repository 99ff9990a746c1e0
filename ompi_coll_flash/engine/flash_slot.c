/*
 * flash_slot.c: the path of one segment: its receive, the local contribution, its send.
 *
 * Each function here is entered once an event has moved the segment on, and ends by beginning the
 * next thing the segment waits for. Which things those are is said in flash_engine.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "engine/flash_slot.h"

/* -------------------------------------------------------------------- messages */

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

static void receive(flash_slot_t *slot, size_t length)
{
    flash_op_t *op = slot->op;
    flash_transport_t *transport = op->engine->transport;

    if (slot->home != NULL && length > 0) {
        slot->data = flash_slot_borrow(slot, FLASH_BOUNCE_ARRIVAL);
    }
    flash_slot_enter(slot, FLASH_SLOT_RECEIVING);
    slot->posted_at = flash_trace_clock(op->engine->trace);
    slot->posted = slot->beginning = true;
    slot->transfer.on_device = flash_slot_is_on_device(slot, false);
    transport->ops->recv(transport, flash_slot_peer(slot, false), flash_slot_tag(slot, false),
                         ~FLASH_TAG_MARKS, slot->data, length, &slot->transfer);
    slot->beginning = false;
}

static void post_send(flash_slot_t *slot)
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

/*
 * Sends what is ready, in the order of the ring, and only so much at a time: messages under way
 * share the link, and would otherwise all arrive late instead of one after another, each on time to
 * be sent on. The order also keeps the ring from locking up: the oldest segment, which the right
 * neighbour surely has a place for, never waits behind one that it has none for yet.
 */
static void post_sends(flash_op_t *op)
{
    if (op->next_send < op->retired) {
        op->next_send = op->retired; /* past segments that are not sent */
    }
    while (op->next_send < op->opened && op->sending < op->params.sends) {
        flash_slot_t *slot = &op->slots[op->next_send % op->depth];

        if (slot->way.sends) {
            if (slot->state != FLASH_SLOT_DEPARTING || flash_slot_waits_for_word(slot) ||
                !flash_flow_send(op, flash_slot_bytes(slot))) {
                break;
            }
            flash_slot_begin_send(slot);
            post_send(slot);
        }
        op->next_send++;
    }
}

/* Behind a send that is done: the oldest first, until one has to wait again. */
static void post_blocked_sends(flash_op_t *op)
{
    flash_op_t *other;

    do {
        other = flash_flow_unblock(op);
        if (other != NULL) {
            post_sends(other);
        }
    } while (other != NULL && !other->blocked);
}

void flash_slot_depart(flash_slot_t *slot)
{
    flash_slot_enter(slot, FLASH_SLOT_DEPARTING);
    post_sends(slot->op);
}

/* ---------------------------------------------------------------------- the path */

static void slot_send(flash_slot_t *slot)
{
    if (slot->home == NULL) {
        flash_slot_depart(slot);
    } else {
        flash_slot_enter(slot, FLASH_SLOT_KEPT);
        flash_op_depart(slot->op);
    }
}

static void set_ready(flash_slot_t *slot)
{
    slot->ready = true;
    flash_op_note_ready(slot->op);
}

static void slot_combine(flash_slot_t *slot)
{
    flash_slot_enter(slot, FLASH_SLOT_COMBINING);
    flash_slot_queue_push(&slot->op->combining, slot);
    flash_engine_offer(slot->op);
}

/* The content is as complete as it will get: the user has it, on it goes, or here it ends. */
static void slot_leave(flash_slot_t *slot)
{
    if (slot->staging != FLASH_STAGING_IN) {
        flash_slot_give_back(slot, FLASH_BOUNCE_LOCAL);
    }
    if (flash_slot_keep(slot)) {
        return;
    }
    if (slot->way.delivers && slot->poisoned) {
        flash_op_fail(slot->op, FLASH_ERR_PEER, slot->failed_rank);
    }
    if (flash_slot_ends_by_staging(slot)) {
        flash_slot_stage(slot, FLASH_STAGING_OUT);
    } else {
        set_ready(slot);
    }
    if (slot->way.sends) {
        slot_send(slot);
    } else {
        flash_slot_enter(slot, FLASH_SLOT_DONE);
    }
}

/* The sum has what this one had for it, or never will: who misses what says so at the end. */
static void slot_added(flash_slot_t *slot)
{
    flash_op_t *op = slot->op;

    flash_op_added(op, slot);
    if (slot->way.delivers && op->sum_poisoned) {
        flash_slot_poison(slot, op->sum_failed_rank);
    }
    slot_leave(slot);
}

static void slot_add(flash_slot_t *slot)
{
    const flash_op_t *op = slot->op;

    if (op->sum_poisoned || slot->range.count == 0 || flash_op_begins_in_place(op, slot)) {
        slot_added(slot);
    } else {
        slot_combine(slot);
    }
}

void flash_slot_have_local(flash_slot_t *slot)
{
    if (!flash_op_is_produced(slot->op, slot) && slot->range.count > 0) { /* nor will it be */
        flash_slot_poison(slot, slot->op->failed_rank);
    }
    if (slot->way.adds) {
        slot_add(slot);
    } else if (!slot->way.receives) {
        slot_send(slot);
    } else if (slot->poisoned || slot->range.count == 0) {
        slot_leave(slot);
    } else {
        slot_combine(slot);
    }
}

static void slot_need_local(flash_slot_t *slot)
{
    if (slot->way.adds && !flash_op_is_turn(slot->op, slot)) {
        flash_slot_enter(slot, FLASH_SLOT_WAITING);
        flash_op_keep_early(slot->op, slot);
    } else if (flash_op_has_local(slot->op, slot)) {
        flash_slot_have_local(slot);
    } else {
        flash_slot_enter(slot, FLASH_SLOT_WAITING);
        flash_slot_queue_push(&slot->op->waiting, slot);
    }
}

void flash_slot_open(flash_slot_t *slot)
{
    flash_op_t *op = slot->op;

    if (slot->way.adds && !slot->way.contributes) {
        set_ready(slot); /* nothing local to be used up */
    }
    if (slot->way.receives) {
        if (op->open_step_ended) { /* the left neighbour has no such segment */
            flash_slot_poison(slot, op->failed_rank);
            slot->status = FLASH_ERR_CANCELED;
            flash_slot_enter(slot, FLASH_SLOT_RECEIVING);
            flash_slot_queue_push(&op->events, slot);
            flash_engine_touch(op);
        } else {
            receive(slot, flash_slot_bytes(slot));
        }
        return;
    }
    if (!flash_op_reduces(&op->params)) {
        set_ready(slot);
    }
    slot_need_local(slot);
}

static bool is_added_to(const flash_slot_t *slot)
{
    return slot->way.contributes || slot->way.adds;
}

static void slot_go_on(flash_slot_t *slot)
{
    if (is_added_to(slot)) {
        slot_need_local(slot);
    } else {
        slot_leave(slot);
    }
}

/* Bounded: the memory that a segment has arrived at is given back, whatever else it waits for. But
   the host adds there. */
static bool is_kept_first(const flash_slot_t *slot)
{
    return !is_added_to(slot) || slot->op->params.combine_on_device;
}

static void act_on_arrival(flash_slot_t *slot)
{
    if (!flash_slot_check_arrival(slot)) {
        receive(slot, 0);
    } else if (!is_kept_first(slot) || !flash_slot_keep(slot)) {
        slot_go_on(slot);
    }
}

/* It is at its home, or lost. */
static void slot_kept(flash_slot_t *slot)
{
    flash_slot_give_back(slot, FLASH_BOUNCE_ARRIVAL);
    slot->data = slot->home;
    if (is_kept_first(slot)) {
        slot_go_on(slot);
    } else {
        slot_leave(slot);
    }
}

static void slot_sent(flash_slot_t *slot)
{
    flash_op_t *op = slot->op;

    if (slot->status != FLASH_OK) {
        bool lost = slot->status == FLASH_ERR_LOST;

        flash_op_fail(op, slot->status,
                      lost ? flash_slot_neighbour(slot, true) : flash_op_own_rank(slot->op));
        if (flash_slot_send_failed(slot)) {
            post_send(slot);
            return;
        }
    }
    flash_slot_end_send(slot);
    post_sends(op);
    post_blocked_sends(op);
    flash_slot_give_back(slot, FLASH_BOUNCE_DEPARTURE);
    flash_op_depart(op);
    if (!slot->way.receives && flash_op_reduces(&op->params)) {
        set_ready(slot);
    }
    flash_slot_enter(slot, FLASH_SLOT_DONE);
}

static void slot_arrived(flash_slot_t *slot)
{
    if (flash_slot_brings_failed_rank_on_device(slot)) {
        flash_slot_stage(slot, FLASH_STAGING_FAILED_RANK);
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
    flash_op_place_sum(slot);
    if (status != FLASH_OK) {
        flash_slot_poison(slot, flash_op_own_rank(slot->op));
        flash_op_fail(slot->op, status, flash_op_own_rank(slot->op));
    }
    if (slot->way.adds) {
        slot_added(slot);
    } else {
        slot_leave(slot);
    }
}

static void failed_rank_staged(flash_slot_t *slot, int status)
{
    if (status != FLASH_OK) {
        *flash_op_failed_rank_place(slot->op, slot) = FLASH_NOBODY;
    }
    act_on_arrival(slot);
}

/* flash_engine.c lets it go on, unless what it was to be added to is lost: then it has gone on. */
static void local_staged(flash_slot_t *slot)
{
    slot->staged_in = true;
    if (slot->poisoned) {
        flash_slot_give_back(slot, FLASH_BOUNCE_LOCAL);
    }
}

void flash_slot_staged(flash_slot_t *slot, int status)
{
    flash_staging_t direction = slot->staging;

    slot->staging = FLASH_STAGING_NONE;
    if (direction == FLASH_STAGING_FAILED_RANK) {
        failed_rank_staged(slot, status);
        return;
    }
    if (status != FLASH_OK) {
        flash_op_fail(slot->op, status, flash_op_own_rank(slot->op));
        if (direction != FLASH_STAGING_OUT) {
            flash_slot_poison(slot, flash_op_own_rank(slot->op));
        }
    }
    if (direction == FLASH_STAGING_IN) {
        local_staged(slot);
    } else if (direction == FLASH_STAGING_KEEP) {
        slot_kept(slot);
    } else if (direction == FLASH_STAGING_DEPART) {
        flash_slot_depart(slot);
    } else {
        set_ready(slot);
    }
}
