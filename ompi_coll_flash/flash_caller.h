/*
 * flash_caller.h: a thread that makes callbacks when it is called, and sleeps.
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
 * `called` and `stop` are atomic: who calls releases what it did before, the thread acquires it.
 * The rest is written before the thread starts.
 */
typedef struct flash_caller {
    pthread_t thread;
    sem_t calls;        /* posted once each time that `called` becomes true, and to stop */
    atomic_bool called; /* and the thread has not yet looked what for */
    atomic_bool stop;
    bool (*work)(void *arg); /* does something; false: there was nothing to do */
    void *arg;
} flash_caller_t;

/* False if the system refuses. */
bool flash_caller_start(flash_caller_t *caller, bool (*work)(void *arg), void *arg);
/* After the last call: returns when the thread has ended. */
void flash_caller_stop(flash_caller_t *caller);

/* Any thread, the caller's own included: it works until there is nothing to do. */
void flash_caller_call(flash_caller_t *caller);

#endif /* FLASH_CALLER_H */
