/*
 * mpix_flash.c: the extension's calls: arguments checked, then to the ring or to the fallback.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "extension/mpix_flash_call.h"
#include "ring/coll_flash_ring.h"
#include "ring/coll_flash_setup.h"
#include "calls/flash_fallback.h"
#include "extension/mpix_flash_fallback.h"

int MPIX_Flash_active(MPI_Comm comm, int *flag)
{
    flash_call_begin(__func__);
    int error = flash_call_check_comm(comm);

    if (error == MPI_SUCCESS && flag == NULL) {
        error = MPI_ERR_ARG;
    }
    if (error == MPI_SUCCESS) {
        const mca_coll_flash_module_t *module = mca_coll_flash_module_of(comm);

        *flag = module != NULL && !mca_coll_flash_setup_is_refused(module);
    }
    return flash_call_raise(comm, error, __func__);
}

int MPIX_Flash_type(int which, MPI_Datatype *type)
{
    int error;

    if (!flash_call_has_world()) {
        return MPI_ERR_OTHER;
    }
    error = type == NULL ? MPI_ERR_ARG : mca_coll_flash_float16_type(which, type);
    return flash_call_raise(MPI_COMM_WORLD, error, __func__);
}

int MPIX_Flash_complete(MPIX_Flash_handle handle, int error)
{
    int status = error >= 0 ? error : MPI_ERR_OTHER;
    bool pending;

    if (handle.operation == NULL) {
        return MPI_ERR_ARG;
    }
    if (handle.piece < 0) {
        pending = flash_fallback_end_pending(handle.operation, handle.piece, status);
    } else {
        pending = flash_progress_end_pending(mca_coll_flash_job_progress(), handle.operation,
                                             (uint64_t) handle.piece, status);
    }
    return pending ? MPI_SUCCESS : MPI_ERR_ARG;
}

/* --------------------------------------------------------------- allgather */

static int check_allgather(const void *sendbuf, int sendcount, MPI_Datatype sendtype,
                           const void *recvbuf, int recvcount, const int recvcounts[],
                           MPI_Datatype recvtype, MPI_Comm comm)
{
    int error = flash_call_check_type(recvtype);

    if (error == MPI_SUCCESS) {
        error = flash_call_check_counts(recvcount, recvcounts, comm);
    }
    if (error == MPI_SUCCESS && recvbuf == MPI_IN_PLACE) {
        error = MPI_ERR_BUFFER;
    }
    if (error == MPI_SUCCESS && sendbuf != MPI_IN_PLACE) {
        error = sendcount < 0 ? MPI_ERR_COUNT : flash_call_check_type(sendtype);
    }
    return error;
}

static int allgather(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
                     int recvcount, const int recvcounts[], const int displs[],
                     MPI_Datatype recvtype, MPIX_Flash_compute_fn *consume, void *arg,
                     const MPIX_Flash_hints *hints, MPI_Comm comm, MPI_Request *request)
{
    mca_coll_flash_module_t *module;
    mca_coll_flash_compute_t compute;
    mca_coll_flash_reason_t reason;
    flash_call_t own;
    int error = flash_call_check_comm(comm);

    if (error == MPI_SUCCESS) {
        error = request == NULL
                    ? MPI_ERR_ARG
                    : flash_call_read((flash_call_t){NULL, NULL}, (flash_call_t){consume, arg},
                                      hints, &own, &compute);
    }
    if (error == MPI_SUCCESS) {
        compute.produce = own.fn;
        compute.produce_arg = own.arg;
        error = consume == NULL && own.fn == NULL ? MPI_ERR_ARG : MPI_SUCCESS;
    }
    if (error == MPI_SUCCESS) {
        error = check_allgather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvcounts,
                                recvtype, comm);
    }
    if (error != MPI_SUCCESS) {
        return error;
    }
    module = flash_call_module(comm, &compute);
    reason = flash_call_reason(module);
    if (reason == FLASH_NO_REASON) {
        reason = flash_call_merge_reason(module, &compute, FLASH_ALLGATHER, recvcount, recvcounts,
                                         recvtype);
    }
    reason = flash_call_setup_reason(module, FLASH_ALLGATHER, reason);
    flash_call_tell(recvcounts == NULL ? "Iallgather_compute" : "Iallgatherv_compute", recvcount,
                    recvcounts, recvtype, comm, reason);
    if (reason != FLASH_NO_REASON) {
        error = flash_fallback_allgather(sendbuf, sendcount, sendtype, recvbuf, recvcount,
                                         recvcounts, displs, recvtype, &compute, comm, request);
    } else {
        error = mca_coll_flash_start_allgather(module, mca_coll_flash_ring_ticket(module), sendbuf,
                                               sendcount, sendtype, recvbuf, recvcount, recvcounts,
                                               displs, recvtype, &compute, request);
    }
    if (error == MPI_SUCCESS) {
        ompi_coll_base_retain_datatypes(*request, sendbuf == MPI_IN_PLACE ? NULL : sendtype,
                                        recvtype);
    }
    return error;
}

int MPIX_Iallgather_compute(const void *sendbuf, int sendcount, MPI_Datatype sendtype,
                            void *recvbuf, int recvcount, MPI_Datatype recvtype,
                            MPIX_Flash_compute_fn *consume, void *arg,
                            const MPIX_Flash_hints *hints, MPI_Comm comm, MPI_Request *request)
{
    flash_call_begin(__func__);
    return flash_call_raise(comm,
                            allgather(sendbuf, sendcount, sendtype, recvbuf, recvcount, NULL, NULL,
                                      recvtype, consume, arg, hints, comm, request),
                            __func__);
}

int MPIX_Iallgatherv_compute(const void *sendbuf, int sendcount, MPI_Datatype sendtype,
                             void *recvbuf, const int recvcounts[], const int displs[],
                             MPI_Datatype recvtype, MPIX_Flash_compute_fn *consume, void *arg,
                             const MPIX_Flash_hints *hints, MPI_Comm comm, MPI_Request *request)
{
    flash_call_begin(__func__);
    if (recvcounts == NULL || displs == NULL) {
        return flash_call_raise(comm, MPI_ERR_ARG, __func__);
    }
    return flash_call_raise(comm,
                            allgather(sendbuf, sendcount, sendtype, recvbuf, 0, recvcounts, displs,
                                      recvtype, consume, arg, hints, comm, request),
                            __func__);
}

int MPIX_Allgather_compute(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
                           int recvcount, MPI_Datatype recvtype, MPIX_Flash_compute_fn *consume,
                           void *arg, const MPIX_Flash_hints *hints, MPI_Comm comm)
{
    flash_call_begin(__func__);
    MPI_Request request;
    int error = MPIX_Iallgather_compute(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype,
                                        consume, arg, hints, comm, &request);

    return error != MPI_SUCCESS ? error : PMPI_Wait(&request, MPI_STATUS_IGNORE);
}

int MPIX_Allgatherv_compute(const void *sendbuf, int sendcount, MPI_Datatype sendtype,
                            void *recvbuf, const int recvcounts[], const int displs[],
                            MPI_Datatype recvtype, MPIX_Flash_compute_fn *consume, void *arg,
                            const MPIX_Flash_hints *hints, MPI_Comm comm)
{
    flash_call_begin(__func__);
    MPI_Request request;
    int error = MPIX_Iallgatherv_compute(sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs,
                                         recvtype, consume, arg, hints, comm, &request);

    return error != MPI_SUCCESS ? error : PMPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* ---------------------------------------------------------- reduce-scatter */

static int reduce_scatter(MPIX_Flash_compute_fn *produce, void *arg, const MPIX_Flash_hints *hints,
                          void *recvbuf, int recvcount, const int recvcounts[],
                          MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, MPI_Request *request)
{
    mca_coll_flash_module_t *module;
    mca_coll_flash_compute_t compute;
    mca_coll_flash_reason_t reason;
    flash_call_t own;
    int error = flash_call_check_comm(comm);

    if (error == MPI_SUCCESS) {
        error = request == NULL || produce == NULL
                    ? MPI_ERR_ARG
                    : flash_call_read((flash_call_t){produce, arg}, (flash_call_t){NULL, NULL},
                                      hints, &own, &compute);
    }
    if (error == MPI_SUCCESS) {
        compute.consume = own.fn;
        compute.consume_arg = own.arg;
    }
    if (error == MPI_SUCCESS) {
        error = flash_call_check_reduction(recvbuf, recvcount, recvcounts, datatype, &op, comm);
    }
    if (error != MPI_SUCCESS) {
        return error;
    }
    module = flash_call_module(comm, &compute);
    reason = flash_call_reduce_reason(module, datatype, op);
    if (reason == FLASH_NO_REASON) {
        reason = flash_call_merge_reason(module, &compute, FLASH_REDUCE_SCATTER, recvcount,
                                         recvcounts, datatype);
    }
    reason = flash_call_setup_reason(module, FLASH_REDUCE_SCATTER, reason);
    flash_call_tell(recvcounts == NULL ? "Ireduce_scatter_block_compute"
                                       : "Ireduce_scatter_compute",
                    recvcount, recvcounts, datatype, comm, reason);
    if (reason != FLASH_NO_REASON) {
        error = flash_fallback_reduce_scatter(&compute, recvbuf, recvcount, recvcounts, datatype,
                                              op, comm, request);
    } else {
        error = mca_coll_flash_start_reduce_scatter(module, mca_coll_flash_ring_ticket(module),
                                                    NULL, recvbuf, recvcount, recvcounts, datatype,
                                                    op, &compute, FLASH_RING, request);
    }
    if (error == MPI_SUCCESS) {
        ompi_coll_base_retain_op(*request, op, datatype);
    }
    return error;
}

int MPIX_Ireduce_scatter_block_compute(MPIX_Flash_compute_fn *produce, void *arg,
                                       const MPIX_Flash_hints *hints, void *recvbuf, int recvcount,
                                       MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
                                       MPI_Request *request)
{
    flash_call_begin(__func__);
    return flash_call_raise(
        comm,
        reduce_scatter(produce, arg, hints, recvbuf, recvcount, NULL, datatype, op, comm, request),
        __func__);
}

int MPIX_Ireduce_scatter_compute(MPIX_Flash_compute_fn *produce, void *arg,
                                 const MPIX_Flash_hints *hints, void *recvbuf,
                                 const int recvcounts[], MPI_Datatype datatype, MPI_Op op,
                                 MPI_Comm comm, MPI_Request *request)
{
    flash_call_begin(__func__);
    if (recvcounts == NULL) {
        return flash_call_raise(comm, MPI_ERR_ARG, __func__);
    }
    return flash_call_raise(
        comm,
        reduce_scatter(produce, arg, hints, recvbuf, 0, recvcounts, datatype, op, comm, request),
        __func__);
}

int MPIX_Reduce_scatter_block_compute(MPIX_Flash_compute_fn *produce, void *arg,
                                      const MPIX_Flash_hints *hints, void *recvbuf, int recvcount,
                                      MPI_Datatype datatype, MPI_Op op, MPI_Comm comm)
{
    flash_call_begin(__func__);
    MPI_Request request;
    int error = MPIX_Ireduce_scatter_block_compute(produce, arg, hints, recvbuf, recvcount,
                                                   datatype, op, comm, &request);

    return error != MPI_SUCCESS ? error : PMPI_Wait(&request, MPI_STATUS_IGNORE);
}

int MPIX_Reduce_scatter_compute(MPIX_Flash_compute_fn *produce, void *arg,
                                const MPIX_Flash_hints *hints, void *recvbuf,
                                const int recvcounts[], MPI_Datatype datatype, MPI_Op op,
                                MPI_Comm comm)
{
    flash_call_begin(__func__);
    MPI_Request request;
    int error = MPIX_Ireduce_scatter_compute(produce, arg, hints, recvbuf, recvcounts, datatype, op,
                                             comm, &request);

    return error != MPI_SUCCESS ? error : PMPI_Wait(&request, MPI_STATUS_IGNORE);
}
