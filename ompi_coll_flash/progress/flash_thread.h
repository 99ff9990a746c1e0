/*
 * flash_thread.h: starting threads of flash's own.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef FLASH_THREAD_H
#define FLASH_THREAD_H

#include <pthread.h>
#include <stdbool.h>

/*
 * Starts a thread, on the processors of the calling one, that the application's signal handlers do
 * not run on, but for what its own code causes. `name`: at most 15 characters. False if the system
 * refuses.
 */
bool flash_thread_start(pthread_t *thread, const char *name, void *(*run)(void *arg), void *arg);

#endif /* FLASH_THREAD_H */
