/*
 * coll_flash_reduce_scatter_calls.c: MPI's reduce-scatters that flash takes over: which way each goes.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "calls/coll_flash_calls.h"
#include "ring/coll_flash_ring.h"

typedef mca_coll_flash_arguments_t arguments_t;

static arguments_t arguments_of(const void *sendbuf, void *recvbuf, flash_count_t recvcount,
                                flash_counts_t recvcounts, MPI_Datatype datatype, MPI_Op op)
{
    return (arguments_t){.sendbuf = sendbuf,
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

static int start_plain(const char *name, arguments_t *a, mca_coll_base_module_t *base,
                       ompi_request_t **request)
{
    mca_coll_flash_module_t *module = (mca_coll_flash_module_t *) base;
    mca_coll_flash_path_t path;
    ptrdiff_t extent;

    ompi_datatype_type_extent(a->recvtype, &extent);
    path = mca_coll_flash_path_of(name, a, (size_t) extent, module, FLASH_NO_REASON);
    if (path == FLASH_RING || path == FLASH_PAIRWISE) {
        return start(module, mca_coll_flash_ring_ticket(module), a, path, request);
    }
    return mca_coll_flash_start_bounced(module, FLASH_REDUCE_SCATTER, a, path, start, pass_on,
                                        request);
}

int mca_coll_flash_ireduce_scatter_block(const void *sendbuf, void *recvbuf,
                                         flash_count_t recvcount, MPI_Datatype datatype, MPI_Op op,
                                         ompi_communicator_t *comm, ompi_request_t **request,
                                         mca_coll_base_module_t *base)
{
    arguments_t arguments = arguments_of(sendbuf, recvbuf, recvcount, NULL, datatype, op);

    (void) comm;
    return start_plain("Ireduce_scatter_block", &arguments, base, request);
}

int mca_coll_flash_ireduce_scatter(const void *sendbuf, void *recvbuf, flash_counts_t recvcounts,
                                   MPI_Datatype datatype, MPI_Op op, ompi_communicator_t *comm,
                                   ompi_request_t **request, mca_coll_base_module_t *base)
{
    arguments_t arguments = arguments_of(sendbuf, recvbuf, 0, recvcounts, datatype, op);

    (void) comm;
    return start_plain("Ireduce_scatter", &arguments, base, request);
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

static int make_persistent(const char *name, const arguments_t *a, struct ompi_info_t *info,
                           mca_coll_base_module_t *base, ompi_request_t **request)
{
    mca_coll_flash_module_t *module = (mca_coll_flash_module_t *) base;

    return mca_coll_flash_path_of(name, a, 0, module, mca_coll_flash_persistent_reason(module)) !=
                   FLASH_FALLBACK
               ? mca_coll_flash_persistent_new(module, a, request)
               : mca_coll_flash_persistent_below(module, a, pass_on_each_time, info, request);
}

int mca_coll_flash_reduce_scatter_init(const void *sendbuf, void *recvbuf,
                                       flash_counts_t recvcounts, MPI_Datatype datatype, MPI_Op op,
                                       ompi_communicator_t *comm, struct ompi_info_t *info,
                                       ompi_request_t **request, mca_coll_base_module_t *base)
{
    arguments_t arguments = arguments_of(sendbuf, recvbuf, 0, recvcounts, datatype, op);

    (void) comm;
    return make_persistent("Reduce_scatter_init", &arguments, info, base, request);
}

int mca_coll_flash_reduce_scatter_block_init(const void *sendbuf, void *recvbuf,
                                             flash_count_t recvcount, MPI_Datatype datatype,
                                             MPI_Op op, ompi_communicator_t *comm,
                                             struct ompi_info_t *info, ompi_request_t **request,
                                             mca_coll_base_module_t *base)
{
    arguments_t arguments = arguments_of(sendbuf, recvbuf, recvcount, NULL, datatype, op);

    (void) comm;
    return make_persistent("Reduce_scatter_block_init", &arguments, info, base, request);
}
