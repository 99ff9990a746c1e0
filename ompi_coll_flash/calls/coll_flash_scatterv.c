/*
 * coll_flash_scatterv.c: MPI's scatter whose blocks have lengths of their own: its arguments. As an operation:
 * coll_flash_scatter.c. Which blocks go how: coll_flash_unequal.c.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "calls/coll_flash_packed.h"
#include "calls/coll_flash_unequal.h"

typedef mca_coll_flash_arguments_t arguments_t;

static int pass_on(mca_coll_flash_module_t *module, const arguments_t *a, ompi_request_t **request)
{
    return module->previous.iscatterv(a->sendbuf, FLASH_COUNTS(a->sendcounts),
                                      FLASH_DISPLS(a->sdispls), a->sendtype, a->recvbuf,
                                      a->recvcount, a->recvtype, a->root, module->comm, request,
                                      module->previous.iscatterv_module);
}

static int pass_on_each_time(mca_coll_flash_module_t *module, const arguments_t *a,
                             struct ompi_info_t *info, ompi_request_t **request)
{
    return module->previous.scatterv_init(a->sendbuf, FLASH_COUNTS(a->sendcounts),
                                          FLASH_DISPLS(a->sdispls), a->sendtype, a->recvbuf,
                                          a->recvcount, a->recvtype, a->root, module->comm, info,
                                          request, module->previous.scatterv_init_module);
}

static const mca_coll_flash_collective_t collective = {
    .start = mca_coll_flash_start_scatter, .pass_on = pass_on, .init = pass_on_each_time};

/* As of a gather: what a rank may leave undefined is not read. */
static arguments_t arguments_of(const void *sendbuf, flash_counts_t sendcounts,
                                flash_displs_t displs, MPI_Datatype sendtype, void *recvbuf,
                                flash_count_t recvcount, MPI_Datatype recvtype, int root,
                                ompi_communicator_t *comm)
{
    int rank = ompi_comm_rank(comm);
    bool sends = rank == root, in_place = recvbuf == MPI_IN_PLACE;
    flash_count_t sent = sends ? sendcounts[rank] : recvcount;

    return (arguments_t){.kind = FLASH_SCATTER,
                         .unequal = true,
                         .sendbuf = sends ? sendbuf : NULL,
                         .sendcount = sent,
                         .sendcounts = sends ? sendcounts : NULL,
                         .sdispls = sends ? displs : NULL,
                         .sendtype = sends ? sendtype : recvtype,
                         .recvbuf = recvbuf,
                         .recvcount = in_place ? sent : recvcount,
                         .recvtype = in_place ? sendtype : recvtype,
                         .root = root};
}

int mca_coll_flash_iscatterv(const void *sendbuf, flash_counts_t sendcounts, flash_displs_t displs,
                             MPI_Datatype sendtype, void *recvbuf, flash_count_t recvcount,
                             MPI_Datatype recvtype, int root, ompi_communicator_t *comm,
                             ompi_request_t **request, mca_coll_base_module_t *base)
{
    arguments_t arguments = arguments_of(sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount,
                                         recvtype, root, comm);

    return mca_coll_flash_start_unequal(&collective, "Iscatterv", &arguments, base, request);
}

int mca_coll_flash_scatterv_init(const void *sendbuf, flash_counts_t sendcounts,
                                 flash_displs_t displs, MPI_Datatype sendtype, void *recvbuf,
                                 flash_count_t recvcount, MPI_Datatype recvtype, int root,
                                 ompi_communicator_t *comm, struct ompi_info_t *info,
                                 ompi_request_t **request, mca_coll_base_module_t *base)
{
    arguments_t arguments = arguments_of(sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount,
                                         recvtype, root, comm);

    return mca_coll_flash_persist_unequal(&collective, "Scatterv_init", &arguments, info, base,
                                          request);
}
