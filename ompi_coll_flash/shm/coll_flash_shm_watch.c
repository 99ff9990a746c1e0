/*
 * coll_flash_shm_watch.c: ranks of a node that fall silent.
 *
 * Who uses a channel is kept waiting while a message about one is shown.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "request/coll_flash_silence.h"
#include "shm/coll_flash_shm.h"

/* Whoever it is: others may wait for each other, because it has not taken what they posted. */
static void lose_who_is_gone(flash_shm_t *shm, ompi_group_t *group)
{
    for (uint32_t rank = 0; rank < flash_shm_ranks(shm); rank++) {
        if (mca_coll_flash_shm_rank_is_gone(ompi_group_get_proc_name(group, (int) rank).vpid)) {
            flash_shm_lose(shm, rank);
        }
    }
}

/* Under the channels' lock. Whom this rank shares memory with is on its node: the kernel knows. */
static void look_at_shm(flash_shm_t *shm)
{
    flash_silence_t silence;
    mca_coll_flash_report_t report;

    if (!flash_shm_watch(shm, &silence)) {
        return;
    }
    mca_coll_flash_silence_describe(&report, 0, &silence);
    if (report.stalled) {
        mca_coll_flash_silence_warn(&silence, &report);
    }
    if (report.gives_up) {
        flash_shm_lose(shm, silence.rank);
    }
    if (report.asks) {
        lose_who_is_gone(shm, report.group);
    }
    OBJ_RELEASE(report.group);
}

void mca_coll_flash_shm_watch(void)
{
    mca_coll_flash_shm_each(look_at_shm);
}
