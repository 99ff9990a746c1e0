/*
 * flash_shm_data.c: what is posted in a shared-memory channel, and taken from it, through slots.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "shm/flash_shm_internal.h"

#include <stdlib.h>

#include "engine/flash_copy.h"

static bool gathers(const flash_shm_op_t *op)
{
    return op->params.schedule.kind == FLASH_ALLGATHER;
}

/* -------------------------------------------------------------------- posting */

/* Of the own block, the part of the round that is to be posted. */
static const char *own_part(const flash_shm_t *shm, const flash_shm_op_t *op, size_t *bytes)
{
    flash_range_t part = flash_shm_part(op, shm->rank, op->posted);

    *bytes = part.count * op->params.element;
    return (const char *) op->params.input + part.offset * op->params.element;
}

static void fill_contributions(const flash_shm_t *shm, const flash_shm_op_t *op, char *data)
{
    for (uint32_t ahead = 1; ahead < shm->nranks; ahead++) {
        uint32_t block = flash_ring_rank(&op->params.schedule.ring, ahead);
        flash_range_t part = flash_shm_part(op, block, op->posted);

        if (part.count > 0) {
            flash_copy(data + (ahead - 1) * op->stride,
                       (const char *) op->params.input + flash_shm_place(op, block, part),
                       part.count * op->params.element);
        }
    }
}

void flash_shm_fill(const flash_shm_t *shm, const flash_shm_op_t *op, flash_shm_slot_t *slot)
{
    size_t bytes;

    if (!gathers(op)) {
        fill_contributions(shm, op, slot->data);
    } else if (op->reads) {
        flash_shm_fill_address(op, slot);
    } else {
        const char *part = own_part(shm, op, &bytes);

        if (bytes > 0) {
            flash_copy(slot->data, part, bytes);
        }
    }
}

void flash_shm_keep(const flash_shm_t *shm, const flash_shm_op_t *op)
{
    size_t bytes;
    const char *from;
    char *to;

    if (!gathers(op)) {
        return;
    }
    from = own_part(shm, op, &bytes);
    to = (char *) op->params.output +
         flash_shm_place(op, shm->rank, flash_shm_part(op, shm->rank, op->posted));
    if (bytes > 0 && to != from) {
        flash_copy(to, from, bytes);
    }
}

/* --------------------------------------------------------------------- taking */

static void take_block(const flash_shm_op_t *op, uint32_t block, const char *data)
{
    flash_range_t part = flash_shm_part(op, block, op->taken);

    if (part.count > 0) {
        flash_copy((char *) op->params.output + flash_shm_place(op, block, part), data,
                   part.count * op->params.element);
    }
}

/* To the sum: in the ring, the first one's contribution is what the next one's is added to. */
static void add(flash_shm_op_t *op, const void *contribution, flash_range_t part)
{
    int status = op->params.combine(op->params.combine_arg, contribution,
                                    (char *) op->params.output + part.offset * op->params.element,
                                    part.count);

    if (status != FLASH_OK) {
        flash_shm_fail(op, status, FLASH_NOBODY);
    }
}

/* A user's function may write to its first argument as well: to a copy, for others' memory is theirs. */
static void add_by_user(flash_shm_t *shm, flash_shm_op_t *op, const void *contribution,
                        flash_range_t part)
{
    if (shm->copy == NULL) {
        shm->copy = malloc(FLASH_SHM_SLOT_BYTES);
    }
    if (shm->copy == NULL) {
        flash_shm_fail(op, FLASH_ERR_NO_MEMORY, FLASH_NOBODY);
        return;
    }
    flash_copy(shm->copy, contribution, part.count * op->params.element);
    add(op, shm->copy, part);
}

static void take_contribution(flash_shm_t *shm, flash_shm_op_t *op, const char *data)
{
    flash_range_t part = flash_shm_part(op, shm->rank, op->taken);
    /* Seen from there, this rank stands the rest of the way round. */
    const char *contribution = data + (shm->nranks - op->ahead - 1) * op->stride;

    if (part.count > 0 && op->ahead == 1) {
        flash_copy((char *) op->params.output + part.offset * op->params.element, contribution,
                   part.count * op->params.element);
    } else if (part.count > 0 && op->params.combine_is_users) {
        add_by_user(shm, op, contribution, part);
    } else if (part.count > 0) {
        add(op, contribution, part);
    }
}

void flash_shm_take_part(flash_shm_t *shm, flash_shm_op_t *op, uint32_t rank,
                         const flash_shm_slot_t *slot)
{
    if (gathers(op)) {
        take_block(op, rank, slot->data);
    } else {
        take_contribution(shm, op, slot->data);
    }
}

void flash_shm_add_own(const flash_shm_t *shm, flash_shm_op_t *op)
{
    flash_range_t part = flash_shm_part(op, shm->rank, op->taken);

    if (!gathers(op) && part.count > 0) {
        add(op, (const char *) op->params.input + flash_shm_place(op, shm->rank, part), part);
    }
}
