/*
 * flash_op.c: one operation: its memory, its window of segments, its callbacks.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "flash_op.h"

#include <stdlib.h>
#include <string.h>

void flash_slot_queue_init(flash_slot_queue_t *queue)
{
    queue->head = NULL;
    queue->tail = &queue->head;
}

void flash_slot_queue_push(flash_slot_queue_t *queue, flash_slot_t *slot)
{
    slot->next = NULL;
    *queue->tail = slot;
    queue->tail = &slot->next;
}

flash_slot_t *flash_slot_queue_pop(flash_slot_queue_t *queue)
{
    flash_slot_t *slot = queue->head;

    if (slot != NULL) {
        queue->head = slot->next;
        if (queue->head == NULL) {
            queue->tail = &queue->head;
        }
    }
    return slot;
}

/* ------------------------------------------------------------- making one */

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

static size_t summed_element(const flash_op_params_t *params)
{
    return params->wide > 0 ? params->wide : params->element;
}

/* Of the sum that is kept apart from the output. */
static size_t sum_size(const flash_op_params_t *params)
{
    bool apart = params->wide > 0 || params->stage_out;

    return is_direct(params) && apart ? flash_op_own_split(params).count * summed_element(params)
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

char *flash_op_input_block(const flash_op_t *op, uint32_t block)
{
    const flash_schedule_t *schedule = &op->params.schedule;
    bool one = schedule->kind == FLASH_ALLGATHER;

    return flash_op_at(op, op->params.input, one ? 0 : flash_schedule_displ(schedule, block), 0);
}

char *flash_op_output_block(const flash_op_t *op, uint32_t block)
{
    const flash_schedule_t *schedule = &op->params.schedule;
    bool one = flash_schedule_scatters(schedule->kind);

    return flash_op_at(op, op->params.output, one ? 0 : flash_schedule_displ(schedule, block), 0);
}

/* Where the own block is, and where it is to be in the end; not of a reduction. */
static char *own_input(const flash_op_t *op)
{
    return flash_op_input_block(op, flash_schedule_own_input(&op->params.schedule));
}

static char *own_place(const flash_op_t *op)
{
    return flash_op_output_block(op, flash_schedule_own_result(&op->params.schedule));
}

static bool is_in_place(const flash_op_t *op)
{
    return flash_op_reduces(&op->params) || own_input(op) == own_place(op);
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
    op->uncopied =
        is_in_place(op) ? 0 : flash_schedule_count(&params->schedule, flash_op_own_rank(op));
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

/* ------------------------------------------------------------ the window */

char *flash_op_produce_buffer(const flash_op_t *op, uint64_t piece)
{
    char *buffers = op->params.stage_in ? op->params.pieces
                                        : (char *) op->scratch + op->depth * op->segment_bytes;

    return buffers + piece % op->produce_buffers * op->piece_bytes;
}

/* Where the callback wrote a segment that is not empty. */
static char *produced_at(const flash_op_t *op, const flash_slot_t *slot)
{
    flash_split_t split = flash_schedule_split(&op->params.schedule, slot->block);
    flash_range_t piece = flash_split_piece(&split, slot->segment / split.segments_per_piece);

    return flash_op_at(op, flash_op_produce_buffer(op, slot->piece), 0,
                       slot->range.offset - piece.offset);
}

/* The segment's place in the user's memory, or where the user has written it. */
static char *input_of(const flash_op_t *op, const flash_slot_t *slot)
{
    if (flash_op_lends(&op->params)) {
        return slot->range.count > 0 ? produced_at(op, slot) : NULL;
    }
    return flash_op_input_block(op, slot->block) + slot->range.offset * op->params.element;
}

static char *output_of(const flash_op_t *op, const flash_slot_t *slot)
{
    return flash_op_output_block(op, slot->block) + slot->range.offset * op->params.element;
}

/* Its place in the scratch; of a reduction that is staged in, also that of what is local. */
static char *scratch_of(const flash_op_t *op, const flash_slot_t *slot, bool of_local)
{
    size_t number = (size_t) (slot - op->slots) + (of_local ? op->depth : 0);

    return (char *) op->scratch + number * op->segment_bytes;
}

/* Where a direct reduce-scatter's sum of the segment is kept. */
static char *sum_of(const flash_op_t *op, const flash_slot_t *slot)
{
    return op->sum == NULL ? output_of(op, slot)
                           : op->sum + slot->range.offset * summed_element(&op->params);
}

bool flash_op_begins_in_place(const flash_op_t *op, const flash_slot_t *slot)
{
    return slot->way.adds && flash_schedule_turn(slot->step) == 0 && op->params.wide == 0;
}

/* Where what arrives comes to, and where the result is in the end, or is copied from. */
static char *place_of(const flash_op_t *op, const flash_slot_t *slot)
{
    bool ends_in_sum = slot->way.adds && slot->way.delivers && op->params.wide == 0;

    if (flash_op_begins_in_place(op, slot) || ends_in_sum) {
        return sum_of(op, slot);
    }
    return slot->way.delivers && !op->params.stage_out ? output_of(op, slot)
                                                       : scratch_of(op, slot, false);
}

/* What is local has a place in the input, or in the scratch. */
static void place(flash_op_t *op, flash_slot_t *slot)
{
    bool reduces = flash_op_reduces(&op->params);

    slot->data = slot->local = NULL;
    if (slot->way.receives || slot->way.adds) {
        slot->data = place_of(op, slot);
    }
    if (slot->way.contributes) {
        slot->local =
            flash_slot_needs_staging_in(slot) ? scratch_of(op, slot, reduces) : input_of(op, slot);
    }
}

/* Puts the segment under `open` under way, in the slot of the one that retired `depth` ago. */
static void open_segment(flash_op_t *op)
{
    flash_slot_t *slot = &op->slots[op->opened % op->depth];
    flash_cursor_t *open = &op->open;
    uint32_t segment = open->index, per_piece = open->split.segments_per_piece;

    slot->step = open->at;
    slot->way = flash_schedule_step(&op->params.schedule, open->at);
    slot->block = open->block;
    slot->segment = segment;
    slot->overrun = 0;
    slot->range = flash_split_segment(&open->split, segment);
    slot->piece = op->open_piece + segment / per_piece;
    slot->last_of_step = segment + 1 == flash_split_segments(&open->split);
    /* Another kind's own block's pieces are settled from the start. */
    slot->last_of_piece =
        (slot->way.delivers || (slot->way.contributes && flash_op_reduces(&op->params))) &&
        open->split.pieces > 0 && (segment + 1) % per_piece == 0;
    slot->sent_again = slot->settled = slot->staged_in = false;
    slot->spoiled = op->refused || (op->params.spoiled && !slot->way.receives);
    slot->blame = !slot->spoiled ? FLASH_NOBODY : op->refused ? op->blamed : flash_op_own_rank(op);
    place(op, slot);
    op->opened++;
    flash_slot_open(slot);
    open->index++;
    if (slot->last_of_step) {
        op->open_piece += slot->way.contributes ? open->split.pieces : 0;
        flash_cursor_next_block(op, open);
        op->open_step_ended = false;
    }
}

/*
 * Has segments staged in as soon as what they are to contribute is there. A callback that is under
 * way when the operation fails may yet contribute.
 */
static void stage_in(flash_op_t *op)
{
    bool no_more = op->stopped && op->undone == 0;

    if (op->next_stage < op->retired) {
        op->next_stage = op->retired;
    }
    for (; op->next_stage < op->opened; op->next_stage++) {
        flash_slot_t *slot = &op->slots[op->next_stage % op->depth];
        bool there = flash_op_is_produced(op, slot);

        if (!there && !no_more && slot->range.count > 0) {
            break;
        }
        if (there && flash_slot_needs_staging_in(slot)) {
            flash_slot_stage_in(slot);
        }
    }
}

/* Lets the segments go on that waited for what is there now, or will never be; whether any did. */
static bool release_waiting(flash_op_t *op)
{
    flash_slot_queue_t waiting = op->waiting;
    flash_slot_t *slot;
    bool released = false;

    if (waiting.head == NULL) {
        return false;
    }
    flash_slot_queue_init(&op->waiting);
    while ((slot = flash_slot_queue_pop(&waiting)) != NULL) {
        if (flash_op_has_local(op, slot)) {
            flash_slot_have_local(slot);
            released = true;
        } else {
            flash_slot_queue_push(&op->waiting, slot);
        }
    }
    return released;
}

static bool is_done(const flash_slot_t *slot)
{
    return slot->state == FLASH_SLOT_DONE && slot->staging == FLASH_STAGING_NONE;
}

void flash_op_advance(flash_op_t *op)
{
    flash_slot_t *slot;

    do {
        release_waiting(op);
        while ((slot = flash_slot_queue_pop(&op->events)) != NULL) {
            flash_slot_transferred(slot);
        }
        while (op->retired < op->opened && is_done(&op->slots[op->retired % op->depth])) {
            op->retired++;
        }
        while (op->opened - op->retired < op->depth && !flash_cursor_at_end(op, &op->open)) {
            open_segment(op);
        }
        stage_in(op);
    } while (op->events.head != NULL || (op->stopped && release_waiting(op)));
    flash_engine_offer(op);
}

/* Elements of the own block that somebody has taken, or that were in their place. */
static size_t own_copied(const flash_op_t *op)
{
    return flash_op_own_split(&op->params).count - op->uncopied;
}

bool flash_op_may_copy(const flash_op_t *op)
{
    return op->uncopied > 0 && flash_op_own_produced(op) > own_copied(op);
}

bool flash_op_is_complete(const flash_op_t *op)
{
    bool copied = op->uncopied == 0 || (op->stopped && !flash_op_may_copy(op));

    return flash_cursor_at_end(op, &op->open) && op->retired == op->opened && op->held == 0 &&
           op->undone == 0 && copied && flash_op_has_called(op);
}

void flash_op_settle(flash_op_t *op)
{
    while (op->settled_slots < op->opened) {
        const flash_slot_t *slot = &op->slots[op->settled_slots % op->depth];

        if (!slot->settled) {
            break;
        }
        op->settled_slots++;
        op->settled += slot->last_of_piece;
    }
    flash_engine_offer(op);
}

void flash_op_take_copy(flash_op_t *op, flash_work_t *work)
{
    size_t most = op->params.schedule.segment_elements;
    size_t begin = own_copied(op), there = flash_op_own_produced(op) - begin;
    size_t count = there < most ? there : most;

    work->in = flash_op_at(op, own_input(op), 0, begin);
    work->inout = flash_op_at(op, own_place(op), 0, begin);
    work->size = count * op->params.element;
    op->uncopied -= count;
}

bool flash_op_sums_in_place(const flash_op_t *op, const flash_slot_t *slot)
{
    return op->params.combine_far && slot->way.contributes && slot->way.delivers &&
           !slot->way.sends;
}

void flash_op_take_sum(const flash_op_t *op, const flash_slot_t *slot, flash_work_t *work)
{
    bool wide = slot->way.adds && op->params.wide > 0;

    work->in = slot->way.contributes ? slot->local : slot->data;
    work->inout = slot->way.adds ? sum_of(op, slot) : slot->data;
    work->count = slot->range.count;
    work->begins = wide && flash_schedule_turn(slot->step) == 0;
    work->ends = wide && slot->way.delivers;
    work->out = flash_op_sums_in_place(op, slot) ? output_of(op, slot)
                : work->ends                     ? slot->data
                                                 : work->inout;
}

uint32_t *flash_op_blame_place(const flash_op_t *op, const flash_slot_t *slot)
{
    return op->params.blames + (slot - op->slots);
}

void flash_op_take_staging(flash_op_t *op, flash_work_t *work)
{
    flash_slot_t *slot = STAILQ_FIRST(&op->staging);
    bool in = slot->staging == FLASH_STAGING_IN;

    STAILQ_REMOVE_HEAD(&op->staging, next_staging);
    work->kind = in ? FLASH_WORK_STAGE_IN : FLASH_WORK_STAGE_OUT;
    work->slot = slot;
    if (slot->staging == FLASH_STAGING_BLAME) {
        work->in = slot->data;
        work->inout = flash_op_blame_place(op, slot);
        work->size = sizeof(slot->blame);
        return;
    }
    work->in = in ? input_of(op, slot) : slot->data;
    work->inout = in ? slot->local : output_of(op, slot);
    work->size = slot->range.count * op->params.element;
}

bool flash_op_is_turn(const flash_op_t *op, const flash_slot_t *slot)
{
    return op->sums[slot->segment].added == flash_schedule_turn(slot->step);
}

void flash_op_keep_early(flash_op_t *op, flash_slot_t *slot)
{
    flash_sum_t *sum = &op->sums[slot->segment];

    slot->next = sum->early;
    sum->early = slot;
}

void flash_op_added(flash_op_t *op, const flash_slot_t *added)
{
    flash_sum_t *sum = &op->sums[added->segment];
    flash_slot_t **link = &sum->early, *slot;

    sum->added++;
    while (*link != NULL && flash_schedule_turn((*link)->step) != sum->added) {
        link = &(*link)->next;
    }
    slot = *link;
    if (slot != NULL) {
        *link = slot->next;
        flash_slot_queue_push(&op->waiting, slot);
    }
    flash_engine_touch(op); /* nor may anything else come that lets the last one retire */
}

bool flash_op_has_local(const flash_op_t *op, const flash_slot_t *slot)
{
    if (slot->range.count == 0) {
        return true;
    }
    if (!flash_op_is_produced(op, slot)) {
        return op->stopped && !flash_op_may_be_produced(op, slot);
    }
    return !flash_slot_needs_staging_in(slot) || slot->staged_in;
}

/* ---------------------------------------------------------------- failures */

void flash_op_fail(flash_op_t *op, int status, uint32_t blamed)
{
    if (op->status == FLASH_OK) {
        op->status = status;
    }
    if (op->blamed == FLASH_NOBODY) { /* the first message of a failure may have had no room */
        op->blamed = blamed;
    }
    op->stopped = true; /* flash_op_advance() lets go of the segments that waited */
}
