/*
 * mpix_flash_two_callbacks.c: the extension's calls with two callbacks: allreduce and all-to-all.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "extension/mpix_flash_call.h"
#include "ring/coll_flash_ring.h"
#include "extension/mpix_flash_fallback.h"

/* -------------------------------------------------------------- allreduce */

static int allreduce(flash_call_t produce, flash_call_t consume, const MPIX_Flash_hints *hints,
                     void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
                     MPI_Request *request)
{
    mca_coll_flash_module_t *module;
    mca_coll_flash_compute_t compute;
    mca_coll_flash_reason_t reason;
    int error = flash_call_check_comm(comm);

    if (error == MPI_SUCCESS) {
        error = request == NULL || produce.fn == NULL
                    ? MPI_ERR_ARG
                    : flash_call_read(produce, consume, hints, NULL, &compute);
    }
    if (error == MPI_SUCCESS) {
        error = flash_call_check_reduction(recvbuf, count, NULL, datatype, &op, comm);
    }
    if (error != MPI_SUCCESS) {
        return error;
    }
    module = flash_call_module(comm, &compute);
    reason = flash_call_setup_reason(module, FLASH_ALLREDUCE,
                                     flash_call_reduce_reason(module, datatype, op));
    mca_coll_flash_tell_path("Iallreduce_compute", flash_call_bytes(datatype, count), comm, reason);
    if (reason != FLASH_NO_REASON) {
        error = flash_fallback_allreduce(&compute, recvbuf, count, datatype, op, comm, request);
    } else {
        error = mca_coll_flash_start_allreduce(module, mca_coll_flash_ring_ticket(module), NULL,
                                               recvbuf, count, datatype, op, &compute, request);
    }
    if (error == MPI_SUCCESS) {
        ompi_coll_base_retain_op(*request, op, datatype);
    }
    return error;
}

int MPIX_Iallreduce_compute(MPIX_Flash_compute_fn *produce, void *produce_arg,
                            MPIX_Flash_compute_fn *consume, void *consume_arg,
                            const MPIX_Flash_hints *hints, void *recvbuf, int count,
                            MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, MPI_Request *request)
{
    flash_call_begin(__func__);
    return flash_call_raise(comm,
                            allreduce((flash_call_t){produce, produce_arg},
                                      (flash_call_t){consume, consume_arg}, hints, recvbuf, count,
                                      datatype, op, comm, request),
                            __func__);
}

int MPIX_Allreduce_compute(MPIX_Flash_compute_fn *produce, void *produce_arg,
                           MPIX_Flash_compute_fn *consume, void *consume_arg,
                           const MPIX_Flash_hints *hints, void *recvbuf, int count,
                           MPI_Datatype datatype, MPI_Op op, MPI_Comm comm)
{
    flash_call_begin(__func__);
    MPI_Request request;
    int error = MPIX_Iallreduce_compute(produce, produce_arg, consume, consume_arg, hints, recvbuf,
                                        count, datatype, op, comm, &request);

    return error != MPI_SUCCESS ? error : PMPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* ------------------------------------------------------------- all-to-all */

static bool is_solid_or_empty(MPI_Datatype type)
{
    return flash_call_bytes(type, 1) == 0 || mca_coll_flash_is_solid(type);
}

/* One side of it. */
static int check_side(const void *buffer, int count, const int counts[], MPI_Datatype type,
                      MPI_Comm comm)
{
    int error = flash_call_check_type(type);

    if (error == MPI_SUCCESS) {
        error = flash_call_check_counts(count, counts, comm);
    }
    if (error == MPI_SUCCESS && buffer == MPI_IN_PLACE) {
        error = MPI_ERR_BUFFER;
    }
    return error == MPI_SUCCESS && !is_solid_or_empty(type) ? MPI_ERR_TYPE : error;
}

static int alltoall(const mca_coll_flash_alltoall_t *a, flash_call_t produce, flash_call_t consume,
                    const MPIX_Flash_hints *hints, MPI_Comm comm, MPI_Request *request)
{
    mca_coll_flash_module_t *module;
    mca_coll_flash_compute_t compute;
    mca_coll_flash_reason_t reason;
    int error = flash_call_check_comm(comm);

    if (error == MPI_SUCCESS) {
        error = request == NULL || (produce.fn == NULL && consume.fn == NULL)
                    ? MPI_ERR_ARG
                    : flash_call_read(produce, consume, hints, NULL, &compute);
    }
    if (error == MPI_SUCCESS) {
        error = check_side(a->sendbuf, a->sendcount, a->sendcounts, a->sendtype, comm);
    }
    if (error == MPI_SUCCESS) {
        error = check_side(a->recvbuf, a->recvcount, a->recvcounts, a->recvtype, comm);
    }
    if (error == MPI_SUCCESS &&
        flash_call_bytes(a->sendtype, 1) != flash_call_bytes(a->recvtype, 1)) {
        error = MPI_ERR_TYPE; /* blocks are cut by elements */
    }
    if (error != MPI_SUCCESS) {
        return error;
    }
    module = flash_call_module(comm, &compute);
    reason = flash_call_reason(module);
    if (reason == FLASH_NO_REASON) {
        reason = mca_coll_flash_alltoall_reason(comm);
    }
    reason = flash_call_setup_reason(module, FLASH_ALLTOALL, reason);
    flash_call_tell(a->recvcounts == NULL ? "Ialltoall_compute" : "Ialltoallv_compute",
                    a->recvcount, a->recvcounts, a->recvtype, comm, reason);
    if (reason != FLASH_NO_REASON) {
        error = flash_fallback_alltoall(&compute, a, comm, request);
    } else {
        error = mca_coll_flash_start_alltoall(module, mca_coll_flash_ring_ticket(module), a,
                                              &compute, request);
    }
    if (error == MPI_SUCCESS) {
        ompi_coll_base_retain_datatypes(*request, a->sendtype, a->recvtype);
    }
    return error;
}

int MPIX_Ialltoall_compute(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
                           int recvcount, MPI_Datatype recvtype, MPIX_Flash_compute_fn *produce,
                           void *produce_arg, MPIX_Flash_compute_fn *consume, void *consume_arg,
                           const MPIX_Flash_hints *hints, MPI_Comm comm, MPI_Request *request)
{
    flash_call_begin(__func__);
    mca_coll_flash_alltoall_t a = {.sendbuf = (void *) (uintptr_t) sendbuf,
                                   .sendcount = sendcount,
                                   .sendtype = sendtype,
                                   .recvbuf = recvbuf,
                                   .recvcount = recvcount,
                                   .recvtype = recvtype};

    return flash_call_raise(comm,
                            alltoall(&a, (flash_call_t){produce, produce_arg},
                                     (flash_call_t){consume, consume_arg}, hints, comm, request),
                            __func__);
}

int MPIX_Ialltoallv_compute(const void *sendbuf, const int sendcounts[], const int sdispls[],
                            MPI_Datatype sendtype, void *recvbuf, const int recvcounts[],
                            const int rdispls[], MPI_Datatype recvtype,
                            MPIX_Flash_compute_fn *produce, void *produce_arg,
                            MPIX_Flash_compute_fn *consume, void *consume_arg,
                            const MPIX_Flash_hints *hints, MPI_Comm comm, MPI_Request *request)
{
    flash_call_begin(__func__);
    mca_coll_flash_alltoall_t a = {.sendbuf = (void *) (uintptr_t) sendbuf,
                                   .sendcounts = sendcounts,
                                   .sdispls = sdispls,
                                   .sendtype = sendtype,
                                   .recvbuf = recvbuf,
                                   .recvcounts = recvcounts,
                                   .rdispls = rdispls,
                                   .recvtype = recvtype};

    if (sendcounts == NULL || sdispls == NULL || recvcounts == NULL || rdispls == NULL) {
        return flash_call_raise(comm, MPI_ERR_ARG, __func__);
    }
    return flash_call_raise(comm,
                            alltoall(&a, (flash_call_t){produce, produce_arg},
                                     (flash_call_t){consume, consume_arg}, hints, comm, request),
                            __func__);
}

int MPIX_Alltoall_compute(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
                          int recvcount, MPI_Datatype recvtype, MPIX_Flash_compute_fn *produce,
                          void *produce_arg, MPIX_Flash_compute_fn *consume, void *consume_arg,
                          const MPIX_Flash_hints *hints, MPI_Comm comm)
{
    flash_call_begin(__func__);
    MPI_Request request;
    int error =
        MPIX_Ialltoall_compute(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, produce,
                               produce_arg, consume, consume_arg, hints, comm, &request);

    return error != MPI_SUCCESS ? error : PMPI_Wait(&request, MPI_STATUS_IGNORE);
}

int MPIX_Alltoallv_compute(const void *sendbuf, const int sendcounts[], const int sdispls[],
                           MPI_Datatype sendtype, void *recvbuf, const int recvcounts[],
                           const int rdispls[], MPI_Datatype recvtype,
                           MPIX_Flash_compute_fn *produce, void *produce_arg,
                           MPIX_Flash_compute_fn *consume, void *consume_arg,
                           const MPIX_Flash_hints *hints, MPI_Comm comm)
{
    flash_call_begin(__func__);
    MPI_Request request;
    int error = MPIX_Ialltoallv_compute(sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts,
                                        rdispls, recvtype, produce, produce_arg, consume,
                                        consume_arg, hints, comm, &request);

    return error != MPI_SUCCESS ? error : PMPI_Wait(&request, MPI_STATUS_IGNORE);
}
