/*
 * coll_flash_counters.h: what this process has done so far.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef COLL_FLASH_COUNTERS_H
#define COLL_FLASH_COUNTERS_H

#include "settings/coll_flash_params.h"

/* What the process has done so far: numbers of calls, unless it says otherwise. */
typedef enum mca_coll_flash_counter {
    FLASH_COUNT_RINGS, /* by the ring; all calls of the extension that the engine serves */
    FLASH_COUNT_RING_BYTES,
    FLASH_COUNT_CALLBACKS, /* made for them */
    FLASH_COUNT_PAIRWISE,
    FLASH_COUNT_PAIRWISE_BYTES,
    FLASH_COUNT_SHM,
    FLASH_COUNT_SHM_BYTES,
    FLASH_COUNT_RECDBL,
    FLASH_COUNT_RECDBL_BYTES,
    FLASH_COUNT_FALLBACKS, /* standard calls, by Open MPI's next component */
    FLASH_COUNT_FALLBACK_BYTES,
    FLASH_COUNT_PLAIN, /* of the extension, served by plain collectives */
    FLASH_COUNT_PLAIN_BYTES,
    /* Why these last two were not served. */
    FLASH_COUNT_COST,
    FLASH_COUNT_ALGORITHM,
    FLASH_COUNT_ON_NODE,
    FLASH_COUNT_OPERATION,
    FLASH_COUNT_PERSISTENT,
    FLASH_COUNT_RANKS,
    FLASH_COUNT_MERGED,
    FLASH_COUNT_COMMUNICATOR,
    FLASH_COUNT_LARGE,
    FLASH_COUNTERS
} mca_coll_flash_counter_t;

void mca_coll_flash_count(mca_coll_flash_counter_t counter, uint64_t amount);
uint64_t mca_coll_flash_counted(mca_coll_flash_counter_t counter);

#endif /* COLL_FLASH_COUNTERS_H */
