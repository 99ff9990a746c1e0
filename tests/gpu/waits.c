/*
 * waits.c: what streams give that wait for the host by themselves, and what they cost.
 *
 * flash asks events whether something is done, and submits a copy when the host knows that its data
 * is there. CUDA can do without: a stream writes a number to pinned memory when it comes to it
 * (cuStreamWriteValue64), and waits until the host has written one (cuStreamWaitValue64). This
 * program tells the times of both ways, medians in microseconds; and how many streams can wait
 * before they keep another one from running, whose work the host may be waiting for.
 *
 * FLASH_TEST_DRIVER in the environment is the path of the driver; default: the system's. Status 3:
 * the driver has no such functions.
 *
 * Shared with the device: `words`, of pinned memory, by atomic loads (acquire) and stores
 * (release).
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TIMES = 200, MOST = 128, ABSENT = 3, NOT_READY = 600, IN_PROCESS = 0x1, NO_TIMING = 0x2 };

#define PATIENCE 0.05 /* seconds in which a stream is to come to its copy */

typedef unsigned long long address_t;
typedef _Atomic(uint64_t) word_t;

static struct {
    int (*copy)(address_t to, address_t from, size_t size, void *stream);
    int (*record)(void *event, void *stream);
    int (*query)(void *event);
    int (*synchronize)(void *stream);
    int (*create)(void **stream, unsigned flags);
    int (*wait)(void *stream, address_t address, uint64_t value, unsigned flags);
    int (*write)(void *stream, address_t address, uint64_t value, unsigned flags);
} driver;

static address_t on_device;
static word_t *words; /* what the host waits for; the device waits for; travels; comes back */
static uint64_t number;
static void *event, *streams[MOST + 1];

static void must(bool well, const char *what)
{
    if (!well) {
        fprintf(stderr, "waits: %s failed\n", what);
        exit(EXIT_FAILURE);
    }
}

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double) time.tv_sec + 1e-9 * (double) time.tv_nsec;
}

static address_t address_of(const word_t *word)
{
    return (uintptr_t) word;
}

static bool is_there(const word_t *word)
{
    return atomic_load_explicit(word, memory_order_acquire) == number;
}

/* A number that neither word has; it lies in the device's memory, too, for a copy to bring. */
static void next_number(void)
{
    number++;
    atomic_store_explicit(&words[2], number, memory_order_release);
    must(driver.copy(on_device, address_of(&words[2]), sizeof(number), streams[0]) == 0 &&
             driver.synchronize(streams[0]) == 0,
         "a copy to the device");
}

static bool bring(void *stream)
{
    return driver.copy(address_of(&words[0]), on_device, sizeof(number), stream) == 0;
}

/* ---------------------------------------------------------------------- times */

typedef double way_fn(void);

static double end_by_event(void)
{
    double begun = now();
    int state;

    must(bring(streams[0]) && driver.record(event, streams[0]) == 0, "a copy");
    while ((state = driver.query(event)) == NOT_READY) {
    }
    must(state == 0, "an event");
    return now() - begun;
}

static double end_by_number(void)
{
    double begun = now();

    must(driver.copy(address_of(&words[3]), on_device, sizeof(number), streams[0]) == 0 &&
             driver.write(streams[0], address_of(&words[0]), number, 0) == 0,
         "a copy");
    while (!is_there(&words[0])) {
    }
    return now() - begun;
}

static double begun_by_host(void)
{
    double begun = now();

    must(bring(streams[0]), "a copy");
    while (!is_there(&words[0])) {
    }
    return now() - begun;
}

static double begun_by_number(void)
{
    double begun;

    must(driver.wait(streams[0], address_of(&words[1]), number, 0) == 0 && bring(streams[0]),
         "a wait");
    for (begun = now(); now() - begun < 2e-4;) { /* until the device waits */
    }
    begun = now();
    atomic_store_explicit(&words[1], number, memory_order_release);
    while (!is_there(&words[0])) {
    }
    return now() - begun;
}

static int compare(const void *a, const void *b)
{
    const double *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

static void tell(const char *what, way_fn *way)
{
    double seconds[TIMES];

    for (int k = -1; k < TIMES; k++) { /* the first does not count */
        double taken;

        next_number();
        taken = way();
        must(driver.synchronize(streams[0]) == 0, "a stream");
        if (k >= 0) {
            seconds[k] = taken;
        }
    }
    qsort(seconds, TIMES, sizeof(*seconds), compare);
    printf("%-58s %7.2f us\n", what, 1e6 * seconds[TIMES / 2]);
}

/* -------------------------------------------------------------------- streams */

/* Whether a copy in another stream ends while so many wait. */
static bool runs_beside(int waiting)
{
    double begun;
    bool runs;

    next_number();
    for (int k = 0; k < waiting; k++) {
        must(driver.wait(streams[k], address_of(&words[1]), number, 0) == 0, "a wait");
    }
    begun = now();
    must(bring(streams[waiting]), "a copy");
    while (!(runs = is_there(&words[0])) && now() - begun < PATIENCE) {
    }
    atomic_store_explicit(&words[1], number, memory_order_release);
    for (int k = 0; k <= waiting; k++) {
        must(driver.synchronize(streams[k]) == 0, "a stream");
    }
    return runs;
}

static void tell_streams(void)
{
    int first = 0;

    for (int waiting = 1; waiting <= MOST && first == 0; waiting++) {
        first = runs_beside(waiting) ? 0 : waiting;
    }
    if (first == 0) {
        printf("beside %d streams that wait another one runs\n", MOST);
    } else {
        printf("beside %d streams that wait another one does not run; beside %d it does\n", first,
               first - 1);
    }
}

/* ------------------------------------------------------------------ the device */

static void *find(void *library, const char *name)
{
    void *function = dlsym(library, name);

    if (function == NULL) {
        printf("the driver has no %s\n", name);
        exit(ABSENT);
    }
    return function;
}

static void open_device(void)
{
    const char *path = getenv("FLASH_TEST_DRIVER");
    void *library = dlopen(path != NULL ? path : "libcuda.so.1", RTLD_NOW), *context,
         *memory = NULL;
    int (*init)(unsigned), (*device_get)(int *, int), (*retain)(void **, int), (*push)(void *);
    int (*allocate)(address_t *, size_t), (*allocate_host)(void **, size_t, unsigned);
    int (*event_create)(void **, unsigned), device;

    must(library != NULL, "loading the driver");
    *(void **) &init = find(library, "cuInit");
    *(void **) &device_get = find(library, "cuDeviceGet");
    *(void **) &retain = find(library, "cuDevicePrimaryCtxRetain");
    *(void **) &push = find(library, "cuCtxPushCurrent_v2");
    *(void **) &allocate = find(library, "cuMemAlloc_v2");
    *(void **) &allocate_host = find(library, "cuMemHostAlloc");
    *(void **) &event_create = find(library, "cuEventCreate");
    *(void **) &driver.create = find(library, "cuStreamCreate");
    *(void **) &driver.copy = find(library, "cuMemcpyAsync");
    *(void **) &driver.record = find(library, "cuEventRecord");
    *(void **) &driver.query = find(library, "cuEventQuery");
    *(void **) &driver.synchronize = find(library, "cuStreamSynchronize");
    *(void **) &driver.wait = find(library, "cuStreamWaitValue64_v2");
    *(void **) &driver.write = find(library, "cuStreamWriteValue64_v2");
    must(init(0) == 0 && device_get(&device, 0) == 0 && retain(&context, device) == 0 &&
             push(context) == 0 && allocate(&on_device, 4096) == 0 &&
             allocate_host(&memory, 4096, IN_PROCESS) == 0 && event_create(&event, NO_TIMING) == 0,
         "opening the device");
    memset(memory, 0, 4096);
    words = memory;
    for (int k = 0; k <= MOST; k++) {
        must(driver.create(&streams[k], 1) == 0, "a stream");
    }
}

int main(void)
{
    open_device();
    setvbuf(stdout, NULL, _IOLBF, 0);
    tell("a copy's end, by an event that the host asks", end_by_event);
    tell("a copy's end, by a number that the stream writes", end_by_number);
    tell("a copy that the host begins, until it sees the data", begun_by_host);
    tell("a copy whose stream waits for the host's number, likewise", begun_by_number);
    tell_streams();
    return EXIT_SUCCESS;
}
