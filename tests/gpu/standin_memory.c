/*
 * standin_memory.c: the memory that the stand-in driver knows, and its attributes; see
 * standin_memory.h.
 *
 * `mutex` orders the allocations.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "standin_memory.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

/* Attributes of a pointer. */
enum {
    CONTEXT = 1,
    MEMORY_TYPE = 2,
    SYNC_MEMOPS = 6,
    BUFFER_ID = 7,
    IS_MANAGED = 8,
    DEVICE_ORDINAL = 9,
    RANGE_BEGIN = 11,
    RANGE_SIZE = 12
};
enum { TYPE_HOST = 1, TYPE_DEVICE = 2 };
enum { MOST = 256 };

/* Bytes in which a device's memory is shared with other processes. */
#define BLOCK ((size_t) 2 << 20)

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static standin_allocation_t allocations[MOST];
static size_t largest_pinned;

/* ---------------------------------------------------------------- allocations */

static char *reserve(size_t size)
{
    return mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

/* As the driver does, allocations of less than a block adjoin, if their sizes allow it. */
static char *find_room(size_t size)
{
    static char *room;
    static size_t left;
    char *place;

    pthread_mutex_lock(&mutex);
    if (left < size) {
        room = reserve(BLOCK);
        left = room == MAP_FAILED ? 0 : BLOCK;
    }
    place = room;
    if (left >= size) {
        room += size;
        left -= size;
    }
    pthread_mutex_unlock(&mutex);
    return place;
}

/* As the driver does, whole blocks begin where a block does. */
static char *find_place(size_t size)
{
    size_t page = (size_t) sysconf(_SC_PAGESIZE), pages = (size + page - 1) / page * page, before;
    char *place;

    if (pages < BLOCK) {
        return find_room(pages);
    }
    place = reserve(pages + BLOCK);
    if (place == MAP_FAILED) {
        return place;
    }
    before = (BLOCK - (uintptr_t) place % BLOCK) % BLOCK;
    munmap(place, before);
    munmap(place + before + pages, BLOCK - before);
    return place + before;
}

static bool map(standin_allocation_t *made)
{
    char *place = find_place(made->size);
    int file = memfd_create("device", 0);
    bool mapped = file >= 0 && ftruncate(file, (off_t) made->size) == 0;

    mapped = mapped && place != MAP_FAILED;
    if (mapped) {
        int access = made->kind == DEVICE ? PROT_NONE : PROT_READ | PROT_WRITE;

        made->begin = mmap(place, made->size, access, MAP_SHARED | MAP_FIXED, file, 0);
        made->shadow = mmap(NULL, made->size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        mapped = made->begin != MAP_FAILED && made->shadow != MAP_FAILED;
    }
    close(file);
    return mapped;
}

int standin_keep(const standin_allocation_t *made)
{
    static unsigned long long count;
    int k = 0;

    pthread_mutex_lock(&mutex);
    while (k < MOST && allocations[k].begin != NULL) {
        k++;
    }
    if (k < MOST) {
        allocations[k] = *made;
        allocations[k].context = count++ % 2 == 0 ? standin_context() : NULL;
        allocations[k].id = count;
        if (made->kind == PINNED || made->kind == REGISTERED) {
            standin_count_made();
            largest_pinned = made->size > largest_pinned ? made->size : largest_pinned;
        }
    }
    pthread_mutex_unlock(&mutex);
    return k < MOST ? SUCCESS : OUT_OF_MEMORY;
}

int standin_allocate(uintptr_t *address, size_t size, standin_kind_t kind)
{
    standin_allocation_t made = {
        .size = size, .kind = kind, .device = standin_device_of(standin_context())};

    if (size == 0 || !map(&made)) {
        return size == 0 ? INVALID_VALUE : OUT_OF_MEMORY;
    }
    *address = (uintptr_t) made.begin;
    return standin_keep(&made);
}

/* Under the mutex. */
static standin_allocation_t *find(uintptr_t address)
{
    for (int k = 0; k < MOST; k++) {
        uintptr_t begin = (uintptr_t) allocations[k].begin;

        if (begin != 0 && address >= begin && address - begin < allocations[k].size) {
            return &allocations[k];
        }
    }
    return NULL;
}

int standin_release(uintptr_t address)
{
    standin_allocation_t *found, was;

    pthread_mutex_lock(&mutex);
    found = find(address);
    if (found == NULL || (uintptr_t) found->begin != address) {
        pthread_mutex_unlock(&mutex);
        return INVALID_VALUE;
    }
    was = *found;
    found->begin = NULL;
    pthread_mutex_unlock(&mutex);
    if (was.kind != REGISTERED) {
        munmap(was.begin, was.size);
        munmap(was.shadow, was.size);
    }
    return SUCCESS;
}

void *standin_reach(uintptr_t address, size_t size)
{
    standin_allocation_t *found;
    void *reached = (void *) address;

    pthread_mutex_lock(&mutex);
    found = find(address);
    if (found != NULL) {
        size_t offset = address - (uintptr_t) found->begin;

        reached = found->size - offset < size ? NULL : found->shadow + offset;
    }
    pthread_mutex_unlock(&mutex);
    return reached;
}

bool standin_knows(uintptr_t address)
{
    bool known;

    pthread_mutex_lock(&mutex);
    known = find(address) != NULL;
    pthread_mutex_unlock(&mutex);
    return known;
}

void *standin_reach_device(uintptr_t address, size_t size)
{
    const standin_allocation_t *found;
    bool on_device;

    pthread_mutex_lock(&mutex);
    found = find(address);
    on_device = found != NULL && found->kind == DEVICE;
    pthread_mutex_unlock(&mutex);
    return on_device ? standin_reach(address, size) : NULL;
}

/* Under the mutex. */
static bool share_blocks(const standin_allocation_t *one, const standin_allocation_t *other)
{
    uintptr_t begin = (uintptr_t) one->begin / BLOCK,
              other_begin = (uintptr_t) other->begin / BLOCK;
    uintptr_t end = ((uintptr_t) one->begin + one->size - 1) / BLOCK;
    uintptr_t other_end = ((uintptr_t) other->begin + other->size - 1) / BLOCK;

    return begin <= other_end && other_begin <= end;
}

bool standin_is_alone(uintptr_t address)
{
    const standin_allocation_t *found;
    bool alone;

    pthread_mutex_lock(&mutex);
    found = find(address);
    alone = found != NULL;
    for (int k = 0; k < MOST && alone; k++) {
        const standin_allocation_t *other = &allocations[k];

        alone = other == found || other->begin == NULL || other->kind != DEVICE ||
                !share_blocks(found, other);
    }
    pthread_mutex_unlock(&mutex);
    return alone;
}

void *standin_reach_by_kernel(uintptr_t address, size_t size)
{
    return standin_knows(address) ? standin_reach(address, size) : NULL;
}

static int count_of(standin_kind_t kind)
{
    int count = 0;

    pthread_mutex_lock(&mutex);
    for (int k = 0; k < MOST; k++) {
        count += allocations[k].begin != NULL && allocations[k].kind == kind;
    }
    pthread_mutex_unlock(&mutex);
    return count;
}

int standin_pinned(void)
{
    return count_of(PINNED) + count_of(REGISTERED);
}

size_t standin_largest_pinned(void)
{
    size_t largest;

    pthread_mutex_lock(&mutex);
    largest = largest_pinned;
    largest_pinned = 0;
    pthread_mutex_unlock(&mutex);
    return largest;
}

int standin_registered(void)
{
    return count_of(REGISTERED);
}

int standin_on_device(void)
{
    return count_of(DEVICE);
}

/* ----------------------------------------------------------------- attributes */

bool standin_is_synchronous(uintptr_t address)
{
    const standin_allocation_t *found;
    bool synchronous;

    pthread_mutex_lock(&mutex);
    found = find(address);
    synchronous = found != NULL && found->synchronous;
    pthread_mutex_unlock(&mutex);
    return synchronous;
}

/* Copies that have returned, and are not done, are waited for. A pool's memory takes none. */
int cuPointerSetAttribute(const void *value, int attribute, unsigned long long address)
{
    int result = standin_enter("cuPointerSetAttribute");
    standin_allocation_t *found;
    uintptr_t begin = 0;
    size_t size = 0;

    if (result != SUCCESS) {
        return result;
    }
    pthread_mutex_lock(&mutex);
    found = attribute == SYNC_MEMOPS ? find(address) : NULL;
    if (found != NULL && found->context != NULL) {
        found->synchronous = *(const unsigned *) value != 0;
        begin = (uintptr_t) found->begin;
        size = found->size;
    }
    pthread_mutex_unlock(&mutex);
    if (size == 0) {
        return INVALID_VALUE;
    }
    standin_wait_for_copies(begin, size);
    return SUCCESS;
}

/* Answers after an error of the context, or not. */
int cuPointerGetAttribute(void *answer, int attribute, unsigned long long address)
{
    standin_allocation_t copy = {.kind = DEVICE};
    const standin_allocation_t *found;

    standin_not_in_callback("cuPointerGetAttribute");
    if (!standin_is_exempt() && standin_error(standin_context()) != SUCCESS && standin_chance()) {
        return standin_error(standin_context());
    }
    pthread_mutex_lock(&mutex);
    found = find(address);
    if (found != NULL) {
        copy = *found;
    }
    pthread_mutex_unlock(&mutex);
    if (found == NULL) {
        return INVALID_VALUE;
    }
    switch (attribute) {
    case CONTEXT:
        *(void **) answer = copy.context;
        return SUCCESS;
    case MEMORY_TYPE:
        *(unsigned *) answer = copy.kind >= PINNED ? TYPE_HOST : TYPE_DEVICE;
        return SUCCESS;
    case IS_MANAGED:
        *(unsigned *) answer = copy.kind == MANAGED;
        return SUCCESS;
    case DEVICE_ORDINAL:
        *(int *) answer = copy.device;
        return SUCCESS;
    case RANGE_BEGIN:
        *(unsigned long long *) answer = (uintptr_t) copy.begin;
        return SUCCESS;
    case RANGE_SIZE:
        *(size_t *) answer = copy.size;
        return SUCCESS;
    case BUFFER_ID:
        *(unsigned long long *) answer = copy.id;
        return SUCCESS;
    default:
        return INVALID_VALUE;
    }
}
