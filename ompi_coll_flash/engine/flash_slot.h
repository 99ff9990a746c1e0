/*
 * flash_slot.h: the path of one segment.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef FLASH_SLOT_H
#define FLASH_SLOT_H

#include "engine/flash_op.h"

/* flash_slot_tags.c */
/*
 * Who receives what the slot's step sends, or sends what it receives, and its rank. Nothing else of a
 * pair is read: the application may just have found the peer of its other direction.
 */
flash_peer_t *flash_slot_peer(const flash_slot_t *slot, bool sending);
uint32_t flash_slot_neighbour(const flash_slot_t *slot, bool sending);
/* The tag of the segment's message. */
uint64_t flash_slot_tag(const flash_slot_t *slot, bool sending);
/* flash_engine_note() of something that the segment has been through. */
void flash_slot_note(const flash_slot_t *slot, flash_trace_kind_t kind, uint64_t begin);

static inline size_t flash_slot_bytes(const flash_slot_t *slot)
{
    return slot->range.count * slot->op->params.element;
}
/* Whether what arrives and is sent on, or what is local, lies where the CPU cannot reach it. */
static inline bool flash_slot_is_on_device(const flash_slot_t *slot, bool local)
{
    const flash_op_params_t *params = &slot->op->params;

    return params->scratch_on_device && (local ? params->stage_in : params->stage_out);
}

/* flash_slot_failure.c */
/* The content is lost, because that rank failed, unless it was lost before. */
void flash_slot_poison(flash_slot_t *slot, uint32_t failed_rank);
/*
 * The length of a poisoned message, which says which rank failed where the receiver surely has room
 * for that.
 */
size_t flash_slot_failed_rank_bytes(const flash_slot_t *slot);
/* True: the slot is poisoned now, and is to be sent once more, so that its receiver knows. */
bool flash_slot_send_failed(flash_slot_t *slot);
/*
 * Compares what came with what was expected. False: one more message of the step is to be received.
 */
bool flash_slot_check_arrival(flash_slot_t *slot);
/* Whether only a copy from the device can tell which rank failed. */
bool flash_slot_brings_failed_rank_on_device(const flash_slot_t *slot);

/* flash_slot_staging.c */
void flash_slot_stage(flash_slot_t *slot, flash_staging_t direction);
/* False: there is no memory for it yet. */
bool flash_slot_stage_in(flash_slot_t *slot);
/* Whether a result is still to be copied to where it belongs. */
bool flash_slot_ends_by_staging(const flash_slot_t *slot);
/* Of a segment that has arrived in pinned memory: whether it is being copied to its home first. */
bool flash_slot_keep(flash_slot_t *slot);

/* flash_slot_word.c */
/*
 * Whether its message is not to be sent before its receiver has begun the operation. Where other ranks
 * would wait for that, too, it is sent, and waits for the receiver's word.
 */
bool flash_slot_waits_for_word(const flash_slot_t *slot);
/* Counts its send, which the flow has let through, and sets `leaves` of its transfer. */
void flash_slot_begin_send(flash_slot_t *slot);
/* Counts the end of its send, and takes out of the flow what the receiver has confirmed. */
void flash_slot_end_send(flash_slot_t *slot);

/* flash_slot.c */
/* What is the same for all segments of a slot. */
void flash_slot_init(flash_slot_t *slot, flash_op_t *op);
void flash_slot_open(flash_slot_t *slot);
/* The segment is where it is sent from, or has no content. */
void flash_slot_depart(flash_slot_t *slot);
void flash_slot_transferred(flash_slot_t *slot); /* acts on the transfer that is done */
void flash_slot_have_local(
    flash_slot_t *slot); /* of a waiting slot: it is there, or never will be */
void flash_slot_combined(flash_slot_t *slot, int status);
void flash_slot_staged(flash_slot_t *slot, int status);

#endif /* FLASH_SLOT_H */
