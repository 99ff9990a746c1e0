/*
 * flash_op.c: one operation: the memory it needs, its beginning and its end.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "flash_op.h"

#include <stdlib.h>

/* See `depth` in flash_engine.h. */
static uint32_t needed_window(const flash_op_params_t *params, uint32_t segments)
{
    bool calls = params->produce != NULL || params->consume != NULL;

    if (flash_schedule_exchanges(params->schedule.kind)) {
        return 2 * segments;
    }
    return calls ? 2 * segments + 2 : segments + 1;
}

static uint32_t window(const flash_op_params_t *params)
{
    uint32_t segments = flash_schedule_max_segments(&params->schedule);
    uint32_t needed = needed_window(params, segments);
    uint64_t all = (uint64_t) segments * flash_schedule_length(&params->schedule, FLASH_STEPS);
    uint32_t wanted = params->depth < all ? params->depth : (uint32_t) all;

    return wanted > needed ? wanted : needed;
}

/* The longest segment, in elements: pieces are cut evenly, rounded up. */
static size_t max_segment(const flash_schedule_t *schedule)
{
    size_t piece = flash_schedule_max_piece(schedule);

    return piece < schedule->segment_elements ? piece : schedule->segment_elements;
}

static size_t align(size_t size)
{
    return (size + 63) / 64 * 64;
}

static size_t segment_bytes(const flash_op_params_t *params)
{
    return align(max_segment(&params->schedule) * params->element);
}

static size_t piece_bytes(const flash_op_params_t *params)
{
    return align(flash_schedule_max_piece(&params->schedule) * params->element);
}

/* Of a producer: one block ahead of the ring, and the piece that is being produced. */
static uint32_t produce_buffers(const flash_op_params_t *params)
{
    uint64_t pieces = flash_schedule_pieces(&params->schedule, FLASH_PRODUCED);
    uint32_t wanted = params->schedule.pieces + 1;

    return wanted < pieces ? wanted : (uint32_t) pieces;
}

size_t flash_op_pieces_size(const flash_op_params_t *params)
{
    return flash_op_lends(params) ? produce_buffers(params) * piece_bytes(params) : 0;
}

static bool is_direct(const flash_op_params_t *params)
{
    return params->schedule.kind == FLASH_DIRECT_REDUCE_SCATTER;
}

/* Of the sum that is kept apart from the output. */
static size_t sum_size(const flash_op_params_t *params)
{
    bool apart = params->wide > 0 || params->stage_out;

    return is_direct(params) && apart
               ? flash_op_own_split(params).count * flash_op_summed_element(params)
               : 0;
}

uint32_t flash_op_summed_segments(const flash_op_params_t *params)
{
    flash_split_t own = flash_op_own_split(params);

    return is_direct(params) ? flash_split_segments(&own) : 0;
}

size_t flash_op_scratch_size(const flash_op_params_t *params)
{
    size_t received = window(params) * segment_bytes(params);

    if (!flash_op_reduces(params)) {
        return params->stage_in || params->stage_out ? received : 0;
    }
    return received + (params->stage_in ? received : flash_op_pieces_size(params)) +
           sum_size(params);
}

size_t flash_op_blames_size(const flash_op_params_t *params)
{
    return window(params) * sizeof(*params->blames);
}

static int allocate_scratch(flash_op_t *op)
{
    size_t size = flash_op_scratch_size(&op->params);

    if (flash_op_lends(&op->params)) {
        op->produce_buffers = produce_buffers(&op->params);
        op->piece_bytes = piece_bytes(&op->params);
    }
    op->segment_bytes = segment_bytes(&op->params);
    op->scratch = op->params.scratch;
    if (size > 0 && op->scratch == NULL) {
        op->scratch = flash_pool_get(&op->engine->pool, size, &op->scratch_size);
        if (op->scratch == NULL) {
            return FLASH_ERR_NO_MEMORY;
        }
    }
    if (sum_size(&op->params) > 0) {
        op->sum = (char *) op->scratch + size - sum_size(&op->params);
    }
    return FLASH_OK;
}

uint32_t flash_op_own_rank(const flash_op_t *op)
{
    return flash_ring_rank(&op->params.schedule.ring, 0);
}

/* How many callbacks there will be, and what settles when. */
static void count_pieces(flash_op_t *op)
{
    const flash_schedule_t *schedule = &op->params.schedule;
    uint64_t contributed = flash_schedule_pieces(schedule, FLASH_PRODUCED);
    uint32_t own = flash_op_own_split(&op->params).pieces;

    op->produced_pieces = op->params.produce == NULL ? 0 : contributed;
    op->consumed_pieces =
        op->params.consume == NULL ? 0 : flash_schedule_pieces(schedule, FLASH_CONSUMED);
    if (flash_op_reduces(&op->params)) {
        op->other_pieces = contributed - own;
    } else {
        op->settled = own; /* so that computing need not wait for sending */
    }
}

void flash_op_init(flash_op_t *op, flash_engine_t *engine, const flash_op_params_t *params,
                   flash_slot_t *slots)
{
    op->engine = engine;
    op->params = *params;
    op->depth = window(params);
    op->blamed = FLASH_NOBODY;
    if (params->sends == 0) {
        op->params.sends = UINT32_MAX;
    }
    count_pieces(op);
    flash_slot_queue_init(&op->events);
    flash_slot_queue_init(&op->waiting);
    flash_slot_queue_init(&op->combining);
    STAILQ_INIT(&op->staging);
    op->uncopied = flash_op_is_in_place(op)
                       ? 0
                       : flash_schedule_count(&params->schedule, flash_op_own_rank(op));
    op->slots = slots;
    for (uint32_t k = 0; k < op->depth; k++) {
        flash_slot_init(&op->slots[k], op);
    }
    flash_cursor_init(op, &op->open, FLASH_STEPS);
    flash_cursor_init(op, &op->produce, FLASH_PRODUCED);
    flash_cursor_init(op, &op->consume, FLASH_CONSUMED);
    op->stopped = params->spoiled;
}

/* A slot has one transfer under way at a time. */
static int reserve(flash_engine_t *engine, uint32_t slots)
{
    return engine->transport->ops->reserve(engine->transport, slots);
}

static void unreserve(flash_engine_t *engine, uint32_t slots)
{
    engine->transport->ops->unreserve(engine->transport, slots);
}

int flash_op_create(flash_engine_t *engine, const flash_op_params_t *params, flash_op_t **made)
{
    uint32_t depth = window(params);
    uint32_t summed = flash_op_summed_segments(params);
    flash_op_t *op = calloc(1, sizeof(*op));
    flash_slot_t *slots = calloc(depth, sizeof(*slots));
    flash_sum_t *sums = summed == 0 ? NULL : calloc(summed, sizeof(*sums));

    if (op == NULL || slots == NULL || (summed > 0 && sums == NULL) ||
        reserve(engine, depth) != FLASH_OK) {
        goto no_memory;
    }
    flash_op_init(op, engine, params, slots);
    op->sums = sums;
    if (allocate_scratch(op) == FLASH_OK) {
        *made = op;
        return FLASH_OK;
    }
    unreserve(engine, depth);
no_memory:
    free(sums);
    free(slots);
    free(op);
    return FLASH_ERR_NO_MEMORY;
}

void flash_op_free(flash_op_t *op)
{
    if (op->params.scratch == NULL) {
        flash_pool_put(&op->engine->pool, op->scratch, op->scratch_size);
    }
    free(op->sums);
    free(op->slots);
    free(op);
}

/*
 * The transport cannot call back what it was doing for a lost peer, which may yet come to life:
 * memory in its hands stays until the transport is gone.
 */
void flash_op_destroy(flash_op_t *op)
{
    if (op->refused) {
        op->refused = op->haunted; /* ready for the next refusal */
    } else if (op->haunted) {
        op->next_running = op->engine->haunted;
        op->engine->haunted = op;
    } else {
        unreserve(op->engine, op->depth);
        flash_op_free(op);
    }
}

bool flash_op_is_haunted(const flash_op_t *op)
{
    return op->haunted;
}

void *flash_op_user(const flash_op_t *op)
{
    return op->params.user;
}

size_t flash_op_element(const flash_op_t *op)
{
    return op->params.element;
}

size_t flash_op_memory(const flash_op_t *op)
{
    return sizeof(*op) + op->depth * sizeof(*op->slots) + op->scratch_size +
           flash_op_summed_segments(&op->params) * sizeof(*op->sums);
}

int flash_op_status(const flash_op_t *op)
{
    return op->status;
}

uint32_t flash_op_blamed(const flash_op_t *op)
{
    return op->blamed;
}
