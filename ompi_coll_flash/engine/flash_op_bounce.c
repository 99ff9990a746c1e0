/*
 * flash_op_bounce.c: an operation on a device's memory whose pinned memory is bounded, whatever the
 * length of its blocks.
 *
 * Without a bound, a segment has its part of the scratch from its arrival to its departure, so that
 * the scratch is as long as a block. With one, a segment borrows *bounce segments* of the scratch,
 * each for as long as one thing needs it:
 *
 *   [receive] -> [copy to its home, in device memory] -> [add what is local, there] -> kept;
 *   in its turn [copy from its home] -> [send] -> done
 *
 * Sums that the host makes are received to, added to in and sent from ordinary memory. One
 * exception: the sum of the own block, if it goes to device memory, is made in the bounce segment
 * that it arrives at, and copied then.
 *
 * The ring does not lock up. The window and the messages are those of an operation without a bound.
 * The three kinds of bounce segments are apart, and each is lent in the order of the ring. One that
 * is received to comes back after a copy, whatever else waits; one that is sent from, when its
 * message is taken. So beside what it waits for without a bound, a message waits for messages of
 * lower steps, or of lower segments of its step, alone. That holds for neighbours without a bound,
 * and for ranks that disagree about lengths. In the exception an arrival waits for a callback:
 * there a producer may be two blocks ahead, so that the callback waits for no message of that step.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "engine/flash_op.h"

/* ---------------------------------------------------------------------- sizes */

static bool sums_by_host(const flash_op_params_t *params)
{
    return flash_op_reduces(params) && !params->combine_on_device;
}

/* Whether anything that is sent on is kept in the user's device memory. */
static bool sends_results(const flash_op_params_t *params)
{
    flash_kind_t kind = params->schedule.kind;

    return params->stage_out &&
           (kind == FLASH_ALLGATHER || kind == FLASH_ALLREDUCE || kind == FLASH_BCAST);
}

static bool borrows(const flash_op_params_t *params, flash_bounce_t what)
{
    switch (what) {
    case FLASH_BOUNCE_ARRIVAL:
        return flash_op_stages(params, false);
    case FLASH_BOUNCE_DEPARTURE:
        return flash_op_stages(params, true) || sends_results(params);
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

    return (params->stage_in || params->stage_out) && !params->scratch_on_device &&
           params->schedule.kind != FLASH_PAIRWISE_REDUCE_SCATTER &&
           bytes > (params->bound > least ? params->bound : least);
}

bool flash_op_adds_in_bounces(const flash_op_params_t *params)
{
    return sums_by_host(params) && params->stage_out;
}

/*
 * For each purpose: equal parts of the bound, one at least, and no more than the window has use
 * for.
 */
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

/* Between two ranks there are no sums but the results, which in place are made from there, too. */
static size_t sums_size(const flash_op_params_t *params)
{
    return flash_op_reduces(params) &&
                   (params->schedule.ring.nranks > 2 || flash_op_sums_on_input(params))
               ? flash_op_window(params) * flash_op_segment_bytes(params)
               : 0;
}

size_t flash_op_device_store_size(const flash_op_params_t *params)
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
