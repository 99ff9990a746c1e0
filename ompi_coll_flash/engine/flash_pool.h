/*
 * flash_pool.h: scratch memory that is kept between operations.
 *
 * A reduce-scatter needs room for the sums under way. Fresh pages cost more than the copy that
 * fills them, so freed buffers are kept, up to FLASH_POOL_KEPT of them, and handed out again.
 * Ordered by its user's lock.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef FLASH_POOL_H
#define FLASH_POOL_H

#include <stddef.h>

#define FLASH_POOL_KEPT      4
#define FLASH_POOL_LARGEST   ((size_t) 64 << 20) /* bytes, unless its user says otherwise */
#define FLASH_POOL_ALIGNMENT 4096

typedef struct flash_pool {
    /* Where its memory comes from and goes to. NULL if there is none. */
    void *(*allocate)(void *arg, size_t size);
    void (*release)(void *arg, void *memory, size_t size); /* of NULL: does nothing */
    void *arg;
    size_t largest; /* bytes; larger ones are not kept */
    struct {
        void *memory; /* NULL: the place is free */
        size_t size;
    } kept[FLASH_POOL_KEPT];
} flash_pool_t;

/* Makes an empty pool of ordinary memory; another one's source is set instead. */
void flash_pool_init(flash_pool_t *pool);
/* At least `size` bytes, or NULL. *got is the buffer's real size, for the return. */
void *flash_pool_get(flash_pool_t *pool, size_t size, size_t *got);
void flash_pool_put(flash_pool_t *pool, void *memory, size_t size);
/*
 * The same in two, for who does not want to wait for its source under a lock: of what is kept, NULL
 * if there is nothing that fits; and keeps memory in exchange for what is to be released, which may
 * be NULL, or that memory itself.
 */
void *flash_pool_take(flash_pool_t *pool, size_t size, size_t *got);
void flash_pool_exchange(flash_pool_t *pool, void **memory, size_t *size);
void flash_pool_clear(flash_pool_t *pool);

#endif /* FLASH_POOL_H */
