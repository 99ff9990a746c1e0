/*
 * coll_flash_silence.c: see coll_flash_silence.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "request/coll_flash_silence.h"

#include <stdio.h>
#include <unistd.h>

void mca_coll_flash_silence_describe(void *reports, size_t k, const flash_silence_t *silence)
{
    mca_coll_flash_report_t *report = (mca_coll_flash_report_t *) reports + k;
    const mca_coll_flash_params_t *params = &mca_coll_flash_params;
    mca_coll_flash_request_t *request = silence->user;
    ompi_communicator_t *comm = request->module->comm;
    const char *told = request->algorithm->told;

    static const char *const names[FLASH_KINDS] = {[FLASH_ALLGATHER] = "allgather",
                                                   [FLASH_REDUCE_SCATTER] = "reduce-scatter",
                                                   [FLASH_ALLREDUCE] = "allreduce",
                                                   [FLASH_ALLTOALL] = "all-to-all",
                                                   [FLASH_BCAST] = "broadcast",
                                                   [FLASH_REDUCE] = "reduce",
                                                   [FLASH_GATHER] = "gather",
                                                   [FLASH_SCATTER] = "scatter",
                                                   [FLASH_PAIRWISE_REDUCE_SCATTER] =
                                                       "pairwise reduce-scatter"};

    if (told != NULL) {
        snprintf(report->operation, sizeof(report->operation), "%s %s", names[request->kind], told);
    } else {
        snprintf(report->operation, sizeof(report->operation), "%s, number %u",
                 names[request->kind], request->sequence);
    }
    report->peer = ompi_group_get_proc_name(comm->c_local_group, (int) silence->rank);
    report->group = comm->c_local_group;
    OBJ_RETAIN(report->group);
    report->stalled = params->stall_seconds > 0 && silence->watches >= params->stall_seconds &&
                      !silence->not_oldest && !request->told_stalled;
    report->gives_up = report->stalled && params->stall_error && request->algorithm->gives_up;
    report->asks = params->probe_seconds > 0 && silence->watches >= params->probe_seconds;
    request->told_stalled |= report->stalled;
    snprintf(report->comm, sizeof(report->comm), "%s", comm->c_name);
}

void mca_coll_flash_silence_warn(const flash_silence_t *silence,
                                 const mca_coll_flash_report_t *report)
{
    FLASH_HELP("stalled", silence->watches, report->operation, report->comm,
               (int) report->peer.vpid, silence->sending ? "take a message" : "send a message",
               silence->step, silence->steps, silence->block, silence->segment,
               opal_process_info.nodename, (int) getpid(),
               report->gives_up ? "That rank is given up: the operation ends with an error."
                                : "The operation waits on.");
}
