/*
 * rates.c: how fast the plugin copies and adds, against one copy as the driver makes it.
 *
 *   rates PLUGIN [MIB]
 *
 * Of MIB (default 256) between a device and pinned memory: at once, and in segments as operations
 * have them; and sums of segments, from pinned memory and from the device's. The median of seven,
 * in GB/s. FLASH_TEST_DRIVER in the environment is the path of the driver; default: the system's.
 *
 * `left` is atomic: each copy's end is released, and acquired by who waits for the last.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <dlfcn.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "flash_gpu.h"

#define SEGMENT ((size_t) 256 << 10)
enum { TIMES = 7 };

typedef unsigned long long address_t;

static const flash_gpu_ops_t *gpu;
static flash_gpu_lane_t *lane;
static const flash_gpu_kernel_t *kernel;
static size_t bytes;
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

/* With `in`: out = in + inout, else a copy of `inout`. */
static void by_segments(const float *in, const char *inout, char *out)
{
    size_t count = bytes / SEGMENT;
    flash_gpu_copy_t *copies = calloc(count, sizeof(*copies));

    must(copies != NULL, "memory");
    atomic_store_explicit(&left, count, memory_order_relaxed);
    for (size_t k = 0; k < count; k++) {
        size_t at = k * SEGMENT;

        copies[k].done = done;
        must(in == NULL ? gpu->begin(lane, out + at, inout + at, SEGMENT, &copies[k])
                        : gpu->combine(lane, kernel, (const char *) in + at, inout + at, out + at,
                                       SEGMENT / sizeof(*in), &copies[k]),
             "a segment");
    }
    while (atomic_load_explicit(&left, memory_order_acquire) > 0) {
        sched_yield();
    }
    must(!atomic_load_explicit(&failed, memory_order_relaxed), "a segment");
    free(copies);
}

static void at_once(const float *in, const char *from, char *to)
{
    (void) in;
    must(gpu->copy(lane, NULL, to, from, bytes), "a copy");
}

static int compare(const void *a, const void *b)
{
    const double *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

typedef void way_fn(const float *in, const char *from, char *to);

/* GB/s. */
static double rate(way_fn *way, const float *in, const char *from, char *to)
{
    double seconds[TIMES];

    for (int k = -1; k < TIMES; k++) { /* the first does not count */
        double begun = now();

        way(in, from, to);
        if (k >= 0) {
            seconds[k] = now() - begun;
        }
    }
    qsort(seconds, TIMES, sizeof(*seconds), compare);
    return 1e-9 * (double) bytes / seconds[TIMES / 2];
}

static void tell(const char *what, double value, double against, const char *which)
{
    printf("%-38s %8.2f GB/s, %.3f of %s\n", what, value, value / against, which);
}

/* A context for this thread, and memory of its device. */
static void *open_device(void)
{
    const char *path = getenv("FLASH_TEST_DRIVER");
    void *driver = dlopen(path != NULL ? path : "libcuda.so.1", RTLD_NOW);
    int (*init)(unsigned), (*device_get)(int *, int), (*retain)(void **, int), (*push)(void *);
    int (*allocate)(address_t *, size_t);
    void *context;
    address_t memory = 0;
    int device;

    must(driver != NULL, "the driver");
    *(void **) &init = dlsym(driver, "cuInit");
    *(void **) &device_get = dlsym(driver, "cuDeviceGet");
    *(void **) &retain = dlsym(driver, "cuDevicePrimaryCtxRetain");
    *(void **) &push = dlsym(driver, "cuCtxPushCurrent_v2");
    *(void **) &allocate = dlsym(driver, "cuMemAlloc_v2");
    must(init(0) == 0 && device_get(&device, 0) == 0 && retain(&context, device) == 0 &&
             push(context) == 0 && allocate(&memory, 2 * bytes) == 0,
         "the device");
    return (void *) (uintptr_t) memory;
}

static void open_plugin(const char *path, const void *memory)
{
    void *plugin = dlopen(path, RTLD_NOW);
    flash_gpu_plugin_fn *ask = NULL;

    if (plugin == NULL) {
        fprintf(stderr, "rates: %s\n", dlerror());
        exit(EXIT_FAILURE);
    }
    *(void **) &ask = dlsym(plugin, FLASH_GPU_SYMBOL);
    must(ask != NULL && (gpu = ask()) != NULL, "the plugin");
    lane = gpu->open(memory, NULL);
    must(lane != NULL, "a lane");
    kernel = gpu->kernel(lane, memory, FLASH_GPU_SUM, FLASH_GPU_F32);
}

int main(int argc, char **argv)
{
    int device = 0;
    char *far, *other, *pinned;
    double in, out, within;

    if (argc < 2) {
        fprintf(stderr, "usage: rates PLUGIN [MIB]\n");
        return EXIT_FAILURE;
    }
    bytes = (argc > 2 ? strtoul(argv[2], NULL, 10) : 256) << 20;
    must(bytes > 0, "the size");
    far = open_device();
    other = far + bytes;
    open_plugin(argv[1], far);
    pinned = gpu->allocate_pinned(&device, bytes);
    must(pinned != NULL, "pinned memory");
    memset(pinned, 0, bytes);
    must(gpu->copy(lane, NULL, far, pinned, bytes) && gpu->copy(lane, NULL, other, pinned, bytes),
         "a copy");

    in = rate(at_once, NULL, pinned, far);
    out = rate(at_once, NULL, far, pinned);
    within = rate(at_once, NULL, far, other);
    printf("at once: to the device %.2f, from it %.2f, within it %.2f GB/s\n", in, out, within);
    tell("segments, to the device", rate(by_segments, NULL, pinned, far), in, "that");
    tell("segments, from the device", rate(by_segments, NULL, far, pinned), out, "that");
    if (kernel != NULL) {
        tell("sums, with pinned memory to a device's",
             rate(by_segments, (const float *) (void *) far, pinned, other), in,
             "the copy to the device");
        tell("sums, within the device",
             rate(by_segments, (const float *) (void *) far, other, other), within * 2 / 3,
             "what their bytes allow");
    }
    gpu->release_pinned(&device, pinned, bytes);
    gpu->close(lane);
    return EXIT_SUCCESS;
}
