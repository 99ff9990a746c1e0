/*
 * device_driver.c: see device_driver.h, and device_open() and what follows it of device.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "device_driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "device.h"

struct device_driver device_driver;

void device_must(int result, const char *what)
{
    if (result != 0 && !(device_driver.broken != NULL && device_driver.broken())) {
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
    *(void **) &device_driver.init = dlsym(library, "cuInit");
    *(void **) &device_driver.device_get = dlsym(library, "cuDeviceGet");
    *(void **) &device_driver.retain = dlsym(library, "cuDevicePrimaryCtxRetain");
    *(void **) &device_driver.push = dlsym(library, "cuCtxPushCurrent_v2");
    *(void **) &device_driver.pop = dlsym(library, "cuCtxPopCurrent_v2");
    *(void **) &device_driver.allocate = dlsym(library, "cuMemAlloc_v2");
    *(void **) &device_driver.allocate_managed = dlsym(library, "cuMemAllocManaged");
    *(void **) &device_driver.allocate_pinned = dlsym(library, "cuMemHostAlloc");
    *(void **) &device_driver.release = dlsym(library, "cuMemFree_v2");
    *(void **) &device_driver.release_pinned = dlsym(library, "cuMemFreeHost");
    *(void **) &device_driver.to_device = dlsym(library, "cuMemcpyHtoD_v2");
    *(void **) &device_driver.from_device = dlsym(library, "cuMemcpyDtoH_v2");
    *(void **) &device_driver.device_count = dlsym(library, "cuDeviceGetCount");
    *(void **) &device_driver.stream_create = dlsym(library, "cuStreamCreate");
    *(void **) &device_driver.stream_destroy = dlsym(library, "cuStreamDestroy_v2");
    *(void **) &device_driver.stream_synchronize = dlsym(library, "cuStreamSynchronize");
    *(void **) &device_driver.begin_capture = dlsym(library, "cuStreamBeginCapture_v2");
    *(void **) &device_driver.end_capture = dlsym(library, "cuStreamEndCapture");
    *(void **) &device_driver.graph_destroy = dlsym(library, "cuGraphDestroy");
    *(void **) &device_driver.copy = dlsym(library, "cuMemcpyAsync");
    *(void **) &device_driver.streams = dlsym(library, "standin_streams");
    *(void **) &device_driver.pinned = dlsym(library, "standin_pinned");
    *(void **) &device_driver.largest_pinned = dlsym(library, "standin_largest_pinned");
    *(void **) &device_driver.retained = dlsym(library, "standin_retained");
    *(void **) &device_driver.registered = dlsym(library, "standin_registered");
    *(void **) &device_driver.on_device = dlsym(library, "standin_on_device");
    *(void **) &device_driver.reach = dlsym(library, "standin_reach_device");
    *(void **) &device_driver.is_alone = dlsym(library, "standin_is_alone");
    *(void **) &device_driver.current = dlsym(library, "standin_context");
    *(void **) &device_driver.wait_for_all = dlsym(library, "standin_wait_for_all");
    *(void **) &device_driver.lag = dlsym(library, "standin_lag");
    *(void **) &device_driver.launches = dlsym(library, "standin_launches");
    *(void **) &device_driver.pushed = dlsym(library, "standin_pushed");
    *(void **) &device_driver.fail = dlsym(library, "standin_fail");
    *(void **) &device_driver.exempt = dlsym(library, "standin_exempt");
    *(void **) &device_driver.broken = dlsym(library, "standin_broken");
    *(void **) &device_driver.events = dlsym(library, "standin_events");
    *(void **) &device_driver.made = dlsym(library, "standin_made");
}

static void *context;

void device_open(void)
{
    int device = 0;

    if (context == NULL) {
        load();
        device_must(device_driver.init(0), "cuInit");
        device_must(device_driver.device_get(&device, 0), "cuDeviceGet");
        device_must(device_driver.retain(&context, device), "cuDevicePrimaryCtxRetain");
    }
}

void device_exempt(bool from_now_on)
{
    if (device_driver.exempt != NULL) {
        device_driver.exempt(from_now_on);
    }
}

void device_enter(void)
{
    device_must(device_driver.push(context), "cuCtxPushCurrent");
}

void device_leave(void)
{
    void *popped;

    device_must(device_driver.pop(&popped), "cuCtxPopCurrent");
}

void device_enter_exempt(void)
{
    device_exempt(true);
    device_enter();
}

void device_leave_exempt(void)
{
    device_leave();
    device_exempt(false);
}

void device_enter_other(void)
{
    int count = 0, ordinal;
    void *of_device;

    device_must(device_driver.device_count(&count), "cuDeviceGetCount");
    device_must(device_driver.device_get(&ordinal, count - 1), "cuDeviceGet");
    device_must(device_driver.retain(&of_device, ordinal), "cuDevicePrimaryCtxRetain"); /* kept */
    device_must(device_driver.push(of_device), "cuCtxPushCurrent");
}
