/*
 * flash_slot_staging.c: a segment's copies between the user's memory and the scratch, and, of a
 * bounded operation, between the device memory where it stays and the pinned memory where it is
 * received to or sent from.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "engine/flash_slot.h"

void flash_slot_stage(flash_slot_t *slot, flash_staging_t direction)
{
    slot->staging = direction;
    STAILQ_INSERT_TAIL(&slot->op->staging, slot, next_staging);
    flash_engine_offer(slot->op);
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

bool flash_slot_ends_by_staging(const flash_slot_t *slot)
{
    return slot->op->params.stage_out && slot->way.delivers && !slot->poisoned &&
           slot->range.count > 0 && slot->home == NULL && !flash_op_sums_in_place(slot->op, slot);
}

/* Bounded: what has arrived to go to device memory, and is not there yet, is copied. True: wait. */
bool flash_slot_keep(flash_slot_t *slot)
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
    if (!slot->poisoned && slot->range.count > 0) {
        return copy_to_departure(slot);
    }
    flash_slot_depart(slot);
    return true;
}

/*
 * In order: a later segment would keep the memory until an earlier one, which needs it, has left.
 */
void flash_op_depart(flash_op_t *op)
{
    if (op->next_departure < op->retired) {
        op->next_departure = op->retired;
    }
    while (op->next_departure < op->opened && departs(&op->slots[op->next_departure % op->depth])) {
        op->next_departure++;
    }
}
