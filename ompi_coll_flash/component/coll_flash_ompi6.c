/*
 * coll_flash_ompi6.c: non-blocking calls and persistent requests of Open MPI 6 without a root, see
 * coll_flash_ompi6.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "component/coll_flash_ompi6.h"

#if FLASH_LARGE_COUNTS

static void tell(const char *name, size_t count, MPI_Datatype type, mca_coll_base_module_t *base)
{
    mca_coll_flash_module_t *module = (mca_coll_flash_module_t *) base;
    size_t size;

    ompi_datatype_type_size(type, &size);
    mca_coll_flash_choose_path(&(mca_coll_flash_call_t){.name = name,
                                                        .kind = FLASH_ALLGATHER,
                                                        .bytes = count * size,
                                                        .reason = FLASH_COUNTS_TOO_LARGE},
                               module, NULL);
}

bool flash_large_not_served(const char *name, size_t count, MPI_Datatype type,
                            mca_coll_base_module_t *base)
{
    tell(name, count, type, base);
    return false;
}

bool flash_large_block_fits(const char *name, size_t count, MPI_Datatype type,
                            mca_coll_base_module_t *base)
{
    const mca_coll_flash_module_t *module = (mca_coll_flash_module_t *) base;
    bool fit = flash_fits_int(count, type);

    if (!fit) {
        tell(name, count * (size_t) ompi_comm_size(module->comm), type, base);
    }
    return fit;
}

bool flash_large_vector_fits(const char *name, size_t count, MPI_Datatype type,
                             mca_coll_base_module_t *base)
{
    bool fit = flash_fits_int(count, type);

    if (!fit) {
        tell(name, count, type, base);
    }
    return fit;
}

bool flash_large_arrays_fit(const char *name, flash_large_counts_t counts,
                            const flash_large_displs_t *displs, MPI_Datatype type,
                            mca_coll_base_module_t *base)
{
    const mca_coll_flash_module_t *module = (mca_coll_flash_module_t *) base;
    size_t count = 0;
    bool fit = flash_arrays_are_small(counts, displs);

    for (int rank = 0; rank < ompi_comm_size(module->comm) && !fit; rank++) {
        count += ompi_count_array_get(counts, (size_t) rank);
    }
    if (!fit) {
        tell(name, count, type, base);
    }
    return fit;
}

/* Built for such memory, Open MPI still reduces by the processor in its non-blocking calls. */
int flash_large_refuse_devices(const void *sendbuf, const void *recvbuf, MPI_Op op)
{
    if ((op != NULL || !flash_compat_takes_devices()) &&
        (mca_coll_flash_is_on_device(sendbuf) || mca_coll_flash_is_on_device(recvbuf))) {
        return mca_coll_flash_refuse_device("a block of 2 GiB, or an array of large counts");
    }
    return MPI_SUCCESS;
}

/* -------------------------------------------- non-blocking calls, persistent requests */

int mca_coll_flash_large_iallgather(const void *sendbuf, flash_large_count_t sendcount,
                                    MPI_Datatype sendtype, void *recvbuf,
                                    flash_large_count_t recvcount, MPI_Datatype recvtype,
                                    ompi_communicator_t *comm, ompi_request_t **request,
                                    mca_coll_base_module_t *module)
{
    if (!flash_large_block_fits("Iallgather", recvcount, recvtype, module)) {
        return flash_large_refuse_devices(sendbuf, recvbuf, NULL) != MPI_SUCCESS
                   ? MPI_ERR_BUFFER
                   : flash_previous_of(module)->iallgather(
                         sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, request,
                         flash_previous_of(module)->iallgather_module);
    }
    return mca_coll_flash_iallgather(sendbuf, flash_small_count(sendcount), sendtype, recvbuf,
                                     flash_small_count(recvcount), recvtype, comm, request, module);
}

int mca_coll_flash_large_iallgatherv(const void *sendbuf, flash_large_count_t sendcount,
                                     MPI_Datatype sendtype, void *recvbuf,
                                     flash_large_counts_t recvcounts, flash_large_displs_t displs,
                                     MPI_Datatype recvtype, ompi_communicator_t *comm,
                                     ompi_request_t **request, mca_coll_base_module_t *module)
{
    if (!flash_large_arrays_fit("Iallgatherv", recvcounts, &displs, recvtype, module)) {
        return flash_large_refuse_devices(sendbuf, recvbuf, NULL) != MPI_SUCCESS
                   ? MPI_ERR_BUFFER
                   : flash_previous_of(module)->iallgatherv(
                         sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm,
                         request, flash_previous_of(module)->iallgatherv_module);
    }
    return mca_coll_flash_iallgatherv(sendbuf, flash_small_count(sendcount), sendtype, recvbuf,
                                      ompi_count_array_ptr(recvcounts), ompi_disp_array_ptr(displs),
                                      recvtype, comm, request, module);
}

int mca_coll_flash_large_ireduce_scatter(const void *sendbuf, void *recvbuf,
                                         flash_large_counts_t recvcounts, MPI_Datatype datatype,
                                         MPI_Op op, ompi_communicator_t *comm,
                                         ompi_request_t **request, mca_coll_base_module_t *module)
{
    if (!flash_large_arrays_fit("Ireduce_scatter", recvcounts, NULL, datatype, module)) {
        return flash_large_refuse_devices(sendbuf, recvbuf, op) != MPI_SUCCESS
                   ? MPI_ERR_BUFFER
                   : flash_previous_of(module)->ireduce_scatter(
                         sendbuf, recvbuf, recvcounts, datatype, op, comm, request,
                         flash_previous_of(module)->ireduce_scatter_module);
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
    if (!flash_large_block_fits("Ireduce_scatter_block", recvcount, datatype, module)) {
        return flash_large_refuse_devices(sendbuf, recvbuf, op) != MPI_SUCCESS
                   ? MPI_ERR_BUFFER
                   : flash_previous_of(module)->ireduce_scatter_block(
                         sendbuf, recvbuf, recvcount, datatype, op, comm, request,
                         flash_previous_of(module)->ireduce_scatter_block_module);
    }
    return mca_coll_flash_ireduce_scatter_block(sendbuf, recvbuf, flash_small_count(recvcount),
                                                datatype, op, comm, request, module);
}

int mca_coll_flash_large_allgather_init(const void *sendbuf, flash_large_count_t sendcount,
                                        MPI_Datatype sendtype, void *recvbuf,
                                        flash_large_count_t recvcount, MPI_Datatype recvtype,
                                        ompi_communicator_t *comm, struct ompi_info_t *info,
                                        ompi_request_t **request, mca_coll_base_module_t *module)
{
    if (!flash_large_block_fits("Allgather_init", recvcount, recvtype, module)) {
        return flash_large_refuse_devices(sendbuf, recvbuf, NULL) != MPI_SUCCESS
                   ? MPI_ERR_BUFFER
                   : flash_previous_of(module)->allgather_init(
                         sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, info,
                         request, flash_previous_of(module)->allgather_init_module);
    }
    return mca_coll_flash_allgather_init(sendbuf, flash_small_count(sendcount), sendtype, recvbuf,
                                         flash_small_count(recvcount), recvtype, comm, info,
                                         request, module);
}

int mca_coll_flash_large_allgatherv_init(const void *sendbuf, flash_large_count_t sendcount,
                                         MPI_Datatype sendtype, void *recvbuf,
                                         flash_large_counts_t recvcounts,
                                         flash_large_displs_t displs, MPI_Datatype recvtype,
                                         ompi_communicator_t *comm, struct ompi_info_t *info,
                                         ompi_request_t **request, mca_coll_base_module_t *module)
{
    if (!flash_large_arrays_fit("Allgatherv_init", recvcounts, &displs, recvtype, module)) {
        return flash_large_refuse_devices(sendbuf, recvbuf, NULL) != MPI_SUCCESS
                   ? MPI_ERR_BUFFER
                   : flash_previous_of(module)->allgatherv_init(
                         sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm,
                         info, request, flash_previous_of(module)->allgatherv_init_module);
    }
    return mca_coll_flash_allgatherv_init(
        sendbuf, flash_small_count(sendcount), sendtype, recvbuf, ompi_count_array_ptr(recvcounts),
        ompi_disp_array_ptr(displs), recvtype, comm, info, request, module);
}

int mca_coll_flash_large_reduce_scatter_init(const void *sendbuf, void *recvbuf,
                                             flash_large_counts_t recvcounts, MPI_Datatype datatype,
                                             MPI_Op op, ompi_communicator_t *comm,
                                             struct ompi_info_t *info, ompi_request_t **request,
                                             mca_coll_base_module_t *module)
{
    if (!flash_large_arrays_fit("Reduce_scatter_init", recvcounts, NULL, datatype, module)) {
        return flash_large_refuse_devices(sendbuf, recvbuf, op) != MPI_SUCCESS
                   ? MPI_ERR_BUFFER
                   : flash_previous_of(module)->reduce_scatter_init(
                         sendbuf, recvbuf, recvcounts, datatype, op, comm, info, request,
                         flash_previous_of(module)->reduce_scatter_init_module);
    }
    return mca_coll_flash_reduce_scatter_init(sendbuf, recvbuf, ompi_count_array_ptr(recvcounts),
                                              datatype, op, comm, info, request, module);
}

int mca_coll_flash_large_reduce_scatter_block_init(
    const void *sendbuf, void *recvbuf, flash_large_count_t recvcount, MPI_Datatype datatype,
    MPI_Op op, ompi_communicator_t *comm, struct ompi_info_t *info, ompi_request_t **request,
    mca_coll_base_module_t *module)
{
    if (!flash_large_block_fits("Reduce_scatter_block_init", recvcount, datatype, module)) {
        return flash_large_refuse_devices(sendbuf, recvbuf, op) != MPI_SUCCESS
                   ? MPI_ERR_BUFFER
                   : flash_previous_of(module)->reduce_scatter_block_init(
                         sendbuf, recvbuf, recvcount, datatype, op, comm, info, request,
                         flash_previous_of(module)->reduce_scatter_block_init_module);
    }
    return mca_coll_flash_reduce_scatter_block_init(sendbuf, recvbuf, flash_small_count(recvcount),
                                                    datatype, op, comm, info, request, module);
}

int mca_coll_flash_large_iallreduce(const void *sendbuf, void *recvbuf, flash_large_count_t count,
                                    MPI_Datatype datatype, MPI_Op op, ompi_communicator_t *comm,
                                    ompi_request_t **request, mca_coll_base_module_t *module)
{
    if (!flash_large_vector_fits("Iallreduce", count, datatype, module)) {
        return flash_large_refuse_devices(sendbuf, recvbuf, op) != MPI_SUCCESS
                   ? MPI_ERR_BUFFER
                   : flash_previous_of(module)->iallreduce(
                         sendbuf, recvbuf, count, datatype, op, comm, request,
                         flash_previous_of(module)->iallreduce_module);
    }
    return mca_coll_flash_iallreduce(sendbuf, recvbuf, flash_small_count(count), datatype, op, comm,
                                     request, module);
}

int mca_coll_flash_large_allreduce_init(const void *sendbuf, void *recvbuf,
                                        flash_large_count_t count, MPI_Datatype datatype, MPI_Op op,
                                        ompi_communicator_t *comm, struct ompi_info_t *info,
                                        ompi_request_t **request, mca_coll_base_module_t *module)
{
    if (!flash_large_vector_fits("Allreduce_init", count, datatype, module)) {
        return flash_large_refuse_devices(sendbuf, recvbuf, op) != MPI_SUCCESS
                   ? MPI_ERR_BUFFER
                   : flash_previous_of(module)->allreduce_init(
                         sendbuf, recvbuf, count, datatype, op, comm, info, request,
                         flash_previous_of(module)->allreduce_init_module);
    }
    return mca_coll_flash_allreduce_init(sendbuf, recvbuf, flash_small_count(count), datatype, op,
                                         comm, info, request, module);
}

int mca_coll_flash_large_ialltoall(const void *sendbuf, flash_large_count_t sendcount,
                                   MPI_Datatype sendtype, void *recvbuf,
                                   flash_large_count_t recvcount, MPI_Datatype recvtype,
                                   ompi_communicator_t *comm, ompi_request_t **request,
                                   mca_coll_base_module_t *module)
{
    if (!flash_large_block_fits("Ialltoall", recvcount, recvtype, module)) {
        return flash_large_refuse_devices(sendbuf, recvbuf, NULL) != MPI_SUCCESS
                   ? MPI_ERR_BUFFER
                   : flash_previous_of(module)->ialltoall(
                         sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, request,
                         flash_previous_of(module)->ialltoall_module);
    }
    return mca_coll_flash_ialltoall(sendbuf, flash_small_count(sendcount), sendtype, recvbuf,
                                    flash_small_count(recvcount), recvtype, comm, request, module);
}

int mca_coll_flash_large_alltoall_init(const void *sendbuf, flash_large_count_t sendcount,
                                       MPI_Datatype sendtype, void *recvbuf,
                                       flash_large_count_t recvcount, MPI_Datatype recvtype,
                                       ompi_communicator_t *comm, struct ompi_info_t *info,
                                       ompi_request_t **request, mca_coll_base_module_t *module)
{
    if (!flash_large_block_fits("Alltoall_init", recvcount, recvtype, module)) {
        return flash_large_refuse_devices(sendbuf, recvbuf, NULL) != MPI_SUCCESS
                   ? MPI_ERR_BUFFER
                   : flash_previous_of(module)->alltoall_init(
                         sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, info,
                         request, flash_previous_of(module)->alltoall_init_module);
    }
    return mca_coll_flash_alltoall_init(sendbuf, flash_small_count(sendcount), sendtype, recvbuf,
                                        flash_small_count(recvcount), recvtype, comm, info, request,
                                        module);
}

int mca_coll_flash_large_ialltoallv(const void *sendbuf, flash_large_counts_t sendcounts,
                                    flash_large_displs_t sdispls, MPI_Datatype sendtype,
                                    void *recvbuf, flash_large_counts_t recvcounts,
                                    flash_large_displs_t rdispls, MPI_Datatype recvtype,
                                    ompi_communicator_t *comm, ompi_request_t **request,
                                    mca_coll_base_module_t *module)
{
    bool in_place = sendbuf == MPI_IN_PLACE;

    if (!flash_large_arrays_fit("Ialltoallv", recvcounts, &rdispls, recvtype, module)) {
        return flash_large_refuse_devices(in_place ? NULL : sendbuf, recvbuf, NULL) != MPI_SUCCESS
                   ? MPI_ERR_BUFFER
                   : flash_previous_of(module)->ialltoallv(
                         sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls,
                         recvtype, comm, request, flash_previous_of(module)->ialltoallv_module);
    }
    return mca_coll_flash_ialltoallv(sendbuf, in_place ? NULL : ompi_count_array_ptr(sendcounts),
                                     in_place ? NULL : ompi_disp_array_ptr(sdispls), sendtype,
                                     recvbuf, ompi_count_array_ptr(recvcounts),
                                     ompi_disp_array_ptr(rdispls), recvtype, comm, request, module);
}

int mca_coll_flash_large_alltoallv_init(const void *sendbuf, flash_large_counts_t sendcounts,
                                        flash_large_displs_t sdispls, MPI_Datatype sendtype,
                                        void *recvbuf, flash_large_counts_t recvcounts,
                                        flash_large_displs_t rdispls, MPI_Datatype recvtype,
                                        ompi_communicator_t *comm, struct ompi_info_t *info,
                                        ompi_request_t **request, mca_coll_base_module_t *module)
{
    bool in_place = sendbuf == MPI_IN_PLACE;

    if (!flash_large_arrays_fit("Alltoallv_init", recvcounts, &rdispls, recvtype, module)) {
        return flash_large_refuse_devices(in_place ? NULL : sendbuf, recvbuf, NULL) != MPI_SUCCESS
                   ? MPI_ERR_BUFFER
                   : flash_previous_of(module)->alltoallv_init(
                         sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls,
                         recvtype, comm, info, request,
                         flash_previous_of(module)->alltoallv_init_module);
    }
    return mca_coll_flash_alltoallv_init(
        sendbuf, in_place ? NULL : ompi_count_array_ptr(sendcounts),
        in_place ? NULL : ompi_disp_array_ptr(sdispls), sendtype, recvbuf,
        ompi_count_array_ptr(recvcounts), ompi_disp_array_ptr(rdispls), recvtype, comm, info,
        request, module);
}

/* Of what nobody took over since: modules are disabled in the reverse order. */
int mca_coll_flash_give_back(mca_coll_base_module_t *module, ompi_communicator_t *comm)
{
#define GIVE_BACK(name)                                               \
    MCA_COLL_INSTALL_API(comm, name, flash_previous_of(module)->name, \
                         flash_previous_of(module)->name##_module, "flash");
    FLASH_EACH_FUNCTION(GIVE_BACK)
#undef GIVE_BACK
    return OMPI_SUCCESS;
}

#endif
