/*
 * flash_shm_internal.h: what the files of shared-memory channels share: flash_shm.c counts rounds
 * and keeps operations, flash_shm_data.c moves what they are about, through slots, flash_shm_read.c
 * without.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef FLASH_SHM_INTERNAL_H
#define FLASH_SHM_INTERNAL_H

#include "shm/flash_shm.h"

typedef struct op_queue {
    flash_shm_op_t *head, **tail;
} op_queue_t;

struct flash_shm {
    uint32_t nranks, rank;
    bool joined;            /* the first operation has been */
    uint64_t posted, taken; /* rounds of this channel */
    uint64_t freed;         /* of those posted: what all have taken, as far as known */
    uint64_t started;       /* operations */
    op_queue_t running, ended;
    flash_shm_op_t spare; /* for a refusal without memory */
    bool spare_used;
    uint32_t lost;    /* a rank, or FLASH_NOBODY */
    uint64_t watched; /* what the latest watch has found to be done, and how many found the same */
    uint32_t watches;
    flash_shm_read_fn *read;
    void *read_arg;
    flash_shm_side_t **sides;
    char *copy; /* of what is another's, for users' functions; NULL before the first needs it */
    uint64_t base[]; /* by rank: rounds of its side before this channel */
};

/* ------------------------------------------------- operations and rounds of a channel */

static inline void flash_shm_put(op_queue_t *queue, flash_shm_op_t *op)
{
    op->next = NULL;
    *queue->tail = op;
    queue->tail = &op->next;
}

static inline flash_shm_op_t *flash_shm_get(op_queue_t *queue)
{
    flash_shm_op_t *op = queue->head;

    if (op != NULL) {
        queue->head = op->next;
        queue->tail = queue->head == NULL ? &queue->head : queue->tail;
    }
    return op;
}

static inline bool flash_shm_is_refusal(const flash_shm_op_t *op)
{
    return op->params.user == NULL;
}

static inline uint64_t flash_shm_rounds_taken(const flash_shm_t *shm, uint32_t rank)
{
    return atomic_load_explicit(&shm->sides[rank]->taken, memory_order_acquire) - shm->base[rank];
}

/* The first thing that went wrong is what the operation ends with. */
void flash_shm_fail(flash_shm_op_t *op, int status, uint32_t failed_rank);

/* Of the round that is to be posted: what the others are to find in the slot. */
void flash_shm_fill(const flash_shm_t *shm, const flash_shm_op_t *op, flash_shm_slot_t *slot);
/* Likewise what of it this rank is to find in its output; the others need not wait for that. */
void flash_shm_keep(const flash_shm_t *shm, const flash_shm_op_t *op);
/* Of the round that is to be taken, that rank's part. */
void flash_shm_take_part(flash_shm_t *shm, flash_shm_op_t *op, uint32_t rank,
                         const flash_shm_slot_t *slot);
/* Likewise of a reduce-scatter what this rank adds at last. */
void flash_shm_add_own(const flash_shm_t *shm, flash_shm_op_t *op);

/* Of a block, the part of a round; and where that is in the output. */
flash_range_t flash_shm_part(const flash_shm_op_t *op, uint32_t block, uint64_t round);
ptrdiff_t flash_shm_place(const flash_shm_op_t *op, uint32_t block, flash_range_t part);

/* -------------------------------------------------- reading: flash_shm_read.c */

typedef enum flash_taken { FLASH_TAKEN, FLASH_TAKE_MORE, FLASH_TAKE_LATER } flash_taken_t;

/* As the slot of an operation that reads is filled. */
void flash_shm_fill_address(const flash_shm_op_t *op, flash_shm_slot_t *slot);
/*
 * Reads some of that rank's block. FLASH_TAKE_LATER: has asked for it, and the next piece is not
 * there yet.
 */
flash_taken_t flash_shm_read(const flash_shm_t *shm, flash_shm_op_t *op, uint32_t rank,
                             const flash_shm_slot_t *slot);
/* Of the oldest operation: shows the next piece in its slot, if a rank has asked for it. */
void flash_shm_show(const flash_shm_t *shm, flash_shm_op_t *op, flash_shm_slot_t *slot,
                    uint64_t number);

#endif /* FLASH_SHM_INTERNAL_H */
