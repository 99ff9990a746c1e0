/*
 * flash_board.c: see flash_board.h. Rounds, operations and failures; flash_board_data.c has the data.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "shm/flash_board_internal.h"

#include <stdlib.h>
#include <string.h>

static void put(op_queue_t *queue, flash_board_op_t *op)
{
    op->next = NULL;
    *queue->tail = op;
    queue->tail = &op->next;
}

static flash_board_op_t *get(op_queue_t *queue)
{
    flash_board_op_t *op = queue->head;

    if (op != NULL) {
        queue->head = op->next;
        queue->tail = queue->head == NULL ? &queue->head : queue->tail;
    }
    return op;
}

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

static flash_board_op_t *get_running(flash_board_t *board)
{
    flash_board_op_t *op = get(&board->running);

    if (op != NULL) {
        free(op->copy);
        op->copy = NULL;
    }
    return op;
}

static bool is_refusal(const flash_board_op_t *op)
{
    return op->params.user == NULL;
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
    while ((op = get_running(board)) != NULL || (op = get(&board->ended)) != NULL) {
        if (is_refusal(op)) {
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

static uint64_t rounds_taken(const flash_board_t *board, uint32_t rank)
{
    return atomic_load_explicit(&board->sides[rank]->taken, memory_order_acquire) -
           board->base[rank];
}

static uint64_t taken_by_all(const flash_board_t *board)
{
    uint64_t least = board->posted;

    for (uint32_t rank = 0; rank < board->nranks; rank++) {
        if (rank != board->rank) {
            uint64_t taken = rounds_taken(board, rank);

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

/* --------------------------------------------------------------------- taking */

void flash_board_fail(flash_board_op_t *op, int status, uint32_t blamed)
{
    if (op->status == FLASH_OK) {
        op->status = status;
        op->blamed = blamed;
    }
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
        put(&board->ended, op);
        return;
    }
    put(&board->running, op);
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
        put(&board->ended, get_running(board));
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

    while ((op = get(&board->ended)) != NULL && is_refusal(op)) {
        forget(board, op);
    }
    return op;
}

/* ------------------------------------------------------------------- failures */

void flash_board_lose(flash_board_t *board, uint32_t rank)
{
    flash_board_op_t *op;

    board->lost = rank;
    atomic_store_explicit(&board->sides[board->rank]->lost, rank + 1, memory_order_relaxed);
    /* Before this rank's memory is its user's, see flash_board_read.c. */
    atomic_thread_fence(memory_order_seq_cst);
    while ((op = get_running(board)) != NULL) {
        flash_board_fail(op, FLASH_ERR_LOST, rank);
        put(&board->ended, op);
    }
}

/* Whom another rank has lost, or which one has lost this; FLASH_NOBODY. */
static uint32_t lost_elsewhere(const flash_board_t *board)
{
    for (uint32_t rank = 0; rank < board->nranks; rank++) {
        uint32_t lost = atomic_load_explicit(&board->sides[rank]->lost, memory_order_relaxed);

        if (lost > 0) {
            return lost - 1 == board->rank ? rank : lost - 1;
        }
    }
    return FLASH_NOBODY;
}

/* The rank that is to post the next part, or to take what is in the slot for it. */
static uint32_t awaited(const flash_board_t *board, const flash_board_op_t *op)
{
    uint32_t slowest = flash_ring_rank(&op->params.schedule.ring, op->ahead);

    for (uint32_t rank = 0; rank < board->nranks && op->taken == op->rounds; rank++) {
        if (rank != board->rank && rounds_taken(board, rank) < rounds_taken(board, slowest)) {
            slowest = rank;
        }
    }
    return slowest;
}

bool flash_board_watch(flash_board_t *board, flash_silence_t *silence)
{
    const flash_board_op_t *op = board->running.head, *told = op;
    uint64_t done;

    if (op == NULL) {
        return false;
    }
    while (told != NULL && is_refusal(told)) { /* it keeps those behind it waiting */
        told = told->next;
    }
    done = (board->posted + board->taken) * board->nranks + op->ahead;
    board->watches = done == board->watched ? board->watches + 1 : 0;
    if (told == NULL && board->watches > 1) {
        board->watches = 1; /* who comes behind the refusal has not waited yet */
    }
    board->watched = done;
    *silence = (flash_silence_t){.user = told == NULL ? NULL : told->params.user,
                                 .watches = board->watches,
                                 .rank = awaited(board, op),
                                 .sending = op->taken == op->rounds,
                                 .step = (uint32_t) op->taken,
                                 .steps = (uint32_t) op->rounds};
    silence->block = op->params.schedule.kind == FLASH_ALLGATHER ? silence->rank : board->rank;
    if (board->watches > 0 && lost_elsewhere(board) != FLASH_NOBODY) {
        flash_board_lose(board, lost_elsewhere(board));
        return false;
    }
    return board->watches > 0 && told != NULL;
}
