/*
 * coll_flash_memory.c: what memory a buffer is in, and what follows from that.
 *
 * Host memory is used as it is. A device's is staged (flash_stager.h), where the plugin for its
 * driver is there; otherwise it is an error.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "request/coll_flash_memory.h"

#include <string.h>
#include <unistd.h>

#include "engine/flash_copy.h"
#include "device/flash_device.h"
#include "device/flash_stager.h"

int mca_coll_flash_check_buffer(const void *address)
{
    if (address != NULL && flash_device_gone(address)) {
        return mca_coll_flash_refuse_device("it has been freed, or is no memory of this process");
    }
    return address == NULL ? MPI_ERR_BUFFER : MPI_SUCCESS;
}

bool mca_coll_flash_is_on_device(const void *address)
{
    return flash_device_owns(address);
}

int mca_coll_flash_refuse_device(const char *reason)
{
    FLASH_HELP("device-memory", opal_process_info.nodename, (int) getpid(), reason);
    return MPI_ERR_BUFFER;
}

int mca_coll_flash_refuse_gaps(void)
{
    return mca_coll_flash_refuse_device(
        "flash packs types with gaps by the processor, which cannot reach it");
}

/* An error of flash_stager.h's. */
static int fail(int status)
{
    if (status == FLASH_ERR_DEVICE) {
        mca_coll_flash_tell_device_failed();
    }
    return mca_coll_flash_error(status);
}

int mca_coll_flash_open_stager(const void *input, const void *output,
                               const struct flash_stager_order *order, struct flash_stager **stager)
{
    const char *plugin = mca_coll_flash_params.cuda_plugin;
    char reason[FLASH_STAGER_REASON_MAX];

    if (plugin == NULL) { /* nobody has registered the parameters: the component is not there */
        plugin = FLASH_CUDA_PLUGIN;
        opal_show_help_add_dir(FLASH_PKGDATADIR);
    }
    if (plugin[0] == '\0' || strcmp(plugin, "none") == 0) {
        return mca_coll_flash_refuse_device(
            "there is no plugin for it, see coll_flash_cuda_plugin");
    }
    if (!flash_stager_load(plugin, mca_coll_flash_params.cuda_cache_bytes, reason)) {
        return mca_coll_flash_refuse_device(reason);
    }
    return fail(flash_stager_open(mca_coll_flash_job_progress(), input, output, order, stager));
}

int mca_coll_flash_stage(mca_coll_flash_request_t *request, const void *input, const void *output,
                         bool produces, bool awaits)
{
    flash_stager_order_t order = {
        .stream = request->compute.stream, .produces = produces, .awaits = awaits};

    if (input == NULL && output == NULL && !produces && !awaits) {
        return MPI_SUCCESS;
    }
    FLASH_VERBOSE(2, "coll:flash: in a device's memory: %s%s",
                  input == NULL && !produces ? output == NULL ? "none" : "the output"
                  : output == NULL           ? "the input"
                                             : "input and output",
                  request->compute.on_stream ? ", in the order of a stream" : "");
    return mca_coll_flash_open_stager(input, output, request->compute.on_stream ? &order : NULL,
                                      &request->stager);
}

int mca_coll_flash_cover(const mca_coll_flash_request_t *request, const void *block)
{
    return fail(flash_stager_covers(request->stager, false, block) ? FLASH_OK : FLASH_ERR_DEVICE);
}

int mca_coll_flash_await_stream(const mca_coll_flash_request_t *request, const flash_piece_t *piece,
                                int error)
{
    int status = flash_stager_await(request->stager, piece->op, piece->number, error);

    return status == FLASH_PENDING || error == MPI_SUCCESS ? status : error;
}

/* Whether UCX is to have the device's memory. */
static bool wants_direct(void)
{
    const flash_transport_t *transport = mca_coll_flash_job_transport();

    switch (mca_coll_flash_params.cuda_gpudirect) {
    case FLASH_GPUDIRECT_NO:
        return false;
    case FLASH_GPUDIRECT_YES:
        return transport->reaches_devices;
    default:
        return transport->prefers_devices;
    }
}

/* It is made and freed in each such operation, which takes some 100 ms. */
static void tell_unkept(size_t bytes)
{
    if (bytes > 0) {
        FLASH_VERBOSE(1,
                      "coll:flash: an operation needs %zu bytes of pinned memory, more than "
                      "coll_flash_cuda_cache_bytes (%zu): they are not kept for the next one",
                      bytes, mca_coll_flash_params.cuda_cache_bytes);
    }
}

int mca_coll_flash_find_scratch(const mca_coll_flash_request_t *request, flash_op_params_t *params)
{
    int status;

    if (request->stager == NULL) {
        return MPI_SUCCESS;
    }
    status = flash_stager_fill(request->stager, wants_direct(), params);
    if (status == FLASH_OK) {
        FLASH_VERBOSE(2, "coll:flash: %s, %zu bytes",
                      params->scratch_on_device
                          ? "sent and received by UCX from the device's memory"
                      : flash_stager_pins(request->stager) ? "staged through pinned memory"
                                                           : "staged through ordinary memory",
                      flash_op_scratch_size(params));
        tell_unkept(flash_stager_unkept(request->stager));
    }
    return fail(status);
}

int mca_coll_flash_copy_back(const mca_coll_flash_request_t *request, void *to, const void *from,
                             size_t size)
{
    if (request->stager == NULL) {
        flash_copy(to, from, size);
        return MPI_SUCCESS;
    }
    if (!flash_stager_copy(request->stager, false, to, from, size)) {
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
