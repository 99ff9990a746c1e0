/*
 * coll_flash_allgather_calls.c: MPI's allgathers that flash takes over: which way each goes.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "calls/coll_flash_calls.h"
#include "ring/coll_flash_ring.h"

typedef mca_coll_flash_arguments_t arguments_t;

static arguments_t arguments_of(const void *sendbuf, flash_count_t sendcount, MPI_Datatype sendtype,
                                void *recvbuf, flash_count_t recvcount, flash_counts_t recvcounts,
                                flash_displs_t displs, MPI_Datatype recvtype)
{
    return (arguments_t){.sendbuf = sendbuf,
                         .sendcount = sendcount,
                         .sendtype = sendtype,
                         .recvbuf = recvbuf,
                         .recvcount = recvcount,
                         .recvcounts = recvcounts,
                         .displs = displs,
                         .recvtype = recvtype};
}

/* ------------------------------------------------------------------ plain calls */

static int start(mca_coll_flash_module_t *module, mca_coll_flash_ticket_t ticket,
                 const arguments_t *a, mca_coll_flash_path_t path, ompi_request_t **request)
{
    (void) path;
    return mca_coll_flash_start_allgather(module, ticket, a->sendbuf, a->sendcount, a->sendtype,
                                          a->recvbuf, a->recvcount, a->recvcounts, a->displs,
                                          a->recvtype, NULL, request);
}

static int pass_on(mca_coll_flash_module_t *module, const arguments_t *a, ompi_request_t **request)
{
    const mca_coll_flash_previous_t *previous = &module->previous;

    if (a->recvcounts == NULL) {
        return previous->iallgather(a->sendbuf, a->sendcount, a->sendtype, a->recvbuf, a->recvcount,
                                    a->recvtype, module->comm, request,
                                    previous->iallgather_module);
    }
    return previous->iallgatherv(a->sendbuf, a->sendcount, a->sendtype, a->recvbuf,
                                 FLASH_COUNTS(a->recvcounts), FLASH_DISPLS(a->displs), a->recvtype,
                                 module->comm, request, previous->iallgatherv_module);
}

static int start_plain(const char *name, arguments_t *a, mca_coll_base_module_t *base,
                       ompi_request_t **request)
{
    mca_coll_flash_module_t *module = (mca_coll_flash_module_t *) base;
    mca_coll_flash_path_t path = mca_coll_flash_path_of(name, a, 1, module, FLASH_NO_REASON);

    if (path == FLASH_RING) {
        return start(module, mca_coll_flash_ring_ticket(module), a, path, request);
    }
    return mca_coll_flash_start_bounced(module, FLASH_ALLGATHER, a, path, start, pass_on, request);
}

int mca_coll_flash_iallgather(const void *sendbuf, flash_count_t sendcount, MPI_Datatype sendtype,
                              void *recvbuf, flash_count_t recvcount, MPI_Datatype recvtype,
                              ompi_communicator_t *comm, ompi_request_t **request,
                              mca_coll_base_module_t *base)
{
    arguments_t arguments =
        arguments_of(sendbuf, sendcount, sendtype, recvbuf, recvcount, NULL, NULL, recvtype);

    (void) comm;
    return start_plain("Iallgather", &arguments, base, request);
}

int mca_coll_flash_iallgatherv(const void *sendbuf, flash_count_t sendcount, MPI_Datatype sendtype,
                               void *recvbuf, flash_counts_t recvcounts, flash_displs_t displs,
                               MPI_Datatype recvtype, ompi_communicator_t *comm,
                               ompi_request_t **request, mca_coll_base_module_t *base)
{
    arguments_t arguments =
        arguments_of(sendbuf, sendcount, sendtype, recvbuf, 0, recvcounts, displs, recvtype);

    (void) comm;
    return start_plain("Iallgatherv", &arguments, base, request);
}

/* ---------------------------------------------------------- persistent requests */

static int pass_on_each_time(mca_coll_flash_module_t *module, const arguments_t *a,
                             struct ompi_info_t *info, ompi_request_t **request)
{
    const mca_coll_flash_previous_t *previous = &module->previous;

    if (a->recvcounts == NULL) {
        return previous->allgather_init(a->sendbuf, a->sendcount, a->sendtype, a->recvbuf,
                                        a->recvcount, a->recvtype, module->comm, info, request,
                                        previous->allgather_init_module);
    }
    return previous->allgatherv_init(a->sendbuf, a->sendcount, a->sendtype, a->recvbuf,
                                     FLASH_COUNTS(a->recvcounts), FLASH_DISPLS(a->displs),
                                     a->recvtype, module->comm, info, request,
                                     previous->allgatherv_init_module);
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

int mca_coll_flash_allgather_init(const void *sendbuf, flash_count_t sendcount,
                                  MPI_Datatype sendtype, void *recvbuf, flash_count_t recvcount,
                                  MPI_Datatype recvtype, ompi_communicator_t *comm,
                                  struct ompi_info_t *info, ompi_request_t **request,
                                  mca_coll_base_module_t *base)
{
    arguments_t arguments =
        arguments_of(sendbuf, sendcount, sendtype, recvbuf, recvcount, NULL, NULL, recvtype);

    (void) comm;
    return make_persistent("Allgather_init", &arguments, info, base, request);
}

int mca_coll_flash_allgatherv_init(const void *sendbuf, flash_count_t sendcount,
                                   MPI_Datatype sendtype, void *recvbuf, flash_counts_t recvcounts,
                                   flash_displs_t displs, MPI_Datatype recvtype,
                                   ompi_communicator_t *comm, struct ompi_info_t *info,
                                   ompi_request_t **request, mca_coll_base_module_t *base)
{
    arguments_t arguments =
        arguments_of(sendbuf, sendcount, sendtype, recvbuf, 0, recvcounts, displs, recvtype);

    (void) comm;
    return make_persistent("Allgatherv_init", &arguments, info, base, request);
}
