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

static uint32_t own_rank(const flash_slot_t *slot)
{
    return flash_op_own_rank(slot->op);
}

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
    flash_pair_t pair = flash_slot_pair(slot);
    uint64_t tag = segment_tag(pair.recv_tag, tag_step(slot, false), slot->segment + slot->overrun);

    if (slot->home != NULL && length > 0) {
        slot->data = flash_slot_borrow(slot, FLASH_BOUNCE_ARRIVAL);
    }
    slot->state = FLASH_SLOT_RECEIVING;
    slot->posted_at = flash_trace_clock(op->engine->trace);
    slot->posted = slot->beginning = true;
    slot->transfer.far = is_far(slot, false);
    transport->ops->recv(transport, pair.left, tag, ~FLASH_TAG_MARKS, slot->data, length,
                         &slot->transfer);
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
    flash_pair_t pair = flash_slot_pair(slot);
    uint64_t tag = segment_tag(pair.send_tag, tag_step(slot, true), slot->segment);
    const void *content = slot->way.receives ? slot->data : slot->local;
    size_t length = slot_bytes(slot);

    slot->transfer.far = !slot->spoiled && is_far(slot, !slot->way.receives);
    /* Waiting for the receiver's word would double the time of a brief operation. Those of longer
       blocks do: at a receiver that is late there is a message for each block of others at most. */
    slot->transfer.leaves = slot->segment == 0 && slot->last_of_step;
    if (slot->spoiled) {
        content = &slot->blame;
        length = blame_bytes(slot);
    }
    tag |= slot->last_of_step ? FLASH_TAG_LAST : 0;
    tag |= slot->spoiled ? FLASH_TAG_SPOILED : 0;
    slot->state = FLASH_SLOT_SENDING;
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
static void post_sends(flash_op_t *op)
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
    slot->state = FLASH_SLOT_DEPARTING;
    post_sends(slot->op);
}

static void slot_send(flash_slot_t *slot)
{
    if (slot->home == NULL) {
        flash_slot_depart(slot);
    } else {
        slot->state = FLASH_SLOT_KEPT;
        flash_op_depart(slot->op);
    }
}

static void slot_done(flash_slot_t *slot)
{
    slot->state = FLASH_SLOT_DONE;
}

static void slot_spoil(flash_slot_t *slot, uint32_t blame)
{
    flash_op_t *op = slot->op;

    if (!slot->spoiled) {
        slot->spoiled = true;
        slot->blame = blame;
    }
    if (slot->way.adds && !op->sum_spoiled) {
        op->sum_spoiled = true;
        op->sum_blame = blame;
    }
}

static void slot_settled(flash_slot_t *slot)
{
    slot->settled = true;
    flash_op_settle(slot->op);
}

void flash_slot_stage(flash_slot_t *slot, flash_staging_t direction)
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

/* Whether what is a result now is still to be copied to where it belongs. */
static bool ends_by_staging(const flash_slot_t *slot)
{
    return slot->op->params.stage_out && slot->way.delivers && !slot->spoiled &&
           slot->range.count > 0 && slot->home == NULL && !flash_op_sums_in_place(slot->op, slot);
}

/* Bounded: what has arrived to go to far memory, and is not there yet, is copied. True: wait. */
static bool slot_keep(flash_slot_t *slot)
{
    if (slot->bounce[FLASH_BOUNCE_ARRIVAL] == 0) {
        return false;
    }
    if (!slot->spoiled) {
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
    if (slot->way.delivers && slot->spoiled) {
        flash_op_fail(slot->op, FLASH_ERR_PEER, slot->blame);
    }
    if (ends_by_staging(slot)) {
        flash_slot_stage(slot, FLASH_STAGING_OUT);
    } else {
        slot_settled(slot);
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
    if (slot->way.delivers && op->sum_spoiled) {
        slot_spoil(slot, op->sum_blame);
    }
    slot_leave(slot);
}

static void slot_add(flash_slot_t *slot)
{
    const flash_op_t *op = slot->op;

    if (op->sum_spoiled || slot->range.count == 0 || flash_op_begins_in_place(op, slot)) {
        slot_added(slot);
    } else {
        slot_combine(slot);
    }
}

void flash_slot_have_local(flash_slot_t *slot)
{
    if (!flash_op_is_produced(slot->op, slot) && slot->range.count > 0) { /* nor will it be */
        slot_spoil(slot, slot->op->blamed);
    }
    if (slot->way.adds) {
        slot_add(slot);
    } else if (!slot->way.receives) {
        slot_send(slot);
    } else if (slot->spoiled || slot->range.count == 0) {
        slot_leave(slot);
    } else {
        slot_combine(slot);
    }
}

static void slot_need_local(flash_slot_t *slot)
{
    if (slot->way.adds && !flash_op_is_turn(slot->op, slot)) {
        slot->state = FLASH_SLOT_WAITING;
        flash_op_keep_early(slot->op, slot);
    } else if (flash_op_has_local(slot->op, slot)) {
        flash_slot_have_local(slot);
    } else {
        slot->state = FLASH_SLOT_WAITING;
        flash_slot_queue_push(&slot->op->waiting, slot);
    }
}

/*
 * Where nothing arrives, what is local leaves; else it is added. Bounded: what leaves is copied when
 * its turn has come, see flash_op_depart().
 */
bool flash_slot_needs_staging_in(const flash_slot_t *slot)
{
    const flash_op_params_t *params = &slot->op->params;

    return params->stage_in && slot->range.count > 0 && !slot->spoiled && slot->way.contributes &&
           (slot->way.receives ? !params->combine_far : !slot->op->bounded);
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
        slot_settled(slot); /* nothing local to be used up */
    }
    if (slot->way.receives) {
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
    if (!flash_op_reduces(&op->params)) {
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
    op->open_step_ended |= op->open.at == last->step;
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

            flash_op_fail(op, slot->status,
                          here ? own_rank(slot) : flash_slot_neighbour(slot, false));
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
    return !is_added_to(slot) || slot->op->params.combine_far;
}

static void act_on_arrival(flash_slot_t *slot)
{
    if (check_arrival(slot) && !(is_kept_first(slot) && slot_keep(slot))) {
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
        op->engine->transport->ops->give_up(op->engine->transport, flash_slot_pair(slot).right);
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

        flash_op_fail(op, slot->status, lost ? flash_slot_neighbour(slot, true) : own_rank(slot));
        if (send_again(slot)) {
            return;
        }
    }
    op->sending--;
    post_sends(op);
    flash_slot_give_back(slot, FLASH_BOUNCE_DEPARTURE);
    flash_op_depart(op);
    if (!slot->way.receives && flash_op_reduces(&op->params)) {
        slot_settled(slot);
    }
    slot_done(slot);
}

static void slot_arrived(flash_slot_t *slot)
{
    if (brings_far_blame(slot)) {
        flash_slot_stage(slot, FLASH_STAGING_BLAME);
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
    if (slot->way.adds) {
        slot_added(slot);
    } else {
        slot_leave(slot);
    }
}

static void blame_staged(flash_slot_t *slot, int status)
{
    if (status != FLASH_OK) {
        *flash_op_blame_place(slot->op, slot) = FLASH_NOBODY;
    }
    act_on_arrival(slot);
}

/* flash_op_advance() lets it go on, unless what came to be added to was lost, and it has. */
static void local_staged(flash_slot_t *slot)
{
    slot->staged_in = true;
    if (slot->spoiled) {
        flash_slot_give_back(slot, FLASH_BOUNCE_LOCAL);
    }
}

void flash_slot_staged(flash_slot_t *slot, int status)
{
    flash_staging_t direction = slot->staging;

    slot->staging = FLASH_STAGING_NONE;
    if (direction == FLASH_STAGING_BLAME) {
        blame_staged(slot, status);
        return;
    }
    if (status != FLASH_OK) {
        flash_op_fail(slot->op, status, own_rank(slot));
        if (direction != FLASH_STAGING_OUT) {
            slot_spoil(slot, own_rank(slot));
        }
    }
    if (direction == FLASH_STAGING_IN) {
        local_staged(slot);
    } else if (direction == FLASH_STAGING_KEEP) {
        slot_kept(slot);
    } else if (direction == FLASH_STAGING_DEPART) {
        flash_slot_depart(slot);
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
