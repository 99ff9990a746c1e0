/*
 * flash_shm.c: see flash_shm.h. Rounds, operations and failures; flash_shm_data.c has the data.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "shm/flash_shm_internal.h"

#include <stdlib.h>

#include <string.h>

flash_shm_t *flash_shm_create(uint32_t nranks, uint32_t rank, flash_shm_side_t *const sides[])
{
    flash_shm_t *shm = calloc(1, sizeof(*shm) + nranks * sizeof(*shm->base));

    if (shm == NULL) {
        return NULL;
    }
    shm->sides = malloc(nranks * sizeof(*shm->sides));
    if (shm->sides == NULL) {
        free(shm);
        return NULL;
    }
    memcpy(shm->sides, sides, nranks * sizeof(*shm->sides));
    shm->nranks = nranks;
    shm->rank = rank;
    shm->running.tail = &shm->running.head;
    shm->ended.tail = &shm->ended.head;
    shm->lost = FLASH_NOBODY;
    return shm;
}

void flash_shm_read_by(flash_shm_t *shm, flash_shm_read_fn *read, void *arg)
{
    shm->read = read;
    shm->read_arg = arg;
}

static void forget(flash_shm_t *shm, flash_shm_op_t *refusal)
{
    if (refusal == &shm->spare) {
        shm->spare_used = false;
    } else {
        free(refusal);
    }
}

void flash_shm_destroy(flash_shm_t *shm)
{
    flash_shm_op_t *op;

    if (shm == NULL) {
        return;
    }
    while ((op = flash_shm_get(&shm->running)) != NULL ||
           (op = flash_shm_get(&shm->ended)) != NULL) {
        if (flash_shm_is_refusal(op)) {
            forget(shm, op);
        }
    }
    free(shm->sides);
    free(shm->copy);
    free(shm);
}

uint32_t flash_shm_ranks(const flash_shm_t *shm)
{
    return shm->nranks;
}

/* ------------------------------------------------------------------ counting */

/* Bytes of a slot for each part in it. */
static size_t room(uint32_t nranks, flash_kind_t kind)
{
    return kind == FLASH_ALLGATHER
               ? FLASH_SHM_SLOT_BYTES
               : FLASH_SHM_SLOT_BYTES / (nranks - 1) / FLASH_SHM_LINE * FLASH_SHM_LINE;
}

bool flash_shm_fits(uint32_t nranks, flash_kind_t kind, size_t element)
{
    return room(nranks, kind) >= FLASH_SHM_LEAST_PART && element <= room(nranks, kind);
}

static uint64_t taken_by_all(const flash_shm_t *shm)
{
    uint64_t least = shm->posted;

    for (uint32_t rank = 0; rank < shm->nranks; rank++) {
        if (rank != shm->rank) {
            uint64_t taken = flash_shm_rounds_taken(shm, rank);

            least = taken < least ? taken : least;
        }
    }
    return least;
}

/* Whether a slot is free for the next round. */
static bool may_post(flash_shm_t *shm)
{
    if (shm->posted - shm->freed == FLASH_SHM_SLOTS) {
        shm->freed = taken_by_all(shm);
    }
    return shm->posted - shm->freed < FLASH_SHM_SLOTS;
}

bool flash_shm_is_left(flash_shm_t *shm)
{
    if (shm->lost != FLASH_NOBODY) {
        return false;
    }
    if (shm->freed < shm->posted) {
        shm->freed = taken_by_all(shm);
    }
    return shm->freed == shm->posted;
}

static flash_shm_slot_t *slot_of(const flash_shm_t *shm, uint32_t rank, uint64_t round)
{
    return &shm->sides[rank]->slots[round % FLASH_SHM_SLOTS];
}

/* -------------------------------------------------------------------- posting */

static void post(flash_shm_t *shm, flash_shm_op_t *op)
{
    uint64_t number = shm->base[shm->rank] + shm->posted + 1;
    flash_shm_slot_t *slot = slot_of(shm, shm->rank, number);
    bool refused = op->params.element == 0;

    slot->rounds = op->rounds;
    slot->fingerprint = op->fingerprint;
    slot->poisoned = refused || op->params.poisoned;
    slot->failed_rank = shm->rank;
    if (!slot->poisoned) {
        flash_shm_fill(shm, op, slot);
    }
    atomic_store_explicit(&slot->posted, number, memory_order_release);
    if (!slot->poisoned) {
        flash_shm_keep(shm, op);
    }
    op->posted++;
    shm->posted++;
}

/* Until an operation has met the others, none knows where in the rounds the next one begins. */
static bool is_posted(const flash_shm_op_t *op)
{
    return op->posted == op->rounds && op->taken > 0;
}

static bool post_next(flash_shm_t *shm)
{
    flash_shm_op_t *op = shm->running.head;

    while (op != NULL && is_posted(op)) {
        op = op->next;
    }
    if (op == NULL || op->posted == op->rounds || !may_post(shm)) {
        return false;
    }
    post(shm, op);
    return true;
}

static flash_taken_t take(flash_shm_t *shm, flash_shm_op_t *op, uint32_t rank,
                          const flash_shm_slot_t *slot)
{
    bool refused = op->params.element == 0;

    op->most = slot->rounds > op->most ? slot->rounds : op->most;
    if (slot->poisoned) {
        flash_shm_fail(op, FLASH_ERR_PEER, slot->failed_rank);
    } else if (!refused && slot->fingerprint != op->fingerprint) {
        flash_shm_fail(op, FLASH_ERR_TRUNCATED, rank);
    }
    if (op->status != FLASH_OK) {
        return FLASH_TAKEN;
    }
    if (op->reads) {
        return flash_shm_read(shm, op, rank, slot);
    }
    flash_shm_take_part(shm, op, rank, slot);
    return FLASH_TAKEN;
}

static void end_round(flash_shm_t *shm, flash_shm_op_t *op)
{
    if (op->status == FLASH_OK) {
        flash_shm_add_own(shm, op);
    }
    op->ahead = 1;
    op->taken++;
    shm->taken++;
    op->rounds = op->most > op->rounds ? op->most : op->rounds;
    atomic_store_explicit(&shm->sides[shm->rank]->taken, shm->base[shm->rank] + shm->taken,
                          memory_order_release);
}

/* Of a round, what is there. */
static bool take_next(flash_shm_t *shm, flash_shm_op_t *op)
{
    bool happened = false;
    flash_taken_t taken;

    if (op->taken == op->rounds) {
        return false; /* and still posts */
    }
    while (op->ahead < shm->nranks) {
        uint32_t rank = flash_ring_rank(&op->params.schedule.ring, op->ahead);
        uint64_t number = shm->base[rank] + shm->taken + 1;
        const flash_shm_slot_t *slot = slot_of(shm, rank, number);

        if (atomic_load_explicit(&slot->posted, memory_order_acquire) != number) {
            return happened;
        }
        taken = take(shm, op, rank, slot);
        if (taken != FLASH_TAKEN) {
            return happened || taken == FLASH_TAKE_MORE;
        }
        op->ahead++;
        happened = true;
    }
    end_round(shm, op);
    return true;
}

/* Whether all others have read the block of the oldest operation; shows it to those that cannot. */
static bool is_read(const flash_shm_t *shm, flash_shm_op_t *op)
{
    uint64_t round = shm->taken + (op->taken == 0); /* such an operation has one */
    uint64_t number = shm->base[shm->rank] + round;

    if (taken_by_all(shm) >= round) {
        return true;
    }
    if (op->posted > 0 && !op->params.poisoned) {
        flash_shm_show(shm, op, slot_of(shm, shm->rank, number), number);
    }
    return false;
}

/* ----------------------------------------------------------------- operations */

static size_t longest_block(const flash_schedule_t *schedule)
{
    size_t longest = schedule->blocks.count;

    for (uint32_t rank = 0; schedule->blocks.counts != NULL && rank < schedule->ring.nranks;
         rank++) {
        size_t count = schedule->blocks.counts[rank];

        longest = rank == 0 || count > longest ? count : longest;
    }
    return longest;
}

/* Of what ranks must agree about: which operation, of blocks of how many bytes. */
static uint64_t fingerprint_of(const flash_shm_op_t *op, uint64_t number)
{
    const flash_schedule_t *schedule = &op->params.schedule;
    uint64_t print = number * FLASH_KINDS + schedule->kind;

    for (uint32_t rank = 0; rank < schedule->ring.nranks; rank++) {
        print ^= (uint64_t) flash_schedule_count(schedule, rank) * op->params.element;
        print *= UINT64_C(0x9e3779b97f4a7c15);
        print ^= print >> 32;
    }
    return print;
}

static bool reads(const flash_shm_t *shm, const flash_op_params_t *params, size_t read_above)
{
    return shm->read != NULL && params->schedule.kind == FLASH_ALLGATHER && params->element > 0 &&
           longest_block(&params->schedule) > read_above / params->element;
}

static void cut(const flash_shm_t *shm, flash_shm_op_t *op, size_t read_above)
{
    const flash_schedule_t *schedule = &op->params.schedule;
    size_t longest, bytes;

    op->rounds = 1;
    if (op->params.element == 0) {
        return;
    }
    longest = longest_block(schedule);
    op->reads = reads(shm, &op->params, read_above);
    op->part =
        op->reads ? longest : room(schedule->ring.nranks, schedule->kind) / op->params.element;
    if (longest > op->part) {
        op->rounds = (longest + op->part - 1) / op->part;
    }
    bytes = (longest < op->part ? longest : op->part) * op->params.element;
    op->stride = (bytes + 15) / 16 * 16;
}

/*
 * All but the parameters, and what follows from them: a whole structure takes as long as its
 * message.
 */
static void reset(flash_shm_op_t *op)
{
    op->posted = op->taken = op->most = 0;
    op->ahead = 1;
    op->reads = op->asks = false;
    op->offset = 0;
    op->shown = 0;
    op->status = FLASH_OK;
    op->failed_rank = FLASH_NOBODY;
}

void flash_shm_start(flash_shm_t *shm, flash_shm_op_t *op, const flash_op_params_t *params,
                     size_t read_above)
{
    if (!shm->joined) {
        shm->joined = true;
        for (uint32_t rank = 0; rank < shm->nranks; rank++) {
            shm->base[rank] = atomic_load_explicit(&shm->sides[rank]->taken, memory_order_acquire);
        }
    }
    op->params = *params;
    reset(op);
    cut(shm, op, read_above);
    op->fingerprint = fingerprint_of(op, shm->started++);
    if (op->params.element == 0) {
        flash_shm_fail(op, FLASH_ERR_NO_MEMORY, FLASH_NOBODY);
    }
    if (shm->lost != FLASH_NOBODY) {
        flash_shm_fail(op, FLASH_ERR_LOST, shm->lost);
        flash_shm_put(&shm->ended, op);
        return;
    }
    flash_shm_put(&shm->running, op);
}

bool flash_shm_refuse(flash_shm_t *shm, const flash_op_params_t *params)
{
    flash_op_params_t refusal = *params;
    flash_shm_op_t *op = malloc(sizeof(*op));

    if (op == NULL && !shm->spare_used) {
        shm->spare_used = true;
        op = &shm->spare;
    }
    if (op == NULL) {
        shm->started++;
        return false;
    }
    refusal.element = 0;
    refusal.user = NULL;
    flash_shm_start(shm, op, &refusal, SIZE_MAX);
    return true;
}

bool flash_shm_progress(flash_shm_t *shm)
{
    flash_shm_op_t *op = shm->running.head;
    bool happened = false, read;
    uint64_t shown;

    if (op == NULL) {
        return false;
    }
    shown = op->shown;
    while (post_next(shm)) {
        happened = true;
    }
    happened |= take_next(shm, op);
    read = !op->reads || is_read(shm, op);
    happened |= op->shown != shown;
    if (op->taken == op->rounds && op->posted == op->rounds && read) {
        flash_shm_put(&shm->ended, flash_shm_get(&shm->running));
    }
    return happened;
}

bool flash_shm_is_busy(const flash_shm_t *shm)
{
    return shm->running.head != NULL || shm->ended.head != NULL;
}

flash_shm_op_t *flash_shm_ended(flash_shm_t *shm)
{
    flash_shm_op_t *op;

    while ((op = flash_shm_get(&shm->ended)) != NULL && flash_shm_is_refusal(op)) {
        forget(shm, op);
    }
    return op;
}
