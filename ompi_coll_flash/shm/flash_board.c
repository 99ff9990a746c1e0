/*
 * flash_board.c: see flash_board.h. Rounds, operations and failures; flash_board_data.c has the data.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "shm/flash_board_internal.h"

#include <string.h>

flash_board_t *flash_board_create(uint32_t nranks, uint32_t rank, flash_board_side_t *const sides[])
{
    flash_board_t *board = calloc(1, sizeof(*board) + nranks * sizeof(*board->base));

    if (board == NULL) {
        return NULL;
    }
    board->sides = malloc(nranks * sizeof(*board->sides));
    if (board->sides == NULL) {
        free(board);
        return NULL;
    }
    memcpy(board->sides, sides, nranks * sizeof(*board->sides));
    board->nranks = nranks;
    board->rank = rank;
    board->running.tail = &board->running.head;
    board->ended.tail = &board->ended.head;
    board->lost = FLASH_NOBODY;
    return board;
}

void flash_board_read_by(flash_board_t *board, flash_board_read_fn *read, void *arg)
{
    board->read = read;
    board->read_arg = arg;
}

static void forget(flash_board_t *board, flash_board_op_t *refusal)
{
    if (refusal == &board->spare) {
        board->spare_used = false;
    } else {
        free(refusal);
    }
}

void flash_board_destroy(flash_board_t *board)
{
    flash_board_op_t *op;

    if (board == NULL) {
        return;
    }
    while ((op = flash_board_get_running(board)) != NULL ||
           (op = flash_board_get(&board->ended)) != NULL) {
        if (flash_board_is_refusal(op)) {
            forget(board, op);
        }
    }
    free(board->sides);
    free(board);
}

uint32_t flash_board_ranks(const flash_board_t *board)
{
    return board->nranks;
}

/* ------------------------------------------------------------------ counting */

/* Bytes of a slot for each part in it. */
static size_t room(uint32_t nranks, flash_kind_t kind)
{
    return kind == FLASH_ALLGATHER
               ? FLASH_BOARD_SLOT_BYTES
               : FLASH_BOARD_SLOT_BYTES / (nranks - 1) / FLASH_BOARD_LINE * FLASH_BOARD_LINE;
}

bool flash_board_fits(uint32_t nranks, flash_kind_t kind, size_t element)
{
    return room(nranks, kind) >= FLASH_BOARD_LEAST_PART && element <= room(nranks, kind);
}

static uint64_t taken_by_all(const flash_board_t *board)
{
    uint64_t least = board->posted;

    for (uint32_t rank = 0; rank < board->nranks; rank++) {
        if (rank != board->rank) {
            uint64_t taken = flash_board_rounds_taken(board, rank);

            least = taken < least ? taken : least;
        }
    }
    return least;
}

/* Whether a slot is free for the next round. */
static bool may_post(flash_board_t *board)
{
    if (board->posted - board->freed == FLASH_BOARD_SLOTS) {
        board->freed = taken_by_all(board);
    }
    return board->posted - board->freed < FLASH_BOARD_SLOTS;
}

bool flash_board_is_left(flash_board_t *board)
{
    if (board->lost != FLASH_NOBODY) {
        return false;
    }
    if (board->freed < board->posted) {
        board->freed = taken_by_all(board);
    }
    return board->freed == board->posted;
}

static flash_board_slot_t *slot_of(const flash_board_t *board, uint32_t rank, uint64_t round)
{
    return &board->sides[rank]->slots[round % FLASH_BOARD_SLOTS];
}

/* -------------------------------------------------------------------- posting */

static void post(flash_board_t *board, flash_board_op_t *op)
{
    uint64_t number = board->base[board->rank] + board->posted + 1;
    flash_board_slot_t *slot = slot_of(board, board->rank, number);
    bool refused = op->params.element == 0;

    slot->rounds = op->rounds;
    slot->fingerprint = op->fingerprint;
    slot->spoiled = refused || op->params.spoiled;
    slot->blame = board->rank;
    if (!slot->spoiled) {
        flash_board_fill(board, op, slot);
    }
    atomic_store_explicit(&slot->posted, number, memory_order_release);
    if (!slot->spoiled) {
        flash_board_keep(board, op);
    }
    op->posted++;
    board->posted++;
}

/* Until an operation has met the others, none knows where in the rounds the next one begins. */
static bool is_posted(const flash_board_op_t *op)
{
    return op->posted == op->rounds && op->taken > 0;
}

static bool post_next(flash_board_t *board)
{
    flash_board_op_t *op = board->running.head;

    while (op != NULL && is_posted(op)) {
        op = op->next;
    }
    if (op == NULL || op->posted == op->rounds || !may_post(board)) {
        return false;
    }
    post(board, op);
    return true;
}

static flash_taken_t take(const flash_board_t *board, flash_board_op_t *op, uint32_t rank,
                          const flash_board_slot_t *slot)
{
    bool refused = op->params.element == 0;

    op->most = slot->rounds > op->most ? slot->rounds : op->most;
    if (slot->spoiled) {
        flash_board_fail(op, FLASH_ERR_PEER, slot->blame);
    } else if (!refused && slot->fingerprint != op->fingerprint) {
        flash_board_fail(op, FLASH_ERR_TRUNCATED, rank);
    }
    if (op->status != FLASH_OK) {
        return FLASH_TAKEN;
    }
    if (op->reads) {
        return flash_board_read(board, op, rank, slot);
    }
    flash_board_take_part(board, op, rank, slot);
    return FLASH_TAKEN;
}

static void end_round(flash_board_t *board, flash_board_op_t *op)
{
    if (op->status == FLASH_OK) {
        flash_board_add_own(board, op);
    }
    op->ahead = 1;
    op->taken++;
    board->taken++;
    op->rounds = op->most > op->rounds ? op->most : op->rounds;
    atomic_store_explicit(&board->sides[board->rank]->taken,
                          board->base[board->rank] + board->taken, memory_order_release);
}

/* Of a round, what is there. */
static bool take_next(flash_board_t *board, flash_board_op_t *op)
{
    bool happened = false;
    flash_taken_t taken;

    if (op->taken == op->rounds) {
        return false; /* and still posts */
    }
    while (op->ahead < board->nranks) {
        uint32_t rank = flash_ring_rank(&op->params.schedule.ring, op->ahead);
        uint64_t number = board->base[rank] + board->taken + 1;
        const flash_board_slot_t *slot = slot_of(board, rank, number);

        if (atomic_load_explicit(&slot->posted, memory_order_acquire) != number) {
            return happened;
        }
        taken = take(board, op, rank, slot);
        if (taken != FLASH_TAKEN) {
            return happened || taken == FLASH_TAKE_MORE;
        }
        op->ahead++;
        happened = true;
    }
    end_round(board, op);
    return true;
}

/*
 * Whether all others have read the block of the oldest operation; makes a copy for those that cannot.
 */
static bool is_read(const flash_board_t *board, flash_board_op_t *op)
{
    uint64_t round = board->taken + (op->taken == 0); /* such an operation has one */
    uint64_t number = board->base[board->rank] + round;

    if (taken_by_all(board) >= round) {
        return true;
    }
    if (op->posted > 0 && !op->params.spoiled) {
        flash_board_answer(board, op, slot_of(board, board->rank, number), number);
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
static uint64_t fingerprint_of(const flash_board_op_t *op, uint64_t number)
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

static bool reads(const flash_board_t *board, const flash_op_params_t *params, size_t read_above)
{
    return board->read != NULL && params->schedule.kind == FLASH_ALLGATHER && params->element > 0 &&
           longest_block(&params->schedule) > read_above / params->element;
}

static void cut(const flash_board_t *board, flash_board_op_t *op, size_t read_above)
{
    const flash_schedule_t *schedule = &op->params.schedule;
    size_t longest, bytes;

    op->rounds = 1;
    if (op->params.element == 0) {
        return;
    }
    longest = longest_block(schedule);
    op->reads = reads(board, &op->params, read_above);
    op->part =
        op->reads ? longest : room(schedule->ring.nranks, schedule->kind) / op->params.element;
    if (longest > op->part) {
        op->rounds = (longest + op->part - 1) / op->part;
    }
    bytes = (longest < op->part ? longest : op->part) * op->params.element;
    op->stride = (bytes + 15) / 16 * 16;
}

/* All but the parameters, and what follows from them: a whole structure takes as long as its message. */
static void reset(flash_board_op_t *op)
{
    op->posted = op->taken = op->most = 0;
    op->ahead = 1;
    op->reads = op->asks = false;
    op->offset = 0;
    op->copy = NULL;
    op->status = FLASH_OK;
    op->blamed = FLASH_NOBODY;
}

void flash_board_start(flash_board_t *board, flash_board_op_t *op, const flash_op_params_t *params,
                       size_t read_above)
{
    if (!board->joined) {
        board->joined = true;
        for (uint32_t rank = 0; rank < board->nranks; rank++) {
            board->base[rank] =
                atomic_load_explicit(&board->sides[rank]->taken, memory_order_acquire);
        }
    }
    op->params = *params;
    reset(op);
    cut(board, op, read_above);
    op->fingerprint = fingerprint_of(op, board->started++);
    if (op->params.element == 0) {
        flash_board_fail(op, FLASH_ERR_NO_MEMORY, FLASH_NOBODY);
    }
    if (board->lost != FLASH_NOBODY) {
        flash_board_fail(op, FLASH_ERR_LOST, board->lost);
        flash_board_put(&board->ended, op);
        return;
    }
    flash_board_put(&board->running, op);
}

bool flash_board_refuse(flash_board_t *board, const flash_op_params_t *params)
{
    flash_op_params_t refusal = *params;
    flash_board_op_t *op = malloc(sizeof(*op));

    if (op == NULL && !board->spare_used) {
        board->spare_used = true;
        op = &board->spare;
    }
    if (op == NULL) {
        board->started++;
        return false;
    }
    refusal.element = 0;
    refusal.user = NULL;
    flash_board_start(board, op, &refusal, SIZE_MAX);
    return true;
}

bool flash_board_progress(flash_board_t *board)
{
    flash_board_op_t *op = board->running.head;
    bool happened = false, read;

    if (op == NULL) {
        return false;
    }
    while (post_next(board)) {
        happened = true;
    }
    happened |= take_next(board, op);
    read = !op->reads || is_read(board, op);
    if (op->taken == op->rounds && op->posted == op->rounds && read) {
        flash_board_put(&board->ended, flash_board_get_running(board));
    }
    return happened;
}

bool flash_board_is_busy(const flash_board_t *board)
{
    return board->running.head != NULL || board->ended.head != NULL;
}

flash_board_op_t *flash_board_ended(flash_board_t *board)
{
    flash_board_op_t *op;

    while ((op = flash_board_get(&board->ended)) != NULL && flash_board_is_refusal(op)) {
        forget(board, op);
    }
    return op;
}
