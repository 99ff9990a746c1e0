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

/* An error of flash_stager.h's. */
static int fail(int status)
{
    if (status == FLASH_ERR_DEVICE) {
        mca_coll_flash_tell_device_failed();
    }
    return mca_coll_flash_error(status);
}

int mca_coll_flash_stage(mca_coll_flash_request_t *request, const void *input, const void *output)
{
    const char *plugin = mca_coll_flash_params.cuda_plugin;
    char reason[FLASH_STAGER_REASON_MAX];

    if (input == NULL && output == NULL) {
        return MPI_SUCCESS;
    }
    if (plugin == NULL || plugin[0] == '\0') {
        return refuse_device("there is no plugin for it, see coll_flash_cuda_plugin");
    }
    if (!flash_stager_load(plugin, reason)) {
        return refuse_device(reason);
    }
    FLASH_VERBOSE(2, "coll:flash: staged through pinned memory: %s",
                  output == NULL  ? "the input"
                  : input == NULL ? "the output"
                                  : "input and output");
    return fail(flash_stager_open(mca_coll_flash_job_progress(), input, output, &request->stager));
}

int mca_coll_flash_find_scratch(const mca_coll_flash_request_t *request, flash_op_params_t *params)
{
    return request->stager == NULL ? MPI_SUCCESS : fail(flash_stager_fill(request->stager, params));
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

/* ------------------------------------------------------------------- passing on */

static ptrdiff_t true_lb_of(MPI_Datatype type)
{
    ptrdiff_t true_lb, true_extent;

    ompi_datatype_get_true_extent(type, &true_lb, &true_extent);
    return true_lb;
}

const void *mca_coll_flash_first_data(const void *recvbuf, flash_count_t recvcount,
                                      flash_counts_t recvcounts, flash_displs_t displs,
                                      MPI_Datatype recvtype, int blocks)
{
    ptrdiff_t extent, displ = 0;
    size_t size;
    int block = 0;

    ompi_datatype_type_size(recvtype, &size);
    ompi_datatype_type_extent(recvtype, &extent);
    while (block < blocks && (recvcounts == NULL ? recvcount : recvcounts[block]) == 0) {
        block++;
    }
    if (block == blocks || size == 0) {
        return NULL;
    }
    if (displs != NULL) {
        displ = displs[block];
    }
    return (const char *) recvbuf + displ * extent + true_lb_of(recvtype);
}

static bool is_far(const void *address)
{
    return address != NULL && flash_device_owns(address);
}

/* An allgather receives all blocks, and sends its own; a reduction the other way round. */
static bool has_far_buffers(const mca_coll_flash_arguments_t *a, ompi_communicator_t *comm)
{
    const void *all = a->op == NULL || a->sendbuf == MPI_IN_PLACE ? a->recvbuf : a->sendbuf;
    const void *own = a->op == NULL ? a->sendbuf : a->recvbuf;
    MPI_Datatype own_type = a->op == NULL ? a->sendtype : a->recvtype;

    if (is_far(mca_coll_flash_first_data(all, a->recvcount, a->recvcounts, a->displs, a->recvtype,
                                         ompi_comm_size(comm)))) {
        return true;
    }
    if (own == MPI_IN_PLACE || own_type == NULL) {
        return false;
    }
    if (a->op != NULL && a->recvcounts != NULL) {
        return a->recvcounts[ompi_comm_rank(comm)] > 0 &&
               is_far((const char *) own + true_lb_of(own_type));
    }
    return is_far(mca_coll_flash_first_data(own, a->op == NULL ? a->sendcount : a->recvcount, NULL,
                                            NULL, own_type, 1));
}

int mca_coll_flash_may_pass_on(const mca_coll_flash_arguments_t *arguments,
                               ompi_communicator_t *comm)
{
    /* Built for such memory, Open MPI still reduces by the processor in its non-blocking calls. */
    if (!flash_device_any() || (arguments->op == NULL && flash_compat_takes_devices()) ||
        !has_far_buffers(arguments, comm)) {
        return MPI_SUCCESS;
    }
    return refuse_device(
        "calls that take no ring (coll_flash_verbose 2 says why) go to a component "
        "that cannot reach it; with coll_flash_min_bytes 0 no size is too small");
}
