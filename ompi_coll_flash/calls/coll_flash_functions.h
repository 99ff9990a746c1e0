/*
 * coll_flash_functions.h: the functions that a module takes over, as Open MPI calls them.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef COLL_FLASH_FUNCTIONS_H
#define COLL_FLASH_FUNCTIONS_H

#include "request/coll_flash_module.h"

int mca_coll_flash_allgather(const void *sendbuf, flash_count_t sendcount, MPI_Datatype sendtype,
                             void *recvbuf, flash_count_t recvcount, MPI_Datatype recvtype,
                             ompi_communicator_t *comm, mca_coll_base_module_t *module);
int mca_coll_flash_allgatherv(const void *sendbuf, flash_count_t sendcount, MPI_Datatype sendtype,
                              void *recvbuf, flash_counts_t recvcounts, flash_displs_t displs,
                              MPI_Datatype recvtype, ompi_communicator_t *comm,
                              mca_coll_base_module_t *module);
int mca_coll_flash_reduce_scatter(const void *sendbuf, void *recvbuf, flash_counts_t recvcounts,
                                  MPI_Datatype datatype, MPI_Op op, ompi_communicator_t *comm,
                                  mca_coll_base_module_t *module);
int mca_coll_flash_reduce_scatter_block(const void *sendbuf, void *recvbuf, flash_count_t recvcount,
                                        MPI_Datatype datatype, MPI_Op op, ompi_communicator_t *comm,
                                        mca_coll_base_module_t *module);
int mca_coll_flash_allreduce(const void *sendbuf, void *recvbuf, flash_count_t count,
                             MPI_Datatype datatype, MPI_Op op, ompi_communicator_t *comm,
                             mca_coll_base_module_t *module);
int mca_coll_flash_alltoall(const void *sendbuf, flash_count_t sendcount, MPI_Datatype sendtype,
                            void *recvbuf, flash_count_t recvcount, MPI_Datatype recvtype,
                            ompi_communicator_t *comm, mca_coll_base_module_t *module);
int mca_coll_flash_alltoallv(const void *sendbuf, flash_counts_t sendcounts, flash_displs_t sdispls,
                             MPI_Datatype sendtype, void *recvbuf, flash_counts_t recvcounts,
                             flash_displs_t rdispls, MPI_Datatype recvtype,
                             ompi_communicator_t *comm, mca_coll_base_module_t *module);
int mca_coll_flash_bcast(void *buffer, flash_count_t count, MPI_Datatype datatype, int root,
                         ompi_communicator_t *comm, mca_coll_base_module_t *module);
int mca_coll_flash_iallgather(const void *sendbuf, flash_count_t sendcount, MPI_Datatype sendtype,
                              void *recvbuf, flash_count_t recvcount, MPI_Datatype recvtype,
                              ompi_communicator_t *comm, ompi_request_t **request,
                              mca_coll_base_module_t *module);
int mca_coll_flash_iallgatherv(const void *sendbuf, flash_count_t sendcount, MPI_Datatype sendtype,
                               void *recvbuf, flash_counts_t recvcounts, flash_displs_t displs,
                               MPI_Datatype recvtype, ompi_communicator_t *comm,
                               ompi_request_t **request, mca_coll_base_module_t *module);
int mca_coll_flash_ireduce_scatter(const void *sendbuf, void *recvbuf, flash_counts_t recvcounts,
                                   MPI_Datatype datatype, MPI_Op op, ompi_communicator_t *comm,
                                   ompi_request_t **request, mca_coll_base_module_t *module);
int mca_coll_flash_ireduce_scatter_block(const void *sendbuf, void *recvbuf,
                                         flash_count_t recvcount, MPI_Datatype datatype, MPI_Op op,
                                         ompi_communicator_t *comm, ompi_request_t **request,
                                         mca_coll_base_module_t *module);
int mca_coll_flash_iallreduce(const void *sendbuf, void *recvbuf, flash_count_t count,
                              MPI_Datatype datatype, MPI_Op op, ompi_communicator_t *comm,
                              ompi_request_t **request, mca_coll_base_module_t *module);
int mca_coll_flash_ialltoall(const void *sendbuf, flash_count_t sendcount, MPI_Datatype sendtype,
                             void *recvbuf, flash_count_t recvcount, MPI_Datatype recvtype,
                             ompi_communicator_t *comm, ompi_request_t **request,
                             mca_coll_base_module_t *module);
int mca_coll_flash_ialltoallv(const void *sendbuf, flash_counts_t sendcounts,
                              flash_displs_t sdispls, MPI_Datatype sendtype, void *recvbuf,
                              flash_counts_t recvcounts, flash_displs_t rdispls,
                              MPI_Datatype recvtype, ompi_communicator_t *comm,
                              ompi_request_t **request, mca_coll_base_module_t *module);
int mca_coll_flash_ibcast(void *buffer, flash_count_t count, MPI_Datatype datatype, int root,
                          ompi_communicator_t *comm, ompi_request_t **request,
                          mca_coll_base_module_t *module);
int mca_coll_flash_ireduce(const void *sendbuf, void *recvbuf, flash_count_t count,
                           MPI_Datatype datatype, MPI_Op op, int root, ompi_communicator_t *comm,
                           ompi_request_t **request, mca_coll_base_module_t *module);
int mca_coll_flash_igather(const void *sendbuf, flash_count_t sendcount, MPI_Datatype sendtype,
                           void *recvbuf, flash_count_t recvcount, MPI_Datatype recvtype, int root,
                           ompi_communicator_t *comm, ompi_request_t **request,
                           mca_coll_base_module_t *module);
int mca_coll_flash_iscatter(const void *sendbuf, flash_count_t sendcount, MPI_Datatype sendtype,
                            void *recvbuf, flash_count_t recvcount, MPI_Datatype recvtype, int root,
                            ompi_communicator_t *comm, ompi_request_t **request,
                            mca_coll_base_module_t *module);
int mca_coll_flash_igatherv(const void *sendbuf, flash_count_t sendcount, MPI_Datatype sendtype,
                            void *recvbuf, flash_counts_t recvcounts, flash_displs_t displs,
                            MPI_Datatype recvtype, int root, ompi_communicator_t *comm,
                            ompi_request_t **request, mca_coll_base_module_t *module);
int mca_coll_flash_iscatterv(const void *sendbuf, flash_counts_t sendcounts, flash_displs_t displs,
                             MPI_Datatype sendtype, void *recvbuf, flash_count_t recvcount,
                             MPI_Datatype recvtype, int root, ompi_communicator_t *comm,
                             ompi_request_t **request, mca_coll_base_module_t *module);
int mca_coll_flash_allgather_init(const void *sendbuf, flash_count_t sendcount,
                                  MPI_Datatype sendtype, void *recvbuf, flash_count_t recvcount,
                                  MPI_Datatype recvtype, ompi_communicator_t *comm,
                                  struct ompi_info_t *info, ompi_request_t **request,
                                  mca_coll_base_module_t *module);
int mca_coll_flash_allgatherv_init(const void *sendbuf, flash_count_t sendcount,
                                   MPI_Datatype sendtype, void *recvbuf, flash_counts_t recvcounts,
                                   flash_displs_t displs, MPI_Datatype recvtype,
                                   ompi_communicator_t *comm, struct ompi_info_t *info,
                                   ompi_request_t **request, mca_coll_base_module_t *module);
int mca_coll_flash_reduce_scatter_init(const void *sendbuf, void *recvbuf,
                                       flash_counts_t recvcounts, MPI_Datatype datatype, MPI_Op op,
                                       ompi_communicator_t *comm, struct ompi_info_t *info,
                                       ompi_request_t **request, mca_coll_base_module_t *module);
int mca_coll_flash_reduce_scatter_block_init(const void *sendbuf, void *recvbuf,
                                             flash_count_t recvcount, MPI_Datatype datatype,
                                             MPI_Op op, ompi_communicator_t *comm,
                                             struct ompi_info_t *info, ompi_request_t **request,
                                             mca_coll_base_module_t *module);
int mca_coll_flash_allreduce_init(const void *sendbuf, void *recvbuf, flash_count_t count,
                                  MPI_Datatype datatype, MPI_Op op, ompi_communicator_t *comm,
                                  struct ompi_info_t *info, ompi_request_t **request,
                                  mca_coll_base_module_t *module);
int mca_coll_flash_alltoall_init(const void *sendbuf, flash_count_t sendcount,
                                 MPI_Datatype sendtype, void *recvbuf, flash_count_t recvcount,
                                 MPI_Datatype recvtype, ompi_communicator_t *comm,
                                 struct ompi_info_t *info, ompi_request_t **request,
                                 mca_coll_base_module_t *module);
int mca_coll_flash_alltoallv_init(const void *sendbuf, flash_counts_t sendcounts,
                                  flash_displs_t sdispls, MPI_Datatype sendtype, void *recvbuf,
                                  flash_counts_t recvcounts, flash_displs_t rdispls,
                                  MPI_Datatype recvtype, ompi_communicator_t *comm,
                                  struct ompi_info_t *info, ompi_request_t **request,
                                  mca_coll_base_module_t *module);
int mca_coll_flash_bcast_init(void *buffer, flash_count_t count, MPI_Datatype datatype, int root,
                              ompi_communicator_t *comm, struct ompi_info_t *info,
                              ompi_request_t **request, mca_coll_base_module_t *module);
int mca_coll_flash_reduce_init(const void *sendbuf, void *recvbuf, flash_count_t count,
                               MPI_Datatype datatype, MPI_Op op, int root,
                               ompi_communicator_t *comm, struct ompi_info_t *info,
                               ompi_request_t **request, mca_coll_base_module_t *module);
int mca_coll_flash_gather_init(const void *sendbuf, flash_count_t sendcount, MPI_Datatype sendtype,
                               void *recvbuf, flash_count_t recvcount, MPI_Datatype recvtype,
                               int root, ompi_communicator_t *comm, struct ompi_info_t *info,
                               ompi_request_t **request, mca_coll_base_module_t *module);
int mca_coll_flash_scatter_init(const void *sendbuf, flash_count_t sendcount, MPI_Datatype sendtype,
                                void *recvbuf, flash_count_t recvcount, MPI_Datatype recvtype,
                                int root, ompi_communicator_t *comm, struct ompi_info_t *info,
                                ompi_request_t **request, mca_coll_base_module_t *module);
int mca_coll_flash_gatherv_init(const void *sendbuf, flash_count_t sendcount, MPI_Datatype sendtype,
                                void *recvbuf, flash_counts_t recvcounts, flash_displs_t displs,
                                MPI_Datatype recvtype, int root, ompi_communicator_t *comm,
                                struct ompi_info_t *info, ompi_request_t **request,
                                mca_coll_base_module_t *module);
int mca_coll_flash_scatterv_init(const void *sendbuf, flash_counts_t sendcounts,
                                 flash_displs_t displs, MPI_Datatype sendtype, void *recvbuf,
                                 flash_count_t recvcount, MPI_Datatype recvtype, int root,
                                 ompi_communicator_t *comm, struct ompi_info_t *info,
                                 ompi_request_t **request, mca_coll_base_module_t *module);

#if FLASH_LARGE_COUNTS
/* In place of these, see coll_flash_ompi6.h. */
#define FLASH_LARGE(name) \
    __typeof__(*(mca_coll_base_module_##name##_fn_t) NULL) mca_coll_flash_large_##name;
FLASH_EACH_FUNCTION(FLASH_LARGE)
#undef FLASH_LARGE
int mca_coll_flash_give_back(mca_coll_base_module_t *module, ompi_communicator_t *comm);
#endif

#endif /* COLL_FLASH_FUNCTIONS_H */
