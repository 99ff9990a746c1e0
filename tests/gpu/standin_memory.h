/*
 * standin_memory.h: what the files about memory share: standin_memory.c, which memory there is, and
 * standin_alloc.c, the driver's functions that make and free it.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef STANDIN_MEMORY_H
#define STANDIN_MEMORY_H

#include "standin.h"

typedef enum { DEVICE, MANAGED, PINNED, REGISTERED } standin_kind_t;

typedef struct standin_allocation {
    char *begin;  /* NULL: not in use */
    char *shadow; /* the same memory, where the driver reaches it */
    size_t size;
    standin_kind_t kind;
    standin_context_t *context; /* NULL: none */
    int device;
    unsigned long long id;
    bool synchronous;
} standin_allocation_t;

/* Makes memory, in the current context. A result of the driver's. */
int standin_allocate(uintptr_t *address, size_t size, standin_kind_t kind);
/* Has the driver know memory that is there. A result of the driver's. */
int standin_keep(const standin_allocation_t *made);

#endif /* STANDIN_MEMORY_H */
