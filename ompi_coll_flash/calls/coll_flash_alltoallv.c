/*
 * coll_flash_alltoallv.c: MPI's all-to-all whose blocks have lengths of their own: its arguments, also as
 * those of an operation. Which blocks go how: coll_flash_unequal.c. Blocks without elements travel in no
 * message.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "calls/coll_flash_packed.h"
#include "calls/coll_flash_unequal.h"

typedef mca_coll_flash_arguments_t arguments_t;

static bool is_in_place(const arguments_t *a)
{
    return a->sendbuf == MPI_IN_PLACE;
}

static int set_sides(mca_coll_flash_request_t *request, const mca_coll_flash_layout_t *received,
                     const mca_coll_flash_layout_t *sent, flash_schedule_t *schedule)
{
    int ranks = ompi_comm_size(request->module->comm);
    flash_blocks_t blocks[2] = {{.counts = NULL}};
    int rc = mca_coll_flash_request_blocks(request, 2, blocks);

    if (rc == MPI_SUCCESS) {
        mca_coll_flash_set_blocks(received, request->scratch != NULL, ranks, request->counts,
                                  request->displs);
        mca_coll_flash_set_blocks(sent, request->packed != NULL, ranks, request->counts + ranks,
                                  request->displs + ranks);
        schedule->blocks = blocks[0];
        schedule->out = blocks[1];
    }
    return rc;
}

static const void *data_of(const mca_coll_flash_layout_t *layout, const void *buffer, int rank)
{
    return (const char *) mca_coll_flash_block_of(layout, buffer, rank) + layout->true_lb;
}

/* All blocks before the first copy, which fixes what copies come behind. */
static int cover_sent(const mca_coll_flash_request_t *request, const mca_coll_flash_layout_t *sent,
                      const void *buffer)
{
    int rc = MPI_SUCCESS;

    for (int rank = 0; rank < ompi_comm_size(request->module->comm) && rc == MPI_SUCCESS; rank++) {
        if (mca_coll_flash_bytes_of_block(sent, rank) > 0) {
            rc = mca_coll_flash_cover(request, data_of(sent, buffer, rank));
        }
    }
    return rc;
}

/* In place, on a device: what leaves is copied before anything arrives there. */
static int copy_sent(mca_coll_flash_request_t *request, const mca_coll_flash_layout_t *sent,
                     const void *buffer)
{
    char *packed = request->packed;
    int rc = cover_sent(request, sent, buffer);

    for (int rank = 0; rank < ompi_comm_size(request->module->comm) && rc == MPI_SUCCESS; rank++) {
        size_t bytes = mca_coll_flash_bytes_of_block(sent, rank);

        if (bytes > 0) {
            rc = mca_coll_flash_copy_back(request, packed, data_of(sent, buffer, rank), bytes);
        }
        packed += bytes;
    }
    return rc;
}

static int place(mca_coll_flash_request_t *request, const arguments_t *a, flash_op_params_t *params)
{
    int own = ompi_comm_rank(request->module->comm);
    mca_coll_flash_layout_t received = mca_coll_flash_received_layout(a);
    mca_coll_flash_layout_t sent = mca_coll_flash_sent_layout(a);
    const void *buffer = is_in_place(a) ? a->recvbuf : a->sendbuf;
    const void *device_input = NULL, *device_output = NULL;
    int rc;

    if (mca_coll_flash_bytes_of_block(&sent, own) !=
        mca_coll_flash_bytes_of_block(&received, own)) {
        return MPI_ERR_TRUNCATE;
    }
    rc = mca_coll_flash_place_sent(request, &sent, buffer, is_in_place(a), params, &device_input);
    if (rc == MPI_SUCCESS) {
        rc = mca_coll_flash_place_received(request, &received, a->recvbuf, params, &device_output);
    }
    if (rc == MPI_SUCCESS) {
        rc = set_sides(request, &received, &sent, &params->schedule);
    }
    if (rc == MPI_SUCCESS) {
        rc = mca_coll_flash_stage(request, is_in_place(a) ? NULL : device_input, device_output,
                                  false, false);
    }
    return rc == MPI_SUCCESS && is_in_place(a) && device_input != NULL
               ? copy_sent(request, &sent, buffer)
               : rc;
}

static int start(mca_coll_flash_module_t *module, mca_coll_flash_ticket_t ticket,
                 const arguments_t *a, mca_coll_flash_path_t path, ompi_request_t **request)
{
    (void) path;
    return mca_coll_flash_start_bytes(module, ticket, a, place, request);
}

/* ------------------------------------------------------------ MPI's functions */

static int pass_on(mca_coll_flash_module_t *module, const arguments_t *a, ompi_request_t **request)
{
    return module->previous.ialltoallv(
        a->sendbuf, FLASH_COUNTS(a->sendcounts), FLASH_DISPLS(a->sdispls), a->sendtype, a->recvbuf,
        FLASH_COUNTS(a->recvcounts), FLASH_DISPLS(a->displs), a->recvtype, module->comm, request,
        module->previous.ialltoallv_module);
}

static int block(mca_coll_flash_module_t *module, const arguments_t *a)
{
    int rc;

    FLASH_BLOCK_BELOW(module, alltoallv, rc, a->sendbuf, FLASH_COUNTS(a->sendcounts),
                      FLASH_DISPLS(a->sdispls), a->sendtype, a->recvbuf,
                      FLASH_COUNTS(a->recvcounts), FLASH_DISPLS(a->displs), a->recvtype);
    return rc;
}

static int pass_on_each_time(mca_coll_flash_module_t *module, const arguments_t *a,
                             struct ompi_info_t *info, ompi_request_t **request)
{
    return module->previous.alltoallv_init(
        a->sendbuf, FLASH_COUNTS(a->sendcounts), FLASH_DISPLS(a->sdispls), a->sendtype, a->recvbuf,
        FLASH_COUNTS(a->recvcounts), FLASH_DISPLS(a->displs), a->recvtype, module->comm, info,
        request, module->previous.alltoallv_init_module);
}

static const mca_coll_flash_collective_t collective = {
    .start = start, .pass_on = pass_on, .block = block, .init = pass_on_each_time};

/* In place, MPI leaves the send side undefined. */
static arguments_t arguments_of(const void *sendbuf, flash_counts_t sendcounts,
                                flash_displs_t sdispls, MPI_Datatype sendtype, void *recvbuf,
                                flash_counts_t recvcounts, flash_displs_t rdispls,
                                MPI_Datatype recvtype)
{
    bool in_place = sendbuf == MPI_IN_PLACE;

    return (arguments_t){.kind = FLASH_ALLTOALL,
                         .unequal = true,
                         .sendbuf = sendbuf,
                         .sendcounts = in_place ? recvcounts : sendcounts,
                         .sdispls = in_place ? rdispls : sdispls,
                         .sendtype = in_place ? recvtype : sendtype,
                         .recvbuf = recvbuf,
                         .recvcounts = recvcounts,
                         .displs = rdispls,
                         .recvtype = recvtype};
}

int mca_coll_flash_alltoallv(const void *sendbuf, flash_counts_t sendcounts, flash_displs_t sdispls,
                             MPI_Datatype sendtype, void *recvbuf, flash_counts_t recvcounts,
                             flash_displs_t rdispls, MPI_Datatype recvtype,
                             ompi_communicator_t *comm, mca_coll_base_module_t *base)
{
    arguments_t arguments = arguments_of(sendbuf, sendcounts, sdispls, sendtype, recvbuf,
                                         recvcounts, rdispls, recvtype);

    (void) comm;
    return mca_coll_flash_block_unequal(&collective, "Alltoallv", &arguments, base);
}

int mca_coll_flash_ialltoallv(const void *sendbuf, flash_counts_t sendcounts,
                              flash_displs_t sdispls, MPI_Datatype sendtype, void *recvbuf,
                              flash_counts_t recvcounts, flash_displs_t rdispls,
                              MPI_Datatype recvtype, ompi_communicator_t *comm,
                              ompi_request_t **request, mca_coll_base_module_t *base)
{
    arguments_t arguments = arguments_of(sendbuf, sendcounts, sdispls, sendtype, recvbuf,
                                         recvcounts, rdispls, recvtype);

    (void) comm;
    return mca_coll_flash_start_unequal(&collective, "Ialltoallv", &arguments, base, request);
}

int mca_coll_flash_alltoallv_init(const void *sendbuf, flash_counts_t sendcounts,
                                  flash_displs_t sdispls, MPI_Datatype sendtype, void *recvbuf,
                                  flash_counts_t recvcounts, flash_displs_t rdispls,
                                  MPI_Datatype recvtype, ompi_communicator_t *comm,
                                  struct ompi_info_t *info, ompi_request_t **request,
                                  mca_coll_base_module_t *base)
{
    arguments_t arguments = arguments_of(sendbuf, sendcounts, sdispls, sendtype, recvbuf,
                                         recvcounts, rdispls, recvtype);

    (void) comm;
    return mca_coll_flash_persist_unequal(&collective, "Alltoallv_init", &arguments, info, base,
                                          request);
}
