/*
 * flash_shm_read.c: blocks that others read where they are.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "shm/flash_shm_internal.h"

#include <stdlib.h>
#include <string.h>

#include "engine/flash_copy.h"

/* --------------------------------------------------------------------- taking */

void flash_shm_fail(flash_shm_op_t *op, int status, uint32_t failed_rank)
{
    if (op->status == FLASH_OK) {
        op->status = status;
        op->failed_rank = failed_rank;
    }
}

flash_range_t flash_shm_part(const flash_shm_op_t *op, uint32_t block, uint64_t round)
{
    size_t count = op->params.element == 0 ? 0 : flash_schedule_count(&op->params.schedule, block);
    uint64_t offset = round * op->part;
    size_t left = offset < count ? count - (size_t) offset : 0;

    return (flash_range_t){.offset = (size_t) offset, .count = left < op->part ? left : op->part};
}

ptrdiff_t flash_shm_place(const flash_shm_op_t *op, uint32_t block, flash_range_t part)
{
    return (flash_schedule_displ(&op->params.schedule, block) + (ptrdiff_t) part.offset) *
           (ptrdiff_t) op->params.element;
}

void flash_shm_fill_address(const flash_shm_op_t *op, flash_shm_slot_t *slot)
{
    memcpy(slot->data, &op->params.input, sizeof(op->params.input));
    atomic_store_explicit(&slot->again, 0, memory_order_relaxed);
}

/* -------------------------------------------------------------------- the owner */

static bool is_asked(const flash_shm_t *shm, uint64_t number)
{
    for (uint32_t rank = 0; rank < shm->nranks; rank++) {
        const flash_shm_side_t *side = shm->sides[rank];

        if (rank != shm->rank &&
            atomic_load_explicit(&side->unread, memory_order_acquire) == number) {
            return true;
        }
    }
    return false;
}

/* Who asks another rank whose rounds have the same number gets a copy made that nobody reads. */
void flash_shm_answer(const flash_shm_t *shm, flash_shm_op_t *op, flash_shm_slot_t *slot,
                      uint64_t number)
{
    size_t bytes = flash_schedule_count(&op->params.schedule, shm->rank) * op->params.element;
    uint64_t answer = FLASH_SHM_NO_COPY;

    if (atomic_load_explicit(&slot->again, memory_order_relaxed) != 0 || !is_asked(shm, number)) {
        return;
    }
    op->copy = malloc(bytes);
    if (op->copy != NULL) {
        flash_copy(op->copy, op->params.input, bytes);
        answer = (uint64_t) (uintptr_t) op->copy;
    }
    atomic_store_explicit(&slot->again, answer, memory_order_release);
}

/* ------------------------------------------------------------------- the others */

static void ask(const flash_shm_t *shm, flash_shm_op_t *op, uint64_t number)
{
    op->asks = number != 0;
    atomic_store_explicit(&shm->sides[shm->rank]->unread, number, memory_order_release);
}

/* NULL: there is no copy yet. */
static const char *find(flash_shm_op_t *op, uint32_t rank, const flash_shm_slot_t *slot)
{
    const char *from;
    uint64_t copy;

    if (!op->asks) {
        memcpy(&from, slot->data, sizeof(from));
        return from;
    }
    copy = atomic_load_explicit(&slot->again, memory_order_acquire);
    if (copy == FLASH_SHM_NO_COPY) {
        flash_shm_fail(op, FLASH_ERR_PEER, rank);
    }
    return (const char *) (uintptr_t) copy;
}

/*
 * Who loses a rank lets its user have the memory back, and says so before: what is found unsaid
 * behind the reading was so while it was read.
 */
static void check(const flash_shm_t *shm, flash_shm_op_t *op, uint32_t rank)
{
    uint32_t lost;

    atomic_thread_fence(memory_order_acquire);
    lost = atomic_load_explicit(&shm->sides[rank]->lost, memory_order_relaxed);
    if (lost > 0) {
        flash_shm_fail(op, FLASH_ERR_LOST, lost - 1 == shm->rank ? rank : lost - 1);
    }
}

static flash_taken_t end(const flash_shm_t *shm, flash_shm_op_t *op, uint32_t rank)
{
    check(shm, op, rank);
    if (op->asks) {
        ask(shm, op, 0);
    }
    op->offset = 0;
    return FLASH_TAKEN;
}

flash_taken_t flash_shm_read(const flash_shm_t *shm, flash_shm_op_t *op, uint32_t rank,
                             const flash_shm_slot_t *slot)
{
    flash_range_t block = flash_shm_part(op, rank, op->taken);
    size_t left = block.count * op->params.element - op->offset;
    size_t some = left < FLASH_SHM_READ_BYTES ? left : FLASH_SHM_READ_BYTES;
    const char *from = left == 0 ? NULL : find(op, rank, slot);
    int status;

    if (left == 0 || op->status != FLASH_OK) {
        return end(shm, op, rank);
    }
    if (from == NULL) {
        return FLASH_TAKE_LATER;
    }
    status = shm->read(shm->read_arg, rank,
                       (char *) op->params.output + flash_shm_place(op, rank, block) + op->offset,
                       from + op->offset, some);
    if (status == FLASH_ERR_UNREADABLE && !op->asks) {
        op->offset = 0;
        ask(shm, op, atomic_load_explicit(&slot->posted, memory_order_relaxed));
        return FLASH_TAKE_LATER;
    }
    if (status != FLASH_OK) {
        check(shm, op, rank); /* a copy may be gone for that reason */
        flash_shm_fail(op, status, rank);
        return end(shm, op, rank);
    }
    op->offset += some;
    return some < left ? FLASH_TAKE_MORE : end(shm, op, rank);
}
