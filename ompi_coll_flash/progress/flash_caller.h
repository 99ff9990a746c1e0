/*
 * flash_caller.h: a thread that makes callbacks when it is woken, and sleeps.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef FLASH_CALLER_H
#define FLASH_CALLER_H

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>

/*
 * `woken` and `stop` are atomic: who wakes releases what it did before, the thread acquires it.
 * The rest is written before the thread starts.
 */
typedef struct flash_caller {
    pthread_t thread;
    sem_t wakes;       /* posted once each time that `woken` becomes true, and to stop */
    atomic_bool woken; /* and the thread has not yet looked what for */
    atomic_bool stop;
    bool (*work)(void *arg); /* does something; false: there was nothing to do */
    void *arg;
} flash_caller_t;

/* False if the system refuses. */
bool flash_caller_start(flash_caller_t *caller, bool (*work)(void *arg), void *arg);
/* After the last wake-up: returns when the thread has ended. */
void flash_caller_stop(flash_caller_t *caller);

/* Any thread, the caller's own included: it works until there is nothing to do. */
void flash_caller_wake(flash_caller_t *caller);

#endif /* FLASH_CALLER_H */
