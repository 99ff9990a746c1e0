/*
 * flash_op.c: one operation: the memory it needs, its beginning and its end.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "engine/flash_slot.h"

#include <stdlib.h>

static size_t piece_bytes(const flash_op_params_t *params)
{
    return flash_op_align(flash_schedule_max_piece(&params->schedule) * params->element);
}

/* Of a producer: so many blocks ahead of the ring, and the piece that is being produced. */
static uint32_t buffers_ahead(const flash_op_params_t *params, uint32_t blocks)
{
    uint64_t pieces = flash_schedule_pieces(&params->schedule, FLASH_PRODUCED);
    uint64_t wanted = (uint64_t) blocks * params->schedule.pieces + 1;

    return (uint32_t) (wanted < pieces ? wanted : pieces);
}

static size_t pieces_ahead(const flash_op_params_t *params, uint32_t blocks)
{
    return flash_op_lends(params) ? buffers_ahead(params, blocks) * piece_bytes(params) : 0;
}

static bool is_pairwise(const flash_op_params_t *params)
{
    return params->schedule.kind == FLASH_PAIRWISE_REDUCE_SCATTER;
}

/* Of the sum that is kept apart from the output. */
static size_t sum_size(const flash_op_params_t *params)
{
    bool apart = params->wide > 0 || params->stage_out;

    return is_pairwise(params) && apart
               ? flash_op_own_split(params).count * flash_op_summed_element(params)
               : 0;
}

uint32_t flash_op_summed_segments(const flash_op_params_t *params)
{
    flash_split_t own = flash_op_own_split(params);

    return is_pairwise(params) ? flash_split_segments(&own) : 0;
}

/* Of scratch, without a bound. */
static size_t wanted_size(const flash_op_params_t *params)
{
    size_t received = flash_op_window(params) * flash_op_segment_bytes(params);

    if (!flash_op_reduces(params)) {
        return flash_op_stages(params, true) || flash_op_stages(params, false) ? received : 0;
    }
    return received + (params->stage_in ? received : pieces_ahead(params, 1)) + sum_size(params);
}

static bool is_bounded(const flash_op_params_t *params)
{
    return params->bound > 0 && flash_op_is_bounded(params, wanted_size(params));
}

/* Blocks that a producer may be ahead: see flash_op_bounce.c. */
static uint32_t blocks_ahead(const flash_op_params_t *params)
{
    return is_bounded(params) && flash_op_adds_in_bounces(params) ? 2 : 1;
}

size_t flash_op_pieces_size(const flash_op_params_t *params)
{
    return pieces_ahead(params, blocks_ahead(params));
}

size_t flash_op_scratch_size(const flash_op_params_t *params)
{
    return is_bounded(params) ? flash_op_bounce_size(params) : wanted_size(params);
}

size_t flash_op_store_size(const flash_op_params_t *params)
{
    return is_bounded(params) ? flash_op_device_store_size(params) : 0;
}

/*
 * Sums by the host that are sent on, and behind them what is produced, unless that is on a device.
 */
static size_t near_size(const flash_op_params_t *params)
{
    return !is_bounded(params) ? 0
                               : flash_op_near_store_size(params) +
                                     (params->stage_in ? 0 : flash_op_pieces_size(params));
}

size_t flash_op_failed_ranks_size(const flash_op_params_t *params)
{
    return flash_op_window(params) * sizeof(*params->failed_ranks);
}

/* False: there is none. */
static bool allocate(flash_op_t *op, size_t size, void **memory, size_t *got)
{
    if (size > 0 && *memory == NULL) {
        *memory = flash_pool_get(&op->engine->pool, size, got);
    }
    return size == 0 || *memory != NULL;
}

static int allocate_scratch(flash_op_t *op)
{
    size_t size = flash_op_scratch_size(&op->params);

    if (flash_op_lends(&op->params)) {
        op->produce_buffers = buffers_ahead(&op->params, blocks_ahead(&op->params));
        op->piece_bytes = piece_bytes(&op->params);
    }
    op->segment_bytes = flash_op_segment_bytes(&op->params);
    op->scratch = op->params.scratch;
    if (!allocate(op, size, &op->scratch, &op->scratch_size) ||
        !allocate(op, near_size(&op->params), &op->near, &op->near_size)) {
        return FLASH_ERR_NO_MEMORY;
    }
    op->store = flash_op_device_store_size(&op->params) > 0 ? op->params.store : op->near;
    if (sum_size(&op->params) > 0) {
        op->sum = (char *) op->scratch + size - sum_size(&op->params);
    }
    return FLASH_OK;
}

static void free_scratch(flash_op_t *op)
{
    if (op->params.scratch == NULL) {
        flash_pool_put(&op->engine->pool, op->scratch, op->scratch_size);
    }
    flash_pool_put(&op->engine->pool, op->near, op->near_size);
}

/* How many callbacks there will be, and what is ready when. */
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
    } else if (flash_schedule_length(schedule, FLASH_PRODUCED) > 0) {
        op->ready = own; /* so that computing need not wait for sending */
    }
}

void flash_op_init(flash_op_t *op, flash_engine_t *engine, const flash_op_params_t *params,
                   flash_slot_t *slots)
{
    uint32_t own = flash_schedule_own_result(&params->schedule);

    op->engine = engine;
    op->params = *params;
    op->depth = flash_op_window(params);
    op->bounded = is_bounded(params);
    op->failed_rank = FLASH_NOBODY;
    op->params.sends = flash_op_sends_at_a_time(params);
    count_pieces(op);
    flash_slot_queue_init(&op->events);
    flash_slot_queue_init(&op->waiting);
    flash_slot_queue_init(&op->combining);
    STAILQ_INIT(&op->staging);
    op->uncopied = flash_op_is_in_place(op) ? 0 : flash_schedule_count(&params->schedule, own);
    op->slots = slots;
    for (uint32_t k = 0; k < op->depth; k++) {
        flash_slot_init(&op->slots[k], op);
    }
    flash_cursor_init(op, &op->open, FLASH_STEPS);
    flash_cursor_init(op, &op->produce, FLASH_PRODUCED);
    flash_cursor_init(op, &op->consume, FLASH_CONSUMED);
    op->stopped = params->poisoned;
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

static void free_arrays(flash_op_t *op)
{
    free(op->bounces);
    free(op->sums);
    free(op->slots);
    free(op);
}

/* Whether there is memory for what an operation has of each kind, `depth` slots among it. */
static bool allocate_arrays(flash_op_t *op, const flash_op_params_t *params, uint32_t depth)
{
    uint32_t summed = flash_op_summed_segments(params);
    uint32_t bounces = is_bounded(params) ? flash_op_bounce_segments(params) : 0;

    op->slots = calloc(depth, sizeof(*op->slots));
    op->sums = summed == 0 ? NULL : calloc(summed, sizeof(*op->sums));
    op->bounces = bounces == 0 ? NULL : calloc(bounces, sizeof(*op->bounces));
    return op->slots != NULL && (summed == 0 || op->sums != NULL) &&
           (bounces == 0 || op->bounces != NULL);
}

int flash_op_create(flash_engine_t *engine, const flash_op_params_t *params, flash_op_t **made)
{
    uint32_t depth = flash_op_window(params);
    flash_op_t *op = calloc(1, sizeof(*op));

    if (op == NULL) {
        return FLASH_ERR_NO_MEMORY;
    }
    if (!allocate_arrays(op, params, depth) || reserve(engine, depth) != FLASH_OK) {
        free_arrays(op);
        return FLASH_ERR_NO_MEMORY;
    }
    flash_op_init(op, engine, params, op->slots);
    if (allocate_scratch(op) != FLASH_OK) {
        free_scratch(op);
        unreserve(engine, depth);
        free_arrays(op);
        return FLASH_ERR_NO_MEMORY;
    }
    if (op->bounded) {
        flash_op_init_bounces(op);
    }
    *made = op;
    return FLASH_OK;
}

void flash_op_free(flash_op_t *op)
{
    free_scratch(op);
    free_arrays(op);
}

/*
 * The transport cannot call back what it was doing for a lost peer, which may yet come to life:
 * memory in its hands stays until the transport is gone.
 */
void flash_op_destroy(flash_op_t *op)
{
    if (op->refused) {
        op->refused = op->has_orphans; /* ready for the next refusal */
    } else if (op->has_orphans) {
        op->next_running = op->engine->orphaned;
        op->engine->orphaned = op;
    } else {
        unreserve(op->engine, op->depth);
        flash_op_free(op);
    }
}

bool flash_op_has_orphans(const flash_op_t *op)
{
    return op->has_orphans;
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
    uint32_t bounces = op->bounded ? flash_op_bounce_segments(&op->params) : 0;

    return sizeof(*op) + op->depth * sizeof(*op->slots) + op->scratch_size + op->near_size +
           flash_op_summed_segments(&op->params) * sizeof(*op->sums) +
           bounces * sizeof(*op->bounces);
}

int flash_op_status(const flash_op_t *op)
{
    return op->status;
}

uint32_t flash_op_failed_rank(const flash_op_t *op)
{
    return op->failed_rank;
}
