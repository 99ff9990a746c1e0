/*
 * device.c: buffers and streams: see device.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "device.h"

#include <stdlib.h>
#include <string.h>

#include "device_driver.h"

enum { CANARY = 0x5c, GUARD = 512 };

static char *allocate(place_t place, size_t size)
{
    address_t address = 0;
    void *memory = NULL;

    device_enter_exempt();
    if (is_in_device(place)) {
        if (place == IN_OTHER) {
            device_enter_other();
        }
        device_must(device_driver.allocate(&address, size), "cuMemAlloc");
        memory = (void *) (uintptr_t) address;
        if (place == IN_OTHER) {
            device_leave();
        }
    } else if (place == IN_MANAGED) {
        device_must(device_driver.allocate_managed(&address, size, 1), "cuMemAllocManaged");
        memory = (void *) (uintptr_t) address;
    } else if (place == IN_PINNED) {
        device_must(device_driver.allocate_pinned(&memory, size, 0), "cuMemHostAlloc");
    } else {
        memory = malloc(size);
        device_must(memory == NULL, "malloc");
    }
    device_leave_exempt();
    return memory;
}

/* Of any kind: the driver tells them apart. */
static void copy(place_t place, void *to, const void *from, size_t size, bool to_buffer)
{
    if (!is_in_device(place)) {
        memcpy(to, from, size);
        return;
    }
    device_enter_exempt();
    if (place == IN_OTHER) {
        device_enter_other(); /* default streams are each context's own */
    }
    if (to_buffer) {
        device_must(device_driver.to_device((uintptr_t) to, from, size), "cuMemcpyHtoD");
    } else {
        device_must(device_driver.from_device(to, (uintptr_t) from, size), "cuMemcpyDtoH");
    }
    if (place == IN_OTHER) { /* callbacks read it in the first device's context */
        device_must(device_driver.stream_synchronize(NULL), "cuStreamSynchronize");
        device_leave();
    }
    device_leave_exempt();
}

buffer_t buffer_make(place_t place, size_t bytes)
{
    size_t whole = bytes + 2 * (size_t) GUARD;
    char *memory = allocate(place, whole), *content = malloc(whole);

    device_must(content == NULL, "malloc");
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

void device_put(void *to, const void *from, size_t bytes)
{
    copy(IN_DEVICE, to, from, bytes, true);
}

void *device_take(size_t bytes)
{
    return allocate(IN_DEVICE, bytes);
}

void device_give(void *memory)
{
    device_enter_exempt();
    device_must(device_driver.release((uintptr_t) memory), "cuMemFree");
    device_leave_exempt();
}

/* ------------------------------------------------------------------- streams */

void *stream_make(int device)
{
    int count = 0, ordinal;
    void *stream, *of_device, *popped;

    device_must(device_driver.device_count(&count), "cuDeviceGetCount");
    if (device >= count) {
        return NULL;
    }
    device_exempt(true);
    device_must(device_driver.device_get(&ordinal, device), "cuDeviceGet");
    device_must(device_driver.retain(&of_device, ordinal), "cuDevicePrimaryCtxRetain"); /* kept */
    device_must(device_driver.push(of_device), "cuCtxPushCurrent");
    device_must(device_driver.stream_create(&stream, 1), "cuStreamCreate");
    device_must(device_driver.pop(&popped), "cuCtxPopCurrent");
    device_exempt(false);
    return stream;
}

void stream_free(void *stream)
{
    device_must(device_driver.stream_destroy(stream), "cuStreamDestroy");
}

void stream_copy(void *stream, void *to, const void *from, size_t bytes)
{
    if (bytes > 0) {
        device_enter_exempt();
        device_must(device_driver.copy((uintptr_t) to, (uintptr_t) from, bytes, stream),
                    "cuMemcpyAsync");
        device_leave_exempt();
    }
}

bool stream_wait(void *stream)
{
    bool well;

    device_enter_exempt();
    well = device_driver.stream_synchronize(stream) == 0;
    device_leave_exempt();
    return well;
}

void stream_capture(void *stream, bool begin)
{
    void *graph = NULL;

    device_enter_exempt();
    if (begin) {
        device_must(device_driver.begin_capture(stream, 2), "cuStreamBeginCapture");
    } else {
        device_must(device_driver.end_capture(stream, &graph), "cuStreamEndCapture");
        if (graph != NULL) {
            device_must(device_driver.graph_destroy(graph), "cuGraphDestroy");
        }
    }
    device_leave_exempt();
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

    device_enter_exempt();
    if (is_in_device(buffer->place) || buffer->place == IN_MANAGED) {
        device_must(device_driver.release((uintptr_t) memory), "cuMemFree");
    } else if (buffer->place == IN_PINNED) {
        device_must(device_driver.release_pinned(memory), "cuMemFreeHost");
    } else {
        free(memory);
    }
    device_leave_exempt();
    return well;
}
