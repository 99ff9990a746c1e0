/*
 * coll_flash_gatherv.c: MPI's gather whose blocks have lengths of their own: its arguments. As an operation:
 * coll_flash_gather.c. Which blocks go how: coll_flash_unequal.c.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "calls/coll_flash_packed.h"
#include "calls/coll_flash_unequal.h"

typedef mca_coll_flash_arguments_t arguments_t;

static int pass_on(mca_coll_flash_module_t *module, const arguments_t *a, ompi_request_t **request)
{
    return module->previous.igatherv(a->sendbuf, a->sendcount, a->sendtype, a->recvbuf,
                                     FLASH_COUNTS(a->recvcounts), FLASH_DISPLS(a->displs),
                                     a->recvtype, a->root, module->comm, request,
                                     module->previous.igatherv_module);
}

static int pass_on_each_time(mca_coll_flash_module_t *module, const arguments_t *a,
                             struct ompi_info_t *info, ompi_request_t **request)
{
    return module->previous.gatherv_init(a->sendbuf, a->sendcount, a->sendtype, a->recvbuf,
                                         FLASH_COUNTS(a->recvcounts), FLASH_DISPLS(a->displs),
                                         a->recvtype, a->root, module->comm, info, request,
                                         module->previous.gatherv_init_module);
}

static const mca_coll_flash_collective_t collective = {
    .start = mca_coll_flash_start_gather, .pass_on = pass_on, .init = pass_on_each_time};

/*
 * What a rank may leave undefined is not read, see coll_flash_gather.c: the arrays are the root's alone. So
 * the root's receive side is in the arrays, and in place its send side is its own block there.
 */
static arguments_t arguments_of(const void *sendbuf, flash_count_t sendcount, MPI_Datatype sendtype,
                                void *recvbuf, flash_counts_t recvcounts, flash_displs_t displs,
                                MPI_Datatype recvtype, int root, ompi_communicator_t *comm)
{
    int rank = ompi_comm_rank(comm);
    bool receives = rank == root, in_place = sendbuf == MPI_IN_PLACE;
    flash_count_t received = receives ? recvcounts[rank] : sendcount;

    return (arguments_t){.kind = FLASH_GATHER,
                         .unequal = true,
                         .sendbuf = sendbuf,
                         .sendcount = in_place ? received : sendcount,
                         .sendtype = in_place ? recvtype : sendtype,
                         .recvbuf = receives ? recvbuf : NULL,
                         .recvcount = received,
                         .recvcounts = receives ? recvcounts : NULL,
                         .displs = receives ? displs : NULL,
                         .recvtype = receives ? recvtype : sendtype,
                         .root = root};
}

int mca_coll_flash_igatherv(const void *sendbuf, flash_count_t sendcount, MPI_Datatype sendtype,
                            void *recvbuf, flash_counts_t recvcounts, flash_displs_t displs,
                            MPI_Datatype recvtype, int root, ompi_communicator_t *comm,
                            ompi_request_t **request, mca_coll_base_module_t *base)
{
    arguments_t arguments = arguments_of(sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs,
                                         recvtype, root, comm);

    return mca_coll_flash_start_unequal(&collective, "Igatherv", &arguments, base, request);
}

int mca_coll_flash_gatherv_init(const void *sendbuf, flash_count_t sendcount, MPI_Datatype sendtype,
                                void *recvbuf, flash_counts_t recvcounts, flash_displs_t displs,
                                MPI_Datatype recvtype, int root, ompi_communicator_t *comm,
                                struct ompi_info_t *info, ompi_request_t **request,
                                mca_coll_base_module_t *base)
{
    arguments_t arguments = arguments_of(sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs,
                                         recvtype, root, comm);

    return mca_coll_flash_persist_unequal(&collective, "Gatherv_init", &arguments, info, base,
                                          request);
}
