/*
 * standin_memory.c: memory, contexts and failures of the stand-in driver; see standin.h.
 *
 * `mutex` orders the allocations, and what is to fail.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "standin.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Attributes of a pointer. */
enum { CONTEXT = 1, MEMORY_TYPE = 2, IS_MANAGED = 8, DEVICE_ORDINAL = 9 };
enum { TYPE_HOST = 1, TYPE_DEVICE = 2 };
enum { MOST = 256, DEVICES = 2, DEEPEST = 8 };

typedef enum { DEVICE, MANAGED, PINNED, REGISTERED } kind_t;

typedef struct allocation {
    char *begin;  /* NULL: not in use */
    char *shadow; /* the same memory, where the driver reaches it */
    size_t size;
    kind_t kind;
    void *context; /* NULL: none */
    int device;
} allocation_t;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static allocation_t allocations[MOST];
static char failing[64]; /* function */
static unsigned long until_failure;
static int contexts[DEVICES]; /* each device's primary one */
static int retained;
static size_t largest_pinned;
static _Thread_local void *stack[DEEPEST];
static _Thread_local int pushed;
static _Thread_local bool exempt;

/* ------------------------------------------------------------------ failures */

void standin_fail(const char *name, unsigned long nth)
{
    pthread_mutex_lock(&mutex);
    snprintf(failing, sizeof(failing), "%s", name == NULL ? "" : name);
    until_failure = nth;
    pthread_mutex_unlock(&mutex);
}

void standin_exempt(bool from_now_on)
{
    exempt = from_now_on;
}

bool standin_is_exempt(void)
{
    return exempt;
}

bool standin_fails(const char *name)
{
    bool fails;

    if (exempt) {
        return false;
    }
    pthread_mutex_lock(&mutex);
    fails = strcmp(failing, name) == 0 && until_failure > 0 && --until_failure == 0;
    pthread_mutex_unlock(&mutex);
    return fails;
}

int cuGetErrorName(int result, const char **name)
{
    standin_not_in_callback("cuGetErrorName");
    *name = result == ILLEGAL_ADDRESS ? "CUDA_ERROR_ILLEGAL_ADDRESS"
            : result == OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY"
            : result == UNKNOWN       ? "CUDA_ERROR_UNKNOWN"
                                      : "another error";
    return SUCCESS;
}

/* ------------------------------------------------------------------ contexts */

void *standin_context(void)
{
    return pushed > 0 ? stack[pushed - 1] : NULL;
}

static int device_of(const void *context)
{
    return context == NULL ? 0 : (int) ((const int *) context - contexts);
}

int standin_pushed(void)
{
    return pushed;
}

int standin_retained(void)
{
    int count;

    pthread_mutex_lock(&mutex);
    count = retained;
    pthread_mutex_unlock(&mutex);
    return count;
}

/* That which a graph may be captured in means nothing here. */
int cuThreadExchangeStreamCaptureMode(int *mode)
{
    (void) mode;
    standin_not_in_callback("cuThreadExchangeStreamCaptureMode");
    return SUCCESS;
}

int cuCtxPushCurrent_v2(void *context)
{
    standin_not_in_callback("cuCtxPushCurrent");
    if (standin_fails("cuCtxPushCurrent")) {
        return UNKNOWN;
    }
    if ((int *) context < contexts || (int *) context >= contexts + DEVICES || pushed == DEEPEST) {
        return INVALID_CONTEXT;
    }
    stack[pushed++] = context;
    return SUCCESS;
}

int cuCtxPopCurrent_v2(void **context)
{
    if (pushed == 0) {
        return INVALID_CONTEXT;
    }
    *context = stack[--pushed];
    return SUCCESS;
}

int cuCtxGetDevice(int *device)
{
    standin_not_in_callback("cuCtxGetDevice");
    *device = device_of(standin_context());
    return standin_fails("cuCtxGetDevice") ? UNKNOWN : pushed > 0 ? SUCCESS : INVALID_CONTEXT;
}

int cuInit(unsigned flags)
{
    return flags == 0 ? SUCCESS : INVALID_VALUE;
}

int cuDeviceGet(int *device, int ordinal)
{
    *device = ordinal;
    return ordinal >= 0 && ordinal < DEVICES ? SUCCESS : INVALID_DEVICE;
}

/* Only what flash asks for: all of them have it. */
int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    (void) attribute;
    standin_not_in_callback("cuDeviceGetAttribute");
    *value = 1;
    return device >= 0 && device < DEVICES ? SUCCESS : INVALID_DEVICE;
}

/* That of the first is in the topology of the tests. */
int cuDeviceGetPCIBusId(char *text, int size, int device)
{
    standin_not_in_callback("cuDeviceGetPCIBusId");
    snprintf(text, (size_t) size, "0000:%02X:00.0", 10 + device);
    return SUCCESS;
}

int cuDeviceGetCount(int *count)
{
    *count = DEVICES;
    return SUCCESS;
}

int cuDevicePrimaryCtxRetain(void **context, int device)
{
    standin_not_in_callback("cuDevicePrimaryCtxRetain");
    if (standin_fails("cuDevicePrimaryCtxRetain")) {
        return UNKNOWN;
    }
    if (device < 0 || device >= DEVICES) {
        return INVALID_DEVICE;
    }
    pthread_mutex_lock(&mutex);
    retained++;
    pthread_mutex_unlock(&mutex);
    *context = &contexts[device];
    return SUCCESS;
}

int cuDevicePrimaryCtxRelease_v2(int device)
{
    pthread_mutex_lock(&mutex);
    retained--;
    pthread_mutex_unlock(&mutex);
    return device >= 0 && device < DEVICES ? SUCCESS : INVALID_DEVICE;
}

/* ---------------------------------------------------------------- allocations */

static bool map(allocation_t *made)
{
    int file = memfd_create("device", 0);
    bool mapped = file >= 0 && ftruncate(file, (off_t) made->size) == 0;

    if (mapped) {
        int access = made->kind == DEVICE ? PROT_NONE : PROT_READ | PROT_WRITE;

        made->begin = mmap(NULL, made->size, access, MAP_SHARED, file, 0);
        made->shadow = mmap(NULL, made->size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        mapped = made->begin != MAP_FAILED && made->shadow != MAP_FAILED;
    }
    close(file);
    return mapped;
}

static int keep(const allocation_t *made)
{
    static unsigned count;
    int k = 0;

    pthread_mutex_lock(&mutex);
    while (k < MOST && allocations[k].begin != NULL) {
        k++;
    }
    if (k < MOST) {
        allocations[k] = *made;
        allocations[k].context = count++ % 2 == 0 ? &contexts[made->device] : NULL;
        if ((made->kind == PINNED || made->kind == REGISTERED) && made->size > largest_pinned) {
            largest_pinned = made->size;
        }
    }
    pthread_mutex_unlock(&mutex);
    return k < MOST ? SUCCESS : OUT_OF_MEMORY;
}

static int allocate(uintptr_t *address, size_t size, kind_t kind)
{
    allocation_t made = {.size = size, .kind = kind, .device = device_of(standin_context())};

    if (size == 0 || !map(&made)) {
        return size == 0 ? INVALID_VALUE : OUT_OF_MEMORY;
    }
    *address = (uintptr_t) made.begin;
    return keep(&made);
}

/* Under the mutex. */
static allocation_t *find(uintptr_t address)
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
    allocation_t *found, was;

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
    allocation_t *found;
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

void *standin_reach_device(uintptr_t address, size_t size)
{
    const allocation_t *found;
    bool on_device;

    pthread_mutex_lock(&mutex);
    found = find(address);
    on_device = found != NULL && found->kind == DEVICE;
    pthread_mutex_unlock(&mutex);
    return on_device ? standin_reach(address, size) : NULL;
}

void *standin_reach_far(uintptr_t address, size_t size)
{
    bool known;

    pthread_mutex_lock(&mutex);
    known = find(address) != NULL;
    pthread_mutex_unlock(&mutex);
    return known ? standin_reach(address, size) : NULL;
}

static int count_of(kind_t kind)
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

/* The driver reaches it where the processor does. */
int cuMemHostRegister_v2(void *memory, size_t size, unsigned flags)
{
    (void) flags;
    standin_not_in_callback("cuMemHostRegister");
    if (standin_fails("cuMemHostRegister")) {
        return OUT_OF_MEMORY;
    }
    if (memory == NULL || size == 0 || standin_context() == NULL) {
        return INVALID_VALUE;
    }
    return keep(
        &(allocation_t){.begin = memory, .shadow = memory, .size = size, .kind = REGISTERED});
}

int cuMemHostUnregister(void *memory)
{
    standin_not_in_callback("cuMemHostUnregister");
    standin_wait_for_all();
    return standin_context() != NULL ? standin_release((uintptr_t) memory) : INVALID_CONTEXT;
}

int cuMemAlloc_v2(unsigned long long *address, size_t size)
{
    uintptr_t made = 0;
    int result;

    standin_not_in_callback("cuMemAlloc");
    result = standin_fails("cuMemAlloc") ? OUT_OF_MEMORY
             : standin_context() != NULL ? allocate(&made, size, DEVICE)
                                         : INVALID_CONTEXT;
    *address = made;
    return result;
}

int cuMemAllocManaged(unsigned long long *address, size_t size, unsigned flags)
{
    uintptr_t made = 0;
    int result = allocate(&made, size, MANAGED);

    (void) flags;
    *address = made;
    return result;
}

int cuMemHostAlloc(void **memory, size_t size, unsigned flags)
{
    uintptr_t made = 0;
    int result;

    standin_not_in_callback("cuMemHostAlloc");
    standin_wait_for_all();
    result = standin_fails("cuMemHostAlloc") ? OUT_OF_MEMORY
             : standin_context() != NULL     ? allocate(&made, size, PINNED)
                                             : INVALID_CONTEXT;

    (void) flags;
    *memory = (void *) made;
    return result;
}

int cuMemFree_v2(unsigned long long address)
{
    standin_not_in_callback("cuMemFree");
    standin_wait_for_all();
    return standin_release(address);
}

int cuMemPoolCreate(void **pool, const void *properties)
{
    static int the_pool;

    standin_not_in_callback("cuMemPoolCreate");
    *pool = &the_pool;
    return standin_fails("cuMemPoolCreate") ? UNKNOWN
           : properties == NULL             ? INVALID_VALUE
                                            : SUCCESS;
}

int cuMemPoolSetAttribute(const void *pool, int attribute, const void *value)
{
    (void) attribute;
    return pool != NULL && value != NULL ? SUCCESS : INVALID_VALUE;
}

/* It is there at once, whatever the stream holds. */
int cuMemAllocFromPoolAsync(unsigned long long *address, size_t size, const void *pool,
                            const void *stream)
{
    uintptr_t made = 0;
    int result;

    (void) pool;
    (void) stream;
    standin_not_in_callback("cuMemAllocFromPoolAsync");
    result =
        standin_fails("cuMemAllocFromPoolAsync") ? OUT_OF_MEMORY : allocate(&made, size, DEVICE);
    *address = made;
    return result;
}

int cuMemFreeHost(void *memory)
{
    standin_not_in_callback("cuMemFreeHost");
    standin_wait_for_all();
    return standin_context() != NULL ? standin_release((uintptr_t) memory) : INVALID_CONTEXT;
}

int cuPointerGetAttribute(void *answer, int attribute, unsigned long long address)
{
    const allocation_t *found;
    kind_t kind = DEVICE;
    void *context = NULL;
    int device = 0;

    standin_not_in_callback("cuPointerGetAttribute");
    pthread_mutex_lock(&mutex);
    found = find(address);
    if (found != NULL) {
        kind = found->kind;
        context = found->context;
        device = found->device;
    }
    pthread_mutex_unlock(&mutex);
    if (found == NULL) {
        return INVALID_VALUE;
    }
    switch (attribute) {
    case CONTEXT:
        *(void **) answer = context;
        return SUCCESS;
    case MEMORY_TYPE:
        *(unsigned *) answer = kind >= PINNED ? TYPE_HOST : TYPE_DEVICE;
        return SUCCESS;
    case IS_MANAGED:
        *(unsigned *) answer = kind == MANAGED;
        return SUCCESS;
    case DEVICE_ORDINAL:
        *(int *) answer = device;
        return SUCCESS;
    default:
        return INVALID_VALUE;
    }
}
