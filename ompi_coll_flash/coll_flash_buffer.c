/*
 * coll_flash_buffer.c: what memory a buffer is in, and what follows from that.
 *
 * Host memory is used as it is. A device's goes through pinned memory of the host, where the plugin
 * for its driver is there (flash_stager.h); otherwise it is an error. What flash passes on goes to
 * modules that would touch it with the processor, unless Open MPI was built for such memory.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "coll_flash.h"

#include <string.h>
#include <unistd.h>

#include "flash_device.h"
#include "flash_stager.h"

int mca_coll_flash_check_buffer(const void *address)
{
    return address == NULL ? MPI_ERR_BUFFER : MPI_SUCCESS;
}

bool mca_coll_flash_is_far(const void *address)
{
    return flash_device_owns(address);
}

static int refuse_device(const char *reason)
{
    FLASH_HELP("device-memory", opal_process_info.nodename, (int) getpid(), reason);
    return MPI_ERR_BUFFER;
}

int mca_coll_flash_refuse_gaps(void)
{
    return refuse_device("flash packs types with gaps by the processor, which cannot reach it");
}

int mca_coll_flash_stage(mca_coll_flash_request_t *request, flash_op_params_t *params, bool input,
                         bool output)
{
    const char *plugin = mca_coll_flash_params.cuda_plugin;
    char reason[FLASH_STAGER_REASON_MAX];

    if (!input && !output) {
        return MPI_SUCCESS;
    }
    if (plugin == NULL || plugin[0] == '\0') {
        return refuse_device("there is no plugin for it, see coll_flash_cuda_plugin");
    }
    request->stager =
        flash_stager_open(mca_coll_flash_job_progress(), plugin, input ? params->input : NULL,
                          output ? params->output : NULL, reason);
    if (request->stager == NULL) {
        return refuse_device(reason);
    }
    flash_stager_fill(request->stager, params);
    FLASH_VERBOSE(2, "coll:flash: staged through pinned memory: %s",
                  !output  ? "the input"
                  : !input ? "the output"
                           : "input and output");
    return MPI_SUCCESS;
}

int mca_coll_flash_copy_back(const mca_coll_flash_request_t *request, void *to, const void *from,
                             size_t size)
{
    if (request->stager == NULL) {
        memcpy(to, from, size);
        return MPI_SUCCESS;
    }
    if (!flash_stager_copy(request->stager, to, from, size)) {
        mca_coll_flash_tell_device_failed();
        return MPI_ERR_OTHER;
    }
    return MPI_SUCCESS;
}

void mca_coll_flash_tell_device_failed(void)
{
    FLASH_HELP("device-failed", opal_process_info.nodename, (int) getpid(),
               flash_stager_complaint());
}

int mca_coll_flash_may_pass_on(const void *sendbuf, const void *recvbuf)
{
    if ((!flash_device_owns(sendbuf) && !flash_device_owns(recvbuf)) ||
        flash_compat_takes_devices()) {
        return MPI_SUCCESS;
    }
    return refuse_device(
        "calls that take no ring (coll_flash_verbose 2 says why) go to a component "
        "that cannot reach it; coll_flash_min_bytes 0 has calls of any size take it");
}
