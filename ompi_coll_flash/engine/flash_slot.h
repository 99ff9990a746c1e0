/*
 * flash_slot.h: the way of one segment.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef FLASH_SLOT_H
#define FLASH_SLOT_H

#include "engine/flash_op.h"

/* flash_slot.c */
void flash_slot_open(flash_slot_t *slot);
/* False: there is no memory for it yet. */
bool flash_slot_stage_in(flash_slot_t *slot);
void flash_slot_transferred(flash_slot_t *slot); /* acts on the transfer that is done */
void flash_slot_have_local(flash_slot_t *slot);  /* of a waiting slot: it is there, or never will */
void flash_slot_combined(flash_slot_t *slot, int status);
void flash_slot_staged(flash_slot_t *slot, int status);
void flash_slot_stage(flash_slot_t *slot, flash_staging_t direction);

/* flash_slot_messages.c */
/* What is the same for all segments of a slot. */
void flash_slot_init(flash_slot_t *slot, flash_op_t *op);
/* With whom its step exchanges, and the rank of who receives what is sent, or of the other. */
flash_pair_t flash_slot_pair(const flash_slot_t *slot);
uint32_t flash_slot_neighbour(const flash_slot_t *slot, bool sending);
/* flash_engine_note() of something that the segment has been through. */
void flash_slot_note(const flash_slot_t *slot, flash_trace_kind_t kind, uint64_t begin);
void flash_slot_receive(flash_slot_t *slot);
/* The content is lost, because that rank failed, unless it was lost before. */
void flash_slot_poison(flash_slot_t *slot, uint32_t failed_rank);
/* It is where it is sent from, or has no content. */
void flash_slot_depart(flash_slot_t *slot);
/* After a send has ended. */
void flash_op_post_sends(flash_op_t *op);
/* After one that failed: whether its receiver will be told so. */
bool flash_slot_send_again(flash_slot_t *slot);
/* Compares what came with what was expected. False if more messages of the step are to come. */
bool flash_slot_check_arrival(flash_slot_t *slot);
/* Whether a poisoned message says, where only a copy can find it, which rank failed. */
bool flash_slot_brings_failed_rank_on_device(const flash_slot_t *slot);

#endif /* FLASH_SLOT_H */
