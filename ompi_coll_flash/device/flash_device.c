/*
 * flash_device.c: see flash_device.h.
 *
 * Shared between threads, both atomic:
 *   ask     whoever finds the driver stores the same function (release); who reads it (acquire) may
 *           call it. It stays loaded from then on
 *   looked  relaxed: the tick of a coarse clock in which somebody last looked for the driver. From
 *           loading one to the first memory of its device takes many ticks
 *   loads   relaxed: how many libraries the process had loaded in its life by then. To search for
 * one that is not there costs more than a call; to ask for this number, a part of a small one
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "device/flash_device.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>
#include <unistd.h>
#include <time.h>

/* Of the driver's interface (CUDA Driver API, "Unified Addressing"); these numbers never change. */
enum { MEMORY_TYPE = 2, IS_MANAGED = 8 };
enum { TYPE_DEVICE = 2 };
enum { NOT_PERMITTED = 800 };
typedef int ask_fn(void *answer, int attribute, unsigned long long address);

static _Atomic(ask_fn *) ask;
static atomic_uint_fast64_t looked, loads;

static uint64_t tick(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return (uint64_t) now.tv_sec * 1000000000 + (uint64_t) now.tv_nsec;
}

static int read_loads(struct dl_phdr_info *library, size_t size, void *count)
{
    (void) size;
    *(uint_fast64_t *) count = library->dlpi_adds;
    return 1; /* each library tells the same */
}

/* Whether the process has loaded a library since somebody looked, as far as that can matter. */
static bool has_loaded(uint_fast64_t *count)
{
    uint64_t now = tick();

    if (atomic_load_explicit(&looked, memory_order_relaxed) == now) {
        return false;
    }
    atomic_store_explicit(&looked, now, memory_order_relaxed);
    dl_iterate_phdr(read_loads, count);
    return atomic_load_explicit(&loads, memory_order_relaxed) != *count;
}

/* NULL as long as the process has not loaded the driver, which it may do later. */
static ask_fn *find_driver(void)
{
    ask_fn *found = atomic_load_explicit(&ask, memory_order_acquire);
    uint_fast64_t count = 0;
    void *driver;

    if (found != NULL || !has_loaded(&count)) {
        return found;
    }
    driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (driver == NULL) {
        atomic_store_explicit(&loads, count, memory_order_relaxed);
        return NULL;
    }
    *(void **) &found = dlsym(driver, "cuPointerGetAttribute");
    if (found == NULL) {
        dlclose(driver);
        return NULL;
    }
    atomic_store_explicit(&ask, found, memory_order_release);
    return found;
}

bool flash_device_any(void)
{
    return find_driver() != NULL;
}

/*
 * The driver refuses to answer for memory that it does not know. In one of its callbacks it answers
 * nobody: whatever it is then, it is not for the host.
 */
bool flash_device_owns(const void *address)
{
    ask_fn *driver = find_driver();
    unsigned type = 0, managed = 0;
    int error = driver == NULL ? 1 : driver(&type, MEMORY_TYPE, (uintptr_t) address);

    return error == NOT_PERMITTED ||
           (error == 0 && type == TYPE_DEVICE &&
            !(driver(&managed, IS_MANAGED, (uintptr_t) address) == 0 && managed != 0));
}

/* Memory of a device that has been freed is nobody's: the driver no longer knows it. */
bool flash_device_gone(const void *address)
{
    char content;
    struct iovec here = {.iov_base = &content, .iov_len = 1};
    struct iovec there = {.iov_base = (void *) (uintptr_t) address, .iov_len = 1};

    return flash_device_any() && !flash_device_owns(address) &&
           process_vm_readv(getpid(), &here, 1, &there, 1, 0) < 0 && errno == EFAULT;
}
