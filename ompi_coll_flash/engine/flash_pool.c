/*
 * flash_pool.c: see flash_pool.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "engine/flash_pool.h"

#include <stdlib.h>

static void *allocate(void *arg, size_t size)
{
    void *memory;

    (void) arg;
    return posix_memalign(&memory, FLASH_POOL_ALIGNMENT, size) == 0 ? memory : NULL;
}

static void release(void *arg, void *memory, size_t size)
{
    (void) arg;
    (void) size;
    free(memory);
}

void flash_pool_init(flash_pool_t *pool)
{
    *pool = (flash_pool_t){.allocate = allocate, .release = release, .largest = FLASH_POOL_LARGEST};
}

void *flash_pool_take(flash_pool_t *pool, size_t size, size_t *got)
{
    void *memory;
    int best = -1;

    for (int k = 0; k < FLASH_POOL_KEPT; k++) {
        if (pool->kept[k].memory != NULL && pool->kept[k].size >= size &&
            (best < 0 || pool->kept[k].size < pool->kept[best].size)) {
            best = k;
        }
    }
    /* A buffer more than twice too large stays for the operation that needs it. */
    if (best < 0 || pool->kept[best].size / 2 > size) {
        return NULL;
    }
    memory = pool->kept[best].memory;
    *got = pool->kept[best].size;
    pool->kept[best].memory = NULL;
    return memory;
}

void *flash_pool_get(flash_pool_t *pool, size_t size, size_t *got)
{
    void *memory = flash_pool_take(pool, size, got);

    if (memory != NULL) {
        return memory;
    }
    *got = size;
    return pool->allocate(pool->arg, size);
}

/* The smallest gives way: it is the cheapest to make again. */
void flash_pool_exchange(flash_pool_t *pool, void **memory, size_t *size)
{
    void *given = *memory;
    size_t given_size = *size;
    int place = 0;

    if (given == NULL || given_size > pool->largest) {
        return;
    }
    for (int k = 0; k < FLASH_POOL_KEPT; k++) {
        if (pool->kept[k].memory == NULL) {
            place = k;
            break;
        }
        if (pool->kept[k].size < pool->kept[place].size) {
            place = k;
        }
    }
    if (pool->kept[place].memory == NULL || pool->kept[place].size <= given_size) {
        *memory = pool->kept[place].memory;
        *size = pool->kept[place].size;
        pool->kept[place].memory = given;
        pool->kept[place].size = given_size;
    }
}

void flash_pool_put(flash_pool_t *pool, void *memory, size_t size)
{
    flash_pool_exchange(pool, &memory, &size);
    pool->release(pool->arg, memory, size);
}

void flash_pool_clear(flash_pool_t *pool)
{
    for (int k = 0; k < FLASH_POOL_KEPT; k++) {
        pool->release(pool->arg, pool->kept[k].memory, pool->kept[k].size);
        pool->kept[k].memory = NULL;
    }
}
