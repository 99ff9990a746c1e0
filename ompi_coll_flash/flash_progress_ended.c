/*
 * flash_progress_ended.c: what was begun elsewhere and has ended there: pending pieces, and what
 * other threads note in a list that needs no lock.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "flash_progress_state.h"

#include <sched.h>
#include <stdlib.h>

/* Nobody has the lock for so long but who waits for a driver, or for a processor. */
enum { NEAR = 16, MOMENT = 200 }; /* turns given away; and then pauses */

/* That a pending piece is done. */
typedef struct note {
    flash_ended_t ended;
    flash_op_t *op;
    uint64_t number;
} note_t;

void flash_progress_ended(flash_progress_t *progress, flash_ended_t *ended)
{
    flash_ended_t *latest = atomic_load_explicit(&progress->ended, memory_order_relaxed);

    do {
        ended->next = latest;
    } while (!atomic_compare_exchange_weak_explicit(&progress->ended, &latest, ended,
                                                    memory_order_release, memory_order_relaxed));
    if (flash_progress_has_thread(progress)) {
        flash_alarm_ring(&progress->alarm);
    }
}

static void end_noted(flash_ended_t *ended)
{
    note_t *note = (note_t *) ended;

    flash_engine_end_pending(note->op, note->number, ended->status);
    free(note);
}

bool flash_progress_finish_ended(flash_progress_t *progress)
{
    flash_ended_t *ended = NULL, *oldest = NULL, *next;

    if (atomic_load_explicit(&progress->ended, memory_order_relaxed) == NULL) {
        return false;
    }
    ended = atomic_exchange_explicit(&progress->ended, NULL, memory_order_acquire);
    for (; ended != NULL; ended = next) {
        next = ended->next;
        ended->next = oldest;
        oldest = ended;
    }
    for (; oldest != NULL; oldest = next) {
        next = oldest->next;
        oldest->end(oldest);
    }
    return true;
}

/* For a moment. Without the context, which a driver's callback may not enter. */
static bool get_lock_soon(flash_progress_t *progress)
{
    bool locked = false;

    atomic_fetch_add_explicit(&progress->contenders, 1, memory_order_relaxed);
    for (int k = 0; k < MOMENT && !locked; k++) {
        if (k > NEAR) {
            flash_progress_stand_back();
        } else if (k > 0) {
            sched_yield();
        }
        locked = pthread_mutex_trylock(&progress->lock) == 0;
    }
    atomic_fetch_sub_explicit(&progress->contenders, 1, memory_order_relaxed);
    return locked;
}

/* False if there is no memory for a note. */
static bool leave_note(flash_progress_t *progress, flash_op_t *op, uint64_t number, int status)
{
    note_t *note = malloc(sizeof(*note));

    if (note == NULL) {
        return false;
    }
    *note = (note_t){.ended = {.status = status, .end = end_noted}, .op = op, .number = number};
    flash_progress_ended(progress, &note->ended);
    return true;
}

bool flash_progress_end_pending(flash_progress_t *progress, flash_op_t *op, uint64_t number,
                                int status)
{
    bool pending = true, locked;

    atomic_fetch_add_explicit(&progress->visitors, 1, memory_order_relaxed);
    locked = get_lock_soon(progress);
    if (!locked && !leave_note(progress, op, number, status)) {
        pthread_mutex_lock(&progress->lock);
        locked = true;
    }
    if (locked) {
        pending = flash_engine_end_pending(op, number, status);
        if (pending) {
            flash_progress_recall(progress, false);
        }
        flash_progress_unlock_alone(progress);
    }
    /* The application may finalize MPI already. */
    atomic_fetch_sub_explicit(&progress->visitors, 1, memory_order_release);
    return pending;
}
