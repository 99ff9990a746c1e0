/*
 * flash_slot_failure.c: a segment whose content is lost: how that is found, and what is sent
 * instead.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "engine/flash_slot.h"

#include <string.h>

void flash_slot_poison(flash_slot_t *slot, uint32_t failed_rank)
{
    flash_op_t *op = slot->op;

    if (!slot->poisoned) {
        slot->poisoned = true;
        slot->failed_rank = failed_rank;
    }
    if (slot->way.adds && !op->sum_poisoned) {
        op->sum_poisoned = true;
        op->sum_failed_rank = failed_rank;
    }
}

/*
 * What a poisoned segment says: which rank failed, where a receiver surely has room for that. A
 * rank that refuses does not know; to those without room its message is cut short.
 */
size_t flash_slot_failed_rank_bytes(const flash_slot_t *slot)
{
    bool room = flash_slot_bytes(slot) >= sizeof(slot->failed_rank) || slot->op->refused;

    return room ? sizeof(slot->failed_rank) : 0;
}

/*
 * The right neighbour waits for this segment. What is not there cannot be sent later, but that it
 * is not can be said once: true if that is under way. Where it cannot, nothing can be said in the
 * ring any more.
 */
bool flash_slot_send_failed(flash_slot_t *slot)
{
    flash_op_t *op = slot->op;

    if (slot->status == FLASH_ERR_LOST) {
        return false;
    }
    if (slot->sent_again) {
        op->engine->transport->ops->give_up(op->engine->transport, flash_slot_peer(slot, true));
        return false;
    }
    slot->sent_again = true;
    flash_slot_poison(slot, flash_op_own_rank(op));
    return true;
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

static uint32_t read_failed_rank(const flash_slot_t *slot)
{
    uint32_t failed_rank = FLASH_NOBODY;

    if (slot->status == FLASH_OK && slot->length == sizeof(failed_rank)) {
        memcpy(&failed_rank,
               flash_slot_is_on_device(slot, false) ? flash_op_failed_rank_place(slot->op, slot)
                                                    : (const void *) slot->data,
               sizeof(failed_rank));
    }
    if (failed_rank >= slot->op->params.schedule.ring.nranks) {
        failed_rank = FLASH_NOBODY;
    }
    return failed_rank;
}

bool flash_slot_check_arrival(flash_slot_t *slot)
{
    flash_op_t *op = slot->op;
    bool last = (slot->tag & FLASH_TAG_LAST) != 0;

    if (slot->status != FLASH_OK && slot->status != FLASH_ERR_TRUNCATED) {
        if (slot->status != FLASH_ERR_CANCELED) {
            bool here = slot->status == FLASH_ERR_NO_MEMORY || slot->status == FLASH_ERR_REFUSED;

            flash_op_fail(op, slot->status,
                          here ? flash_op_own_rank(op) : flash_slot_neighbour(slot, false));
        }
        flash_slot_poison(slot, op->failed_rank);
        return true;
    }
    if (slot->overrun == 0) {
        if ((slot->tag & FLASH_TAG_POISONED) != 0) {
            flash_slot_poison(slot, read_failed_rank(slot));
        } else if (slot->status == FLASH_ERR_TRUNCATED || slot->length != flash_slot_bytes(slot)) {
            flash_slot_poison(slot, flash_op_own_rank(op));
            flash_op_fail(op, FLASH_ERR_TRUNCATED, flash_op_own_rank(op));
        }
    }
    if (last && !slot->last_of_step) {
        if (slot->poisoned) { /* it may be all that there is */
            flash_op_fail(op, FLASH_ERR_PEER, slot->failed_rank);
        } else {
            flash_op_fail(op, FLASH_ERR_TRUNCATED, flash_op_own_rank(op));
        }
        end_step(slot);
    } else if (!last && slot->last_of_step) {
        flash_slot_poison(slot, flash_op_own_rank(op));
        flash_op_fail(op, FLASH_ERR_TRUNCATED, flash_op_own_rank(op));
        slot->overrun++;
        return false;
    }
    return true;
}

bool flash_slot_brings_failed_rank_on_device(const flash_slot_t *slot)
{
    return flash_slot_is_on_device(slot, false) && slot->overrun == 0 && slot->status == FLASH_OK &&
           (slot->tag & FLASH_TAG_POISONED) != 0 && slot->length == sizeof(slot->failed_rank);
}
