/*
 * fault_memory.c: see fault_memory.h.
 *
 * A list and no more: flash holds some hundred allocations, and one that is freed is mostly among
 * the latest. Under `mutex`; it allocates nothing.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "fault_memory.h"

#include <pthread.h>
#include <stdlib.h>

#include "faults.h"

enum { MOST = 1 << 14 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static const void *held[MOST];
static size_t count;

void fault_memory_add(const void *memory)
{
    if (memory == NULL) {
        return;
    }
    pthread_mutex_lock(&mutex);
    if (count < MOST) {
        held[count++] = memory;
        memory = NULL;
    }
    pthread_mutex_unlock(&mutex);
    if (memory != NULL) {
        abort(); /* something leaks in earnest */
    }
}

void fault_memory_remove(const void *memory)
{
    size_t k;

    pthread_mutex_lock(&mutex);
    for (k = count; k > 0 && memory != NULL; k--) {
        if (held[k - 1] == memory) {
            held[k - 1] = held[--count];
            break;
        }
    }
    pthread_mutex_unlock(&mutex);
}

size_t fault_allocations(void)
{
    size_t now;

    pthread_mutex_lock(&mutex);
    now = count;
    pthread_mutex_unlock(&mutex);
    return now;
}
