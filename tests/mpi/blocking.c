/*
 * blocking.c: see blocking.h. Stands in for the non-blocking collectives that flash serves.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "blocking.h"

#include <stdlib.h>

#include <mpi.h>

bool calls_block(void)
{
    return getenv("FLASH_TEST_BLOCKING") != NULL;
}

static int done(int error, MPI_Request *request)
{
    *request = MPI_REQUEST_NULL;
    return error;
}

int MPI_Iallgather(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
                   int recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request)
{
    return calls_block() ? done(MPI_Allgather(sendbuf, sendcount, sendtype, recvbuf, recvcount,
                                              recvtype, comm),
                                request)
                         : PMPI_Iallgather(sendbuf, sendcount, sendtype, recvbuf, recvcount,
                                           recvtype, comm, request);
}

int MPI_Iallgatherv(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
                    const int recvcounts[], const int displs[], MPI_Datatype recvtype,
                    MPI_Comm comm, MPI_Request *request)
{
    return calls_block() ? done(MPI_Allgatherv(sendbuf, sendcount, sendtype, recvbuf, recvcounts,
                                               displs, recvtype, comm),
                                request)
                         : PMPI_Iallgatherv(sendbuf, sendcount, sendtype, recvbuf, recvcounts,
                                            displs, recvtype, comm, request);
}

int MPI_Ireduce_scatter(const void *sendbuf, void *recvbuf, const int recvcounts[],
                        MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, MPI_Request *request)
{
    return calls_block()
               ? done(MPI_Reduce_scatter(sendbuf, recvbuf, recvcounts, datatype, op, comm), request)
               : PMPI_Ireduce_scatter(sendbuf, recvbuf, recvcounts, datatype, op, comm, request);
}

int MPI_Ireduce_scatter_block(const void *sendbuf, void *recvbuf, int recvcount,
                              MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, MPI_Request *request)
{
    return calls_block()
               ? done(MPI_Reduce_scatter_block(sendbuf, recvbuf, recvcount, datatype, op, comm),
                      request)
               : PMPI_Ireduce_scatter_block(sendbuf, recvbuf, recvcount, datatype, op, comm,
                                            request);
}

int MPI_Iallreduce(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
                   MPI_Comm comm, MPI_Request *request)
{
    return calls_block() ? done(MPI_Allreduce(sendbuf, recvbuf, count, datatype, op, comm), request)
                         : PMPI_Iallreduce(sendbuf, recvbuf, count, datatype, op, comm, request);
}

int MPI_Ibcast(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm,
               MPI_Request *request)
{
    return calls_block() ? done(MPI_Bcast(buffer, count, datatype, root, comm), request)
                         : PMPI_Ibcast(buffer, count, datatype, root, comm, request);
}

int MPI_Ialltoall(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
                  int recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request)
{
    return calls_block() ? done(MPI_Alltoall(sendbuf, sendcount, sendtype, recvbuf, recvcount,
                                             recvtype, comm),
                                request)
                         : PMPI_Ialltoall(sendbuf, sendcount, sendtype, recvbuf, recvcount,
                                          recvtype, comm, request);
}

int MPI_Ialltoallv(const void *sendbuf, const int sendcounts[], const int sdispls[],
                   MPI_Datatype sendtype, void *recvbuf, const int recvcounts[],
                   const int rdispls[], MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request)
{
    return calls_block() ? done(MPI_Alltoallv(sendbuf, sendcounts, sdispls, sendtype, recvbuf,
                                              recvcounts, rdispls, recvtype, comm),
                                request)
                         : PMPI_Ialltoallv(sendbuf, sendcounts, sdispls, sendtype, recvbuf,
                                           recvcounts, rdispls, recvtype, comm, request);
}
