/*
 * coll_flash_scatter.c: MPI's scatter: which algorithm serves it, and its arguments as those of an
 * exchange in which the root alone sends. So are those of one whose blocks have lengths of their own
 * (coll_flash_scatterv.c).
 *
 * As of a gather (coll_flash_gather.c), the bytes of a block are equal on all ranks, and alone decide
 * about the path. A rank that is not the root may have anything for its send arguments.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "calls/coll_flash_packed.h"

typedef mca_coll_flash_arguments_t arguments_t;

/* The own block, which is unpacked at the end if its type has gaps. */
static int place_received(mca_coll_flash_request_t *request, const mca_coll_flash_layout_t *layout,
                          void *buffer, flash_op_params_t *params, const void **on_device)
{
    int rc = mca_coll_flash_find_block(layout, buffer, on_device);

    params->output = (char *) buffer + layout->true_lb;
    return rc != MPI_SUCCESS || mca_coll_flash_is_dense(layout->type, layout->count)
               ? rc
               : mca_coll_flash_place_packed_block(request, layout, buffer, params);
}

/* In place at the root: the own block stays where it is sent from, so that nothing is copied. */
static void place_nothing(const mca_coll_flash_request_t *request, flash_op_params_t *params)
{
    int rank = ompi_comm_rank(request->module->comm);

    params->output = (char *) (uintptr_t) params->input +
                     mca_coll_flash_place_of(&params->schedule.blocks, rank);
}

static int place(mca_coll_flash_request_t *request, const arguments_t *a, flash_op_params_t *params)
{
    int rank = ompi_comm_rank(request->module->comm);
    mca_coll_flash_layout_t sent = mca_coll_flash_roots_layout(a);
    mca_coll_flash_layout_t received = mca_coll_flash_layout_of(a->recvtype, a->recvcount);
    size_t bytes = mca_coll_flash_bytes_of_block(&sent, rank);
    const void *device_input = NULL, *device_output = NULL;
    int rc = MPI_SUCCESS;

    if (a->recvbuf != MPI_IN_PLACE && mca_coll_flash_block_bytes(&received) != bytes) {
        return MPI_ERR_TRUNCATE;
    }
    if (rank == a->root) {
        rc = mca_coll_flash_place_sent(request, &sent, a->sendbuf, false, params, &device_input);
    }
    if (rc == MPI_SUCCESS) {
        rc = mca_coll_flash_set_side(request, &sent, request->packed != NULL,
                                     &params->schedule.blocks);
    }
    if (rc == MPI_SUCCESS && a->recvbuf == MPI_IN_PLACE) {
        place_nothing(request, params);
    } else if (rc == MPI_SUCCESS && bytes > 0) {
        rc = place_received(request, &received, a->recvbuf, params, &device_output);
    }
    return rc == MPI_SUCCESS
               ? mca_coll_flash_stage(request, device_input, device_output, false, false)
               : rc;
}

int mca_coll_flash_start_scatter(mca_coll_flash_module_t *module, mca_coll_flash_ticket_t ticket,
                                 const arguments_t *a, mca_coll_flash_path_t path,
                                 ompi_request_t **request)
{
    (void) path;
    return mca_coll_flash_start_bytes(module, ticket, a, place, request);
}

/* ------------------------------------------------------------ MPI's functions */

static int pass_on(mca_coll_flash_module_t *module, const arguments_t *a, ompi_request_t **request)
{
    return module->previous.iscatter(a->sendbuf, a->sendcount, a->sendtype, a->recvbuf,
                                     a->recvcount, a->recvtype, a->root, module->comm, request,
                                     module->previous.iscatter_module);
}

static int pass_on_each_time(mca_coll_flash_module_t *module, const arguments_t *a,
                             struct ompi_info_t *info, ompi_request_t **request)
{
    return module->previous.scatter_init(a->sendbuf, a->sendcount, a->sendtype, a->recvbuf,
                                         a->recvcount, a->recvtype, a->root, module->comm, info,
                                         request, module->previous.scatter_init_module);
}

static const mca_coll_flash_collective_t collective = {
    .start = mca_coll_flash_start_scatter, .pass_on = pass_on, .init = pass_on_each_time};

/* As of a gather: what a rank may leave undefined is not read, and has the other side's in its place. */
static arguments_t arguments_of(const void *sendbuf, flash_count_t sendcount, MPI_Datatype sendtype,
                                void *recvbuf, flash_count_t recvcount, MPI_Datatype recvtype,
                                int root, ompi_communicator_t *comm)
{
    bool sends = ompi_comm_rank(comm) == root, in_place = recvbuf == MPI_IN_PLACE;

    return (arguments_t){.kind = FLASH_SCATTER,
                         .sendbuf = sends ? sendbuf : NULL,
                         .sendcount = sends ? sendcount : recvcount,
                         .sendtype = sends ? sendtype : recvtype,
                         .recvbuf = recvbuf,
                         .recvcount = in_place ? sendcount : recvcount,
                         .recvtype = in_place ? sendtype : recvtype,
                         .root = root};
}

int mca_coll_flash_iscatter(const void *sendbuf, flash_count_t sendcount, MPI_Datatype sendtype,
                            void *recvbuf, flash_count_t recvcount, MPI_Datatype recvtype, int root,
                            ompi_communicator_t *comm, ompi_request_t **request,
                            mca_coll_base_module_t *base)
{
    arguments_t arguments =
        arguments_of(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm);

    return mca_coll_flash_start_call(&collective, "Iscatter", &arguments, base, request);
}

int mca_coll_flash_scatter_init(const void *sendbuf, flash_count_t sendcount, MPI_Datatype sendtype,
                                void *recvbuf, flash_count_t recvcount, MPI_Datatype recvtype,
                                int root, ompi_communicator_t *comm, struct ompi_info_t *info,
                                ompi_request_t **request, mca_coll_base_module_t *base)
{
    arguments_t arguments =
        arguments_of(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm);

    return mca_coll_flash_make_persistent(&collective, "Scatter_init", &arguments, info, base,
                                          request);
}
