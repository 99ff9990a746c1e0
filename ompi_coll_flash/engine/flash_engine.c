/*
 * flash_engine.c: which operation is to act next, which work is to be had, what has completed.
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

static void note_operation(const flash_op_t *op)
{
    static const flash_trace_kind_t kinds[FLASH_KINDS] = {
        [FLASH_ALLGATHER] = FLASH_TRACE_ALLGATHER,
        [FLASH_REDUCE_SCATTER] = FLASH_TRACE_REDUCE_SCATTER,
        [FLASH_ALLREDUCE] = FLASH_TRACE_ALLREDUCE,
        [FLASH_ALLTOALL] = FLASH_TRACE_ALLTOALL,
        [FLASH_PAIRWISE_REDUCE_SCATTER] = FLASH_TRACE_REDUCE_SCATTER};
    const flash_schedule_t *schedule = &op->params.schedule;
    size_t own = flash_schedule_count(schedule, flash_op_own_rank(op));

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
        flash_op_advance(op);
        if (op->in_running && !op->in_dirty && flash_op_is_complete(op)) {
            complete(op);
        }
        acted++;
    }
    return acted;
}

bool flash_op_needs_no_wakeup(const flash_op_t *op)
{
    return op->params.no_wakeup;
}

void flash_op_start(flash_op_t *op)
{
    running_push(&op->engine->running, op);
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
