/*
 * coll_flash_ompi6_blocking.c: blocking calls of Open MPI 6, see coll_flash_ompi6.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "component/coll_flash_ompi6.h"

#if FLASH_LARGE_COUNTS

int mca_coll_flash_large_allgather(const void *sendbuf, flash_large_count_t sendcount,
                                   MPI_Datatype sendtype, void *recvbuf,
                                   flash_large_count_t recvcount, MPI_Datatype recvtype,
                                   ompi_communicator_t *comm, mca_coll_base_module_t *module)
{
    return flash_fits_int(recvcount, recvtype)
               ? mca_coll_flash_allgather(sendbuf, flash_small_count(sendcount), sendtype, recvbuf,
                                          flash_small_count(recvcount), recvtype, comm, module)
               : flash_previous_of(module)->allgather(sendbuf, sendcount, sendtype, recvbuf,
                                                      recvcount, recvtype, comm,
                                                      flash_previous_of(module)->allgather_module);
}

int mca_coll_flash_large_allgatherv(const void *sendbuf, flash_large_count_t sendcount,
                                    MPI_Datatype sendtype, void *recvbuf,
                                    flash_large_counts_t recvcounts, flash_large_displs_t displs,
                                    MPI_Datatype recvtype, ompi_communicator_t *comm,
                                    mca_coll_base_module_t *module)
{
    return flash_arrays_are_small(recvcounts, &displs)
               ? mca_coll_flash_allgatherv(sendbuf, flash_small_count(sendcount), sendtype, recvbuf,
                                           ompi_count_array_ptr(recvcounts),
                                           ompi_disp_array_ptr(displs), recvtype, comm, module)
               : flash_previous_of(module)->allgatherv(
                     sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm,
                     flash_previous_of(module)->allgatherv_module);
}

int mca_coll_flash_large_reduce_scatter(const void *sendbuf, void *recvbuf,
                                        flash_large_counts_t recvcounts, MPI_Datatype datatype,
                                        MPI_Op op, ompi_communicator_t *comm,
                                        mca_coll_base_module_t *module)
{
    return flash_arrays_are_small(recvcounts, NULL)
               ? mca_coll_flash_reduce_scatter(sendbuf, recvbuf, ompi_count_array_ptr(recvcounts),
                                               datatype, op, comm, module)
               : flash_previous_of(module)->reduce_scatter(
                     sendbuf, recvbuf, recvcounts, datatype, op, comm,
                     flash_previous_of(module)->reduce_scatter_module);
}

int mca_coll_flash_large_reduce_scatter_block(const void *sendbuf, void *recvbuf,
                                              flash_large_count_t recvcount, MPI_Datatype datatype,
                                              MPI_Op op, ompi_communicator_t *comm,
                                              mca_coll_base_module_t *module)
{
    return flash_fits_int(recvcount, datatype)
               ? mca_coll_flash_reduce_scatter_block(sendbuf, recvbuf, flash_small_count(recvcount),
                                                     datatype, op, comm, module)
               : flash_previous_of(module)->reduce_scatter_block(
                     sendbuf, recvbuf, recvcount, datatype, op, comm,
                     flash_previous_of(module)->reduce_scatter_block_module);
}

int mca_coll_flash_large_allreduce(const void *sendbuf, void *recvbuf, flash_large_count_t count,
                                   MPI_Datatype datatype, MPI_Op op, ompi_communicator_t *comm,
                                   mca_coll_base_module_t *module)
{
    return flash_fits_int(count, datatype)
               ? mca_coll_flash_allreduce(sendbuf, recvbuf, flash_small_count(count), datatype, op,
                                          comm, module)
               : flash_previous_of(module)->allreduce(sendbuf, recvbuf, count, datatype, op, comm,
                                                      flash_previous_of(module)->allreduce_module);
}

int mca_coll_flash_large_alltoall(const void *sendbuf, flash_large_count_t sendcount,
                                  MPI_Datatype sendtype, void *recvbuf,
                                  flash_large_count_t recvcount, MPI_Datatype recvtype,
                                  ompi_communicator_t *comm, mca_coll_base_module_t *module)
{
    return flash_fits_int(recvcount, recvtype)
               ? mca_coll_flash_alltoall(sendbuf, flash_small_count(sendcount), sendtype, recvbuf,
                                         flash_small_count(recvcount), recvtype, comm, module)
               : flash_previous_of(module)->alltoall(sendbuf, sendcount, sendtype, recvbuf,
                                                     recvcount, recvtype, comm,
                                                     flash_previous_of(module)->alltoall_module);
}

int mca_coll_flash_large_alltoallv(const void *sendbuf, flash_large_counts_t sendcounts,
                                   flash_large_displs_t sdispls, MPI_Datatype sendtype,
                                   void *recvbuf, flash_large_counts_t recvcounts,
                                   flash_large_displs_t rdispls, MPI_Datatype recvtype,
                                   ompi_communicator_t *comm, mca_coll_base_module_t *module)
{
    bool in_place = sendbuf == MPI_IN_PLACE;

    return flash_arrays_are_small(recvcounts, &rdispls)
               ? mca_coll_flash_alltoallv(sendbuf,
                                          in_place ? NULL : ompi_count_array_ptr(sendcounts),
                                          in_place ? NULL : ompi_disp_array_ptr(sdispls), sendtype,
                                          recvbuf, ompi_count_array_ptr(recvcounts),
                                          ompi_disp_array_ptr(rdispls), recvtype, comm, module)
               : flash_previous_of(module)->alltoallv(sendbuf, sendcounts, sdispls, sendtype,
                                                      recvbuf, recvcounts, rdispls, recvtype, comm,
                                                      flash_previous_of(module)->alltoallv_module);
}

int mca_coll_flash_large_bcast(void *buffer, flash_large_count_t count, MPI_Datatype datatype,
                               int root, ompi_communicator_t *comm, mca_coll_base_module_t *module)
{
    return flash_fits_int(count, datatype)
               ? mca_coll_flash_bcast(buffer, flash_small_count(count), datatype, root, comm,
                                      module)
               : flash_previous_of(module)->bcast(buffer, count, datatype, root, comm,
                                                  flash_previous_of(module)->bcast_module);
}

#endif
