/*
 * coll_flash_ompi6.c: what Open MPI 6 wants and its predecessors do not; compiled, and never run.
 *
 * The functions that the module takes over come with counts that may be larger than an int, and
 * arrays of counts that may hold such. A block of 2 GiB and more falls back, which is equal on all
 * ranks, and so is what comes in arrays of large counts, MPI_Iallgatherv_c for one: its ranks are
 * all to call that. What falls back here is in host memory, but for blocking calls, which are passed
 * on as they are, and not counted. And a module gives back what it took.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "calls/coll_flash_calls.h"

#if FLASH_LARGE_COUNTS

#include <limits.h>

static const mca_coll_flash_previous_t *previous(mca_coll_base_module_t *base)
{
    return &((mca_coll_flash_module_t *) base)->previous;
}

static void tell(const char *name, size_t count, MPI_Datatype type, mca_coll_base_module_t *base)
{
    const mca_coll_flash_module_t *module = (mca_coll_flash_module_t *) base;
    size_t size;

    ompi_datatype_type_size(type, &size);
    mca_coll_flash_choose_path(&(mca_coll_flash_call_t){.name = name,
                                                        .kind = FLASH_ALLGATHER,
                                                        .bytes = count * size,
                                                        .reason = FLASH_COUNTS_TOO_LARGE},
                               module);
}

static bool fits(size_t count, MPI_Datatype type)
{
    size_t size;

    ompi_datatype_type_size(type, &size);
    return size == 0 || count <= INT_MAX / size;
}

static bool block_fits(const char *name, size_t count, MPI_Datatype type,
                       mca_coll_base_module_t *base)
{
    const mca_coll_flash_module_t *module = (mca_coll_flash_module_t *) base;
    bool fit = fits(count, type);

    if (!fit) {
        tell(name, count * (size_t) ompi_comm_size(module->comm), type, base);
    }
    return fit;
}

static bool arrays_are_small(flash_large_counts_t counts, const flash_large_displs_t *displs)
{
    return !ompi_count_array_is_64bit(counts) &&
           (displs == NULL || !ompi_disp_array_is_64bit(*displs));
}

/* Of an allreduce, whose vector is all blocks. */
static bool vector_fits(const char *name, size_t count, MPI_Datatype type,
                        mca_coll_base_module_t *base)
{
    bool fit = fits(count, type);

    if (!fit) {
        tell(name, count, type, base);
    }
    return fit;
}

/* More is empty, or does not match the block, which is found out. */
static flash_count_t small(size_t count)
{
    return count > INT_MAX ? INT_MAX : (flash_count_t) count;
}

static bool arrays_fit(const char *name, flash_large_counts_t counts,
                       const flash_large_displs_t *displs, MPI_Datatype type,
                       mca_coll_base_module_t *base)
{
    const mca_coll_flash_module_t *module = (mca_coll_flash_module_t *) base;
    size_t count = 0;
    bool fit = arrays_are_small(counts, displs);

    for (int rank = 0; rank < ompi_comm_size(module->comm) && !fit; rank++) {
        count += ompi_count_array_get(counts, (size_t) rank);
    }
    if (!fit) {
        tell(name, count, type, base);
    }
    return fit;
}

/*
 * MPI_SUCCESS, or MPI_ERR_BUFFER, which is explained: it would be read by the host. Built for such
 * memory, Open MPI still reduces by the processor in its non-blocking calls. `op`: NULL, no reduction.
 */
static int refuse_devices(const void *sendbuf, const void *recvbuf, MPI_Op op)
{
    if ((op != NULL || !flash_compat_takes_devices()) &&
        (mca_coll_flash_is_on_device(sendbuf) || mca_coll_flash_is_on_device(recvbuf))) {
        return mca_coll_flash_refuse_device("a block of 2 GiB, or an array of large counts");
    }
    return MPI_SUCCESS;
}

/* ------------------------------------------------------------ blocking calls */

int mca_coll_flash_large_allgather(const void *sendbuf, flash_large_count_t sendcount,
                                   MPI_Datatype sendtype, void *recvbuf,
                                   flash_large_count_t recvcount, MPI_Datatype recvtype,
                                   ompi_communicator_t *comm, mca_coll_base_module_t *module)
{
    return fits(recvcount, recvtype)
               ? mca_coll_flash_allgather(sendbuf, small(sendcount), sendtype, recvbuf,
                                          small(recvcount), recvtype, comm, module)
               : previous(module)->allgather(sendbuf, sendcount, sendtype, recvbuf, recvcount,
                                             recvtype, comm, previous(module)->allgather_module);
}

int mca_coll_flash_large_allgatherv(const void *sendbuf, flash_large_count_t sendcount,
                                    MPI_Datatype sendtype, void *recvbuf,
                                    flash_large_counts_t recvcounts, flash_large_displs_t displs,
                                    MPI_Datatype recvtype, ompi_communicator_t *comm,
                                    mca_coll_base_module_t *module)
{
    return arrays_are_small(recvcounts, &displs)
               ? mca_coll_flash_allgatherv(sendbuf, small(sendcount), sendtype, recvbuf,
                                           ompi_count_array_ptr(recvcounts),
                                           ompi_disp_array_ptr(displs), recvtype, comm, module)
               : previous(module)->allgatherv(sendbuf, sendcount, sendtype, recvbuf, recvcounts,
                                              displs, recvtype, comm,
                                              previous(module)->allgatherv_module);
}

int mca_coll_flash_large_reduce_scatter(const void *sendbuf, void *recvbuf,
                                        flash_large_counts_t recvcounts, MPI_Datatype datatype,
                                        MPI_Op op, ompi_communicator_t *comm,
                                        mca_coll_base_module_t *module)
{
    return arrays_are_small(recvcounts, NULL)
               ? mca_coll_flash_reduce_scatter(sendbuf, recvbuf, ompi_count_array_ptr(recvcounts),
                                               datatype, op, comm, module)
               : previous(module)->reduce_scatter(sendbuf, recvbuf, recvcounts, datatype, op, comm,
                                                  previous(module)->reduce_scatter_module);
}

int mca_coll_flash_large_reduce_scatter_block(const void *sendbuf, void *recvbuf,
                                              flash_large_count_t recvcount, MPI_Datatype datatype,
                                              MPI_Op op, ompi_communicator_t *comm,
                                              mca_coll_base_module_t *module)
{
    return fits(recvcount, datatype)
               ? mca_coll_flash_reduce_scatter_block(sendbuf, recvbuf, small(recvcount), datatype,
                                                     op, comm, module)
               : previous(module)->reduce_scatter_block(
                     sendbuf, recvbuf, recvcount, datatype, op, comm,
                     previous(module)->reduce_scatter_block_module);
}

int mca_coll_flash_large_allreduce(const void *sendbuf, void *recvbuf, flash_large_count_t count,
                                   MPI_Datatype datatype, MPI_Op op, ompi_communicator_t *comm,
                                   mca_coll_base_module_t *module)
{
    return fits(count, datatype)
               ? mca_coll_flash_allreduce(sendbuf, recvbuf, small(count), datatype, op, comm,
                                          module)
               : previous(module)->allreduce(sendbuf, recvbuf, count, datatype, op, comm,
                                             previous(module)->allreduce_module);
}

/* -------------------------------------------- non-blocking calls, persistent requests */

int mca_coll_flash_large_iallgather(const void *sendbuf, flash_large_count_t sendcount,
                                    MPI_Datatype sendtype, void *recvbuf,
                                    flash_large_count_t recvcount, MPI_Datatype recvtype,
                                    ompi_communicator_t *comm, ompi_request_t **request,
                                    mca_coll_base_module_t *module)
{
    if (!block_fits("Iallgather", recvcount, recvtype, module)) {
        return refuse_devices(sendbuf, recvbuf, NULL) != MPI_SUCCESS
                   ? MPI_ERR_BUFFER
                   : previous(module)->iallgather(sendbuf, sendcount, sendtype, recvbuf, recvcount,
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
    if (!arrays_fit("Iallgatherv", recvcounts, &displs, recvtype, module)) {
        return refuse_devices(sendbuf, recvbuf, NULL) != MPI_SUCCESS
                   ? MPI_ERR_BUFFER
                   : previous(module)->iallgatherv(sendbuf, sendcount, sendtype, recvbuf,
                                                   recvcounts, displs, recvtype, comm, request,
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
    if (!arrays_fit("Ireduce_scatter", recvcounts, NULL, datatype, module)) {
        return refuse_devices(sendbuf, recvbuf, op) != MPI_SUCCESS
                   ? MPI_ERR_BUFFER
                   : previous(module)->ireduce_scatter(sendbuf, recvbuf, recvcounts, datatype, op,
                                                       comm, request,
                                                       previous(module)->ireduce_scatter_module);
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
        return refuse_devices(sendbuf, recvbuf, op) != MPI_SUCCESS
                   ? MPI_ERR_BUFFER
                   : previous(module)->ireduce_scatter_block(
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
        return refuse_devices(sendbuf, recvbuf, NULL) != MPI_SUCCESS
                   ? MPI_ERR_BUFFER
                   : previous(module)->allgather_init(sendbuf, sendcount, sendtype, recvbuf,
                                                      recvcount, recvtype, comm, info, request,
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
    if (!arrays_fit("Allgatherv_init", recvcounts, &displs, recvtype, module)) {
        return refuse_devices(sendbuf, recvbuf, NULL) != MPI_SUCCESS
                   ? MPI_ERR_BUFFER
                   : previous(module)->allgatherv_init(
                         sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm,
                         info, request, previous(module)->allgatherv_init_module);
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
    if (!arrays_fit("Reduce_scatter_init", recvcounts, NULL, datatype, module)) {
        return refuse_devices(sendbuf, recvbuf, op) != MPI_SUCCESS
                   ? MPI_ERR_BUFFER
                   : previous(module)->reduce_scatter_init(
                         sendbuf, recvbuf, recvcounts, datatype, op, comm, info, request,
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
        return refuse_devices(sendbuf, recvbuf, op) != MPI_SUCCESS
                   ? MPI_ERR_BUFFER
                   : previous(module)->reduce_scatter_block_init(
                         sendbuf, recvbuf, recvcount, datatype, op, comm, info, request,
                         previous(module)->reduce_scatter_block_init_module);
    }
    return mca_coll_flash_reduce_scatter_block_init(sendbuf, recvbuf, small(recvcount), datatype,
                                                    op, comm, info, request, module);
}

int mca_coll_flash_large_iallreduce(const void *sendbuf, void *recvbuf, flash_large_count_t count,
                                    MPI_Datatype datatype, MPI_Op op, ompi_communicator_t *comm,
                                    ompi_request_t **request, mca_coll_base_module_t *module)
{
    if (!vector_fits("Iallreduce", count, datatype, module)) {
        return refuse_devices(sendbuf, recvbuf, op) != MPI_SUCCESS
                   ? MPI_ERR_BUFFER
                   : previous(module)->iallreduce(sendbuf, recvbuf, count, datatype, op, comm,
                                                  request, previous(module)->iallreduce_module);
    }
    return mca_coll_flash_iallreduce(sendbuf, recvbuf, small(count), datatype, op, comm, request,
                                     module);
}

int mca_coll_flash_large_allreduce_init(const void *sendbuf, void *recvbuf,
                                        flash_large_count_t count, MPI_Datatype datatype, MPI_Op op,
                                        ompi_communicator_t *comm, struct ompi_info_t *info,
                                        ompi_request_t **request, mca_coll_base_module_t *module)
{
    if (!vector_fits("Allreduce_init", count, datatype, module)) {
        return refuse_devices(sendbuf, recvbuf, op) != MPI_SUCCESS
                   ? MPI_ERR_BUFFER
                   : previous(module)->allreduce_init(sendbuf, recvbuf, count, datatype, op, comm,
                                                      info, request,
                                                      previous(module)->allreduce_init_module);
    }
    return mca_coll_flash_allreduce_init(sendbuf, recvbuf, small(count), datatype, op, comm, info,
                                         request, module);
}

int mca_coll_flash_large_ialltoall(const void *sendbuf, flash_large_count_t sendcount,
                                   MPI_Datatype sendtype, void *recvbuf,
                                   flash_large_count_t recvcount, MPI_Datatype recvtype,
                                   ompi_communicator_t *comm, ompi_request_t **request,
                                   mca_coll_base_module_t *module)
{
    if (!block_fits("Ialltoall", recvcount, recvtype, module)) {
        return refuse_devices(sendbuf, recvbuf, NULL) != MPI_SUCCESS
                   ? MPI_ERR_BUFFER
                   : previous(module)->ialltoall(sendbuf, sendcount, sendtype, recvbuf, recvcount,
                                                 recvtype, comm, request,
                                                 previous(module)->ialltoall_module);
    }
    return mca_coll_flash_ialltoall(sendbuf, small(sendcount), sendtype, recvbuf, small(recvcount),
                                    recvtype, comm, request, module);
}

int mca_coll_flash_large_alltoall_init(const void *sendbuf, flash_large_count_t sendcount,
                                       MPI_Datatype sendtype, void *recvbuf,
                                       flash_large_count_t recvcount, MPI_Datatype recvtype,
                                       ompi_communicator_t *comm, struct ompi_info_t *info,
                                       ompi_request_t **request, mca_coll_base_module_t *module)
{
    if (!block_fits("Alltoall_init", recvcount, recvtype, module)) {
        return refuse_devices(sendbuf, recvbuf, NULL) != MPI_SUCCESS
                   ? MPI_ERR_BUFFER
                   : previous(module)->alltoall_init(sendbuf, sendcount, sendtype, recvbuf,
                                                     recvcount, recvtype, comm, info, request,
                                                     previous(module)->alltoall_init_module);
    }
    return mca_coll_flash_alltoall_init(sendbuf, small(sendcount), sendtype, recvbuf,
                                        small(recvcount), recvtype, comm, info, request, module);
}

/* Of what nobody took over since: modules are disabled in the reverse order. */
int mca_coll_flash_give_back(mca_coll_base_module_t *module, ompi_communicator_t *comm)
{
#define GIVE_BACK(name)                                                                       \
    MCA_COLL_INSTALL_API(comm, name, previous(module)->name, previous(module)->name##_module, \
                         "flash");
    FLASH_EACH_FUNCTION(GIVE_BACK)
#undef GIVE_BACK
    return OMPI_SUCCESS;
}

#endif
