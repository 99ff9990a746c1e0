/*
 * flash_slot_tags.c: with whom a segment's messages are exchanged, by which tags, and the segment's
 * name in a trace.
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

/* NULL: the step is between neighbours. */
static const flash_pair_t *pair_of(const flash_slot_t *slot)
{
    const flash_op_params_t *params = &slot->op->params;

    return flash_schedule_exchanges(params->schedule.kind)
               ? &params->pairs[flash_schedule_distance(&params->schedule, slot->step) - 1]
               : NULL;
}

flash_peer_t *flash_slot_peer(const flash_slot_t *slot, bool sending)
{
    const flash_op_params_t *params = &slot->op->params;
    const flash_pair_t *pair = pair_of(slot);

    if (pair == NULL) {
        return sending ? params->right : params->left;
    }
    return sending ? pair->right : pair->left;
}

static uint64_t tag_of_operation(const flash_slot_t *slot, bool sending)
{
    const flash_op_params_t *params = &slot->op->params;
    const flash_pair_t *pair = pair_of(slot);
    uint64_t tag = sending ? params->send_tag : params->recv_tag;

    if (pair != NULL) {
        tag |= sending ? pair->send_tag : pair->recv_tag;
    }
    return tag;
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
    uint64_t operation = tag_of_operation(slot, sending);
    uint64_t step = tag_step(slot, sending) & ((UINT32_C(1) << FLASH_TAG_STEP_BITS) - 1);
    uint64_t segment = slot->segment + (sending ? 0 : slot->overrun);

    segment &= (UINT32_C(1) << FLASH_TAG_SEG_BITS) - 1;
    return operation | (step << FLASH_TAG_SEG_BITS | segment) << 2;
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
