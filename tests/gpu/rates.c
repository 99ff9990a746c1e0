/*
 * rates.c: how fast the plugin copies and adds, against one copy as the driver makes it.
 *
 *   rates PLUGIN [MIB]
 *
 * MIB (default 256) travel between a device and pinned memory: in one copy of the driver's for each
 * direction, and in segments by the plugin, as operations have them; to the device, from it, and in
 * both directions at once, each in a stream of its own. Sums are the ring's inner step: a segment
 * that has arrived in pinned memory and one of the device's are added into pinned memory, from
 * where the sum departs. The median of seven, in GB/s of each direction, and the part of what the
 * driver's copies reach.
 * FLASH_TEST_DRIVER in the environment is the path of the driver; default: the system's.
 *
 * `left` is atomic: each copy's end is released, and acquired where all are waited for.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "device/flash_gpu.h"

#define LENGTH(array) (sizeof(array) / sizeof(*(array)))
#define LEAST         ((size_t) 256 << 10) /* bytes of a segment */

enum { TIMES = 7 };
typedef enum { TO, FROM, BOTH, DIRECTIONS } direction_t;

typedef unsigned long long address_t;

/* The driver's functions, for what the plugin is compared with. */
static struct {
    int (*copy)(address_t to, address_t from, size_t size, void *stream);
    int (*wait)(void *stream);
    int (*destroy)(void *stream);
} driver;

static const flash_gpu_ops_t *gpu;
static flash_gpu_lane_t *lane;
static const flash_gpu_kernel_t *kernel;
static void *streams[BOTH];
static size_t bytes;
static char *on_device, *pinned; /* 2 * bytes each */
static flash_gpu_copy_t *copies;
static atomic_size_t left;
static atomic_bool failed;

static void must(int well, const char *what)
{
    if (!well) {
        fprintf(stderr, "rates: %s: %s\n", what, gpu == NULL ? "failed" : gpu->complaint());
        exit(EXIT_FAILURE);
    }
}

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double) time.tv_sec + 1e-9 * (double) time.tv_nsec;
}

static void done(flash_gpu_copy_t *copy, bool well)
{
    (void) copy;
    if (!well) {
        atomic_store_explicit(&failed, true, memory_order_relaxed);
    }
    atomic_fetch_sub_explicit(&left, 1, memory_order_release);
}

/* Until all `left` copies are done. */
static void wait_for_all(void)
{
    while (atomic_load_explicit(&left, memory_order_acquire) > 0) {
        gpu->poll();
    }
    must(!atomic_load_explicit(&failed, memory_order_relaxed), "a segment");
}

typedef void way_fn(direction_t direction, size_t segment);

static void by_driver(direction_t direction, size_t segment)
{
    (void) segment;
    if (direction != FROM) {
        must(driver.copy((uintptr_t) on_device, (uintptr_t) pinned, bytes, streams[TO]) == 0,
             "a copy");
    }
    if (direction != TO) {
        must(driver.copy((uintptr_t) (pinned + bytes), (uintptr_t) (on_device + bytes), bytes,
                         streams[FROM]) == 0,
             "a copy");
    }
    must(driver.wait(streams[TO]) == 0 && driver.wait(streams[FROM]) == 0, "the copies' end");
}

/* Whole segments; the rest of `bytes`, if there is one, does not travel. */
static void by_plugin(direction_t direction, size_t segment)
{
    size_t count = bytes / segment;
    flash_gpu_copy_t *copy = copies;

    atomic_store_explicit(&left, direction == BOTH ? 2 * count : count, memory_order_relaxed);
    for (size_t at = 0; at < count * segment; at += segment) {
        if (direction != FROM) {
            copy->way = TO;
            must(gpu->begin(lane, on_device + at, pinned + at, segment, copy++), "a segment");
        }
        if (direction != TO) {
            copy->way = FROM;
            must(gpu->begin(lane, pinned + bytes + at, on_device + bytes + at, segment, copy++),
                 "a segment");
        }
    }
    wait_for_all();
}

static void by_sums(direction_t direction, size_t segment)
{
    size_t count = bytes / segment;

    (void) direction;
    atomic_store_explicit(&left, count, memory_order_relaxed);
    for (size_t k = 0; k < count; k++) {
        size_t at = k * segment;

        copies[k].way = 0; /* as all sums of an operation */
        must(gpu->combine(lane, kernel, pinned + at, on_device + at, pinned + bytes + at,
                          segment / sizeof(float), &copies[k]),
             "a sum");
    }
    wait_for_all();
}

static int compare(const void *a, const void *b)
{
    const double *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

/* GB/s. */
static double rate(way_fn *way, direction_t direction, size_t segment)
{
    double seconds[TIMES];

    for (int k = -1; k < TIMES; k++) { /* the first does not count */
        double begun = now();

        way(direction, segment);
        if (k >= 0) {
            seconds[k] = now() - begun;
        }
    }
    qsort(seconds, TIMES, sizeof(*seconds), compare);
    return 1e-9 * (double) (bytes / segment * segment) / seconds[TIMES / 2];
}

static void tell_size(const char *what, size_t size)
{
    bool whole = size % (1 << 20) == 0;

    printf("%s of %3zu %s ", what, whole ? size >> 20 : size >> 10, whole ? "MiB" : "KiB");
}

static void tell_rates(void)
{
    static const size_t segments[] = {LEAST, 1 << 20, 4 << 20};
    static const size_t sums[] = {LEAST, 1 << 20, 4 << 20, 16 << 20, 64 << 20};
    double plain[DIRECTIONS];

    for (int k = 0; k < DIRECTIONS; k++) {
        plain[k] = rate(by_driver, (direction_t) k, bytes);
    }
    printf("GB/s                  to a device     from it         both at once\n");
    printf("one plain copy      %8.2f        %8.2f        %8.2f\n", plain[TO], plain[FROM],
           plain[BOTH]);
    for (size_t i = 0; i < LENGTH(segments) && segments[i] <= bytes; i++) {
        tell_size("segments", segments[i]);
        for (int k = 0; k < DIRECTIONS; k++) {
            double value = rate(by_plugin, (direction_t) k, segments[i]);

            printf("%8.2f %5.3f  ", value, value / plain[k]);
        }
        printf("\n");
    }
    for (size_t i = 0; kernel != NULL && i < LENGTH(sums) && sums[i] <= bytes; i++) {
        double value = rate(by_sums, BOTH, sums[i]);

        tell_size("sums    ", sums[i]);
        printf("%40.2f %5.3f\n", value, value / plain[BOTH]);
    }
    if (kernel == NULL) {
        printf("sums: there is no kernel for them\n");
    }
}

/* A context for this thread, memory of its device, and a stream for each direction. */
static void open_device(void)
{
    const char *path = getenv("FLASH_TEST_DRIVER");
    void *library = dlopen(path != NULL ? path : "libcuda.so.1", RTLD_NOW);
    int (*init)(unsigned), (*device_get)(int *, int), (*retain)(void **, int), (*push)(void *);
    int (*allocate)(address_t *, size_t), (*stream_create)(void **, unsigned);
    void *context;
    address_t memory = 0;
    int device;

    must(library != NULL, "the driver");
    *(void **) &init = dlsym(library, "cuInit");
    *(void **) &device_get = dlsym(library, "cuDeviceGet");
    *(void **) &retain = dlsym(library, "cuDevicePrimaryCtxRetain");
    *(void **) &push = dlsym(library, "cuCtxPushCurrent_v2");
    *(void **) &allocate = dlsym(library, "cuMemAlloc_v2");
    *(void **) &stream_create = dlsym(library, "cuStreamCreate");
    *(void **) &driver.copy = dlsym(library, "cuMemcpyAsync");
    *(void **) &driver.wait = dlsym(library, "cuStreamSynchronize");
    *(void **) &driver.destroy = dlsym(library, "cuStreamDestroy_v2");
    must(init(0) == 0 && device_get(&device, 0) == 0 && retain(&context, device) == 0 &&
             push(context) == 0 && allocate(&memory, 2 * bytes) == 0 &&
             stream_create(&streams[TO], 1) == 0 && stream_create(&streams[FROM], 1) == 0,
         "the device");
    on_device = (char *) (uintptr_t) memory;
}

static void open_plugin(const char *path)
{
    void *plugin = dlopen(path, RTLD_NOW);
    flash_gpu_plugin_fn *ask = NULL;
    const char *reason = NULL;

    if (plugin == NULL) {
        fprintf(stderr, "rates: %s\n", dlerror());
        exit(EXIT_FAILURE);
    }
    *(void **) &ask = dlsym(plugin, FLASH_GPU_SYMBOL);
    must(ask != NULL && (gpu = ask(&reason)) != NULL, "the plugin");
    lane = gpu->open(on_device, NULL);
    must(lane != NULL, "a lane");
    kernel = gpu->kernel(lane, on_device, FLASH_GPU_SUM, FLASH_GPU_F32);
}

int main(int argc, char **argv)
{
    int device = 0;

    if (argc < 2) {
        fprintf(stderr, "usage: rates PLUGIN [MIB]\n");
        return EXIT_FAILURE;
    }
    bytes = (argc > 2 ? strtoul(argv[2], NULL, 10) : 256) << 20;
    must(bytes > 0, "the size");
    open_device();
    open_plugin(argv[1]);
    copies = calloc(2 * (bytes / LEAST), sizeof(*copies));
    pinned = gpu->allocate_pinned(&device, 2 * bytes);
    must(copies != NULL && pinned != NULL, "pinned memory");
    for (size_t k = 0; k < 2 * (bytes / LEAST); k++) {
        copies[k].done = done;
    }
    memset(pinned, 0, 2 * bytes);
    must(gpu->copy(lane, NULL, on_device, pinned, 2 * bytes), "a copy");
    setvbuf(stdout, NULL, _IOLBF, 0); /* each line is there at once, however this program ends */
    tell_rates();
    gpu->release_pinned(&device, pinned, 2 * bytes);
    gpu->close(lane);
    gpu->end();
    must(driver.destroy(streams[TO]) == 0 && driver.destroy(streams[FROM]) == 0, "the streams' end");
    free(copies);
    return EXIT_SUCCESS;
}
