/*
 * coll_flash_reduce_scatter.c: MPI's reduce-scatters: which algorithm serves each, and its
 * arguments as an operation's.
 *
 * Blocks are counted in elements of the datatype and laid out by its extent. MPI has all ranks give
 * the same datatype (MPI 3.1, section 5.9.1), so that its layout may decide about the path.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "calls/coll_flash_calls.h"

/*
 * Runs on the progress thread, too (but for the user's operations), so that it must not be
 * MPI_Reduce_local(), which counts references without atomics at MPI_THREAD_SINGLE.
 */
static int combine(void *arg, const void *in, void *inout, size_t count)
{
    const mca_coll_flash_request_t *request = arg;

    ompi_op_reduce(request->op, (void *) (uintptr_t) in, inout, (int) count, request->datatype);
    return MPI_SUCCESS;
}

static flash_kind_t kind_of(mca_coll_flash_path_t path, const mca_coll_flash_module_t *module,
                            const mca_coll_flash_settings_t *settings)
{
    switch (path) {
    case FLASH_PAIRWISE:
        return FLASH_PAIRWISE_REDUCE_SCATTER;
    case FLASH_SHM:
    case FLASH_RECDBL:
        return FLASH_REDUCE_SCATTER;
    default:
        return mca_coll_flash_reduce_scatter_kind(module, settings);
    }
}

void mca_coll_flash_reduce_by(mca_coll_flash_request_t *request, MPI_Datatype datatype, MPI_Op op,
                              flash_op_params_t *params)
{
    flash_gpu_operator_t operation;
    flash_gpu_type_t type;
    ptrdiff_t extent;

    ompi_datatype_type_extent(datatype, &extent);
    params->element = (size_t) extent;
    params->combine = combine;
    params->combine_arg = request;
    params->combine_is_users =
        !ompi_op_is_intrinsic(op) && !mca_coll_flash_float16_find(op, &operation, &type);
    request->datatype = datatype;
    request->op = op;
}

/* The result of a call in place lies where input lay that was needed until now. */
static int copy_result(mca_coll_flash_request_t *request)
{
    return mca_coll_flash_copy_back(request, request->deferred.recvbuf, request->scratch,
                                    request->deferred.own_bytes);
}

/* `any`: some block is not empty. A producer needs no input. */
static int place_in_out(mca_coll_flash_request_t *request, flash_op_params_t *params,
                        const void *sendbuf, void *recvbuf, size_t own_count, bool any)
{
    bool in_place = sendbuf == MPI_IN_PLACE;
    bool produces = any && request->compute.produce != NULL && request->compute.on_stream;
    const void *device_input = NULL, *device_output = NULL;
    int rc;

    params->input = in_place ? recvbuf : sendbuf;
    params->output = recvbuf;
    if (any && request->compute.produce == NULL) {
        if (mca_coll_flash_check_buffer(params->input) != MPI_SUCCESS) {
            return MPI_ERR_BUFFER;
        }
        device_input = mca_coll_flash_is_on_device(params->input) ? params->input : NULL;
    }
    if (own_count > 0) {
        if (mca_coll_flash_check_buffer(recvbuf) != MPI_SUCCESS) {
            return MPI_ERR_BUFFER;
        }
        device_output = mca_coll_flash_is_on_device(recvbuf) && !in_place ? recvbuf : NULL;
    }
    if (in_place) {
        request->deferred.own_bytes = own_count * params->element;
        request->deferred.recvbuf = recvbuf;
        request->scratch = malloc(request->deferred.own_bytes + 1);
        if (request->scratch == NULL) {
            return MPI_ERR_NO_MEM;
        }
        params->output = request->scratch;
        request->finish = copy_result;
    }
    rc = mca_coll_flash_stage(request, device_input, device_output, produces, false);
    if (rc == MPI_SUCCESS) {
        mca_coll_flash_add_on_device(request, device_input, device_output);
    }
    return rc;
}

int mca_coll_flash_start_reduce_scatter(mca_coll_flash_module_t *module,
                                        mca_coll_flash_ticket_t ticket, const void *sendbuf,
                                        void *recvbuf, flash_count_t recvcount,
                                        flash_counts_t recvcounts, MPI_Datatype datatype, MPI_Op op,
                                        const mca_coll_flash_compute_t *compute,
                                        mca_coll_flash_path_t path, ompi_request_t **request)
{
    flash_kind_t kind = kind_of(path, module, ticket.settings);
    mca_coll_flash_request_t *made = mca_coll_flash_request_new(module, ticket, kind);
    flash_op_params_t params = {.input = NULL};
    bool any = mca_coll_flash_bytes(recvcount, recvcounts, datatype, module->comm) > 0;
    int rc = MPI_SUCCESS;

    if (made == NULL) {
        return MPI_ERR_NO_MEM;
    }
    /* By its cost: too small for a thread to be woken. */
    params.no_wakeup = path == FLASH_PAIRWISE && ticket.settings->algorithm != FLASH_PAIRWISE;
    mca_coll_flash_reduce_by(made, datatype, op, &params);
    if (kind == FLASH_PAIRWISE_REDUCE_SCATTER) {
        mca_coll_flash_float16_widen(op, &params);
    }
    if (compute != NULL) {
        made->compute = *compute;
    }
    params.schedule.blocks.count = (size_t) recvcount;
    if (recvcounts != NULL) {
        const mca_coll_flash_side_t side = {.counts = recvcounts, .element = 1};

        rc = mca_coll_flash_request_sides(made, &side, 1, &params.schedule.blocks);
        recvcount = recvcounts[ompi_comm_rank(module->comm)];
    }
    if (rc == MPI_SUCCESS) {
        rc = place_in_out(made, &params, sendbuf, recvbuf, (size_t) recvcount, any);
    }
    if (rc != MPI_SUCCESS) {
        return mca_coll_flash_request_refuse(made, rc, request);
    }
    return mca_coll_flash_request_start(made, &params, request);
}

/* ------------------------------------------------------------ MPI's functions */

typedef mca_coll_flash_arguments_t arguments_t;

static arguments_t arguments_of(const void *sendbuf, void *recvbuf, flash_count_t recvcount,
                                flash_counts_t recvcounts, MPI_Datatype datatype, MPI_Op op)
{
    return (arguments_t){.kind = FLASH_REDUCE_SCATTER,
                         .sendbuf = sendbuf,
                         .recvbuf = recvbuf,
                         .recvcount = recvcount,
                         .recvcounts = recvcounts,
                         .recvtype = datatype,
                         .op = op};
}

static int start(mca_coll_flash_module_t *module, mca_coll_flash_ticket_t ticket,
                 const arguments_t *a, mca_coll_flash_path_t path, ompi_request_t **request)
{
    return mca_coll_flash_start_reduce_scatter(module, ticket, a->sendbuf, a->recvbuf, a->recvcount,
                                               a->recvcounts, a->recvtype, a->op, NULL, path,
                                               request);
}

static int pass_on(mca_coll_flash_module_t *module, const arguments_t *a, ompi_request_t **request)
{
    const mca_coll_flash_previous_t *previous = &module->previous;

    if (a->recvcounts == NULL) {
        return previous->ireduce_scatter_block(a->sendbuf, a->recvbuf, a->recvcount, a->recvtype,
                                               a->op, module->comm, request,
                                               previous->ireduce_scatter_block_module);
    }
    return previous->ireduce_scatter(a->sendbuf, a->recvbuf, FLASH_COUNTS(a->recvcounts),
                                     a->recvtype, a->op, module->comm, request,
                                     previous->ireduce_scatter_module);
}

static int block(mca_coll_flash_module_t *module, const arguments_t *a)
{
    int rc;

    if (a->recvcounts == NULL) {
        FLASH_BLOCK_BELOW(module, reduce_scatter_block, rc, a->sendbuf, a->recvbuf, a->recvcount,
                          a->recvtype, a->op);
    } else {
        FLASH_BLOCK_BELOW(module, reduce_scatter, rc, a->sendbuf, a->recvbuf,
                          FLASH_COUNTS(a->recvcounts), a->recvtype, a->op);
    }
    return rc;
}

static int pass_on_each_time(mca_coll_flash_module_t *module, const arguments_t *a,
                             struct ompi_info_t *info, ompi_request_t **request)
{
    const mca_coll_flash_previous_t *previous = &module->previous;

    if (a->recvcounts == NULL) {
        return previous->reduce_scatter_block_init(a->sendbuf, a->recvbuf, a->recvcount,
                                                   a->recvtype, a->op, module->comm, info, request,
                                                   previous->reduce_scatter_block_init_module);
    }
    return previous->reduce_scatter_init(a->sendbuf, a->recvbuf, FLASH_COUNTS(a->recvcounts),
                                         a->recvtype, a->op, module->comm, info, request,
                                         previous->reduce_scatter_init_module);
}

static const mca_coll_flash_collective_t collective = {
    .start = start, .pass_on = pass_on, .block = block, .init = pass_on_each_time};

int mca_coll_flash_reduce_scatter_block(const void *sendbuf, void *recvbuf, flash_count_t recvcount,
                                        MPI_Datatype datatype, MPI_Op op, ompi_communicator_t *comm,
                                        mca_coll_base_module_t *base)
{
    arguments_t arguments = arguments_of(sendbuf, recvbuf, recvcount, NULL, datatype, op);

    (void) comm;
    return mca_coll_flash_block(&collective, "Reduce_scatter_block", &arguments, base);
}

int mca_coll_flash_reduce_scatter(const void *sendbuf, void *recvbuf, flash_counts_t recvcounts,
                                  MPI_Datatype datatype, MPI_Op op, ompi_communicator_t *comm,
                                  mca_coll_base_module_t *base)
{
    arguments_t arguments = arguments_of(sendbuf, recvbuf, 0, recvcounts, datatype, op);

    (void) comm;
    return mca_coll_flash_block(&collective, "Reduce_scatter", &arguments, base);
}

int mca_coll_flash_ireduce_scatter_block(const void *sendbuf, void *recvbuf,
                                         flash_count_t recvcount, MPI_Datatype datatype, MPI_Op op,
                                         ompi_communicator_t *comm, ompi_request_t **request,
                                         mca_coll_base_module_t *base)
{
    arguments_t arguments = arguments_of(sendbuf, recvbuf, recvcount, NULL, datatype, op);

    (void) comm;
    return mca_coll_flash_start_call(&collective, "Ireduce_scatter_block", &arguments, base,
                                     request);
}

int mca_coll_flash_ireduce_scatter(const void *sendbuf, void *recvbuf, flash_counts_t recvcounts,
                                   MPI_Datatype datatype, MPI_Op op, ompi_communicator_t *comm,
                                   ompi_request_t **request, mca_coll_base_module_t *base)
{
    arguments_t arguments = arguments_of(sendbuf, recvbuf, 0, recvcounts, datatype, op);

    (void) comm;
    return mca_coll_flash_start_call(&collective, "Ireduce_scatter", &arguments, base, request);
}

int mca_coll_flash_reduce_scatter_init(const void *sendbuf, void *recvbuf,
                                       flash_counts_t recvcounts, MPI_Datatype datatype, MPI_Op op,
                                       ompi_communicator_t *comm, struct ompi_info_t *info,
                                       ompi_request_t **request, mca_coll_base_module_t *base)
{
    arguments_t arguments = arguments_of(sendbuf, recvbuf, 0, recvcounts, datatype, op);

    (void) comm;
    return mca_coll_flash_make_persistent(&collective, "Reduce_scatter_init", &arguments, info,
                                          base, request);
}

int mca_coll_flash_reduce_scatter_block_init(const void *sendbuf, void *recvbuf,
                                             flash_count_t recvcount, MPI_Datatype datatype,
                                             MPI_Op op, ompi_communicator_t *comm,
                                             struct ompi_info_t *info, ompi_request_t **request,
                                             mca_coll_base_module_t *base)
{
    arguments_t arguments = arguments_of(sendbuf, recvbuf, recvcount, NULL, datatype, op);

    (void) comm;
    return mca_coll_flash_make_persistent(&collective, "Reduce_scatter_block_init", &arguments,
                                          info, base, request);
}
