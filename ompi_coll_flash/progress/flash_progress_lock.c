/*
 * flash_progress_lock.c: the lock of an engine, who waits for it, and who is told.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "progress/flash_progress_state.h"

#include <time.h>

void flash_progress_stand_back(void)
{
    static const struct timespec pause = {.tv_nsec = FLASH_STAND_BACK_NS};

    nanosleep(&pause, NULL);
}

static void enter_context(const flash_progress_t *progress)
{
    if (progress->context != NULL) {
        progress->context->enter();
    }
}

void flash_progress_lock_behind(flash_progress_t *progress)
{
    pthread_mutex_lock(&progress->lock);
    enter_context(progress);
}

void flash_progress_lock(flash_progress_t *progress)
{
    atomic_fetch_add_explicit(&progress->contenders, 1, memory_order_relaxed);
    flash_progress_lock_behind(progress);
    atomic_fetch_sub_explicit(&progress->contenders, 1, memory_order_relaxed);
}

bool flash_progress_try_lock(flash_progress_t *progress)
{
    bool locked = pthread_mutex_trylock(&progress->lock) == 0;

    if (locked) {
        enter_context(progress);
    }
    return locked;
}

/* Whoever made a callback possible for the thread that is there for them calls it. */
void flash_progress_unlock_alone(flash_progress_t *progress)
{
    bool calls = flash_engine_calls_back(progress->engine, FLASH_WORK_CALLBACK_ON_THREAD);

    pthread_mutex_unlock(&progress->lock);
    if (calls) {
        flash_callback_thread_wake(&progress->callback_thread);
    }
}

void flash_progress_unlock(flash_progress_t *progress)
{
    if (progress->context != NULL) {
        progress->context->leave();
    }
    flash_progress_unlock_alone(progress);
}

bool flash_progress_has_thread(const flash_progress_t *progress)
{
    return atomic_load_explicit(&progress->has_thread, memory_order_relaxed);
}

/* The application goes away, or has left something to do: the thread is on duty. */
void flash_progress_wake(flash_progress_t *progress)
{
    if (flash_progress_has_thread(progress)) {
        flash_timer_call(&progress->timer);
    }
}

void flash_progress_recall(flash_progress_t *progress, bool brief, uint64_t taken)
{
    if (flash_progress_has_thread(progress)) {
        flash_timer_recall(&progress->timer, brief, taken);
    }
}

void flash_progress_run(flash_progress_t *progress, const flash_work_t *work)
{
    int status;

    flash_progress_unlock(progress);
    status = flash_work_run(work);
    flash_progress_lock(progress);
    if (status != FLASH_LATER) {
        flash_engine_finish(work, status);
    }
}

void flash_progress_set_context(flash_progress_t *progress, const flash_context_t *context)
{
    pthread_mutex_lock(&progress->lock);
    progress->context = context;
    pthread_mutex_unlock(&progress->lock);
}

const flash_context_t *flash_progress_context(const flash_progress_t *progress)
{
    return progress->context;
}
