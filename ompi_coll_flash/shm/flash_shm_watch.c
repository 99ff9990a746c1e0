/*
 * flash_shm_watch.c: ranks that are lost, or fall silent.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "shm/flash_shm_internal.h"

void flash_shm_lose(flash_shm_t *shm, uint32_t rank)
{
    flash_shm_op_t *op;

    shm->lost = rank;
    atomic_store_explicit(&shm->sides[shm->rank]->lost, rank + 1, memory_order_relaxed);
    /* Before this rank's memory is its user's, see flash_shm_read.c. */
    atomic_thread_fence(memory_order_seq_cst);
    while ((op = flash_shm_get(&shm->running)) != NULL) {
        flash_shm_fail(op, FLASH_ERR_LOST, rank);
        flash_shm_put(&shm->ended, op);
    }
}

/* Whom another rank has lost, or which one has lost this; FLASH_NOBODY. */
static uint32_t lost_elsewhere(const flash_shm_t *shm)
{
    for (uint32_t rank = 0; rank < shm->nranks; rank++) {
        uint32_t lost = atomic_load_explicit(&shm->sides[rank]->lost, memory_order_relaxed);

        if (lost > 0) {
            return lost - 1 == shm->rank ? rank : lost - 1;
        }
    }
    return FLASH_NOBODY;
}

/* The rank that is to post the next part, or to take what is in the slot for it. */
static uint32_t awaited(const flash_shm_t *shm, const flash_shm_op_t *op)
{
    uint32_t slowest = flash_ring_rank(&op->params.schedule.ring, op->ahead);

    for (uint32_t rank = 0; rank < shm->nranks && op->taken == op->rounds; rank++) {
        if (rank != shm->rank &&
            flash_shm_rounds_taken(shm, rank) < flash_shm_rounds_taken(shm, slowest)) {
            slowest = rank;
        }
    }
    return slowest;
}

bool flash_shm_watch(flash_shm_t *shm, flash_silence_t *silence)
{
    const flash_shm_op_t *op = shm->running.head, *told = op;
    uint64_t done;

    if (op == NULL) {
        return false;
    }
    while (told != NULL && flash_shm_is_refusal(told)) { /* it keeps those behind it waiting */
        told = told->next;
    }
    done = (shm->posted + shm->taken) * shm->nranks + op->ahead + op->offset + op->shown;
    shm->watches = done == shm->watched ? shm->watches + 1 : 0;
    if (told == NULL && shm->watches > 1) {
        shm->watches = 1; /* who comes behind the refusal has not waited yet */
    }
    shm->watched = done;
    *silence = (flash_silence_t){.user = told == NULL ? NULL : told->params.user,
                                 .watches = shm->watches,
                                 .rank = awaited(shm, op),
                                 .sending = op->taken == op->rounds,
                                 .step = (uint32_t) op->taken,
                                 .steps = (uint32_t) op->rounds};
    silence->block = op->params.schedule.kind == FLASH_ALLGATHER ? silence->rank : shm->rank;
    if (shm->watches > 0 && lost_elsewhere(shm) != FLASH_NOBODY) {
        flash_shm_lose(shm, lost_elsewhere(shm));
        return false;
    }
    return shm->watches > 0 && told != NULL;
}
