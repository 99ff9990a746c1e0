/*
 * flash_work.c: work that the engine has to give: taken, run and finished.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "engine/flash_copy.h"
#include "engine/flash_queue.h"
#include "engine/flash_slot.h"

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
           ((kinds & FLASH_WORK_CALLBACK_ON_THREAD) != 0 &&
            take_callback(&engine->callback_on_thread, FLASH_WORK_CALLBACK_ON_THREAD, work)) ||
           ((kinds & FLASH_WORK_COPY) != 0 && take_combine(&engine->copy, FLASH_WORK_COPY, work));
}

bool flash_engine_calls_back(const flash_engine_t *engine, enum flash_work_kind kind)
{
    return (kind == FLASH_WORK_CALLBACK ? engine->callback : engine->callback_on_thread).head !=
           NULL;
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
    if (params->begin != NULL && (copies(work) || params->combine_on_device)) {
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

static void finish_callback(flash_op_t *op, uint64_t number, int status)
{
    op->calling = false;
    if (status != FLASH_PENDING) {
        flash_engine_claim_pending(op, number);
        flash_op_end_piece(op, number, status);
    }
    flash_engine_offer(op);
}

void flash_engine_finish(const flash_work_t *work, int status)
{
    flash_op_t *op = work->op;

    op->held--;
    if ((work->kind & FLASH_WORK_CALLBACKS) != 0) {
        note_callback(work, status == FLASH_PENDING);
        finish_callback(op, work->piece.number, status);
    } else if (work->kind == FLASH_WORK_COPY) {
        note_copy(work);
        if (status != FLASH_OK) {
            flash_op_fail(op, status, flash_op_own_rank(op));
        }
    } else {
        if (work->slot->staging != FLASH_STAGING_FAILED_RANK) {
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
