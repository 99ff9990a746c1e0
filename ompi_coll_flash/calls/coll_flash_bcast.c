/*
 * coll_flash_bcast.c: MPI's broadcast: which algorithm serves it, and its arguments as a chain's.
 *
 * Ranks may describe the block by different types and counts, as long as the signatures agree. So
 * bytes travel, and a type with gaps is packed. Of the arguments, the root and the size of the
 * signature are equal on all ranks: nothing else may decide about the path.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "calls/coll_flash_packed.h"

#include <stdlib.h>

typedef mca_coll_flash_arguments_t arguments_t;

static bool is_root(const arguments_t *a, ompi_communicator_t *comm)
{
    return ompi_comm_rank(comm) == a->root;
}

/* Where this rank has the block: to be read at the root, to be written elsewhere. */
static void *buffer_of(const arguments_t *a, ompi_communicator_t *comm)
{
    return is_root(a, comm) ? (void *) (uintptr_t) a->sendbuf : a->recvbuf;
}

static size_t signature_bytes(flash_count_t count, MPI_Datatype datatype)
{
    size_t size;

    ompi_datatype_type_size(datatype, &size);
    return size * (size_t) count;
}

/* The block of a type with gaps, in packed memory. */
static int place_packed(mca_coll_flash_request_t *request, const mca_coll_flash_layout_t *layout,
                        void *buffer, bool root, flash_op_params_t *params)
{
    int rc = MPI_SUCCESS;

    if (!root) {
        rc = mca_coll_flash_place_packed_block(request, layout, buffer, params);
        params->input = params->output;
        return rc;
    }
    request->packed = malloc(params->schedule.blocks.count);
    if (request->packed == NULL) {
        return MPI_ERR_NO_MEM;
    }
    params->input = params->output = request->packed;
    return mca_coll_flash_pack(buffer, layout->count, layout->type, request->packed);
}

static int place(mca_coll_flash_request_t *request, const arguments_t *a, flash_op_params_t *params)
{
    ompi_communicator_t *comm = request->module->comm;
    mca_coll_flash_layout_t layout = {.type = a->recvtype, .count = a->recvcount};
    bool root = is_root(a, comm);
    void *buffer = buffer_of(a, comm), *on_device;
    char *first;

    mca_coll_flash_read_type(layout.type, &layout.size, &layout.extent, &layout.true_lb);
    first = (char *) buffer + layout.true_lb;
    params->schedule.blocks.count = signature_bytes(layout.count, layout.type);
    params->input = params->output = first;
    if (params->schedule.blocks.count == 0) {
        return MPI_SUCCESS;
    }
    if (mca_coll_flash_check_buffer(first) != MPI_SUCCESS) {
        return MPI_ERR_BUFFER;
    }
    on_device = mca_coll_flash_is_on_device(first) ? first : NULL;
    if (mca_coll_flash_is_dense(layout.type, layout.count)) {
        return mca_coll_flash_stage(request, root ? on_device : NULL, root ? NULL : on_device,
                                    false, false);
    }
    return on_device != NULL ? mca_coll_flash_refuse_gaps()
                             : place_packed(request, &layout, buffer, root, params);
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
    return module->previous.ibcast(buffer_of(a, module->comm), a->recvcount, a->recvtype, a->root,
                                   module->comm, request, module->previous.ibcast_module);
}

static int block(mca_coll_flash_module_t *module, const arguments_t *a)
{
    int rc;

    FLASH_BLOCK_BELOW(module, bcast, rc, buffer_of(a, module->comm), a->recvcount, a->recvtype,
                      a->root);
    return rc;
}

static int pass_on_each_time(mca_coll_flash_module_t *module, const arguments_t *a,
                             struct ompi_info_t *info, ompi_request_t **request)
{
    return module->previous.bcast_init(buffer_of(a, module->comm), a->recvcount, a->recvtype,
                                       a->root, module->comm, info, request,
                                       module->previous.bcast_init_module);
}

static const mca_coll_flash_collective_t collective = {
    .start = start, .pass_on = pass_on, .block = block, .init = pass_on_each_time};

/* The root has a side that is sent, and all others one that is received. */
static arguments_t arguments_of(void *buffer, flash_count_t count, MPI_Datatype datatype, int root,
                                ompi_communicator_t *comm)
{
    bool sends = ompi_comm_rank(comm) == root;

    return (arguments_t){.kind = FLASH_BCAST,
                         .sendbuf = sends ? buffer : NULL,
                         .sendcount = sends ? count : 0,
                         .sendtype = datatype,
                         .recvbuf = sends ? NULL : buffer,
                         .recvcount = count,
                         .recvtype = datatype,
                         .root = root};
}

/*
 * While ranks make an inter-communicator, or a communicator from one, Open MPI agrees on its number,
 * an int, by broadcasts of this size, to which the rule of coll_flash_allreduce.c applies: none may
 * take an operation id. A type cannot tell them, since another rank may name another one.
 */
static bool may_be_open_mpis_own(size_t bytes)
{
    return bytes == sizeof(int);
}

/*
 * Open MPI ends a call whose count is 0 before it comes here. Another rank may have elements without
 * data, and come here: nothing may depend on that, so that the call ends at once here, too.
 */
static bool is_empty(flash_count_t count, MPI_Datatype datatype)
{
    return signature_bytes(count, datatype) == 0;
}

/* Open MPI's own blocking calls, too, come in an order that is the same on all ranks. */
int mca_coll_flash_bcast(void *buffer, flash_count_t count, MPI_Datatype datatype, int root,
                         ompi_communicator_t *comm, mca_coll_base_module_t *base)
{
    arguments_t arguments = arguments_of(buffer, count, datatype, root, comm);

    return is_empty(count, datatype) ? MPI_SUCCESS
                                     : mca_coll_flash_block(&collective, "Bcast", &arguments, base);
}

int mca_coll_flash_ibcast(void *buffer, flash_count_t count, MPI_Datatype datatype, int root,
                          ompi_communicator_t *comm, ompi_request_t **request,
                          mca_coll_base_module_t *base)
{
    arguments_t arguments = arguments_of(buffer, count, datatype, root, comm);

    if (is_empty(count, datatype)) {
        *request = &ompi_request_empty;
        return MPI_SUCCESS;
    }
    return may_be_open_mpis_own(signature_bytes(count, datatype))
               ? mca_coll_flash_start_bounced(&collective, (mca_coll_flash_module_t *) base,
                                              &arguments, FLASH_FALLBACK, request)
               : mca_coll_flash_start_call(&collective, "Ibcast", &arguments, base, request);
}

int mca_coll_flash_bcast_init(void *buffer, flash_count_t count, MPI_Datatype datatype, int root,
                              ompi_communicator_t *comm, struct ompi_info_t *info,
                              ompi_request_t **request, mca_coll_base_module_t *base)
{
    arguments_t arguments = arguments_of(buffer, count, datatype, root, comm);

    return mca_coll_flash_make_persistent(&collective, "Bcast_init", &arguments, info, base,
                                          request);
}
