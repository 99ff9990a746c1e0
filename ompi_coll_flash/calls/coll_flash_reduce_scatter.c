/*
 * coll_flash_reduce_scatter.c: MPI's arguments to a reduce-scatter ring's.
 *
 * Blocks are counted in elements of the datatype and laid out by its extent. MPI has all ranks give
 * the same datatype (MPI 3.1, section 5.9.1), so that its layout may decide about the path.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "calls/coll_flash_calls.h"
#include "ring/coll_flash_ring.h"

mca_coll_flash_reason_t mca_coll_flash_reduce_reason(MPI_Datatype datatype, MPI_Op op)
{
    if (!ompi_op_is_commute(op)) {
        return FLASH_NOT_COMMUTATIVE;
    }
    if (op == MPI_REPLACE || op == MPI_NO_OP) {
        return FLASH_NOT_OF_REDUCTIONS;
    }
    if (ompi_op_is_intrinsic(op)) {
        return ompi_datatype_is_predefined(datatype) ? FLASH_NO_REASON : FLASH_NOT_PREDEFINED;
    }
    return mca_coll_flash_is_solid(datatype) ? FLASH_NO_REASON : FLASH_TYPE_WITH_GAPS;
}

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

flash_kind_t mca_coll_flash_reduce_scatter_kind(const mca_coll_flash_module_t *module,
                                                const mca_coll_flash_settings_t *settings)
{
    bool fits = mca_coll_flash_may_exchange(module->comm);

    if (settings->algorithm != FLASH_PAIRWISE) {
        return FLASH_REDUCE_SCATTER;
    }
    FLASH_VERBOSE(2, "coll:flash: %s",
                  fits ? "pairwise, in place of the ring"
                       : "by the ring: too many ranks to be pairwise");
    return fits ? FLASH_PAIRWISE_REDUCE_SCATTER : FLASH_REDUCE_SCATTER;
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

/* Lengths of unequal blocks, and where they begin in the input. */
static int unequal_blocks(mca_coll_flash_request_t *request, flash_counts_t recvcounts,
                          flash_blocks_t *blocks)
{
    int size = ompi_comm_size(request->module->comm);
    ptrdiff_t displ = 0;

    if (mca_coll_flash_request_blocks(request, blocks) != MPI_SUCCESS) {
        return MPI_ERR_NO_MEM;
    }
    for (int rank = 0; rank < size; rank++) {
        request->counts[rank] = (size_t) recvcounts[rank];
        request->displs[rank] = displ;
        displ += (ptrdiff_t) recvcounts[rank];
    }
    return MPI_SUCCESS;
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
        rc = unequal_blocks(made, recvcounts, &params.schedule.blocks);
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
