/*
 * flash_caller.c: see flash_caller.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "progress/flash_caller.h"

#include "progress/flash_thread.h"

static bool is_stopped(flash_caller_t *caller)
{
    return atomic_load_explicit(&caller->stop, memory_order_acquire);
}

static void *thread_main(void *arg)
{
    flash_caller_t *caller = arg;

    while (!is_stopped(caller)) {
        while (sem_wait(&caller->wakes) != 0) { /* a debugger interrupts it */
        }
        atomic_exchange_explicit(&caller->woken, false, memory_order_acq_rel);
        while (caller->work(caller->arg)) {
        }
    }
    return NULL;
}

bool flash_caller_start(flash_caller_t *caller, bool (*work)(void *arg), void *arg)
{
    sem_init(&caller->wakes, 0, 0);
    atomic_init(&caller->woken, false);
    atomic_init(&caller->stop, false);
    caller->work = work;
    caller->arg = arg;
    if (!flash_thread_start(&caller->thread, "flash-callbacks", thread_main, caller)) {
        sem_destroy(&caller->wakes);
        return false;
    }
    return true;
}

void flash_caller_stop(flash_caller_t *caller)
{
    atomic_store_explicit(&caller->stop, true, memory_order_release);
    sem_post(&caller->wakes);
    pthread_join(caller->thread, NULL);
    sem_destroy(&caller->wakes);
}

void flash_caller_wake(flash_caller_t *caller)
{
    if (!atomic_exchange_explicit(&caller->woken, true, memory_order_acq_rel)) {
        sem_post(&caller->wakes);
    }
}
