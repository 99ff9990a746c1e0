/*
 * ring_schedule.h: schedules of rings of many sizes, for the tests of what a rank does in each step.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef RING_SCHEDULE_H
#define RING_SCHEDULE_H

#include "engine/flash_schedule.h"

static const uint32_t ring_sizes[] = {2, 3, 4, 5, 7, 8, 16, 31, 64, 100, 1000};
#define RING_SIZES (sizeof(ring_sizes) / sizeof(ring_sizes[0]))

/* Blocks of one segment; the rank stands at the place of its number. */
static inline flash_schedule_t ring(flash_kind_t kind, uint32_t nranks, uint32_t rank)
{
    return (flash_schedule_t){.kind = kind,
                              .ring = {.nranks = nranks, .place = rank},
                              .pieces = 1,
                              .row = 1,
                              .segment_elements = 1};
}

#endif /* RING_SCHEDULE_H */
