/*
 * flash_callback_thread.h: a thread that makes callbacks when it is woken, and sleeps.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef FLASH_CALLBACK_THREAD_H
#define FLASH_CALLBACK_THREAD_H

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>

/*
 * `woken` and `stop` are atomic: who wakes releases what it did before, the thread acquires it.
 * The rest is written before the thread starts.
 */
typedef struct flash_callback_thread {
    pthread_t thread;
    sem_t wakes;       /* posted once each time that `woken` becomes true, and to stop */
    atomic_bool woken; /* and the thread has not yet looked what for */
    atomic_bool stop;
    bool (*work)(void *arg); /* does something; false: there was nothing to do */
    void *arg;
} flash_callback_thread_t;

/* False if the system refuses. */
bool flash_callback_thread_start(flash_callback_thread_t *callback_thread, bool (*work)(void *arg),
                                 void *arg);
/* After the last wake-up: returns when the thread has ended. */
void flash_callback_thread_stop(flash_callback_thread_t *callback_thread);

/* Any thread, the callback thread itself included: it works until there is nothing to do. */
void flash_callback_thread_wake(flash_callback_thread_t *callback_thread);

#endif /* FLASH_CALLBACK_THREAD_H */
