/*
 * coll_flash_algorithms.c: all algorithms at once: progress, and the watch over silence.
 *
 * Shared between threads: `polled` is exchanged by application threads, relaxed: who finds it false
 * has the progress registered, which Open MPI orders. `next_watch` and `watched`, atomic, relaxed:
 * whoever exchanges one does the watching, and the exchange orders nothing else. The list of
 * algorithms is written in MPI_Init and MPI_Finalize only, which also reset `polled`.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "request/coll_flash_algorithm.h"

#include <stdatomic.h>
#include <time.h>

static const mca_coll_flash_algorithm_t *const *all;
static size_t count;
static atomic_bool polled;
static atomic_int_fast64_t next_watch; /* milliseconds */
static atomic_bool watched;            /* since nothing was in flight the last time */

static int64_t now_milliseconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return 1000 * (int64_t) now.tv_sec + now.tv_nsec / 1000000;
}

/* Once a second while something is in flight. */
static bool is_watch_due(void)
{
    int64_t now = now_milliseconds();
    int_fast64_t due = atomic_load_explicit(&next_watch, memory_order_relaxed);

    return now >= due &&
           atomic_compare_exchange_strong_explicit(&next_watch, &due, now + 1000,
                                                   memory_order_relaxed, memory_order_relaxed);
}

/* And once when nothing is any more: a watch that finds nobody silent closes what probes opened. */
static bool is_last_watch_due(void)
{
    return atomic_load_explicit(&watched, memory_order_relaxed) &&
           atomic_exchange_explicit(&watched, false, memory_order_relaxed);
}

static void watch_all(void)
{
    for (size_t k = 0; k < count; k++) {
        all[k]->watch();
    }
}

/* The callback of opal_progress(): in application threads, inside MPI calls. */
static int progress_all(void)
{
    bool busy = false;
    int happened = 0;

    for (size_t k = 0; k < count; k++) {
        happened += all[k]->progress();
        busy |= all[k]->is_busy();
    }
    if (busy && is_watch_due()) {
        atomic_store_explicit(&watched, true, memory_order_relaxed);
        watch_all();
    } else if (!busy && is_last_watch_due()) {
        watch_all();
    }
    return happened;
}

void mca_coll_flash_algorithms_open(const mca_coll_flash_algorithm_t *const *algorithms,
                                    size_t number)
{
    all = algorithms;
    count = number;
    atomic_store_explicit(&polled, false, memory_order_relaxed);
}

size_t mca_coll_flash_algorithms_state(void)
{
    size_t most = 0;

    for (size_t k = 0; k < count; k++) {
        most = all[k]->state_bytes > most ? all[k]->state_bytes : most;
    }
    return most;
}

void mca_coll_flash_algorithms_forget(mca_coll_flash_module_t *module)
{
    for (size_t k = 0; k < count; k++) {
        if (all[k]->forget != NULL) {
            all[k]->forget(module);
        }
    }
}

void mca_coll_flash_poll(void)
{
    if (!atomic_load_explicit(&polled, memory_order_relaxed) &&
        !atomic_exchange_explicit(&polled, true, memory_order_relaxed)) {
        opal_progress_register(progress_all);
    }
}

void mca_coll_flash_unpoll(void)
{
    if (atomic_exchange_explicit(&polled, false, memory_order_relaxed)) {
        opal_progress_unregister(progress_all);
    }
}
