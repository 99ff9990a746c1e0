/*
 * flash_progress_ended.c: what was begun elsewhere and has ended there: pending pieces, and what
 * other threads note in a list that needs no lock.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "progress/flash_progress_state.h"

#include <stdlib.h>

void flash_progress_ended(flash_progress_t *progress, flash_ended_t *ended)
{
    flash_ended_t *latest = atomic_load_explicit(&progress->ended, memory_order_relaxed);

    do {
        ended->next = latest;
    } while (!atomic_compare_exchange_weak_explicit(&progress->ended, &latest, ended,
                                                    memory_order_release, memory_order_relaxed));
    if (flash_progress_has_thread(progress)) {
        flash_timer_fire(&progress->timer);
    }
}

/* ------------------------------------------------------------------- elsewhere */

void flash_progress_set_elsewhere(flash_progress_t *progress, const flash_elsewhere_t *elsewhere)
{
    atomic_store_explicit(&progress->elsewhere, elsewhere, memory_order_release);
}

bool flash_progress_look_elsewhere(flash_progress_t *progress)
{
    const flash_elsewhere_t *elsewhere =
        atomic_load_explicit(&progress->elsewhere, memory_order_acquire);

    return elsewhere != NULL && elsewhere->poll();
}

bool flash_progress_busy_elsewhere(flash_progress_t *progress)
{
    const flash_elsewhere_t *elsewhere =
        atomic_load_explicit(&progress->elsewhere, memory_order_acquire);

    return elsewhere != NULL && elsewhere->busy();
}

/* ----------------------------------------------------------------------- notes */

int flash_progress_make_notes(flash_progress_t *progress)
{
    size_t wanted = atomic_load_explicit(&progress->in_flight, memory_order_relaxed) + 1;

    while (progress->notes_made < wanted) {
        flash_progress_notes_t *made = calloc(1, sizeof(*made));

        if (made == NULL) {
            return FLASH_ERR_NO_MEMORY;
        }
        made->next = atomic_load_explicit(&progress->notes, memory_order_relaxed);
        atomic_store_explicit(&progress->notes, made, memory_order_release);
        progress->notes_made++;
    }
    return FLASH_OK;
}

void flash_progress_free_notes(flash_progress_t *progress)
{
    flash_progress_notes_t *notes = atomic_load_explicit(&progress->notes, memory_order_relaxed);

    for (flash_progress_notes_t *next; notes != NULL; notes = next) {
        next = notes->next;
        free(notes);
    }
}

/* NULL: more pieces are said to be done than are pending. */
static flash_progress_note_t *take_note(flash_progress_t *progress)
{
    flash_progress_notes_t *notes = atomic_load_explicit(&progress->notes, memory_order_acquire);

    for (; notes != NULL; notes = notes->next) {
        for (int k = 0; k < FLASH_MAX_PENDING; k++) {
            flash_progress_note_t *note = &notes->notes[k];

            if (!atomic_load_explicit(&note->taken, memory_order_relaxed) &&
                !atomic_exchange_explicit(&note->taken, true, memory_order_acquire)) {
                return note;
            }
        }
    }
    return NULL;
}

static void end_noted(flash_ended_t *ended)
{
    flash_progress_note_t *note = (flash_progress_note_t *) ended;

    flash_engine_end_pending(note->op, note->number, ended->status);
    atomic_store_explicit(&note->taken, false, memory_order_release);
}

static bool leave_note(flash_progress_t *progress, flash_op_t *op, uint64_t number, int status)
{
    flash_progress_note_t *note = take_note(progress);

    if (note != NULL) {
        note->ended = (flash_ended_t){.status = status, .end = end_noted};
        note->op = op;
        note->number = number;
        flash_progress_ended(progress, &note->ended);
    }
    return note != NULL;
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

bool flash_progress_end_pending(flash_progress_t *progress, flash_op_t *op, uint64_t number,
                                int status)
{
    bool pending = true;

    atomic_fetch_add_explicit(&progress->visitors, 1, memory_order_relaxed);
    if (!flash_engine_claim_pending(op, number)) {
        pending = false;
    } else if (pthread_mutex_trylock(&progress->lock) == 0) { /* without the context of a device */
        pending = flash_engine_end_pending(op, number, status);
        if (pending) {
            flash_progress_recall(progress, false, 0);
        }
        flash_progress_unlock_alone(progress);
    } else {
        pending = leave_note(progress, op, number, status);
    }
    /* The application may finalize MPI already. */
    atomic_fetch_sub_explicit(&progress->visitors, 1, memory_order_release);
    return pending;
}
