/*
 * standin_alloc.c: the functions of the stand-in driver that make and free memory; see
 * standin_memory.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "standin_memory.h"

/*
 * What makes or frees memory: not while a stream is captured, and some of it waits for all streams.
 */
static int enter(const char *name, bool waits)
{
    int result = standin_enter(name);

    if (result == SUCCESS) {
        result = standin_unsafe();
    }
    if (result == SUCCESS && waits) {
        standin_wait_for_all();
    }
    return result == UNKNOWN                                ? OUT_OF_MEMORY
           : result == SUCCESS && standin_context() == NULL ? INVALID_CONTEXT
                                                            : result;
}

/* The driver reaches it where the processor does. */
int cuMemHostRegister_v2(void *memory, size_t size, unsigned flags)
{
    int result = enter("cuMemHostRegister", false);

    (void) flags;
    return result != SUCCESS ? result
           : memory == NULL || size == 0
               ? INVALID_VALUE
               : standin_keep(&(standin_allocation_t){
                     .begin = memory, .shadow = memory, .size = size, .kind = REGISTERED});
}

/* Also of a context that is broken: then it says so. */
static int release(const char *name, uintptr_t address)
{
    int result = enter(name, true), released = standin_release(address);

    return result == SUCCESS ? released : result;
}

int cuMemHostUnregister(void *memory)
{
    return release("cuMemHostUnregister", (uintptr_t) memory);
}

int cuMemAlloc_v2(unsigned long long *address, size_t size)
{
    uintptr_t made = 0;
    int result = enter("cuMemAlloc", false);

    result = result == SUCCESS ? standin_allocate(&made, size, DEVICE) : result;
    *address = made;
    return result;
}

int cuMemAllocManaged(unsigned long long *address, size_t size, unsigned flags)
{
    uintptr_t made = 0;
    int result = standin_allocate(&made, size, MANAGED);

    (void) flags;
    *address = made;
    return result;
}

int cuMemHostAlloc(void **memory, size_t size, unsigned flags)
{
    uintptr_t made = 0;
    int result = enter("cuMemHostAlloc", true);

    (void) flags;
    result = result == SUCCESS ? standin_allocate(&made, size, PINNED) : result;
    *memory = (void *) made;
    return result;
}

int cuMemFree_v2(unsigned long long address)
{
    return release("cuMemFree", address);
}

int cuMemFreeHost(void *memory)
{
    return release("cuMemFreeHost", (uintptr_t) memory);
}

int cuMemPoolCreate(void **pool, const void *properties)
{
    static int the_pool;
    int result = standin_enter("cuMemPoolCreate");

    *pool = &the_pool;
    return result == SUCCESS && properties == NULL ? INVALID_VALUE : result;
}

int cuMemPoolSetAttribute(const void *pool, int attribute, const void *value)
{
    (void) attribute;
    standin_not_in_callback("cuMemPoolSetAttribute");
    return pool != NULL && value != NULL ? SUCCESS : INVALID_VALUE;
}

/* It is there at once, whatever the stream holds. */
int cuMemAllocFromPoolAsync(unsigned long long *address, size_t size, const void *pool,
                            const void *stream)
{
    uintptr_t made = 0;
    int result = standin_enter("cuMemAllocFromPoolAsync");

    (void) pool;
    (void) stream;
    result = result == UNKNOWN   ? OUT_OF_MEMORY
             : result == SUCCESS ? standin_allocate(&made, size, DEVICE)
                                 : result;
    *address = made;
    return result;
}
