/*
 * coll_flash_patience.c: waiting in MPI_Init for other ranks.
 *
 * Ranks may outnumber cores. One that polls without a pause keeps a core from those that it waits for. One
 * that sleeps gets its core back late, once other ranks have left MPI_Init and poll. So it yields some
 * times, as long as it takes for a message that is under way, and then sleeps.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "job/coll_flash_job.h"

#include <sched.h>
#include <unistd.h>

enum { YIELDS = 15, NAP = 100, LONGEST_NAP = 800 }; /* microseconds */

void mca_coll_flash_be_patient(mca_coll_flash_patience_t *patience)
{
    opal_progress();
    if (patience->yields < YIELDS) {
        patience->yields++;
        (void) sched_yield();
        return;
    }
    usleep(NAP << patience->naps);
    patience->naps += NAP << patience->naps < LONGEST_NAP;
    patience->yields = 0;
}
