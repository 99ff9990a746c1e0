/*
 * coll_flash_ompi6_rooted.c: non-blocking calls and persistent requests of Open MPI 6 that have a root,
 * see coll_flash_ompi6.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "component/coll_flash_ompi6.h"

#if FLASH_LARGE_COUNTS

int mca_coll_flash_large_ibcast(void *buffer, flash_large_count_t count, MPI_Datatype datatype,
                                int root, ompi_communicator_t *comm, ompi_request_t **request,
                                mca_coll_base_module_t *module)
{
    if (!flash_large_vector_fits("Ibcast", count, datatype, module)) {
        return flash_large_refuse_devices(buffer, NULL, NULL) != MPI_SUCCESS
                   ? MPI_ERR_BUFFER
                   : flash_previous_of(module)->ibcast(buffer, count, datatype, root, comm, request,
                                                       flash_previous_of(module)->ibcast_module);
    }
    return mca_coll_flash_ibcast(buffer, flash_small_count(count), datatype, root, comm, request,
                                 module);
}

int mca_coll_flash_large_bcast_init(void *buffer, flash_large_count_t count, MPI_Datatype datatype,
                                    int root, ompi_communicator_t *comm, struct ompi_info_t *info,
                                    ompi_request_t **request, mca_coll_base_module_t *module)
{
    if (!flash_large_vector_fits("Bcast_init", count, datatype, module)) {
        return flash_large_refuse_devices(buffer, NULL, NULL) != MPI_SUCCESS
                   ? MPI_ERR_BUFFER
                   : flash_previous_of(module)->bcast_init(
                         buffer, count, datatype, root, comm, info, request,
                         flash_previous_of(module)->bcast_init_module);
    }
    return mca_coll_flash_bcast_init(buffer, flash_small_count(count), datatype, root, comm, info,
                                     request, module);
}

/* A buffer that is the root's alone. */
static const void *root_has(const void *buffer, int root, ompi_communicator_t *comm)
{
    return ompi_comm_rank(comm) == root ? buffer : NULL;
}

int mca_coll_flash_large_ireduce(const void *sendbuf, void *recvbuf, flash_large_count_t count,
                                 MPI_Datatype datatype, MPI_Op op, int root,
                                 ompi_communicator_t *comm, ompi_request_t **request,
                                 mca_coll_base_module_t *module)
{
    if (!flash_large_vector_fits("Ireduce", count, datatype, module)) {
        return flash_large_refuse_devices(sendbuf, root_has(recvbuf, root, comm), op) != MPI_SUCCESS
                   ? MPI_ERR_BUFFER
                   : flash_previous_of(module)->ireduce(sendbuf, recvbuf, count, datatype, op, root,
                                                        comm, request,
                                                        flash_previous_of(module)->ireduce_module);
    }
    return mca_coll_flash_ireduce(sendbuf, recvbuf, flash_small_count(count), datatype, op, root,
                                  comm, request, module);
}

int mca_coll_flash_large_reduce_init(const void *sendbuf, void *recvbuf, flash_large_count_t count,
                                     MPI_Datatype datatype, MPI_Op op, int root,
                                     ompi_communicator_t *comm, struct ompi_info_t *info,
                                     ompi_request_t **request, mca_coll_base_module_t *module)
{
    if (!flash_large_vector_fits("Reduce_init", count, datatype, module)) {
        return flash_large_refuse_devices(sendbuf, root_has(recvbuf, root, comm), op) != MPI_SUCCESS
                   ? MPI_ERR_BUFFER
                   : flash_previous_of(module)->reduce_init(
                         sendbuf, recvbuf, count, datatype, op, root, comm, info, request,
                         flash_previous_of(module)->reduce_init_module);
    }
    return mca_coll_flash_reduce_init(sendbuf, recvbuf, flash_small_count(count), datatype, op,
                                      root, comm, info, request, module);
}

/*
 * Whether a block of a gather or a scatter is short enough, by the side that MPI defines on this rank:
 * the one that is received, if `receives`, or the one that is sent. The rank may leave the other one
 * undefined.
 */
static bool side_fits(const char *name, bool receives, size_t sendcount, MPI_Datatype sendtype,
                      size_t recvcount, MPI_Datatype recvtype, mca_coll_base_module_t *module)
{
    return receives ? flash_large_block_fits(name, recvcount, recvtype, module)
                    : flash_large_block_fits(name, sendcount, sendtype, module);
}

int mca_coll_flash_large_igather(const void *sendbuf, flash_large_count_t sendcount,
                                 MPI_Datatype sendtype, void *recvbuf,
                                 flash_large_count_t recvcount, MPI_Datatype recvtype, int root,
                                 ompi_communicator_t *comm, ompi_request_t **request,
                                 mca_coll_base_module_t *module)
{
    bool is_root = ompi_comm_rank(comm) == root;

    if (!side_fits("Igather", is_root, sendcount, sendtype, recvcount, recvtype, module)) {
        return flash_large_refuse_devices(sendbuf, root_has(recvbuf, root, comm), NULL) !=
                       MPI_SUCCESS
                   ? MPI_ERR_BUFFER
                   : flash_previous_of(module)->igather(sendbuf, sendcount, sendtype, recvbuf,
                                                        recvcount, recvtype, root, comm, request,
                                                        flash_previous_of(module)->igather_module);
    }
    return mca_coll_flash_igather(sendbuf, flash_small_count(sendcount), sendtype, recvbuf,
                                  flash_small_count(recvcount), recvtype, root, comm, request,
                                  module);
}

int mca_coll_flash_large_gather_init(const void *sendbuf, flash_large_count_t sendcount,
                                     MPI_Datatype sendtype, void *recvbuf,
                                     flash_large_count_t recvcount, MPI_Datatype recvtype, int root,
                                     ompi_communicator_t *comm, struct ompi_info_t *info,
                                     ompi_request_t **request, mca_coll_base_module_t *module)
{
    bool is_root = ompi_comm_rank(comm) == root;

    if (!side_fits("Gather_init", is_root, sendcount, sendtype, recvcount, recvtype, module)) {
        return flash_large_refuse_devices(sendbuf, root_has(recvbuf, root, comm), NULL) !=
                       MPI_SUCCESS
                   ? MPI_ERR_BUFFER
                   : flash_previous_of(module)->gather_init(
                         sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm,
                         info, request, flash_previous_of(module)->gather_init_module);
    }
    return mca_coll_flash_gather_init(sendbuf, flash_small_count(sendcount), sendtype, recvbuf,
                                      flash_small_count(recvcount), recvtype, root, comm, info,
                                      request, module);
}

int mca_coll_flash_large_iscatter(const void *sendbuf, flash_large_count_t sendcount,
                                  MPI_Datatype sendtype, void *recvbuf,
                                  flash_large_count_t recvcount, MPI_Datatype recvtype, int root,
                                  ompi_communicator_t *comm, ompi_request_t **request,
                                  mca_coll_base_module_t *module)
{
    bool is_root = ompi_comm_rank(comm) == root;

    if (!side_fits("Iscatter", !is_root, sendcount, sendtype, recvcount, recvtype, module)) {
        return flash_large_refuse_devices(root_has(sendbuf, root, comm), recvbuf, NULL) !=
                       MPI_SUCCESS
                   ? MPI_ERR_BUFFER
                   : flash_previous_of(module)->iscatter(
                         sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm,
                         request, flash_previous_of(module)->iscatter_module);
    }
    return mca_coll_flash_iscatter(sendbuf, flash_small_count(sendcount), sendtype, recvbuf,
                                   flash_small_count(recvcount), recvtype, root, comm, request,
                                   module);
}

int mca_coll_flash_large_scatter_init(const void *sendbuf, flash_large_count_t sendcount,
                                      MPI_Datatype sendtype, void *recvbuf,
                                      flash_large_count_t recvcount, MPI_Datatype recvtype,
                                      int root, ompi_communicator_t *comm, struct ompi_info_t *info,
                                      ompi_request_t **request, mca_coll_base_module_t *module)
{
    bool is_root = ompi_comm_rank(comm) == root;

    if (!side_fits("Scatter_init", !is_root, sendcount, sendtype, recvcount, recvtype, module)) {
        return flash_large_refuse_devices(root_has(sendbuf, root, comm), recvbuf, NULL) !=
                       MPI_SUCCESS
                   ? MPI_ERR_BUFFER
                   : flash_previous_of(module)->scatter_init(
                         sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm,
                         info, request, flash_previous_of(module)->scatter_init_module);
    }
    return mca_coll_flash_scatter_init(sendbuf, flash_small_count(sendcount), sendtype, recvbuf,
                                       flash_small_count(recvcount), recvtype, root, comm, info,
                                       request, module);
}

/*
 * Whether the arrays of a gather or a scatter with counts are of small ones. Each rank sees that by the
 * arrays' kind, which the call decides; what is in them is the root's alone. `count`: elements of another
 * rank's block.
 */
static bool roots_arrays_fit(const char *name, bool is_root, flash_large_counts_t counts,
                             flash_large_displs_t displs, size_t count, MPI_Datatype type,
                             mca_coll_base_module_t *module)
{
    if (is_root) {
        return flash_large_arrays_fit(name, counts, &displs, type, module);
    }
    return flash_arrays_are_small(counts, &displs) ||
           flash_large_not_served(name, count, type, module);
}

int mca_coll_flash_large_igatherv(const void *sendbuf, flash_large_count_t sendcount,
                                  MPI_Datatype sendtype, void *recvbuf,
                                  flash_large_counts_t recvcounts, flash_large_displs_t displs,
                                  MPI_Datatype recvtype, int root, ompi_communicator_t *comm,
                                  ompi_request_t **request, mca_coll_base_module_t *module)
{
    bool is_root = ompi_comm_rank(comm) == root;

    if (!roots_arrays_fit("Igatherv", is_root, recvcounts, displs, is_root ? 0 : sendcount,
                          is_root ? recvtype : sendtype, module)) {
        return flash_large_refuse_devices(sendbuf, root_has(recvbuf, root, comm), NULL) !=
                       MPI_SUCCESS
                   ? MPI_ERR_BUFFER
                   : flash_previous_of(module)->igatherv(
                         sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, root,
                         comm, request, flash_previous_of(module)->igatherv_module);
    }
    return mca_coll_flash_igatherv(sendbuf, flash_small_count(sendcount), sendtype, recvbuf,
                                   is_root ? ompi_count_array_ptr(recvcounts) : NULL,
                                   is_root ? ompi_disp_array_ptr(displs) : NULL, recvtype, root,
                                   comm, request, module);
}

int mca_coll_flash_large_gatherv_init(const void *sendbuf, flash_large_count_t sendcount,
                                      MPI_Datatype sendtype, void *recvbuf,
                                      flash_large_counts_t recvcounts, flash_large_displs_t displs,
                                      MPI_Datatype recvtype, int root, ompi_communicator_t *comm,
                                      struct ompi_info_t *info, ompi_request_t **request,
                                      mca_coll_base_module_t *module)
{
    bool is_root = ompi_comm_rank(comm) == root;

    if (!roots_arrays_fit("Gatherv_init", is_root, recvcounts, displs, is_root ? 0 : sendcount,
                          is_root ? recvtype : sendtype, module)) {
        return flash_large_refuse_devices(sendbuf, root_has(recvbuf, root, comm), NULL) !=
                       MPI_SUCCESS
                   ? MPI_ERR_BUFFER
                   : flash_previous_of(module)->gatherv_init(
                         sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, root,
                         comm, info, request, flash_previous_of(module)->gatherv_init_module);
    }
    return mca_coll_flash_gatherv_init(sendbuf, flash_small_count(sendcount), sendtype, recvbuf,
                                       is_root ? ompi_count_array_ptr(recvcounts) : NULL,
                                       is_root ? ompi_disp_array_ptr(displs) : NULL, recvtype, root,
                                       comm, info, request, module);
}

int mca_coll_flash_large_iscatterv(const void *sendbuf, flash_large_counts_t sendcounts,
                                   flash_large_displs_t displs, MPI_Datatype sendtype,
                                   void *recvbuf, flash_large_count_t recvcount,
                                   MPI_Datatype recvtype, int root, ompi_communicator_t *comm,
                                   ompi_request_t **request, mca_coll_base_module_t *module)
{
    bool is_root = ompi_comm_rank(comm) == root;

    if (!roots_arrays_fit("Iscatterv", is_root, sendcounts, displs, is_root ? 0 : recvcount,
                          is_root ? sendtype : recvtype, module)) {
        return flash_large_refuse_devices(root_has(sendbuf, root, comm), recvbuf, NULL) !=
                       MPI_SUCCESS
                   ? MPI_ERR_BUFFER
                   : flash_previous_of(module)->iscatterv(
                         sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount, recvtype, root,
                         comm, request, flash_previous_of(module)->iscatterv_module);
    }
    return mca_coll_flash_iscatterv(sendbuf, is_root ? ompi_count_array_ptr(sendcounts) : NULL,
                                    is_root ? ompi_disp_array_ptr(displs) : NULL, sendtype, recvbuf,
                                    flash_small_count(recvcount), recvtype, root, comm, request,
                                    module);
}

int mca_coll_flash_large_scatterv_init(const void *sendbuf, flash_large_counts_t sendcounts,
                                       flash_large_displs_t displs, MPI_Datatype sendtype,
                                       void *recvbuf, flash_large_count_t recvcount,
                                       MPI_Datatype recvtype, int root, ompi_communicator_t *comm,
                                       struct ompi_info_t *info, ompi_request_t **request,
                                       mca_coll_base_module_t *module)
{
    bool is_root = ompi_comm_rank(comm) == root;

    if (!roots_arrays_fit("Scatterv_init", is_root, sendcounts, displs, is_root ? 0 : recvcount,
                          is_root ? sendtype : recvtype, module)) {
        return flash_large_refuse_devices(root_has(sendbuf, root, comm), recvbuf, NULL) !=
                       MPI_SUCCESS
                   ? MPI_ERR_BUFFER
                   : flash_previous_of(module)->scatterv_init(
                         sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount, recvtype, root,
                         comm, info, request, flash_previous_of(module)->scatterv_init_module);
    }
    return mca_coll_flash_scatterv_init(sendbuf, is_root ? ompi_count_array_ptr(sendcounts) : NULL,
                                        is_root ? ompi_disp_array_ptr(displs) : NULL, sendtype,
                                        recvbuf, flash_small_count(recvcount), recvtype, root, comm,
                                        info, request, module);
}

#endif
