/*
 * coll_flash_gather.c: MPI's gather: which algorithm serves it, and its arguments as those of an
 * exchange in which the root alone receives. So are those of one whose blocks have lengths of their own
 * (coll_flash_gatherv.c).
 *
 * MPI has each rank's block have the signature of the root's receive count and type (MPI 3.1, section
 * 5.5). So the bytes of a block are equal on all ranks, and alone decide about the path: a rank that is
 * not the root may have anything for its receive arguments, and those are not looked at. Bytes travel,
 * since ranks may describe their blocks by different types.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "calls/coll_flash_packed.h"

#include <stdlib.h>

typedef mca_coll_flash_arguments_t arguments_t;

/* Where the root has its own block in the end, or its packed form. */
static char *own_place(const mca_coll_flash_request_t *request, const flash_op_params_t *params)
{
    return (char *) params->output +
           mca_coll_flash_place_of(&params->schedule.blocks, ompi_comm_rank(request->module->comm));
}

/* In place at the root: the own block is where it is to be, unless that is packed memory. */
static int place_own(mca_coll_flash_request_t *request, const mca_coll_flash_layout_t *layout,
                     const void *buffer, flash_op_params_t *params)
{
    int rank = ompi_comm_rank(request->module->comm);
    char *own = own_place(request, params);

    params->input = own;
    return request->scratch == NULL
               ? MPI_SUCCESS
               : mca_coll_flash_pack(mca_coll_flash_block_of(layout, buffer, rank),
                                     mca_coll_flash_block_count(layout, rank), layout->type, own);
}

/*
 * A block of a type with gaps is packed: at the root, right to its place, which the processor must
 * reach.
 */
static int place_packed(mca_coll_flash_request_t *request, const mca_coll_flash_layout_t *layout,
                        const void *buffer, bool root, bool device_output,
                        flash_op_params_t *params)
{
    size_t bytes = mca_coll_flash_block_bytes(layout);
    char *packed;

    if (root && device_output) {
        return mca_coll_flash_refuse_gaps();
    }
    if (!root) {
        request->packed = malloc(bytes);
        if (request->packed == NULL) {
            return MPI_ERR_NO_MEM;
        }
    }
    packed = root ? own_place(request, params) : request->packed;
    params->input = packed;
    return mca_coll_flash_pack(buffer, layout->count, layout->type, packed);
}

static int place_sent(mca_coll_flash_request_t *request, const mca_coll_flash_layout_t *layout,
                      const void *buffer, bool root, bool device_output, flash_op_params_t *params,
                      const void **on_device)
{
    int rc = mca_coll_flash_find_block(layout, buffer, on_device);

    params->input = (const char *) buffer + layout->true_lb;
    return rc != MPI_SUCCESS || mca_coll_flash_is_dense(layout->type, layout->count)
               ? rc
               : place_packed(request, layout, buffer, root, device_output, params);
}

static int place(mca_coll_flash_request_t *request, const arguments_t *a, flash_op_params_t *params)
{
    int rank = ompi_comm_rank(request->module->comm);
    bool root = rank == a->root, in_place = a->sendbuf == MPI_IN_PLACE;
    mca_coll_flash_layout_t received = mca_coll_flash_roots_layout(a);
    size_t bytes = mca_coll_flash_bytes_of_block(&received, rank);
    mca_coll_flash_layout_t sent =
        in_place ? received : mca_coll_flash_layout_of(a->sendtype, a->sendcount);
    const void *device_input = NULL, *device_output = NULL;
    int rc = MPI_SUCCESS;

    if (!in_place && mca_coll_flash_block_bytes(&sent) != bytes) {
        return MPI_ERR_TRUNCATE;
    }
    if (root) {
        rc = mca_coll_flash_place_received(request, &received, a->recvbuf, params, &device_output);
    }
    if (rc == MPI_SUCCESS) {
        rc = mca_coll_flash_set_side(request, &received, request->scratch != NULL,
                                     &params->schedule.blocks);
    }
    if (rc == MPI_SUCCESS && bytes > 0) {
        rc = in_place ? place_own(request, &received, a->recvbuf, params)
                      : place_sent(request, &sent, a->sendbuf, root, device_output != NULL, params,
                                   &device_input);
    }
    return rc == MPI_SUCCESS
               ? mca_coll_flash_stage(request, device_input, device_output, false, false)
               : rc;
}

int mca_coll_flash_start_gather(mca_coll_flash_module_t *module, mca_coll_flash_ticket_t ticket,
                                const arguments_t *a, mca_coll_flash_path_t path,
                                ompi_request_t **request)
{
    (void) path;
    return mca_coll_flash_start_bytes(module, ticket, a, place, request);
}

/* ------------------------------------------------------------ MPI's functions */

static int pass_on(mca_coll_flash_module_t *module, const arguments_t *a, ompi_request_t **request)
{
    return module->previous.igather(a->sendbuf, a->sendcount, a->sendtype, a->recvbuf, a->recvcount,
                                    a->recvtype, a->root, module->comm, request,
                                    module->previous.igather_module);
}

static int pass_on_each_time(mca_coll_flash_module_t *module, const arguments_t *a,
                             struct ompi_info_t *info, ompi_request_t **request)
{
    return module->previous.gather_init(a->sendbuf, a->sendcount, a->sendtype, a->recvbuf,
                                        a->recvcount, a->recvtype, a->root, module->comm, info,
                                        request, module->previous.gather_init_module);
}

static const mca_coll_flash_collective_t collective = {
    .start = mca_coll_flash_start_gather, .pass_on = pass_on, .init = pass_on_each_time};

/*
 * What a rank may leave undefined is not read: of a rank that is not the root, the receive side, of the
 * root in place, the type and count of the send side. Those of the other side take its place, which
 * describe the same block.
 */
static arguments_t arguments_of(const void *sendbuf, flash_count_t sendcount, MPI_Datatype sendtype,
                                void *recvbuf, flash_count_t recvcount, MPI_Datatype recvtype,
                                int root, ompi_communicator_t *comm)
{
    bool receives = ompi_comm_rank(comm) == root, in_place = sendbuf == MPI_IN_PLACE;

    return (arguments_t){.kind = FLASH_GATHER,
                         .sendbuf = sendbuf,
                         .sendcount = in_place ? recvcount : sendcount,
                         .sendtype = in_place ? recvtype : sendtype,
                         .recvbuf = receives ? recvbuf : NULL,
                         .recvcount = receives ? recvcount : sendcount,
                         .recvtype = receives ? recvtype : sendtype,
                         .root = root};
}

int mca_coll_flash_igather(const void *sendbuf, flash_count_t sendcount, MPI_Datatype sendtype,
                           void *recvbuf, flash_count_t recvcount, MPI_Datatype recvtype, int root,
                           ompi_communicator_t *comm, ompi_request_t **request,
                           mca_coll_base_module_t *base)
{
    arguments_t arguments =
        arguments_of(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm);

    return mca_coll_flash_start_call(&collective, "Igather", &arguments, base, request);
}

int mca_coll_flash_gather_init(const void *sendbuf, flash_count_t sendcount, MPI_Datatype sendtype,
                               void *recvbuf, flash_count_t recvcount, MPI_Datatype recvtype,
                               int root, ompi_communicator_t *comm, struct ompi_info_t *info,
                               ompi_request_t **request, mca_coll_base_module_t *base)
{
    arguments_t arguments =
        arguments_of(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm);

    return mca_coll_flash_make_persistent(&collective, "Gather_init", &arguments, info, base,
                                          request);
}
