/*
 * sim_held.c: the work of a simulation that threads have in their hands, from when it is taken to
 * when it is finished; see sim.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <stdlib.h>

#include "engine/flash_op.h"
#include "sim.h"

static void check_taken(sim_t *sim, const flash_work_t *work, uint32_t rank, unsigned kinds)
{
    sim_instance_t *in = flash_op_user(work->op);

    if ((work->kind & kinds) == 0) {
        sim_complain(sim, "rank %u: took work that was not asked for", rank);
    }
    if ((work->kind & (FLASH_WORK_COMBINE | FLASH_WORK_USERS_COMBINE)) != 0 &&
        (work->kind == FLASH_WORK_USERS_COMBINE) != in->spec->users) {
        sim_complain(sim, "rank %u: took the user's work for its own, or its own for the user's",
                     rank);
    }
    if ((work->kind & FLASH_WORK_CALLBACKS) != 0 &&
        (work->kind == FLASH_WORK_CALLBACK_ON_THREAD) != in->spec->on_callback_thread) {
        sim_complain(sim, "rank %u: a callback for another thread", rank);
    }
    if (in->rank != rank || in->status != SIM_UNFINISHED) {
        sim_complain(sim, "rank %u: work of an operation that is complete", rank);
    }
    if ((work->kind & FLASH_WORK_CALLBACKS) != 0) {
        if (in->in_callback) {
            sim_complain(sim, "op %u rank %u: two callbacks at a time", in->index, rank);
        }
        if (in->call_failed) {
            sim_complain(sim, "op %u rank %u: a callback after one that failed", in->index, rank);
        }
        in->in_callback = true;
    }
    in->works++;
}

/* The same in each order of moves: a segment is combined once, a piece called back for once. */
static uint64_t held_name(const sim_held_t *held)
{
    const sim_instance_t *in = held->pending;
    const flash_work_t *work = &held->work;

    if (in != NULL) {
        return (uint64_t) in->index << 56 | UINT64_C(2) << 48 | held->piece.number;
    }
    in = flash_op_user(work->op);
    if ((work->kind & FLASH_WORK_CALLBACKS) != 0) {
        return (uint64_t) in->index << 56 | UINT64_C(1) << 48 | work->piece.number;
    }
    if (work->kind == FLASH_WORK_COPY) { /* what is left says which part it is */
        return (uint64_t) in->index << 56 | UINT64_C(3) << 48 | work->op->uncopied;
    }
    if ((work->kind & FLASH_WORK_STAGE) != 0) {
        return (uint64_t) in->index << 56 | (uint64_t) work->kind << 48 |
               (uint64_t) work->slot->staging << 44 | (uint64_t) work->slot->step << 24 |
               work->slot->segment;
    }
    return (uint64_t) in->index << 56 | (uint64_t) work->slot->step << 24 | work->slot->segment;
}

static void hold(sim_t *sim, sim_held_t *held)
{
    held->name = held_name(held);
    if (sim->nheld == sim->held_room) {
        sim->held_room = 2 * sim->held_room + 8;
        sim->held = realloc(sim->held, sim->held_room * sizeof(*sim->held));
    }
    sim->held[sim->nheld++] = *held;
}

bool sim_take(sim_t *sim, uint32_t rank, unsigned kinds)
{
    sim_held_t held = {.rank = rank};

    if (!flash_engine_take(sim->engines[rank], kinds, &held.work)) {
        return false;
    }
    check_taken(sim, &held.work, rank, kinds);
    hold(sim, &held);
    return true;
}

void sim_hold_pending(sim_instance_t *in, const flash_piece_t *piece, int status)
{
    sim_held_t held = {
        .rank = in->rank, .pending = in, .piece = *piece, .ran = true, .status = status};

    in->works++;
    hold(in->sim, &held);
}

void sim_run_held(sim_t *sim, size_t k)
{
    const flash_work_t *work = &sim->held[k].work;
    int status;

    if (!sim->held[k].ran) {
        if ((work->kind & (FLASH_WORK_STAGE | FLASH_WORK_COPY)) != 0) {
            status = sim_instance_copy(flash_op_user(work->op), work);
        } else if (sim_instance_adds_on_device(flash_op_user(work->op), work)) {
            status = sim_instance_add_on_device(flash_op_user(work->op), work);
        } else {
            status = flash_work_run(work); /* may hold one more, elsewhere then */
        }
        sim->held[k].status = status;
        sim->held[k].ran = true;
    }
}

/* Whether the callback that said so has returned or not. */
static void end_pending(sim_t *sim, const sim_held_t *held)
{
    sim_instance_t *in = held->pending;

    if (held->status == FLASH_OK) {
        sim_instance_compute(in, &held->piece);
    }
    in->call_failed |= held->status != FLASH_OK;
    in->works--;
    if (!flash_engine_end_pending(held->piece.op, held->piece.number, held->status)) {
        sim_complain(sim, "op %u rank %u: a piece is not pending", in->index, in->rank);
    }
    if (flash_engine_end_pending(held->piece.op, held->piece.number, FLASH_OK) ||
        flash_engine_end_pending(held->piece.op, held->piece.number + FLASH_MAX_PENDING,
                                 FLASH_OK)) {
        sim_complain(sim, "op %u rank %u: a piece can end that is not pending", in->index,
                     in->rank);
    }
}

void sim_finish_held(sim_t *sim, size_t k)
{
    sim_held_t held;
    sim_instance_t *in;

    sim_run_held(sim, k);
    held = sim->held[k];
    sim->held[k] = sim->held[--sim->nheld];
    if (held.pending != NULL) {
        end_pending(sim, &held);
        return;
    }
    in = flash_op_user(held.work.op);
    in->works--;
    if ((held.work.kind & FLASH_WORK_CALLBACKS) != 0) {
        in->in_callback = false;
    }
    flash_engine_finish(&held.work, held.status);
}
