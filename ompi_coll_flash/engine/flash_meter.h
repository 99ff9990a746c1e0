/*
 * flash_meter.h: how long operations were under way, and how much of that the application waited.
 *
 * The rest was hidden: the application, an accelerator or a thread pool computed meanwhile. Waiting
 * is told poll by poll. What lies between two polls counts as waited, too, unless it is longer than
 * FLASH_TRACE_GAP_NS: a program that polls more often than that while it computes is not seen to
 * compute, and one that waits, but does not have its core for longer, is not seen to wait.
 *
 * Locking: the engine's lock is held around all functions here; `on` alone is read without, to find
 * out whether the clock is to be read, relaxed. Times are flash_trace_now()'s. Knows no MPI.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef FLASH_METER_H
#define FLASH_METER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/flash_trace.h"

/* All zero: it is off. */
typedef struct flash_meter {
    atomic_bool on;
    bool under_way;        /* operations are, and were when it was switched on, or began since */
    uint64_t began, ended; /* the latest time without a gap in which operations were */
    uint64_t settled;      /* up to here it is known what the application did */
    uint64_t computing;    /* pieces whose callbacks run, or that are pending */
    uint64_t busy, waited; /* nanoseconds; the first one up to `began`, if `under_way` */
} flash_meter_t;

static inline bool flash_meter_is_on(const flash_meter_t *meter)
{
    return atomic_load_explicit(&meter->on, memory_order_relaxed);
}

/* The time, or 0 for those who measure nothing. */
static inline uint64_t flash_meter_clock(const flash_meter_t *meter)
{
    return flash_meter_is_on(meter) ? flash_trace_now() : 0;
}

/* For good. `active`: operations are under way. */
void flash_meter_start(flash_meter_t *meter, bool active, uint64_t now);

/* The first operation has begun, the last one is complete. */
void flash_meter_begin(flash_meter_t *meter, uint64_t now);
void flash_meter_end(flash_meter_t *meter, uint64_t now);

/* A piece's computation begins, or is done, in whatever thread or device. */
void flash_meter_computes(flash_meter_t *meter);
void flash_meter_computed(flash_meter_t *meter, uint64_t now);

/* The application has been in MPI since `begin`. */
void flash_meter_wait(flash_meter_t *meter, uint64_t begin, uint64_t now);

/* Nanoseconds so far. */
uint64_t flash_meter_busy(const flash_meter_t *meter, uint64_t now);
uint64_t flash_meter_waited(const flash_meter_t *meter);

#endif /* FLASH_METER_H */
