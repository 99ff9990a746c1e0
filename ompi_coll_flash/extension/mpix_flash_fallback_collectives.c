/*
 * mpix_flash_fallback_collectives.c: the communicator's own collectives, begun for the fallback.
 *
 * Not by PMPI's functions: these would hand an error to the communicator's error handler, in the
 * name of a call that the program has not made, and the extension's call does so behind them.
 *
 * What PMPI's functions do beside, the extension does: it has checked the arguments, and its request
 * keeps types and operation (mpix_flash.c) until the collective is complete.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "extension/mpix_flash_fallback.h"

#define BEGIN(comm, name, ...) \
    (comm)->c_coll->coll_##name(__VA_ARGS__, comm, request, (comm)->c_coll->coll_##name##_module)

/* Of Open MPI's own errors, the class. */
static int class_of(int rc)
{
    return ompi_errcode_get_mpi_code(rc);
}

static int begin_gather(const mca_coll_flash_arguments_t *a, MPI_Comm comm, MPI_Request *request)
{
    return a->recvcounts == NULL
               ? BEGIN(comm, iallgather, a->sendbuf, a->sendcount, a->sendtype, a->recvbuf,
                       a->recvcount, a->recvtype)
               : BEGIN(comm, iallgatherv, a->sendbuf, a->sendcount, a->sendtype, a->recvbuf,
                       FLASH_COUNTS(a->recvcounts), FLASH_DISPLS(a->displs), a->recvtype);
}

static int begin_reduction(const mca_coll_flash_arguments_t *a, MPI_Comm comm, MPI_Request *request)
{
    return a->recvcounts == NULL ? BEGIN(comm, ireduce_scatter_block, a->sendbuf, a->recvbuf,
                                         a->recvcount, a->recvtype, a->op)
                                 : BEGIN(comm, ireduce_scatter, a->sendbuf, a->recvbuf,
                                         FLASH_COUNTS(a->recvcounts), a->recvtype, a->op);
}

int flash_fallback_begin_collective(const mca_coll_flash_arguments_t *a, MPI_Comm comm,
                                    MPI_Request *request)
{
    int rc = flash_compat_check_collective(comm);

    if (rc == MPI_SUCCESS) {
        rc = a->op == NULL ? begin_gather(a, comm, request) : begin_reduction(a, comm, request);
    }
    return class_of(rc);
}

int flash_fallback_begin_allreduce(const void *sendbuf, void *recvbuf, int count, MPI_Datatype type,
                                   MPI_Op op, MPI_Comm comm, MPI_Request *request)
{
    int rc = flash_compat_check_collective(comm);

    if (rc == MPI_SUCCESS) {
        rc = BEGIN(comm, iallreduce, sendbuf, recvbuf, count, type, op);
    }
    return class_of(rc);
}

int flash_fallback_begin_alltoall(const mca_coll_flash_alltoall_t *a, MPI_Comm comm,
                                  MPI_Request *request)
{
    int rc = flash_compat_check_collective(comm);

    if (rc == MPI_SUCCESS) {
        rc = a->recvcounts == NULL
                 ? BEGIN(comm, ialltoall, a->sendbuf, a->sendcount, a->sendtype, a->recvbuf,
                         a->recvcount, a->recvtype)
                 : BEGIN(comm, ialltoallv, a->sendbuf, FLASH_COUNTS(a->sendcounts),
                         FLASH_DISPLS(a->sdispls), a->sendtype, a->recvbuf,
                         FLASH_COUNTS(a->recvcounts), FLASH_DISPLS(a->rdispls), a->recvtype);
    }
    return class_of(rc);
}
