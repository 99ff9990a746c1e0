/*
 * flash_op_bounce.c: an operation on a device's memory whose pinned memory is bounded, whatever the
 * length of its blocks.
 *
 * Otherwise a segment has its part of the scratch from its arrival to its departure, so that the
 * scratch is as long as a block. Here it borrows *bounce segments*, for each thing that needs one:
 *
 *   [receive] -> [copy to its home, in far memory] -> [add what is local, in far memory] -> kept;
 *   in its turn -> [copy from its home] -> [send] -> done
 *
 * What the host adds to is kept in ordinary memory, in which it arrives and from which it is sent. The
 * one exception is what the host adds to and what goes to the user's far memory then, a reduction's
 * own block: that is added to where it arrives.
 *
 * This locks up no more than the other way does. The window is the same, and so are the messages. A
 * receive waits for memory that those before it give back once they are copied, and a send for what
 * those before it give back once they are sent; each lends its memory in the order of the ring, and
 * to nobody else. So a message waits for nothing but for earlier ones, beside what it would wait for
 * anyway, and a rank that is bounded may have neighbours that are not. Arrivals wait for no callback:
 * a rank that computes still receives. But the own block's do, in that exception: so a producer may
 * be two blocks ahead there, to wait for nothing of the step before.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "flash_op.h"

/* ---------------------------------------------------------------------- sizes */

static bool sums_by_host(const flash_op_params_t *params)
{
    return flash_op_reduces(params) && !params->combine_far;
}

/* Whether anything that is sent on is kept in the user's far memory. */
static bool sends_results(const flash_op_params_t *params)
{
    flash_kind_t kind = params->schedule.kind;

    return params->stage_out && (kind == FLASH_ALLGATHER || kind == FLASH_ALLREDUCE);
}

static bool borrows(const flash_op_params_t *params, flash_bounce_t what)
{
    switch (what) {
    case FLASH_BOUNCE_ARRIVAL:
        return params->stage_out;
    case FLASH_BOUNCE_DEPARTURE:
        return params->stage_in || sends_results(params);
    default:
        return params->stage_in && sums_by_host(params);
    }
}

static uint32_t purposes(const flash_op_params_t *params)
{
    uint32_t count = 0;

    for (flash_bounce_t what = 0; what < FLASH_BOUNCES; what++) {
        count += borrows(params, what);
    }
    return count;
}

bool flash_op_is_bounded(const flash_op_params_t *params, size_t bytes)
{
    size_t least = purposes(params) * flash_op_segment_bytes(params);

    return (params->stage_in || params->stage_out) && !params->scratch_far &&
           params->schedule.kind != FLASH_DIRECT_REDUCE_SCATTER &&
           bytes > (params->bound > least ? params->bound : least);
}

bool flash_op_adds_in_bounces(const flash_op_params_t *params)
{
    return sums_by_host(params) && params->stage_out;
}

/* For each purpose: equal parts of the bound, one at least, and no more than the window has use for. */
static uint32_t share(const flash_op_params_t *params)
{
    size_t bytes = flash_op_segment_bytes(params);
    size_t wanted = bytes == 0 ? 1 : params->bound / bytes / purposes(params);
    uint32_t most = flash_op_window(params);

    return wanted == 0 ? 1 : wanted < most ? (uint32_t) wanted : most;
}

uint32_t flash_op_bounce_segments(const flash_op_params_t *params)
{
    return purposes(params) * share(params);
}

size_t flash_op_bounce_size(const flash_op_params_t *params)
{
    return flash_op_bounce_segments(params) * flash_op_segment_bytes(params);
}

/* Between two ranks there are no sums but the results. */
static size_t sums_size(const flash_op_params_t *params)
{
    return flash_op_reduces(params) && params->schedule.ring.nranks > 2
               ? flash_op_window(params) * flash_op_segment_bytes(params)
               : 0;
}

size_t flash_op_far_store_size(const flash_op_params_t *params)
{
    return sums_by_host(params) ? 0 : sums_size(params);
}

size_t flash_op_near_store_size(const flash_op_params_t *params)
{
    return sums_by_host(params) ? sums_size(params) : 0;
}

/* ------------------------------------------------------------------- borrowing */

void flash_op_init_bounces(flash_op_t *op)
{
    uint32_t number = 0;

    for (flash_bounce_t what = 0; what < FLASH_BOUNCES; what++) {
        flash_stack_t *stack = &op->free_bounces[what];

        stack->first = number;
        stack->count = borrows(&op->params, what) ? share(&op->params) : 0;
        for (; number < stack->first + stack->count; number++) {
            op->bounces[number] = number + 1;
        }
    }
}

bool flash_op_may_open(const flash_op_t *op)
{
    return !op->bounded || !borrows(&op->params, FLASH_BOUNCE_ARRIVAL) ||
           op->free_bounces[FLASH_BOUNCE_ARRIVAL].count > 0;
}

char *flash_slot_borrow(flash_slot_t *slot, flash_bounce_t what)
{
    flash_op_t *op = slot->op;
    flash_stack_t *stack = &op->free_bounces[what];

    if (stack->count == 0) {
        return NULL;
    }
    slot->bounce[what] = op->bounces[stack->first + --stack->count];
    return (char *) op->scratch + (slot->bounce[what] - 1) * op->segment_bytes;
}

void flash_slot_give_back(flash_slot_t *slot, flash_bounce_t what)
{
    flash_op_t *op = slot->op;
    flash_stack_t *stack = &op->free_bounces[what];

    if (slot->bounce[what] != 0) {
        op->bounces[stack->first + stack->count++] = slot->bounce[what];
        slot->bounce[what] = 0;
    }
}

/* ------------------------------------------------------------------- departing */

/* What it is copied to is what it is sent from. False: there is no memory for it yet. */
static bool copy_to_departure(flash_slot_t *slot)
{
    char *memory = flash_slot_borrow(slot, FLASH_BOUNCE_DEPARTURE);

    if (memory == NULL) {
        return false;
    }
    if (slot->way.receives) {
        slot->data = memory;
    } else {
        slot->local = memory;
    }
    flash_slot_stage(slot, FLASH_STAGING_DEPART);
    return true;
}

/* Whether nothing keeps the segments behind this one from being copied. */
static bool departs(flash_slot_t *slot)
{
    if (!slot->way.sends || slot->home == NULL) {
        return true;
    }
    if (slot->state != FLASH_SLOT_KEPT) {
        return false;
    }
    if (!slot->spoiled && slot->range.count > 0) {
        return copy_to_departure(slot);
    }
    flash_slot_depart(slot);
    return true;
}

/* In order: a later segment would keep the memory until an earlier one, which needs it, has left. */
void flash_op_depart(flash_op_t *op)
{
    if (op->next_departure < op->retired) {
        op->next_departure = op->retired;
    }
    while (op->next_departure < op->opened && departs(&op->slots[op->next_departure % op->depth])) {
        op->next_departure++;
    }
}
