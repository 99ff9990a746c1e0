/*
 * coll_flash_reduce.c: MPI's reduce: which algorithm serves it, and its arguments as a chain's.
 *
 * MPI has all ranks give the same count, datatype, operation and root (MPI 3.1, section 5.9.1), so
 * that these may decide about the path. The receive buffer is the root's alone: elsewhere its
 * argument may be anything, and is not looked at.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "calls/coll_flash_calls.h"

typedef mca_coll_flash_arguments_t arguments_t;

/* `on_device`: the same address, if it is in a device's memory; or NULL. */
static int check(const void *buffer, const void **on_device)
{
    *on_device = mca_coll_flash_is_on_device(buffer) ? buffer : NULL;
    return mca_coll_flash_check_buffer(buffer);
}

/*
 * Where there is no result, sums are made in memory of flash's. A device adds what lies there: it is
 * told the input's place for the one of the result, to which nothing is written.
 */
static int place(mca_coll_flash_request_t *request, const arguments_t *a, flash_op_params_t *params)
{
    bool root = ompi_comm_rank(request->module->comm) == a->root;
    const void *device_input = NULL, *device_output = NULL;
    int rc = MPI_SUCCESS;

    params->schedule.blocks.count = params->element == 0 ? 0 : (size_t) a->recvcount;
    params->input = a->sendbuf == MPI_IN_PLACE ? a->recvbuf : a->sendbuf;
    params->output = root ? a->recvbuf : NULL;
    if (params->schedule.blocks.count > 0) {
        rc = check(params->input, &device_input);
        if (rc == MPI_SUCCESS && root) {
            rc = check(params->output, &device_output);
        }
    }
    device_output = root ? device_output : device_input;
    if (rc == MPI_SUCCESS) {
        rc = mca_coll_flash_stage(request, device_input, device_output, false, false);
    }
    if (rc == MPI_SUCCESS) {
        mca_coll_flash_add_on_device(request, device_input, device_output);
    }
    return rc;
}

static int start(mca_coll_flash_module_t *module, mca_coll_flash_ticket_t ticket,
                 const arguments_t *a, mca_coll_flash_path_t path, ompi_request_t **request)
{
    flash_op_params_t params = {.input = NULL};
    mca_coll_flash_request_t *made;
    int rc;

    (void) path;
    ticket.part = mca_coll_flash_part_of(module, a, NULL);
    made = mca_coll_flash_request_new(module, ticket, FLASH_REDUCE);
    if (made == NULL) {
        return MPI_ERR_NO_MEM;
    }
    mca_coll_flash_reduce_by(made, a->recvtype, a->op, &params);
    rc = place(made, a, &params);
    return rc != MPI_SUCCESS ? mca_coll_flash_request_refuse(made, rc, request)
                             : mca_coll_flash_request_start(made, &params, request);
}

/* ------------------------------------------------------------ MPI's functions */

static int pass_on(mca_coll_flash_module_t *module, const arguments_t *a, ompi_request_t **request)
{
    return module->previous.ireduce(a->sendbuf, a->recvbuf, a->recvcount, a->recvtype, a->op,
                                    a->root, module->comm, request,
                                    module->previous.ireduce_module);
}

static int pass_on_each_time(mca_coll_flash_module_t *module, const arguments_t *a,
                             struct ompi_info_t *info, ompi_request_t **request)
{
    return module->previous.reduce_init(a->sendbuf, a->recvbuf, a->recvcount, a->recvtype, a->op,
                                        a->root, module->comm, info, request,
                                        module->previous.reduce_init_module);
}

static const mca_coll_flash_collective_t collective = {
    .start = start, .pass_on = pass_on, .init = pass_on_each_time};

static arguments_t arguments_of(const void *sendbuf, void *recvbuf, flash_count_t count,
                                MPI_Datatype datatype, MPI_Op op, int root)
{
    return (arguments_t){.kind = FLASH_REDUCE,
                         .sendbuf = sendbuf,
                         .recvbuf = recvbuf,
                         .recvcount = count,
                         .recvtype = datatype,
                         .op = op,
                         .root = root};
}

/* As MPI_Iallreduce's and MPI_Ibcast's: where an inter-communicator is made, or used to make one. */
static bool may_be_open_mpis_own(const arguments_t *a)
{
    return a->recvcount == 1 && a->recvtype == MPI_INT && (a->op == MPI_MAX || a->op == MPI_MIN);
}

int mca_coll_flash_ireduce(const void *sendbuf, void *recvbuf, flash_count_t count,
                           MPI_Datatype datatype, MPI_Op op, int root, ompi_communicator_t *comm,
                           ompi_request_t **request, mca_coll_base_module_t *base)
{
    arguments_t arguments = arguments_of(sendbuf, recvbuf, count, datatype, op, root);

    (void) comm;
    return may_be_open_mpis_own(&arguments)
               ? mca_coll_flash_start_bounced(&collective, (mca_coll_flash_module_t *) base,
                                              &arguments, FLASH_FALLBACK, request)
               : mca_coll_flash_start_call(&collective, "Ireduce", &arguments, base, request);
}

int mca_coll_flash_reduce_init(const void *sendbuf, void *recvbuf, flash_count_t count,
                               MPI_Datatype datatype, MPI_Op op, int root,
                               ompi_communicator_t *comm, struct ompi_info_t *info,
                               ompi_request_t **request, mca_coll_base_module_t *base)
{
    arguments_t arguments = arguments_of(sendbuf, recvbuf, count, datatype, op, root);

    (void) comm;
    return mca_coll_flash_make_persistent(&collective, "Reduce_init", &arguments, info, base,
                                          request);
}
