/*
 * device.c: see device.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "device.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CANARY = 0x5c, GUARD = 512 };

typedef unsigned long long address_t; /* a CUdeviceptr */

/* As much of the CUDA Driver API as the tests need. */
static struct {
    int (*init)(unsigned flags);
    int (*device_get)(int *device, int ordinal);
    int (*retain)(void **context, int device);
    int (*push)(void *context);
    int (*pop)(void **context);
    int (*allocate)(address_t *address, size_t size);
    int (*allocate_managed)(address_t *address, size_t size, unsigned flags);
    int (*allocate_pinned)(void **memory, size_t size, unsigned flags);
    int (*release)(address_t address);
    int (*release_pinned)(void *memory);
    int (*to_device)(address_t to, const void *from, size_t size);
    int (*from_device)(void *to, address_t from, size_t size);
    int (*device_count)(int *count);
    int (*stream_create)(void **stream, unsigned flags);
    int (*stream_destroy)(void *stream);
    int (*stream_synchronize)(void *stream);
    int (*begin_capture)(void *stream, int mode);
    int (*end_capture)(void *stream, void **graph);
    int (*graph_destroy)(void *graph);
    int (*copy)(address_t to, address_t from, size_t size, void *stream);
    int (*streams)(void);
    int (*pinned)(void);
    size_t (*largest_pinned)(void);
    int (*retained)(void);
    int (*pushed)(void);
    int (*registered)(void);
    int (*on_device)(void);
    void *(*reach)(uintptr_t address, size_t size);
    bool (*is_alone)(uintptr_t address);
    void *(*current)(void);
    void (*wait_for_all)(void);
    unsigned long (*launches)(void);
    void (*fail)(const char *name, unsigned long nth);
    void (*exempt)(bool exempt);
    bool (*broken)(void);
    int (*events)(void);
    unsigned long (*made)(void);
} driver;

/* What an error of the device has broken refuses all that comes, until device_fail(NULL). */
static void must(int result, const char *what)
{
    if (result != 0 && !(driver.broken != NULL && driver.broken())) {
        fprintf(stderr, "%s: the driver returns %d\n", what, result);
        exit(EXIT_FAILURE);
    }
}

static void load(void)
{
    const char *path = getenv("FLASH_TEST_DRIVER");
    void *library = dlopen(path != NULL ? path : "libcuda.so.1", RTLD_NOW);

    if (library == NULL) {
        fprintf(stderr, "no driver: %s\n", dlerror());
        exit(EXIT_FAILURE);
    }
    *(void **) &driver.init = dlsym(library, "cuInit");
    *(void **) &driver.device_get = dlsym(library, "cuDeviceGet");
    *(void **) &driver.retain = dlsym(library, "cuDevicePrimaryCtxRetain");
    *(void **) &driver.push = dlsym(library, "cuCtxPushCurrent_v2");
    *(void **) &driver.pop = dlsym(library, "cuCtxPopCurrent_v2");
    *(void **) &driver.allocate = dlsym(library, "cuMemAlloc_v2");
    *(void **) &driver.allocate_managed = dlsym(library, "cuMemAllocManaged");
    *(void **) &driver.allocate_pinned = dlsym(library, "cuMemHostAlloc");
    *(void **) &driver.release = dlsym(library, "cuMemFree_v2");
    *(void **) &driver.release_pinned = dlsym(library, "cuMemFreeHost");
    *(void **) &driver.to_device = dlsym(library, "cuMemcpyHtoD_v2");
    *(void **) &driver.from_device = dlsym(library, "cuMemcpyDtoH_v2");
    *(void **) &driver.device_count = dlsym(library, "cuDeviceGetCount");
    *(void **) &driver.stream_create = dlsym(library, "cuStreamCreate");
    *(void **) &driver.stream_destroy = dlsym(library, "cuStreamDestroy_v2");
    *(void **) &driver.stream_synchronize = dlsym(library, "cuStreamSynchronize");
    *(void **) &driver.begin_capture = dlsym(library, "cuStreamBeginCapture_v2");
    *(void **) &driver.end_capture = dlsym(library, "cuStreamEndCapture");
    *(void **) &driver.graph_destroy = dlsym(library, "cuGraphDestroy");
    *(void **) &driver.copy = dlsym(library, "cuMemcpyAsync");
    *(void **) &driver.streams = dlsym(library, "standin_streams");
    *(void **) &driver.pinned = dlsym(library, "standin_pinned");
    *(void **) &driver.largest_pinned = dlsym(library, "standin_largest_pinned");
    *(void **) &driver.retained = dlsym(library, "standin_retained");
    *(void **) &driver.registered = dlsym(library, "standin_registered");
    *(void **) &driver.on_device = dlsym(library, "standin_on_device");
    *(void **) &driver.reach = dlsym(library, "standin_reach_device");
    *(void **) &driver.is_alone = dlsym(library, "standin_is_alone");
    *(void **) &driver.current = dlsym(library, "standin_context");
    *(void **) &driver.wait_for_all = dlsym(library, "standin_wait_for_all");
    *(void **) &driver.launches = dlsym(library, "standin_launches");
    *(void **) &driver.pushed = dlsym(library, "standin_pushed");
    *(void **) &driver.fail = dlsym(library, "standin_fail");
    *(void **) &driver.exempt = dlsym(library, "standin_exempt");
    *(void **) &driver.broken = dlsym(library, "standin_broken");
    *(void **) &driver.events = dlsym(library, "standin_events");
    *(void **) &driver.made = dlsym(library, "standin_made");
}

static void *context;

void device_open(void)
{
    int device = 0;

    if (context == NULL) {
        load();
        must(driver.init(0), "cuInit");
        must(driver.device_get(&device, 0), "cuDeviceGet");
        must(driver.retain(&context, device), "cuDevicePrimaryCtxRetain");
    }
}

static void exempt(bool from_now_on)
{
    if (driver.exempt != NULL) {
        driver.exempt(from_now_on);
    }
}

void device_enter(void)
{
    must(driver.push(context), "cuCtxPushCurrent");
}

void device_leave(void)
{
    void *popped;

    must(driver.pop(&popped), "cuCtxPopCurrent");
}

/* The thread has a context here, and none in MPI: flash is to bring its own. */
static void enter(void)
{
    exempt(true);
    device_enter();
}

static void leave(void)
{
    device_leave();
    exempt(false);
}

/* Makes the last device's context the current one, until device_leave(). */
static void enter_other(void)
{
    int count = 0, ordinal;
    void *of_device;

    must(driver.device_count(&count), "cuDeviceGetCount");
    must(driver.device_get(&ordinal, count - 1), "cuDeviceGet");
    must(driver.retain(&of_device, ordinal), "cuDevicePrimaryCtxRetain"); /* kept */
    must(driver.push(of_device), "cuCtxPushCurrent");
}

static char *allocate(place_t place, size_t size)
{
    address_t address = 0;
    void *memory = NULL;

    enter();
    if (is_in_device(place)) {
        if (place == IN_OTHER) {
            enter_other();
        }
        must(driver.allocate(&address, size), "cuMemAlloc");
        memory = (void *) (uintptr_t) address;
        if (place == IN_OTHER) {
            device_leave();
        }
    } else if (place == IN_MANAGED) {
        must(driver.allocate_managed(&address, size, 1), "cuMemAllocManaged");
        memory = (void *) (uintptr_t) address;
    } else if (place == IN_PINNED) {
        must(driver.allocate_pinned(&memory, size, 0), "cuMemHostAlloc");
    } else {
        memory = malloc(size);
        must(memory == NULL, "malloc");
    }
    leave();
    return memory;
}

/* Of any kind: the driver tells them apart. */
static void copy(place_t place, void *to, const void *from, size_t size, bool to_buffer)
{
    if (!is_in_device(place)) {
        memcpy(to, from, size);
        return;
    }
    enter();
    if (place == IN_OTHER) {
        enter_other(); /* default streams are each context's own */
    }
    if (to_buffer) {
        must(driver.to_device((uintptr_t) to, from, size), "cuMemcpyHtoD");
    } else {
        must(driver.from_device(to, (uintptr_t) from, size), "cuMemcpyDtoH");
    }
    if (place == IN_OTHER) { /* callbacks read it in the first device's context */
        must(driver.stream_synchronize(NULL), "cuStreamSynchronize");
        device_leave();
    }
    leave();
}

buffer_t buffer_make(place_t place, size_t bytes)
{
    size_t whole = bytes + 2 * (size_t) GUARD;
    char *memory = allocate(place, whole), *content = malloc(whole);

    must(content == NULL, "malloc");
    memset(content, CANARY, whole);
    copy(place, memory, content, whole, true);
    free(content);
    stream_wait(NULL); /* other streams may write there from now on */
    return (buffer_t){.place = place, .bytes = bytes, .data = memory + GUARD};
}

void buffer_write(const buffer_t *buffer, const void *content)
{
    copy(buffer->place, buffer->data, content, buffer->bytes, true);
}

void buffer_read(const buffer_t *buffer, void *content)
{
    copy(buffer->place, content, buffer->data, buffer->bytes, false);
}

void device_fetch(void *to, const void *from, size_t bytes)
{
    copy(IN_DEVICE, to, from, bytes, false);
}

/* ------------------------------------------------------------------- streams */

void *stream_make(int device)
{
    int count = 0, ordinal;
    void *stream, *of_device, *popped;

    must(driver.device_count(&count), "cuDeviceGetCount");
    if (device >= count) {
        return NULL;
    }
    exempt(true);
    must(driver.device_get(&ordinal, device), "cuDeviceGet");
    must(driver.retain(&of_device, ordinal), "cuDevicePrimaryCtxRetain"); /* kept */
    must(driver.push(of_device), "cuCtxPushCurrent");
    must(driver.stream_create(&stream, 1), "cuStreamCreate");
    must(driver.pop(&popped), "cuCtxPopCurrent");
    exempt(false);
    return stream;
}

void stream_free(void *stream)
{
    must(driver.stream_destroy(stream), "cuStreamDestroy");
}

void stream_copy(void *stream, void *to, const void *from, size_t bytes)
{
    if (bytes > 0) {
        enter();
        must(driver.copy((uintptr_t) to, (uintptr_t) from, bytes, stream), "cuMemcpyAsync");
        leave();
    }
}

bool stream_wait(void *stream)
{
    bool well;

    enter();
    well = driver.stream_synchronize(stream) == 0;
    leave();
    return well;
}

void stream_capture(void *stream, bool begin)
{
    void *graph = NULL;

    enter();
    if (begin) {
        must(driver.begin_capture(stream, 2), "cuStreamBeginCapture");
    } else {
        must(driver.end_capture(stream, &graph), "cuStreamEndCapture");
        if (graph != NULL) {
            must(driver.graph_destroy(graph), "cuGraphDestroy");
        }
    }
    leave();
}

/* ------------------------------------------------------------------- buffers */

static bool guard_holds(const buffer_t *buffer, const char *guard)
{
    char content[GUARD];

    copy(buffer->place, content, guard, GUARD, false);
    for (size_t k = 0; k < GUARD; k++) {
        if (content[k] != CANARY) {
            return false;
        }
    }
    return true;
}

bool buffer_free(buffer_t *buffer)
{
    char *memory = (char *) buffer->data - GUARD;
    bool well = guard_holds(buffer, memory) &&
                guard_holds(buffer, (const char *) buffer->data + buffer->bytes);

    enter();
    if (is_in_device(buffer->place) || buffer->place == IN_MANAGED) {
        must(driver.release((uintptr_t) memory), "cuMemFree");
    } else if (buffer->place == IN_PINNED) {
        must(driver.release_pinned(memory), "cuMemFreeHost");
    } else {
        free(memory);
    }
    leave();
    return well;
}

int device_events(void)
{
    return driver.events == NULL ? 0 : driver.events();
}

unsigned long device_made(void)
{
    return driver.made == NULL ? 0 : driver.made();
}

void device_fail(const char *name, unsigned long nth)
{
    must(driver.fail == NULL, "standin_fail");
    driver.fail(name, nth);
}

int device_streams(void)
{
    return driver.streams == NULL ? 0 : driver.streams();
}

int device_pinned(void)
{
    return driver.pinned == NULL ? 0 : driver.pinned();
}

size_t device_largest_pinned(void)
{
    return driver.largest_pinned == NULL ? 0 : driver.largest_pinned();
}

bool device_is_broken(void)
{
    return driver.broken != NULL && driver.broken();
}

bool device_is_standin(void)
{
    return driver.launches != NULL;
}

int device_registered(void)
{
    return driver.registered == NULL ? 0 : driver.registered();
}

int device_on_device(void)
{
    return driver.on_device == NULL ? 0 : driver.on_device();
}

void device_drain(void)
{
    if (driver.wait_for_all != NULL) {
        driver.wait_for_all();
    }
}

void *device_reach(const void *address, size_t size)
{
    return driver.reach == NULL ? NULL : driver.reach((uintptr_t) address, size);
}

bool device_is_alone(const void *address)
{
    return driver.is_alone != NULL && driver.is_alone((uintptr_t) address);
}

bool device_has_context(void)
{
    return driver.current != NULL && driver.current() != NULL;
}

unsigned long device_launches(void)
{
    return driver.launches == NULL ? 0 : driver.launches();
}

int device_retained(void)
{
    return driver.retained == NULL ? 0 : driver.retained();
}

int device_pushed(void)
{
    return driver.pushed == NULL ? 0 : driver.pushed();
}
