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
#include <unistd.h>

#ifndef FLASH_CUDA_MAJOR
#define FLASH_CUDA_MAJOR 0
#endif

/* Numbers of the CUDA Driver API. */
enum { NO_DEVICE = 100, OTHER_MODULE = 803 };
enum { COMPUTE_MODE = 20, PROHIBITED = 2, EXCLUSIVE = 3 };

/* Of the CUDA Driver API. `version`, `name` and `attribute` may be NULL. */
static struct {
    int (*init)(unsigned flags);
    int (*version)(int *number);
    int (*count)(int *devices);
    int (*get)(int *device, int ordinal);
    int (*name)(char *text, int size, int device);
    int (*attribute)(int *value, int attribute, int device);
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
    *(void **) &driver.version = dlsym(library, "cuDriverGetVersion");
    *(void **) &driver.count = dlsym(library, "cuDeviceGetCount");
    *(void **) &driver.get = dlsym(library, "cuDeviceGet");
    *(void **) &driver.name = dlsym(library, "cuDeviceGetName");
    *(void **) &driver.attribute = dlsym(library, "cuDeviceGetAttribute");
    *(void **) &driver.retain = dlsym(library, "cuDevicePrimaryCtxRetain");
    *(void **) &driver.make_current = dlsym(library, "cuCtxPushCurrent_v2");
    *(void **) &driver.allocate = dlsym(library, "cuMemAlloc_v2");
    *(void **) &driver.release = dlsym(library, "cuMemFree_v2");
    *(void **) &driver.write = dlsym(library, "cuMemcpyHtoD_v2");
    *(void **) &driver.read = dlsym(library, "cuMemcpyDtoH_v2");
    *(void **) &driver.wait = dlsym(library, "cuStreamSynchronize");
    return true;
}

/* ------------------------------------------------------------------- what is in the way */

static void tell_no_device(int error, char *text, size_t size)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");

    if (error == OTHER_MODULE) {
        snprintf(text, size,
                 "the CUDA driver's library and its kernel module are of different versions. "
                 "Remedy: load the module of this version, or restart the host");
    } else if (error != 0 && error != NO_DEVICE) {
        snprintf(text, size,
                 "the CUDA driver does not start: cuInit returns %d. Remedy: what nvidia-smi and "
                 "the kernel's log say",
                 error);
    } else if (visible != NULL) {
        snprintf(text, size,
                 "CUDA_VISIBLE_DEVICES is \"%s\" and names none of this host's devices. Remedy: "
                 "unset it, or name one, as in CUDA_VISIBLE_DEVICES=0",
                 visible);
    } else {
        snprintf(text, size,
                 "the CUDA driver finds no device. Remedy: give the container or job a GPU; a GPU "
                 "in MIG mode has none before an instance is made (nvidia-smi mig -cgi)");
    }
}

/*
 * Whether the toolkit's libraries refuse this driver, as they do those of an older major version.
 */
static bool driver_is_too_old(char *text, size_t size)
{
    int version = 0;

    if (driver.version == NULL || driver.version(&version) != 0 ||
        version / 1000 >= FLASH_CUDA_MAJOR) {
        return false;
    }
    snprintf(text, size,
             "the driver is one for CUDA %d.%d, older than CUDA %d, which this program was built "
             "with. Remedy: a driver for CUDA %d or newer, or a build with an older toolkit",
             version / 1000, version % 1000 / 10, FLASH_CUDA_MAJOR, FLASH_CUDA_MAJOR);
    return true;
}

/* NVIDIA's Multi-Process Service runs all processes as one, which exclusive mode allows. */
static bool mps_runs(void)
{
    const char *folder = getenv("CUDA_MPS_PIPE_DIRECTORY");
    char path[4096];

    snprintf(path, sizeof(path), "%s/control", folder != NULL ? folder : "/tmp/nvidia-mps");
    return access(path, F_OK) == 0;
}

static bool device_is_closed(int ordinal, bool shared, char *text, size_t size)
{
    int device, mode = 0;

    if (driver.attribute == NULL || driver.get(&device, ordinal) != 0 ||
        driver.attribute(&mode, COMPUTE_MODE, device) != 0) {
        return false;
    }
    if (mode == PROHIBITED) {
        snprintf(text, size,
                 "device %d is in compute mode PROHIBITED. Remedy: nvidia-smi -i %d -c DEFAULT, by "
                 "root",
                 ordinal, ordinal);
        return true;
    }
    if (mode == EXCLUSIVE && shared && !mps_runs()) {
        snprintf(text, size,
                 "device %d is in compute mode EXCLUSIVE_PROCESS, in which one rank alone can use "
                 "it. Remedy: as many ranks as devices, or MPS (nvidia-cuda-mps-control -d), or "
                 "nvidia-smi -i %d -c DEFAULT, by root",
                 ordinal, ordinal);
        return true;
    }
    return false;
}

int bench_device_usable(int ranks, char *text, size_t size)
{
    int devices = 0, error;

    if (!find()) {
        snprintf(text, size,
                 "there is no CUDA driver: %s. Remedy: install NVIDIA's driver; or start the "
                 "container with the GPU (docker run --gpus all)",
                 dlerror());
        return 0;
    }
    error = driver.init(0);
    if (error != 0 || driver.count(&devices) != 0 || devices == 0) {
        tell_no_device(error, text, size);
        return 0;
    }
    if (driver_is_too_old(text, size)) {
        return 0;
    }
    for (int k = 0; k < devices && k < ranks; k++) {
        if (device_is_closed(k, ranks > devices + k, text, size)) {
            return 0;
        }
    }
    return devices;
}

int bench_device_driver(void)
{
    int version = 0;

    return driver.version != NULL && driver.version(&version) == 0 ? version : 0;
}

bool bench_device_name(int ordinal, char *text, int size)
{
    int device;

    return driver.name != NULL && driver.get(&device, ordinal) == 0 &&
           driver.name(text, size, device) == 0;
}

/* ------------------------------------------------------------------- a rank's device */

bool bench_device_open(const char *program, int rank)
{
    char text[1024];
    int devices = bench_device_usable(rank + 1, text, sizeof(text)), device, error;
    void *context;

    if (devices == 0) {
        fprintf(stderr, "%s: %s\n", program, text);
        return false;
    }
    error = driver.get(&device, rank % devices);
    error = error != 0 ? error : driver.retain(&context, device);
    error = error != 0 ? error : driver.make_current(context);
    if (error != 0) {
        fprintf(stderr,
                "%s: the driver gives rank %d no access to device %d: error %d. Remedy: end other "
                "processes there (nvidia-smi lists them)\n",
                program, rank, rank % devices, error);
    }
    return error == 0;
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
