/*
 * flash_slot.c: the way of one segment, from its arrival to its departure; flash_slot_messages.c has
 * its messages.
 *
 * Each function here is entered once an event has moved the segment on, and ends by beginning the
 * next thing the segment waits for. Which things those are is said in flash_engine.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "engine/flash_slot.h"

static void slot_send(flash_slot_t *slot)
{
    if (slot->home == NULL) {
        flash_slot_depart(slot);
    } else {
        flash_slot_enter(slot, FLASH_SLOT_KEPT);
        flash_op_depart(slot->op);
    }
}

static void slot_done(flash_slot_t *slot)
{
    flash_slot_enter(slot, FLASH_SLOT_DONE);
}

static void set_ready(flash_slot_t *slot)
{
    slot->ready = true;
    flash_op_note_ready(slot->op);
}

void flash_slot_stage(flash_slot_t *slot, flash_staging_t direction)
{
    slot->staging = direction;
    STAILQ_INSERT_TAIL(&slot->op->staging, slot, next_staging);
    flash_engine_offer(slot->op);
}

static void slot_combine(flash_slot_t *slot)
{
    flash_slot_enter(slot, FLASH_SLOT_COMBINING);
    flash_slot_queue_push(&slot->op->combining, slot);
    flash_engine_offer(slot->op);
}

/* Whether what is a result now is still to be copied to where it belongs. */
static bool ends_by_staging(const flash_slot_t *slot)
{
    return slot->op->params.stage_out && slot->way.delivers && !slot->poisoned &&
           slot->range.count > 0 && slot->home == NULL && !flash_op_sums_in_place(slot->op, slot);
}

/* Bounded: what has arrived to go to device memory, and is not there yet, is copied. True: wait. */
static bool slot_keep(flash_slot_t *slot)
{
    if (slot->bounce[FLASH_BOUNCE_ARRIVAL] == 0) {
        return false;
    }
    if (!slot->poisoned) {
        flash_slot_stage(slot, FLASH_STAGING_KEEP);
        return true;
    }
    flash_slot_give_back(slot, FLASH_BOUNCE_ARRIVAL);
    slot->data = slot->home;
    return false;
}

/* The content is as complete as it will get: the user has it, on it goes, or here it ends. */
static void slot_leave(flash_slot_t *slot)
{
    if (slot->staging != FLASH_STAGING_IN) {
        flash_slot_give_back(slot, FLASH_BOUNCE_LOCAL);
    }
    if (slot_keep(slot)) {
        return;
    }
    if (slot->way.delivers && slot->poisoned) {
        flash_op_fail(slot->op, FLASH_ERR_PEER, slot->failed_rank);
    }
    if (ends_by_staging(slot)) {
        flash_slot_stage(slot, FLASH_STAGING_OUT);
    } else {
        set_ready(slot);
    }
    if (slot->way.sends) {
        slot_send(slot);
    } else {
        slot_done(slot);
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

bool flash_slot_stage_in(flash_slot_t *slot)
{
    if (slot->op->bounded) {
        char *memory = flash_slot_borrow(slot, FLASH_BOUNCE_LOCAL);

        if (memory == NULL) {
            return false;
        }
        slot->local = memory;
    }
    flash_slot_stage(slot, FLASH_STAGING_IN);
    return true;
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
            flash_slot_receive(slot);
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
    if (flash_slot_check_arrival(slot) && !(is_kept_first(slot) && slot_keep(slot))) {
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
        if (flash_slot_send_again(slot)) {
            return;
        }
    }
    op->sending--;
    flash_op_post_sends(op);
    flash_slot_give_back(slot, FLASH_BOUNCE_DEPARTURE);
    flash_op_depart(op);
    if (!slot->way.receives && flash_op_reduces(&op->params)) {
        set_ready(slot);
    }
    slot_done(slot);
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

/* flash_op_advance() lets it go on, unless what came to be added to was lost, and it has. */
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
