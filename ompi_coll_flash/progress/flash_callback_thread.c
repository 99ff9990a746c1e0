/*
 * flash_callback_thread.c: see flash_callback_thread.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "progress/flash_callback_thread.h"

#include "progress/flash_thread.h"

static bool is_stopped(flash_callback_thread_t *callback_thread)
{
    return atomic_load_explicit(&callback_thread->stop, memory_order_acquire);
}

static void *thread_main(void *arg)
{
    flash_callback_thread_t *callback_thread = arg;

    while (!is_stopped(callback_thread)) {
        while (sem_wait(&callback_thread->wakes) != 0) { /* a debugger interrupts it */
        }
        atomic_exchange_explicit(&callback_thread->woken, false, memory_order_acq_rel);
        while (callback_thread->work(callback_thread->arg)) {
        }
    }
    return NULL;
}

bool flash_callback_thread_start(flash_callback_thread_t *callback_thread, bool (*work)(void *arg),
                                 void *arg)
{
    sem_init(&callback_thread->wakes, 0, 0);
    atomic_init(&callback_thread->woken, false);
    atomic_init(&callback_thread->stop, false);
    callback_thread->work = work;
    callback_thread->arg = arg;
    if (!flash_thread_start(&callback_thread->thread, "flash-callbacks", thread_main,
                            callback_thread)) {
        sem_destroy(&callback_thread->wakes);
        return false;
    }
    return true;
}

void flash_callback_thread_stop(flash_callback_thread_t *callback_thread)
{
    atomic_store_explicit(&callback_thread->stop, true, memory_order_release);
    sem_post(&callback_thread->wakes);
    pthread_join(callback_thread->thread, NULL);
    sem_destroy(&callback_thread->wakes);
}

void flash_callback_thread_wake(flash_callback_thread_t *callback_thread)
{
    if (!atomic_exchange_explicit(&callback_thread->woken, true, memory_order_acq_rel)) {
        sem_post(&callback_thread->wakes);
    }
}
