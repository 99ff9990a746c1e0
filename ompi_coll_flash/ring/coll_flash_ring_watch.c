/*
 * coll_flash_ring_watch.c: neighbours that fall silent: asking whether they are there, warning,
 * giving them up.
 *
 * Runs in application threads that wait inside MPI: nobody else is kept waiting.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "request/coll_flash_silence.h"
#include "ring/coll_flash_ring.h"
#include "ring/coll_flash_setup.h"

static void act(const flash_silence_t *silence, const mca_coll_flash_report_t *report)
{
    if (report->asks) {
        mca_coll_flash_peer_probe(report->peer, silence->peer);
    }
    if (report->stalled) {
        mca_coll_flash_silence_warn(silence, report);
    }
    if (report->gives_up) {
        mca_coll_flash_peer_lose(silence->peer);
    }
}

/* Whether what processes of this node send comes in, where some that are silent are there. */
static void look_for_blocked_queue(void)
{
    mca_coll_flash_peers_judge();
    mca_coll_flash_peers_suspect();
    if (mca_coll_flash_job_loopback()) {
        FLASH_VERBOSE(2, "coll:flash: nothing comes in of what is sent by processes of this node");
        mca_coll_flash_peers_unblock();
    }
}

void mca_coll_flash_ring_watch(void)
{
    flash_silence_t silences[FLASH_MOST_SILENCES];
    mca_coll_flash_report_t reports[FLASH_MOST_SILENCES];
    bool asks = false;
    size_t count = mca_coll_flash_job_watch(silences, FLASH_MOST_SILENCES,
                                            mca_coll_flash_silence_describe, reports);

    mca_coll_flash_setups_watch();
    for (size_t k = 0; k < count; k++) {
        asks |= reports[k].asks;
        act(&silences[k], &reports[k]);
        OBJ_RELEASE(reports[k].group);
    }
    if (asks) {
        look_for_blocked_queue();
    }
}
