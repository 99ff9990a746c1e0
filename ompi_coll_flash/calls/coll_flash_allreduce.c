/*
 * coll_flash_allreduce.c: MPI's allreduce: which algorithm serves it, and its arguments as a
 * ring's: a reduce-scatter whose sums go on around the ring once more.
 *
 * The vector is cut into as many blocks as there are ranks, of whole rows, and each stands for the
 * rank of its number. MPI has all ranks give the same count, datatype and operation (MPI 3.1,
 * section 5.9.1), so that these may decide about the path.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "calls/coll_flash_calls.h"

flash_range_t mca_coll_flash_allreduce_block(size_t count, size_t row, int ranks, int rank)
{
    /* A vector is cut into blocks as a block is into pieces. */
    flash_schedule_t vector = {.ring = {.nranks = 2},
                               .pieces = (uint32_t) ranks,
                               .row = row,
                               .segment_elements = SIZE_MAX,
                               .blocks = {.count = count}};
    flash_split_t split = flash_schedule_split(&vector, 0);

    return (uint32_t) rank < split.pieces ? flash_split_piece(&split, (uint32_t) rank)
                                          : (flash_range_t){.offset = count, .count = 0};
}

static int cut(mca_coll_flash_request_t *request, size_t count, flash_blocks_t *blocks)
{
    int size = ompi_comm_size(request->module->comm);
    size_t row = request->compute.row > 1 ? (size_t) request->compute.row : 1;

    if (mca_coll_flash_request_blocks(request, 1, blocks) != MPI_SUCCESS) {
        return MPI_ERR_NO_MEM;
    }
    for (int rank = 0; rank < size; rank++) {
        flash_range_t range = mca_coll_flash_allreduce_block(count, row, size, rank);

        request->counts[rank] = range.count;
        request->displs[rank] = (ptrdiff_t) range.offset;
    }
    return MPI_SUCCESS;
}

/* A producer needs no input. */
static int place(mca_coll_flash_request_t *request, const void *sendbuf, void *recvbuf,
                 size_t count, flash_op_params_t *params)
{
    bool produces = request->compute.produce != NULL;
    const void *device_input = NULL, *device_output = NULL;
    int rc = cut(request, count, &params->schedule.blocks);

    params->input = sendbuf == MPI_IN_PLACE ? recvbuf : sendbuf;
    params->output = recvbuf;
    if (rc == MPI_SUCCESS && count > 0 && !produces) {
        rc = mca_coll_flash_check_buffer(params->input);
        device_input = mca_coll_flash_is_on_device(params->input) ? params->input : NULL;
    }
    if (rc == MPI_SUCCESS && count > 0) {
        rc = mca_coll_flash_check_buffer(recvbuf);
        device_output = mca_coll_flash_is_on_device(recvbuf) ? recvbuf : NULL;
    }
    if (rc == MPI_SUCCESS) {
        rc = mca_coll_flash_stage(request, device_input, device_output,
                                  produces && count > 0 && request->compute.on_stream, false);
    }
    if (rc == MPI_SUCCESS) {
        mca_coll_flash_add_on_device(request, device_input, device_output);
    }
    return rc;
}

int mca_coll_flash_start_allreduce(mca_coll_flash_module_t *module, mca_coll_flash_ticket_t ticket,
                                   const void *sendbuf, void *recvbuf, flash_count_t count,
                                   MPI_Datatype datatype, MPI_Op op,
                                   const mca_coll_flash_compute_t *compute,
                                   ompi_request_t **request)
{
    mca_coll_flash_request_t *made = mca_coll_flash_request_new(module, ticket, FLASH_ALLREDUCE);
    flash_op_params_t params = {.input = NULL};
    int rc;

    if (made == NULL) {
        return MPI_ERR_NO_MEM;
    }
    if (compute != NULL) {
        made->compute = *compute;
    }
    mca_coll_flash_reduce_by(made, datatype, op, &params);
    rc = place(made, sendbuf, recvbuf, params.element == 0 ? 0 : (size_t) count, &params);
    if (rc != MPI_SUCCESS) {
        return mca_coll_flash_request_refuse(made, rc, request);
    }
    return mca_coll_flash_request_start(made, &params, request);
}

/* ------------------------------------------------------------ MPI's functions */

typedef mca_coll_flash_arguments_t arguments_t;

static arguments_t arguments_of(const void *sendbuf, void *recvbuf, flash_count_t count,
                                MPI_Datatype datatype, MPI_Op op)
{
    return (arguments_t){.kind = FLASH_ALLREDUCE,
                         .sendbuf = sendbuf,
                         .recvbuf = recvbuf,
                         .recvcount = count,
                         .recvtype = datatype,
                         .op = op};
}

static int start(mca_coll_flash_module_t *module, mca_coll_flash_ticket_t ticket,
                 const arguments_t *a, mca_coll_flash_path_t path, ompi_request_t **request)
{
    (void) path;
    return mca_coll_flash_start_allreduce(module, ticket, a->sendbuf, a->recvbuf, a->recvcount,
                                          a->recvtype, a->op, NULL, request);
}

static int pass_on(mca_coll_flash_module_t *module, const arguments_t *a, ompi_request_t **request)
{
    return module->previous.iallreduce(a->sendbuf, a->recvbuf, a->recvcount, a->recvtype, a->op,
                                       module->comm, request, module->previous.iallreduce_module);
}

static int block(mca_coll_flash_module_t *module, const arguments_t *a)
{
    int rc;

    FLASH_BLOCK_BELOW(module, allreduce, rc, a->sendbuf, a->recvbuf, a->recvcount, a->recvtype,
                      a->op);
    return rc;
}

static int pass_on_each_time(mca_coll_flash_module_t *module, const arguments_t *a,
                             struct ompi_info_t *info, ompi_request_t **request)
{
    return module->previous.allreduce_init(a->sendbuf, a->recvbuf, a->recvcount, a->recvtype, a->op,
                                           module->comm, info, request,
                                           module->previous.allreduce_init_module);
}

static const mca_coll_flash_collective_t collective = {
    .start = start, .pass_on = pass_on, .block = block, .init = pass_on_each_time};

/* Open MPI's own blocking calls, too, come in an order that is the same on all ranks. */
int mca_coll_flash_allreduce(const void *sendbuf, void *recvbuf, flash_count_t count,
                             MPI_Datatype datatype, MPI_Op op, ompi_communicator_t *comm,
                             mca_coll_base_module_t *base)
{
    arguments_t arguments = arguments_of(sendbuf, recvbuf, count, datatype, op);

    (void) comm;
    return mca_coll_flash_block(&collective, "Allreduce", &arguments, base);
}

/*
 * While ranks make a communicator, Open MPI agrees on its number by calls of this form, each of which
 * may come before or behind a collective that the user has called meanwhile (MPI_Comm_idup, or
 * another thread): the order may differ from rank to rank, so that none may take an operation id.
 */
static bool may_be_open_mpis_own(const arguments_t *a)
{
    return a->recvcount == 1 && a->recvtype == MPI_INT && (a->op == MPI_MAX || a->op == MPI_MIN);
}

int mca_coll_flash_iallreduce(const void *sendbuf, void *recvbuf, flash_count_t count,
                              MPI_Datatype datatype, MPI_Op op, ompi_communicator_t *comm,
                              ompi_request_t **request, mca_coll_base_module_t *base)
{
    arguments_t arguments = arguments_of(sendbuf, recvbuf, count, datatype, op);

    (void) comm;
    return may_be_open_mpis_own(&arguments)
               ? mca_coll_flash_start_bounced(&collective, (mca_coll_flash_module_t *) base,
                                              &arguments, FLASH_FALLBACK, request)
               : mca_coll_flash_start_call(&collective, "Iallreduce", &arguments, base, request);
}

int mca_coll_flash_allreduce_init(const void *sendbuf, void *recvbuf, flash_count_t count,
                                  MPI_Datatype datatype, MPI_Op op, ompi_communicator_t *comm,
                                  struct ompi_info_t *info, ompi_request_t **request,
                                  mca_coll_base_module_t *base)
{
    arguments_t arguments = arguments_of(sendbuf, recvbuf, count, datatype, op);

    (void) comm;
    return mca_coll_flash_make_persistent(&collective, "Allreduce_init", &arguments, info, base,
                                          request);
}
