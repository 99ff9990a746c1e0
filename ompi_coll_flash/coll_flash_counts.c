/*
 * coll_flash_counts.c: the functions that the module takes over, as Open MPI 6 calls them: with counts
 * that may be larger than an int, and arrays of counts that may hold such.
 *
 * A block of 2 GiB and more is passed on, which is equal on all ranks, and so is what comes in arrays
 * of large counts, MPI_Iallgatherv_c for one: its ranks are all to call that. Open MPI 4.1 and 5.0
 * call the functions directly.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "coll_flash.h"

#if FLASH_LARGE_COUNTS

#include <limits.h>

static const mca_coll_flash_previous_t *previous(mca_coll_base_module_t *base)
{
    return &((mca_coll_flash_module_t *) base)->previous;
}

static void tell(const char *name, mca_coll_base_module_t *base)
{
    const mca_coll_flash_module_t *module = (mca_coll_flash_module_t *) base;

    mca_coll_flash_takes_ring(name, FLASH_ALLGATHER, SIZE_MAX, module, FLASH_COUNTS_TOO_LARGE);
}

static bool block_fits(const char *name, size_t count, MPI_Datatype type,
                       mca_coll_base_module_t *base)
{
    size_t size;
    bool fits;

    ompi_datatype_type_size(type, &size);
    fits = size == 0 || count <= INT_MAX / size;
    if (!fits) {
        tell(name, base);
    }
    return fits;
}

/* More is empty, or does not match the block, which is found out. */
static flash_count_t small(size_t count)
{
    return count > INT_MAX ? INT_MAX : (flash_count_t) count;
}

static bool arrays_fit(const char *name, flash_large_counts_t counts,
                       const flash_large_displs_t *displs, mca_coll_base_module_t *base)
{
    bool fit = !ompi_count_array_is_64bit(counts) &&
               (displs == NULL || !ompi_disp_array_is_64bit(*displs));

    if (!fit) {
        tell(name, base);
    }
    return fit;
}

int mca_coll_flash_large_iallgather(const void *sendbuf, flash_large_count_t sendcount,
                                    MPI_Datatype sendtype, void *recvbuf,
                                    flash_large_count_t recvcount, MPI_Datatype recvtype,
                                    ompi_communicator_t *comm, ompi_request_t **request,
                                    mca_coll_base_module_t *module)
{
    if (!block_fits("Iallgather", recvcount, recvtype, module)) {
        return previous(module)->iallgather(sendbuf, sendcount, sendtype, recvbuf, recvcount,
                                            recvtype, comm, request,
                                            previous(module)->iallgather_module);
    }
    return mca_coll_flash_iallgather(sendbuf, small(sendcount), sendtype, recvbuf, small(recvcount),
                                     recvtype, comm, request, module);
}

int mca_coll_flash_large_iallgatherv(const void *sendbuf, flash_large_count_t sendcount,
                                     MPI_Datatype sendtype, void *recvbuf,
                                     flash_large_counts_t recvcounts, flash_large_displs_t displs,
                                     MPI_Datatype recvtype, ompi_communicator_t *comm,
                                     ompi_request_t **request, mca_coll_base_module_t *module)
{
    if (!arrays_fit("Iallgatherv", recvcounts, &displs, module)) {
        return previous(module)->iallgatherv(sendbuf, sendcount, sendtype, recvbuf, recvcounts,
                                             displs, recvtype, comm, request,
                                             previous(module)->iallgatherv_module);
    }
    return mca_coll_flash_iallgatherv(sendbuf, small(sendcount), sendtype, recvbuf,
                                      ompi_count_array_ptr(recvcounts), ompi_disp_array_ptr(displs),
                                      recvtype, comm, request, module);
}

int mca_coll_flash_large_ireduce_scatter(const void *sendbuf, void *recvbuf,
                                         flash_large_counts_t recvcounts, MPI_Datatype datatype,
                                         MPI_Op op, ompi_communicator_t *comm,
                                         ompi_request_t **request, mca_coll_base_module_t *module)
{
    if (!arrays_fit("Ireduce_scatter", recvcounts, NULL, module)) {
        return previous(module)->ireduce_scatter(sendbuf, recvbuf, recvcounts, datatype, op, comm,
                                                 request, previous(module)->ireduce_scatter_module);
    }
    return mca_coll_flash_ireduce_scatter(sendbuf, recvbuf, ompi_count_array_ptr(recvcounts),
                                          datatype, op, comm, request, module);
}

int mca_coll_flash_large_ireduce_scatter_block(const void *sendbuf, void *recvbuf,
                                               flash_large_count_t recvcount, MPI_Datatype datatype,
                                               MPI_Op op, ompi_communicator_t *comm,
                                               ompi_request_t **request,
                                               mca_coll_base_module_t *module)
{
    if (!block_fits("Ireduce_scatter_block", recvcount, datatype, module)) {
        return previous(module)->ireduce_scatter_block(
            sendbuf, recvbuf, recvcount, datatype, op, comm, request,
            previous(module)->ireduce_scatter_block_module);
    }
    return mca_coll_flash_ireduce_scatter_block(sendbuf, recvbuf, small(recvcount), datatype, op,
                                                comm, request, module);
}

int mca_coll_flash_large_allgather_init(const void *sendbuf, flash_large_count_t sendcount,
                                        MPI_Datatype sendtype, void *recvbuf,
                                        flash_large_count_t recvcount, MPI_Datatype recvtype,
                                        ompi_communicator_t *comm, struct ompi_info_t *info,
                                        ompi_request_t **request, mca_coll_base_module_t *module)
{
    if (!block_fits("Allgather_init", recvcount, recvtype, module)) {
        return previous(module)->allgather_init(sendbuf, sendcount, sendtype, recvbuf, recvcount,
                                                recvtype, comm, info, request,
                                                previous(module)->allgather_init_module);
    }
    return mca_coll_flash_allgather_init(sendbuf, small(sendcount), sendtype, recvbuf,
                                         small(recvcount), recvtype, comm, info, request, module);
}

int mca_coll_flash_large_allgatherv_init(const void *sendbuf, flash_large_count_t sendcount,
                                         MPI_Datatype sendtype, void *recvbuf,
                                         flash_large_counts_t recvcounts,
                                         flash_large_displs_t displs, MPI_Datatype recvtype,
                                         ompi_communicator_t *comm, struct ompi_info_t *info,
                                         ompi_request_t **request, mca_coll_base_module_t *module)
{
    if (!arrays_fit("Allgatherv_init", recvcounts, &displs, module)) {
        return previous(module)->allgatherv_init(sendbuf, sendcount, sendtype, recvbuf, recvcounts,
                                                 displs, recvtype, comm, info, request,
                                                 previous(module)->allgatherv_init_module);
    }
    return mca_coll_flash_allgatherv_init(
        sendbuf, small(sendcount), sendtype, recvbuf, ompi_count_array_ptr(recvcounts),
        ompi_disp_array_ptr(displs), recvtype, comm, info, request, module);
}

int mca_coll_flash_large_reduce_scatter_init(const void *sendbuf, void *recvbuf,
                                             flash_large_counts_t recvcounts, MPI_Datatype datatype,
                                             MPI_Op op, ompi_communicator_t *comm,
                                             struct ompi_info_t *info, ompi_request_t **request,
                                             mca_coll_base_module_t *module)
{
    if (!arrays_fit("Reduce_scatter_init", recvcounts, NULL, module)) {
        return previous(module)->reduce_scatter_init(sendbuf, recvbuf, recvcounts, datatype, op,
                                                     comm, info, request,
                                                     previous(module)->reduce_scatter_init_module);
    }
    return mca_coll_flash_reduce_scatter_init(sendbuf, recvbuf, ompi_count_array_ptr(recvcounts),
                                              datatype, op, comm, info, request, module);
}

int mca_coll_flash_large_reduce_scatter_block_init(
    const void *sendbuf, void *recvbuf, flash_large_count_t recvcount, MPI_Datatype datatype,
    MPI_Op op, ompi_communicator_t *comm, struct ompi_info_t *info, ompi_request_t **request,
    mca_coll_base_module_t *module)
{
    if (!block_fits("Reduce_scatter_block_init", recvcount, datatype, module)) {
        return previous(module)->reduce_scatter_block_init(
            sendbuf, recvbuf, recvcount, datatype, op, comm, info, request,
            previous(module)->reduce_scatter_block_init_module);
    }
    return mca_coll_flash_reduce_scatter_block_init(sendbuf, recvbuf, small(recvcount), datatype,
                                                    op, comm, info, request, module);
}

#endif
