/*
 * flash_board.c: see flash_board.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "flash_board.h"

#include <stdlib.h>
#include <string.h>

typedef struct op_queue {
    flash_board_op_t *head, **tail;
} op_queue_t;

struct flash_board {
    uint32_t nranks, rank;
    bool joined;            /* the first operation has been */
    uint64_t posted, taken; /* rounds of this board */
    uint64_t freed;         /* of those posted: what all have taken, as far as known */
    uint64_t started;       /* operations */
    op_queue_t running, ended;
    flash_board_op_t spare; /* for a refusal without memory */
    bool spare_used;
    uint32_t lost;    /* a rank, or FLASH_NOBODY */
    uint64_t watched; /* what the latest watch has found to be done, and how many found the same */
    uint32_t watches;
    flash_board_side_t **sides;
    uint64_t base[]; /* by rank: rounds of its side before this board */
};

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
    while ((op = get(&board->running)) != NULL || (op = get(&board->ended)) != NULL) {
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

/* Of a block, the part of a round. */
static flash_range_t part_of(const flash_board_op_t *op, uint32_t block, uint64_t round)
{
    size_t count = op->params.element == 0 ? 0 : flash_schedule_count(&op->params.schedule, block);
    uint64_t offset = round * op->part;
    size_t left = offset < count ? count - (size_t) offset : 0;

    return (flash_range_t){.offset = (size_t) offset, .count = left < op->part ? left : op->part};
}

static ptrdiff_t place_of(const flash_board_op_t *op, uint32_t block, flash_range_t part)
{
    return (flash_schedule_displ(&op->params.schedule, block) + (ptrdiff_t) part.offset) *
           (ptrdiff_t) op->params.element;
}

static void post_block(const flash_board_t *board, const flash_board_op_t *op, char *data)
{
    flash_range_t part = part_of(op, board->rank, op->posted);
    const char *from = (const char *) op->params.input + part.offset * op->params.element;
    char *own = (char *) op->params.output + place_of(op, board->rank, part);

    if (part.count > 0) {
        memcpy(data, from, part.count * op->params.element);
        if (own != from) {
            memcpy(own, from, part.count * op->params.element);
        }
    }
}

static void post_contributions(const flash_board_t *board, const flash_board_op_t *op, char *data)
{
    for (uint32_t ahead = 1; ahead < board->nranks; ahead++) {
        uint32_t block = flash_ring_rank(&op->params.schedule.ring, ahead);
        flash_range_t part = part_of(op, block, op->posted);

        if (part.count > 0) {
            memcpy(data + (ahead - 1) * op->stride,
                   (const char *) op->params.input + place_of(op, block, part),
                   part.count * op->params.element);
        }
    }
}

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
        if (op->params.schedule.kind == FLASH_ALLGATHER) {
            post_block(board, op, slot->data);
        } else {
            post_contributions(board, op, slot->data);
        }
    }
    op->posted++;
    board->posted++;
    atomic_store_explicit(&slot->posted, number, memory_order_release);
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

static void fail(flash_board_op_t *op, int status, uint32_t blamed)
{
    if (op->status == FLASH_OK) {
        op->status = status;
        op->blamed = blamed;
    }
}

static void take_block(const flash_board_op_t *op, uint32_t block, const char *data)
{
    flash_range_t part = part_of(op, block, op->taken);

    if (part.count > 0) {
        memcpy((char *) op->params.output + place_of(op, block, part), data,
               part.count * op->params.element);
    }
}

/* To the sum: in the ring, the first one's contribution is what the next one's is added to. */
static void add(flash_board_op_t *op, const void *contribution, flash_range_t part)
{
    int status = op->params.combine(op->params.combine_arg, contribution,
                                    (char *) op->params.output + part.offset * op->params.element,
                                    part.count);

    if (status != FLASH_OK) {
        fail(op, status, FLASH_NOBODY);
    }
}

static void take_contribution(const flash_board_t *board, flash_board_op_t *op, const char *data)
{
    flash_range_t part = part_of(op, board->rank, op->taken);
    /* Seen from there, this rank stands the rest of the way round. */
    const char *contribution = data + (board->nranks - op->ahead - 1) * op->stride;

    if (part.count > 0 && op->ahead == 1) {
        memcpy((char *) op->params.output + part.offset * op->params.element, contribution,
               part.count * op->params.element);
    } else if (part.count > 0) {
        add(op, contribution, part);
    }
}

static void add_own(const flash_board_t *board, flash_board_op_t *op)
{
    flash_range_t part = part_of(op, board->rank, op->taken);

    if (part.count > 0) {
        add(op, (const char *) op->params.input + place_of(op, board->rank, part), part);
    }
}

static void take(const flash_board_t *board, flash_board_op_t *op, uint32_t rank,
                 const flash_board_slot_t *slot)
{
    bool refused = op->params.element == 0;

    op->most = slot->rounds > op->most ? slot->rounds : op->most;
    if (slot->spoiled) {
        fail(op, FLASH_ERR_PEER, slot->blame);
    } else if (!refused && slot->fingerprint != op->fingerprint) {
        fail(op, FLASH_ERR_TRUNCATED, rank);
    }
    if (op->status == FLASH_OK && op->params.schedule.kind == FLASH_ALLGATHER) {
        take_block(op, rank, slot->data);
    } else if (op->status == FLASH_OK) {
        take_contribution(board, op, slot->data);
    }
}

static void end_round(flash_board_t *board, flash_board_op_t *op)
{
    if (op->status == FLASH_OK && op->params.schedule.kind != FLASH_ALLGATHER) {
        add_own(board, op);
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
        take(board, op, rank, slot);
        op->ahead++;
        happened = true;
    }
    end_round(board, op);
    return true;
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

static void cut(flash_board_op_t *op)
{
    const flash_schedule_t *schedule = &op->params.schedule;
    size_t longest, bytes;

    op->rounds = 1;
    if (op->params.element == 0) {
        return;
    }
    longest = longest_block(schedule);
    op->part = room(schedule->ring.nranks, schedule->kind) / op->params.element;
    if (longest > op->part) {
        op->rounds = (longest + op->part - 1) / op->part;
    }
    bytes = (longest < op->part ? longest : op->part) * op->params.element;
    op->stride = (bytes + 15) / 16 * 16;
}

void flash_board_start(flash_board_t *board, flash_board_op_t *op, const flash_op_params_t *params)
{
    if (!board->joined) {
        board->joined = true;
        for (uint32_t rank = 0; rank < board->nranks; rank++) {
            board->base[rank] =
                atomic_load_explicit(&board->sides[rank]->taken, memory_order_acquire);
        }
    }
    *op = (flash_board_op_t){
        .params = *params, .ahead = 1, .status = FLASH_OK, .blamed = FLASH_NOBODY};
    cut(op);
    op->fingerprint = fingerprint_of(op, board->started++);
    if (op->params.element == 0) {
        fail(op, FLASH_ERR_NO_MEMORY, FLASH_NOBODY);
    }
    if (board->lost != FLASH_NOBODY) {
        fail(op, FLASH_ERR_LOST, board->lost);
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
    flash_board_start(board, op, &refusal);
    return true;
}

bool flash_board_progress(flash_board_t *board)
{
    flash_board_op_t *op = board->running.head;
    bool happened = false;

    if (op == NULL) {
        return false;
    }
    while (post_next(board)) {
        happened = true;
    }
    happened |= take_next(board, op);
    if (op->taken == op->rounds && op->posted == op->rounds) {
        put(&board->ended, get(&board->running));
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
    while ((op = get(&board->running)) != NULL) {
        fail(op, FLASH_ERR_LOST, rank);
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

bool flash_board_watch(flash_board_t *board, flash_silence_t *silence, uint64_t *rounds)
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
                                 .step = (uint32_t) op->taken};
    *rounds = op->rounds;
    silence->block = op->params.schedule.kind == FLASH_ALLGATHER ? silence->rank : board->rank;
    if (board->watches > 0 && lost_elsewhere(board) != FLASH_NOBODY) {
        flash_board_lose(board, lost_elsewhere(board));
        return false;
    }
    return board->watches > 0 && told != NULL;
}
