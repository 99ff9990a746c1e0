/*
 * bench_device.c: see bench_device.h. Nothing is linked: the programs run where there is no driver.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "bench_device.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* Of the CUDA Driver API. */
static struct {
    int (*init)(unsigned flags);
    int (*count)(int *devices);
    int (*get)(int *device, int ordinal);
    int (*retain)(void **context, int device);
    int (*make_current)(void *context);
    int (*allocate)(unsigned long long *address, size_t size);
    int (*release)(unsigned long long address);
    int (*write)(unsigned long long to, const void *from, size_t size);
    int (*read)(void *to, unsigned long long from, size_t size);
    int (*wait)(void *stream);
} driver;

static bool find(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);

    if (library == NULL) {
        return false;
    }
    *(void **) &driver.init = dlsym(library, "cuInit");
    *(void **) &driver.count = dlsym(library, "cuDeviceGetCount");
    *(void **) &driver.get = dlsym(library, "cuDeviceGet");
    *(void **) &driver.retain = dlsym(library, "cuDevicePrimaryCtxRetain");
    *(void **) &driver.make_current = dlsym(library, "cuCtxPushCurrent_v2");
    *(void **) &driver.allocate = dlsym(library, "cuMemAlloc_v2");
    *(void **) &driver.release = dlsym(library, "cuMemFree_v2");
    *(void **) &driver.write = dlsym(library, "cuMemcpyHtoD_v2");
    *(void **) &driver.read = dlsym(library, "cuMemcpyDtoH_v2");
    *(void **) &driver.wait = dlsym(library, "cuStreamSynchronize");
    return driver.init(0) == 0;
}

bool bench_device_open(const char *program, int rank)
{
    int devices = 0, device;
    void *context;

    if (!find()) {
        fprintf(stderr, "%s: there is no CUDA driver, libcuda.so.1, that works\n", program);
        return false;
    }
    if (driver.count(&devices) != 0 || devices == 0 || driver.get(&device, rank % devices) != 0 ||
        driver.retain(&context, device) != 0 || driver.make_current(context) != 0) {
        fprintf(stderr, "%s: the driver gives access to none of its %d devices\n", program,
                devices);
        return false;
    }
    return true;
}

void *bench_device_allocate(size_t bytes)
{
    unsigned long long address = 0;

    return driver.allocate(&address, bytes) == 0 ? (void *) (uintptr_t) address : NULL;
}

void bench_device_free(void *memory)
{
    if (memory != NULL) {
        driver.release((uintptr_t) memory);
    }
}

static void must(int error)
{
    if (error != 0) {
        fprintf(stderr, "the device fails with the driver's error %d\n", error);
        exit(EXIT_FAILURE);
    }
}

void bench_device_write(void *to, const void *from, size_t bytes)
{
    if (bytes > 0) {
        must(driver.write((uintptr_t) to, from, bytes));
        bench_device_wait(); /* it may return before the device has it */
    }
}

void bench_device_wait(void)
{
    must(driver.wait(NULL));
}

void bench_device_read(void *to, const void *from, size_t bytes)
{
    if (bytes > 0) {
        must(driver.read(to, (uintptr_t) from, bytes));
    }
}
