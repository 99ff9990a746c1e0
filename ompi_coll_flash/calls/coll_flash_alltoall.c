/*
 * coll_flash_alltoall.c: MPI's arguments to an all-to-all's, and whom it goes to.
 *
 * A ring's neighbours are two, an all-to-all's are all. What a communicator needs to know of them
 * is made with its first one, and stays.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "calls/coll_flash_calls.h"

#include <stdlib.h>

mca_coll_flash_reason_t mca_coll_flash_alltoall_reason(ompi_communicator_t *comm)
{
    return mca_coll_flash_may_exchange(comm) ? FLASH_NO_REASON : FLASH_TOO_MANY_RANKS;
}

int mca_coll_flash_alltoall_fits(const mca_coll_flash_alltoall_t *arguments,
                                 ompi_communicator_t *comm)
{
    int rank = ompi_comm_rank(comm);
    flash_count_t in =
        arguments->recvcounts == NULL ? arguments->recvcount : arguments->recvcounts[rank];
    flash_count_t out =
        arguments->sendcounts == NULL ? arguments->sendcount : arguments->sendcounts[rank];

    return in == out ? MPI_SUCCESS : MPI_ERR_TRUNCATE;
}

/* What arrives, and what leaves. */
static int set_blocks(mca_coll_flash_request_t *request, const mca_coll_flash_alltoall_t *arguments,
                      bool empty, flash_schedule_t *schedule)
{
    const mca_coll_flash_side_t sides[] = {{.counts = arguments->recvcounts,
                                            .displs = arguments->rdispls,
                                            .element = !empty,
                                            .extent = 1},
                                           {.counts = arguments->sendcounts,
                                            .displs = arguments->sdispls,
                                            .element = !empty,
                                            .extent = 1}};
    flash_blocks_t blocks[2] = {{.counts = NULL}};
    int rc = mca_coll_flash_request_sides(request, sides, 2, blocks);

    schedule->blocks = blocks[0];
    schedule->out = blocks[1];
    return rc;
}

/* `on_device`: an address of it in a device's memory, or NULL. */
static int check_side(const void *buffer, flash_count_t count, flash_counts_t counts,
                      flash_displs_t displs, MPI_Datatype type, ompi_communicator_t *comm,
                      const void **on_device)
{
    const void *first =
        mca_coll_flash_first_data(buffer, count, counts, displs, type, ompi_comm_size(comm));

    *on_device = NULL;
    if (mca_coll_flash_bytes(count, counts, type, comm) == 0) {
        return MPI_SUCCESS;
    }
    *on_device = mca_coll_flash_is_on_device(first) ? first : NULL;
    return mca_coll_flash_check_buffer(buffer);
}

static int place(mca_coll_flash_request_t *request, const mca_coll_flash_alltoall_t *a,
                 flash_op_params_t *params)
{
    ompi_communicator_t *comm = request->module->comm;
    const void *device_input = NULL, *device_output = NULL;
    bool sends = mca_coll_flash_bytes(a->sendcount, a->sendcounts, a->sendtype, comm) > 0;
    bool awaits = sends && request->compute.produce != NULL && request->compute.on_stream;
    size_t size;
    int rc = mca_coll_flash_alltoall_fits(a, comm);

    if (rc != MPI_SUCCESS) {
        return rc;
    }
    ompi_datatype_type_size(a->recvtype, &size);
    params->element = size > 0 ? size : 1;
    params->schedule.blocks.count = size > 0 ? (size_t) a->recvcount : 0;
    params->schedule.out.count = params->schedule.blocks.count;
    params->input = a->sendbuf;
    params->output = a->recvbuf;
    rc = a->recvcounts == NULL ? MPI_SUCCESS : set_blocks(request, a, size == 0, &params->schedule);
    if (rc == MPI_SUCCESS) {
        rc = check_side(a->sendbuf, a->sendcount, a->sendcounts, a->sdispls, a->sendtype, comm,
                        &device_input);
    }
    if (rc == MPI_SUCCESS) {
        rc = check_side(a->recvbuf, a->recvcount, a->recvcounts, a->rdispls, a->recvtype, comm,
                        &device_output);
    }
    return rc != MPI_SUCCESS
               ? rc
               : mca_coll_flash_stage(request, device_input, device_output, false, awaits);
}

int mca_coll_flash_start_alltoall(mca_coll_flash_module_t *module, mca_coll_flash_ticket_t ticket,
                                  const mca_coll_flash_alltoall_t *arguments,
                                  const mca_coll_flash_compute_t *compute, ompi_request_t **request)
{
    mca_coll_flash_request_t *made = mca_coll_flash_request_new(module, ticket, FLASH_ALLTOALL);
    flash_op_params_t params = {.input = NULL};
    int rc;

    if (made == NULL) {
        return MPI_ERR_NO_MEM;
    }
    made->datatype = arguments->recvtype;
    made->sendtype = arguments->sendtype;
    made->compute = *compute;
    rc = place(made, arguments, &params);
    if (rc != MPI_SUCCESS) {
        return mca_coll_flash_request_refuse(made, rc, request);
    }
    return mca_coll_flash_request_start(made, &params, request);
}
