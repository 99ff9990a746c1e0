/*
 * flash_slot_tags.c: with whom a segment's messages are exchanged, by which tags, whether they wait
 * for the receiver, and the segment's name in a trace.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "engine/flash_slot.h"

#include <string.h>

_Static_assert(FLASH_EXCHANGE_RANKS == 1 << FLASH_TAG_STEP_BITS,
               "the step of an exchange is told by its distance");

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
    flash_kind_t kind = slot->op->params.schedule.kind;

    if (flash_schedule_exchanges(kind)) {
        return flash_schedule_distance(&slot->op->params.schedule, slot->step);
    }
    return slot->step + (sending && !flash_schedule_chains(kind));
}

uint64_t flash_slot_tag(const flash_slot_t *slot, bool sending)
{
    flash_pair_t pair = flash_slot_pair(slot);
    uint64_t operation = sending ? pair.send_tag : pair.recv_tag;
    uint64_t step = tag_step(slot, sending) & ((UINT32_C(1) << FLASH_TAG_STEP_BITS) - 1);
    uint64_t segment = slot->segment + (sending ? 0 : slot->overrun);

    segment &= (UINT32_C(1) << FLASH_TAG_SEG_BITS) - 1;
    return operation | (step << FLASH_TAG_SEG_BITS | segment) << 2;
}

/*
 * Waiting for the receiver's word would double the time of a brief operation. Those of longer blocks
 * do: at a receiver that is late there is a message for each block of others at most. So do those
 * that have a root or leave out steps: nothing may come to a rank that sends, which could be any
 * number of calls ahead.
 */
bool flash_slot_may_leave(const flash_slot_t *slot)
{
    const flash_schedule_t *schedule = &slot->op->params.schedule;

    return slot->segment == 0 && slot->last_of_step && !flash_schedule_has_root(schedule->kind) &&
           schedule->taken == NULL;
}

void flash_slot_note(const flash_slot_t *slot, flash_trace_kind_t kind, uint64_t begin)
{
    flash_engine_note(
        slot->op, begin,
        (flash_trace_span_t){.kind = kind,
                             .block = flash_schedule_rank(&slot->op->params.schedule, slot->block),
                             .index = slot->segment,
                             .bytes = flash_slot_bytes(slot)});
}
