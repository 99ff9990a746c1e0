/*
 * flash_engine.c: which operation is to act next, which work is to be had, what has completed.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "engine/flash_engine.h"

#include <stdlib.h>

#include "engine/flash_copy.h"
#include "engine/flash_op.h"

/* A queue of operations through one of their link fields; `in` says whether one is in it. */
#define OP_QUEUE(name, link, in)                                       \
    static void name##_push(flash_op_queue_t *queue, flash_op_t *op)   \
    {                                                                  \
        if (!op->in) {                                                 \
            op->in = true;                                             \
            op->link = NULL;                                           \
            *queue->tail = op;                                         \
            queue->tail = &op->link;                                   \
        }                                                              \
    }                                                                  \
    static void name##_remove(flash_op_queue_t *queue, flash_op_t *op) \
    {                                                                  \
        flash_op_t **link = &queue->head;                              \
                                                                       \
        if (!op->in) {                                                 \
            return;                                                    \
        }                                                              \
        while (*link != op) {                                          \
            link = &(*link)->link;                                     \
        }                                                              \
        *link = op->link;                                              \
        if (op->link == NULL) {                                        \
            queue->tail = link;                                        \
        }                                                              \
        op->in = false;                                                \
    }

OP_QUEUE(running, next_running, in_running)
OP_QUEUE(dirty, next_dirty, in_dirty)
OP_QUEUE(combine, next_combine, in_combine)
OP_QUEUE(callback, next_callback, in_callback)
OP_QUEUE(staging, next_staging, in_staging)
OP_QUEUE(completed, next_completed, in_completed)

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
        queue_init(&engine->apart);
        queue_init(&engine->staging);
        queue_init(&engine->completed);
    }
    return engine;
}

void flash_engine_destroy(flash_engine_t *engine)
{
    flash_op_t *op;

    while ((op = engine->haunted) != NULL) {
        engine->haunted = op->next_running;
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

void flash_engine_note(const flash_op_t *op, uint64_t begin, flash_trace_span_t span)
{
    if (op->engine->trace != NULL) {
        span.begin = begin;
        span.end = flash_trace_now();
        span.operation = op->number;
        flash_trace_add(op->engine->trace, &span);
    }
}

void flash_engine_touch(flash_op_t *op)
{
    op->events_had++;
    dirty_push(&op->engine->dirty, op);
}

/* A reduction combines, the others copy. */
static flash_op_queue_t *combine_queue(flash_op_t *op)
{
    flash_engine_t *engine = op->engine;

    if (!flash_op_reduces(&op->params)) {
        return &engine->copy;
    }
    return op->params.combine_is_users ? &engine->users_combine : &engine->combine;
}

static flash_op_queue_t *callback_queue(flash_op_t *op)
{
    return op->params.apart ? &op->engine->apart : &op->engine->callback;
}

void flash_engine_offer(flash_op_t *op)
{
    if (op->combining.head != NULL || flash_op_may_copy(op)) {
        combine_push(combine_queue(op), op);
    }
    if (flash_op_wants_callback(op)) {
        callback_push(callback_queue(op), op);
    }
    if (!STAILQ_EMPTY(&op->staging)) {
        staging_push(&op->engine->staging, op);
    }
}

/* Whether somebody takes it when it has completed. */
static bool has_user(const flash_op_t *op)
{
    return !op->refused || op->params.user != NULL;
}

static void note_operation(const flash_op_t *op)
{
    static const flash_trace_kind_t kinds[FLASH_KINDS] = {
        [FLASH_ALLGATHER] = FLASH_TRACE_ALLGATHER,
        [FLASH_REDUCE_SCATTER] = FLASH_TRACE_REDUCE_SCATTER,
        [FLASH_ALLREDUCE] = FLASH_TRACE_ALLREDUCE,
        [FLASH_ALLTOALL] = FLASH_TRACE_ALLTOALL,
        [FLASH_DIRECT_REDUCE_SCATTER] = FLASH_TRACE_REDUCE_SCATTER};
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
    if (has_user(op)) {
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

bool flash_op_is_unattended(const flash_op_t *op)
{
    return op->params.unattended;
}

void flash_op_start(flash_op_t *op)
{
    running_push(&op->engine->running, op);
    if (has_user(op) && op->engine->active++ == 0) {
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

/* ------------------------------------------------------------------- watching */

/* The oldest segment under way, if what it waits for is a neighbour. */
static const flash_slot_t *waits_for_neighbour(const flash_op_t *op)
{
    const flash_slot_t *slot = &op->slots[op->retired % op->depth];

    return op->retired < op->opened && slot->posted && op->held == 0 ? slot : NULL;
}

static flash_silence_t silence_of(const flash_op_t *op, const flash_slot_t *slot)
{
    const flash_schedule_t *schedule = &op->params.schedule;
    flash_pair_t pair = flash_slot_pair(slot);
    bool sending = slot->state == FLASH_SLOT_SENDING;

    return (flash_silence_t){.user = op->params.user,
                             .watches = op->watches,
                             .younger = slot != &op->slots[op->retired % op->depth],
                             .peer = sending ? pair.right : pair.left,
                             .rank = flash_slot_neighbour(slot, sending),
                             .sending = sending,
                             .step = slot->step,
                             .block = flash_schedule_rank(schedule, slot->block),
                             .segment = slot->segment,
                             .steps = flash_schedule_length(schedule, FLASH_STEPS)};
}

static bool is_among(const flash_silence_t *silences, size_t count, const flash_peer_t *peer)
{
    for (size_t k = 0; k < count; k++) {
        if (silences[k].peer == peer) {
            return true;
        }
    }
    return false;
}

/* Behind those found already, unless the peer is among them. */
static size_t add_silence(flash_silence_t *silences, size_t found, size_t most,
                          const flash_silence_t *silence)
{
    if (found == most || is_among(silences, found, silence->peer)) {
        return found;
    }
    silences[found] = *silence;
    return found + 1;
}

static size_t add_younger(flash_silence_t *silences, size_t found, size_t most,
                          const flash_op_t *op)
{
    for (uint64_t number = op->retired; number < op->opened; number++) {
        const flash_slot_t *slot = &op->slots[number % op->depth];

        if (slot->posted) {
            flash_silence_t silence = silence_of(op, slot);

            found = add_silence(silences, found, most, &silence);
        }
    }
    return found;
}

size_t flash_engine_watch(flash_engine_t *engine, flash_silence_t *silences, size_t most)
{
    size_t found = 0;

    for (flash_op_t *op = engine->running.head; op != NULL; op = op->next_running) {
        const flash_slot_t *slot = waits_for_neighbour(op);
        flash_silence_t silence;

        if (!has_user(op) || slot == NULL || op->events_had != op->events_seen) {
            op->events_seen = op->events_had;
            op->watches = 0;
            continue;
        }
        op->watches++;
        silence = silence_of(op, slot);
        found = add_silence(silences, found, most, &silence);
    }
    for (flash_op_t *op = engine->running.head; op != NULL; op = op->next_running) {
        if (op->watches > 0) {
            found = add_younger(silences, found, most, op);
        }
    }
    return found;
}

/* -------------------------------------------------------------------- work */

static bool take_combine(flash_op_queue_t *queue, enum flash_work_kind kind, flash_work_t *work)
{
    flash_op_t *op = queue->head;

    if (op == NULL) {
        return false;
    }
    combine_remove(queue, op);
    *work = (flash_work_t){.kind = kind,
                           .op = op,
                           .slot = flash_slot_queue_pop(&op->combining),
                           .taken_at = flash_trace_clock(op->engine->trace)};
    if (kind == FLASH_WORK_COPY) {
        flash_op_take_copy(op, work);
    } else {
        flash_op_take_sum(op, work->slot, work);
    }
    op->held++;
    flash_engine_offer(op); /* the next segment, behind other operations' */
    return true;
}

static bool take_staging(flash_engine_t *engine, flash_work_t *work)
{
    flash_op_t *op = engine->staging.head;

    if (op == NULL) {
        return false;
    }
    staging_remove(&engine->staging, op);
    *work = (flash_work_t){.op = op, .taken_at = flash_trace_clock(op->engine->trace)};
    flash_op_take_staging(op, work);
    op->held++;
    flash_engine_offer(op);
    return true;
}

static bool take_callback(flash_op_queue_t *queue, enum flash_work_kind kind, flash_work_t *work)
{
    flash_op_t *op;

    while ((op = queue->head) != NULL) {
        callback_remove(queue, op);
        if (flash_op_wants_callback(op)) {
            *work = (flash_work_t){
                .kind = kind, .op = op, .taken_at = flash_trace_clock(op->engine->trace)};
            flash_op_take_callback(op, &work->piece);
            op->held++;
            return true;
        }
    }
    return false;
}

bool flash_engine_take(flash_engine_t *engine, unsigned kinds, flash_work_t *work)
{
    return ((kinds & FLASH_WORK_STAGE) != 0 && take_staging(engine, work)) ||
           ((kinds & FLASH_WORK_COMBINE) != 0 &&
            take_combine(&engine->combine, FLASH_WORK_COMBINE, work)) ||
           ((kinds & FLASH_WORK_USERS_COMBINE) != 0 &&
            take_combine(&engine->users_combine, FLASH_WORK_USERS_COMBINE, work)) ||
           ((kinds & FLASH_WORK_CALLBACK) != 0 &&
            take_callback(&engine->callback, FLASH_WORK_CALLBACK, work)) ||
           ((kinds & FLASH_WORK_CALLBACK_APART) != 0 &&
            take_callback(&engine->apart, FLASH_WORK_CALLBACK_APART, work)) ||
           ((kinds & FLASH_WORK_COPY) != 0 && take_combine(&engine->copy, FLASH_WORK_COPY, work));
}

bool flash_engine_calls_back(const flash_engine_t *engine, enum flash_work_kind kind)
{
    return (kind == FLASH_WORK_CALLBACK ? engine->callback : engine->apart).head != NULL;
}

static bool copies(const flash_work_t *work)
{
    return (work->kind & (FLASH_WORK_COPY | FLASH_WORK_STAGE)) != 0;
}

/* Of elements that are wide, too. */
static int combine(const flash_work_t *work)
{
    const flash_op_params_t *params = &work->op->params;
    flash_combine_fn *add = work->begins ? params->widen : params->combine;
    int status = add(params->combine_arg, work->in, work->inout, work->count);

    if (status != FLASH_OK || !work->ends) {
        return status;
    }
    return params->narrow(params->combine_arg, work->inout, work->out, work->count);
}

int flash_work_run(const flash_work_t *work)
{
    const flash_op_params_t *params = &work->op->params;

    if ((work->kind & FLASH_WORK_CALLBACKS) != 0) {
        return work->piece.produces ? params->produce(params->produce_arg, &work->piece)
                                    : params->consume(params->consume_arg, &work->piece);
    }
    if (params->begin != NULL && (copies(work) || params->combine_far)) {
        return params->begin(params->begin_arg, work);
    }
    if (copies(work)) {
        flash_copy(work->inout, work->in, work->size);
        return FLASH_OK;
    }
    return combine(work);
}

static void note_copy(const flash_work_t *work)
{
    const flash_op_params_t *params = &work->op->params;
    uint32_t own = flash_schedule_own_input(&params->schedule);
    size_t begin = (size_t) ((const char *) work->in - flash_op_input_block(work->op, own));

    flash_engine_note(work->op, work->taken_at,
                      (flash_trace_span_t){.kind = FLASH_TRACE_COMBINE,
                                           .block = flash_op_own_rank(work->op),
                                           .index = (uint32_t) (begin / params->element /
                                                                flash_op_copied_elements(params)),
                                           .bytes = work->size});
}

static void note_callback(const flash_work_t *work, bool pending)
{
    const flash_piece_t *piece = &work->piece;

    flash_engine_note(
        work->op, work->taken_at,
        (flash_trace_span_t){.kind = pending ? FLASH_TRACE_PENDING : FLASH_TRACE_CALLBACK,
                             .block = piece->block,
                             .index = (uint32_t) piece->number,
                             .bytes = piece->count * work->op->params.element});
}

void flash_engine_finish(const flash_work_t *work, int status)
{
    flash_op_t *op = work->op;

    op->held--;
    if ((work->kind & FLASH_WORK_CALLBACKS) != 0) {
        note_callback(work, status == FLASH_PENDING);
        flash_op_finish_callback(op, work->piece.number, status);
    } else if (work->kind == FLASH_WORK_COPY) {
        note_copy(work);
        if (status != FLASH_OK) {
            flash_op_fail(op, status, flash_op_own_rank(op));
        }
    } else {
        if (work->slot->staging != FLASH_STAGING_BLAME) {
            flash_slot_note(work->slot, FLASH_TRACE_COMBINE, work->taken_at);
        }
        if ((work->kind & FLASH_WORK_STAGE) != 0) {
            flash_slot_staged(work->slot, status);
        } else {
            flash_slot_combined(work->slot, status);
        }
    }
    flash_engine_touch(op);
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
