/*
 * flash_op_depart.c: a bounded operation's segments on their way out: copied to where they are sent from.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "engine/flash_slot.h"

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
