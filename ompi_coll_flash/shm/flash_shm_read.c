/*
 * flash_shm_read.c: blocks that others read where they are.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "shm/flash_shm_internal.h"

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
    slot->address = op->params.input;
    atomic_store_explicit(&slot->shown, 0, memory_order_relaxed);
}

/* -------------------------------------------------------------------- the owner */

/*
 * The owner shows the pieces of its block in turn, and begins again behind the last one, as long as
 * a rank asks. A piece stays in the slot until all ranks that ask have taken it.
 *
 * A rank that begins to ask takes no piece that was shown before: the owner may replace that piece,
 * because it may not have seen yet that this rank asks. The rank stores `unread`, and then loads
 * `shown`, say s. The owner stores s + 1 in `shown`, and then loads `unread` before it replaces
 * piece s + 1. All four accesses are sequentially consistent, so the owner sees that the rank asks,
 * and keeps piece s + 1 until the rank has it.
 */
static size_t pieces(size_t bytes)
{
    return (bytes + FLASH_SHM_SLOT_BYTES - 1) / FLASH_SHM_SLOT_BYTES;
}

static size_t offset_of(uint64_t shown, size_t bytes)
{
    return (size_t) ((shown - 1) % pieces(bytes)) * FLASH_SHM_SLOT_BYTES;
}

static size_t length_of(size_t offset, size_t bytes)
{
    size_t left = bytes - offset;

    return left < FLASH_SHM_SLOT_BYTES ? left : FLASH_SHM_SLOT_BYTES;
}

/* Whether a rank waits for the next piece, and none has the present one still to take. */
static bool is_wanted(const flash_shm_t *shm, const flash_shm_op_t *op, uint64_t number)
{
    bool wanted = false;

    for (uint32_t rank = 0; rank < shm->nranks; rank++) {
        const flash_shm_side_t *side = shm->sides[rank];

        if (rank != shm->rank && atomic_load_explicit(&side->unread, memory_order_seq_cst) ==
                                     FLASH_SHM_ASKED(number, shm->rank)) {
            if (atomic_load_explicit(&side->got, memory_order_acquire) != op->shown) {
                return false;
            }
            wanted = true;
        }
    }
    return wanted;
}

void flash_shm_show(const flash_shm_t *shm, flash_shm_op_t *op, flash_shm_slot_t *slot,
                    uint64_t number)
{
    size_t bytes = flash_schedule_count(&op->params.schedule, shm->rank) * op->params.element;
    size_t offset;

    if (is_wanted(shm, op, number)) {
        op->shown++;
        offset = offset_of(op->shown, bytes);
        flash_copy(slot->data, (const char *) op->params.input + offset, length_of(offset, bytes));
        atomic_store_explicit(&slot->shown, op->shown, memory_order_seq_cst);
    }
}

/* ------------------------------------------------------------------- the others */

static void ask(const flash_shm_t *shm, flash_shm_op_t *op, uint64_t asked)
{
    flash_shm_side_t *side = shm->sides[shm->rank];

    op->asks = asked != 0;
    op->offset = 0;
    op->got = FLASH_SHM_JOINS;
    atomic_store_explicit(&side->got, op->got, memory_order_relaxed);
    atomic_store_explicit(&side->unread, asked, memory_order_seq_cst);
}

static void tell_got(const flash_shm_t *shm, flash_shm_op_t *op, uint64_t shown)
{
    op->got = shown;
    atomic_store_explicit(&shm->sides[shm->rank]->got, shown, memory_order_release);
}

/* Takes the next piece to `output`, where the block is to be. Whether there was one. */
static bool take_shown(const flash_shm_t *shm, flash_shm_op_t *op, const flash_shm_slot_t *slot,
                       char *output, size_t bytes)
{
    uint64_t shown = atomic_load_explicit(&slot->shown, memory_order_seq_cst);
    size_t offset;

    if (op->got == FLASH_SHM_JOINS) {
        tell_got(shm, op, shown);
    }
    if (shown == op->got) {
        return false;
    }
    offset = offset_of(shown, bytes);
    flash_copy(output + offset, slot->data, length_of(offset, bytes));
    op->offset += length_of(offset, bytes);
    tell_got(shm, op, shown);
    return true;
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

/* The next bytes of the block, from where it is. */
static int read_some(const flash_shm_t *shm, flash_shm_op_t *op, uint32_t rank,
                     const flash_shm_slot_t *slot, char *output, size_t bytes)
{
    size_t left = bytes - op->offset;
    size_t some = left < FLASH_SHM_READ_BYTES ? left : FLASH_SHM_READ_BYTES;
    int status = shm->read(shm->read_arg, rank, output + op->offset,
                           (const char *) slot->address + op->offset, some);

    op->offset += status == FLASH_OK ? some : 0;
    return status;
}

flash_taken_t flash_shm_read(const flash_shm_t *shm, flash_shm_op_t *op, uint32_t rank,
                             const flash_shm_slot_t *slot)
{
    flash_range_t block = flash_shm_part(op, rank, op->taken);
    char *output = (char *) op->params.output + flash_shm_place(op, rank, block);
    size_t bytes = block.count * op->params.element;
    int status;

    if (bytes == 0) {
        return end(shm, op, rank);
    }
    if (op->asks) {
        if (!take_shown(shm, op, slot, output, bytes)) {
            return FLASH_TAKE_LATER;
        }
    } else {
        status = read_some(shm, op, rank, slot, output, bytes);
        if (status == FLASH_ERR_UNREADABLE) {
            ask(shm, op,
                FLASH_SHM_ASKED(atomic_load_explicit(&slot->posted, memory_order_relaxed), rank));
            return FLASH_TAKE_LATER;
        }
        if (status != FLASH_OK) {
            flash_shm_fail(op, status, rank);
            return end(shm, op, rank);
        }
    }
    return op->offset < bytes ? FLASH_TAKE_MORE : end(shm, op, rank);
}
