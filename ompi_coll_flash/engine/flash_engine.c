/*
 * flash_engine.c: operations that something happened to act, one after another: each puts segments
 * under way, a window of them at a time, and is complete behind the last.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "engine/flash_engine.h"

#include <stdlib.h>

#include "engine/flash_queue.h"
#include "engine/flash_slot.h"

static void queue_init(flash_op_queue_t *queue)
{
    queue->head = NULL;
    queue->tail = &queue->head;
}

flash_engine_t *flash_engine_create(flash_transport_t *transport)
{
    flash_engine_t *engine = calloc(1, sizeof(*engine));

    if (engine != NULL) {
        engine->refusals = flash_refusals_create(transport);
        if (engine->refusals == NULL) {
            free(engine);
            return NULL;
        }
        engine->transport = transport;
        flash_pool_init(&engine->pool);
        queue_init(&engine->running);
        queue_init(&engine->dirty);
        queue_init(&engine->combine);
        queue_init(&engine->users_combine);
        queue_init(&engine->copy);
        queue_init(&engine->callback);
        queue_init(&engine->callback_on_thread);
        queue_init(&engine->staging);
        queue_init(&engine->completed);
    }
    return engine;
}

void flash_engine_destroy(flash_engine_t *engine)
{
    flash_op_t *op;

    while ((op = engine->orphaned) != NULL) {
        engine->orphaned = op->next_running;
        flash_op_free(op);
    }
    flash_pool_clear(&engine->pool);
    flash_refusals_free(engine->refusals);
    free(engine);
}

void flash_engine_keep(flash_engine_t *engine, size_t bytes)
{
    engine->pool.largest = bytes;
}

void flash_engine_set_trace(flash_engine_t *engine, flash_trace_t *trace)
{
    engine->trace = trace;
}

flash_trace_t *flash_engine_trace(const flash_engine_t *engine)
{
    return engine->trace;
}

/* ---------------------------------------------------- one operation's segments */

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
    /* Another kind's own block's pieces are ready from the start. */
    slot->last_of_piece =
        (slot->way.delivers || (slot->way.contributes && flash_op_reduces(&op->params))) &&
        open->split.pieces > 0 && (segment + 1) % per_piece == 0;
    slot->sent_again = slot->ready = slot->staged_in = false;
    slot->poisoned = op->refused || (op->params.poisoned && !slot->way.receives);
    slot->failed_rank = !slot->poisoned ? FLASH_NOBODY
                        : op->refused   ? op->failed_rank
                                        : flash_op_own_rank(op);
    flash_op_place(op, slot);
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
        if (there && flash_slot_needs_staging_in(slot) && !flash_slot_stage_in(slot)) {
            break;
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

static void advance(flash_op_t *op)
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
        while (op->opened - op->retired < op->depth && !flash_cursor_at_end(op, &op->open) &&
               flash_op_may_open(op)) {
            open_segment(op);
        }
        stage_in(op);
    } while (op->events.head != NULL || (op->stopped && release_waiting(op)));
    flash_engine_offer(op);
}

static bool is_complete(const flash_op_t *op)
{
    bool copied = op->uncopied == 0 || (op->stopped && !flash_op_may_copy(op));

    return flash_cursor_at_end(op, &op->open) && op->retired == op->opened && op->held == 0 &&
           op->undone == 0 && copied && flash_op_has_called(op);
}

/* -------------------------------------------------------------- all operations */

static void note_operation(const flash_op_t *op)
{
    static const flash_trace_kind_t kinds[FLASH_KINDS] = {
        [FLASH_ALLGATHER] = FLASH_TRACE_ALLGATHER,
        [FLASH_REDUCE_SCATTER] = FLASH_TRACE_REDUCE_SCATTER,
        [FLASH_ALLREDUCE] = FLASH_TRACE_ALLREDUCE,
        [FLASH_ALLTOALL] = FLASH_TRACE_ALLTOALL,
        [FLASH_BCAST] = FLASH_TRACE_BCAST,
        [FLASH_REDUCE] = FLASH_TRACE_REDUCE,
        [FLASH_GATHER] = FLASH_TRACE_GATHER,
        [FLASH_SCATTER] = FLASH_TRACE_SCATTER,
        [FLASH_PAIRWISE_REDUCE_SCATTER] = FLASH_TRACE_REDUCE_SCATTER};
    const flash_schedule_t *schedule = &op->params.schedule;
    size_t own = flash_schedule_count(schedule, flash_schedule_own_result(schedule));

    flash_engine_note(
        op, op->started_at,
        (flash_trace_span_t){.kind = kinds[schedule->kind], .bytes = own * op->params.element});
}

static void complete(flash_op_t *op)
{
    flash_engine_t *engine = op->engine;

    note_operation(op);
    combine_remove(combine_queue(op), op);
    callback_remove(callback_queue(op), op); /* offered before a failure stopped it */
    running_remove(&engine->running, op);
    flash_flow_leave(op);
    engine->ended = true;
    if (flash_op_has_user(op)) {
        if (--engine->active == 0) {
            flash_meter_end(&engine->meter, flash_meter_clock(&engine->meter));
        }
        completed_push(&engine->completed, op);
    } else {
        flash_op_destroy(op);
    }
}

/*
 * Lets each operation act that something happened to; returns how many. The only place where one
 * completes.
 */
static unsigned drain(flash_engine_t *engine)
{
    unsigned acted = 0;
    flash_op_t *op;

    while ((op = engine->dirty.head) != NULL) {
        dirty_remove(&engine->dirty, op);
        advance(op);
        if (op->in_running && !op->in_dirty && is_complete(op)) {
            complete(op);
        }
        acted++;
    }
    return acted;
}

bool flash_op_has_tail(const flash_op_t *op)
{
    return op->left && flash_schedule_has_root(op->params.schedule.kind);
}

bool flash_op_needs_no_wakeup(const flash_op_t *op)
{
    return op->params.no_wakeup;
}

void flash_op_start(flash_op_t *op)
{
    running_push(&op->engine->running, op);
    flash_flow_join(op);
    if (flash_op_has_user(op) && op->engine->active++ == 0) {
        flash_meter_begin(&op->engine->meter, flash_meter_clock(&op->engine->meter));
    }
    op->number = op->engine->started++;
    op->started_at = flash_trace_clock(op->engine->trace);
    flash_engine_touch(op);
    flash_engine_offer(op);
}

unsigned flash_engine_progress(flash_engine_t *engine)
{
    unsigned happened = engine->transport->ops->progress(engine->transport);

    return happened + drain(engine);
}

size_t flash_engine_active(const flash_engine_t *engine)
{
    return engine->active;
}

bool flash_engine_is_idle(const flash_engine_t *engine)
{
    return engine->running.head == NULL;
}

bool flash_engine_take_ended(flash_engine_t *engine)
{
    bool ended = engine->ended;

    engine->ended = false;
    return ended;
}

flash_meter_t *flash_engine_meter(flash_engine_t *engine)
{
    return &engine->meter;
}

flash_op_t *flash_engine_completed(flash_engine_t *engine)
{
    flash_op_t *op = engine->completed.head;

    if (op != NULL) {
        completed_remove(&engine->completed, op);
    }
    return op;
}

bool flash_engine_end_pending(flash_op_t *op, uint64_t number, int status)
{
    bool pending = flash_op_end_piece(op, number, status);

    if (pending) {
        flash_engine_note(
            op, 0, (flash_trace_span_t){.kind = FLASH_TRACE_DONE, .index = (uint32_t) number});
        flash_engine_offer(op);
        flash_engine_touch(op);
    }
    return pending;
}
