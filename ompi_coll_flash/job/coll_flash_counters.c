/*
 * coll_flash_counters.c: see coll_flash_counters.h.
 *
 * Shared between threads: the counters are atomic, relaxed; they order nothing.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "job/coll_flash_counters.h"

#include <stdatomic.h>

static atomic_uint_fast64_t counters[FLASH_COUNTERS];

void mca_coll_flash_count(mca_coll_flash_counter_t counter, uint64_t amount)
{
    atomic_fetch_add_explicit(&counters[counter], amount, memory_order_relaxed);
}

uint64_t mca_coll_flash_counted(mca_coll_flash_counter_t counter)
{
    return atomic_load_explicit(&counters[counter], memory_order_relaxed);
}
