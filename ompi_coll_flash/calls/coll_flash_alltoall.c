/*
 * coll_flash_alltoall.c: MPI's all-to-alls: which algorithm serves each, and its arguments as an
 * operation's.
 *
 * A ring's neighbours are two, an all-to-all's are all. What a communicator needs to know of them
 * is made with its first one, and stays.
 *
 * Ranks may describe the same data by different types, as long as the signatures agree, so that a
 * standard call exchanges bytes: a side whose type has gaps is packed, as in an allgather. The calls
 * of the extension exchange elements, of types without gaps.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "calls/coll_flash_packed.h"

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

/* ------------------------------------------------------------- MPI's function */

typedef mca_coll_flash_arguments_t arguments_t;

static int stage(mca_coll_flash_request_t *request, const mca_coll_flash_layout_t *layout,
                 bool in_place, const void *input, const void *output)
{
    size_t bytes =
        (size_t) ompi_comm_size(request->module->comm) * mca_coll_flash_block_bytes(layout);
    int rc = mca_coll_flash_stage(request, in_place ? NULL : input, output, false, false);

    return rc == MPI_SUCCESS && in_place && input != NULL
               ? mca_coll_flash_copy_back(request, request->packed, input, bytes)
               : rc;
}

static int place_bytes(mca_coll_flash_request_t *request, const arguments_t *a,
                       flash_op_params_t *params)
{
    bool in_place = a->sendbuf == MPI_IN_PLACE;
    mca_coll_flash_layout_t received = mca_coll_flash_layout_of(a->recvtype, a->recvcount);
    mca_coll_flash_layout_t sent =
        in_place ? received : mca_coll_flash_layout_of(a->sendtype, a->sendcount);
    const void *device_input = NULL, *device_output = NULL;
    int rc;

    params->schedule.blocks.count = params->schedule.out.count =
        mca_coll_flash_block_bytes(&received);
    if (mca_coll_flash_block_bytes(&sent) != mca_coll_flash_block_bytes(&received)) {
        return MPI_ERR_TRUNCATE;
    }
    if (mca_coll_flash_block_bytes(&sent) == 0) {
        return MPI_SUCCESS;
    }
    rc = mca_coll_flash_place_sent(request, &sent, in_place ? a->recvbuf : a->sendbuf, in_place,
                                   params, &device_input);
    if (rc == MPI_SUCCESS) {
        rc = mca_coll_flash_place_received(request, &received, a->recvbuf, params, &device_output);
    }
    return rc == MPI_SUCCESS ? stage(request, &received, in_place, device_input, device_output)
                             : rc;
}

static int start(mca_coll_flash_module_t *module, mca_coll_flash_ticket_t ticket,
                 const arguments_t *a, mca_coll_flash_path_t path, ompi_request_t **request)
{
    (void) path;
    return mca_coll_flash_start_bytes(module, ticket, a, place_bytes, request);
}

static int pass_on(mca_coll_flash_module_t *module, const arguments_t *a, ompi_request_t **request)
{
    return module->previous.ialltoall(a->sendbuf, a->sendcount, a->sendtype, a->recvbuf,
                                      a->recvcount, a->recvtype, module->comm, request,
                                      module->previous.ialltoall_module);
}

static int block(mca_coll_flash_module_t *module, const arguments_t *a)
{
    int rc;

    FLASH_BLOCK_BELOW(module, alltoall, rc, a->sendbuf, a->sendcount, a->sendtype, a->recvbuf,
                      a->recvcount, a->recvtype);
    return rc;
}

static int pass_on_each_time(mca_coll_flash_module_t *module, const arguments_t *a,
                             struct ompi_info_t *info, ompi_request_t **request)
{
    return module->previous.alltoall_init(a->sendbuf, a->sendcount, a->sendtype, a->recvbuf,
                                          a->recvcount, a->recvtype, module->comm, info, request,
                                          module->previous.alltoall_init_module);
}

static const mca_coll_flash_collective_t collective = {
    .start = start, .pass_on = pass_on, .block = block, .init = pass_on_each_time};

static arguments_t arguments_of(const void *sendbuf, flash_count_t sendcount, MPI_Datatype sendtype,
                                void *recvbuf, flash_count_t recvcount, MPI_Datatype recvtype)
{
    return (arguments_t){.kind = FLASH_ALLTOALL,
                         .sendbuf = sendbuf,
                         .sendcount = sendcount,
                         .sendtype = sendtype,
                         .recvbuf = recvbuf,
                         .recvcount = recvcount,
                         .recvtype = recvtype};
}

int mca_coll_flash_alltoall(const void *sendbuf, flash_count_t sendcount, MPI_Datatype sendtype,
                            void *recvbuf, flash_count_t recvcount, MPI_Datatype recvtype,
                            ompi_communicator_t *comm, mca_coll_base_module_t *base)
{
    arguments_t arguments =
        arguments_of(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype);

    (void) comm;
    return mca_coll_flash_block(&collective, "Alltoall", &arguments, base);
}

int mca_coll_flash_ialltoall(const void *sendbuf, flash_count_t sendcount, MPI_Datatype sendtype,
                             void *recvbuf, flash_count_t recvcount, MPI_Datatype recvtype,
                             ompi_communicator_t *comm, ompi_request_t **request,
                             mca_coll_base_module_t *base)
{
    arguments_t arguments =
        arguments_of(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype);

    (void) comm;
    return mca_coll_flash_start_call(&collective, "Ialltoall", &arguments, base, request);
}

int mca_coll_flash_alltoall_init(const void *sendbuf, flash_count_t sendcount,
                                 MPI_Datatype sendtype, void *recvbuf, flash_count_t recvcount,
                                 MPI_Datatype recvtype, ompi_communicator_t *comm,
                                 struct ompi_info_t *info, ompi_request_t **request,
                                 mca_coll_base_module_t *base)
{
    arguments_t arguments =
        arguments_of(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype);

    (void) comm;
    return mca_coll_flash_make_persistent(&collective, "Alltoall_init", &arguments, info, base,
                                          request);
}
