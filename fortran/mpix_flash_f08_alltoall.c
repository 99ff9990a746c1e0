/*
 * mpix_flash_f08_alltoall.c: an all-to-all's calls, which programs know from the module.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "mpix_flash_f08_c.h"

void mpix_ialltoall_compute_f08(const CFI_cdesc_t *sendbuf, const int *sendcount,
                                const flash_f08_handle_t *sendtype, const CFI_cdesc_t *recvbuf,
                                const int *recvcount, const flash_f08_handle_t *recvtype,
                                MPIX_Flash_compute_fn *produce, void *produce_arg,
                                MPIX_Flash_compute_fn *consume, void *consume_arg,
                                const MPIX_Flash_hints *hints, const flash_f08_handle_t *comm,
                                flash_f08_handle_t *request, int *ierror)
{
    flash_f08_call_t call = flash_f08_begin("MPIX_Ialltoall_compute", comm);
    void *from = flash_f08_buffer(&call, sendbuf);
    void *to = flash_f08_buffer(&call, recvbuf);

    if (call.error == MPI_SUCCESS) {
        call.error = MPIX_Ialltoall_compute(
            from, *sendcount, MPI_Type_f2c(sendtype->MPI_VAL), to, *recvcount,
            MPI_Type_f2c(recvtype->MPI_VAL), flash_f08_function(produce), produce_arg,
            flash_f08_function(consume), consume_arg, hints, call.comm, &call.request);
    }
    flash_f08_end_started(&call, request, ierror);
}

void mpix_alltoall_compute_f08(const CFI_cdesc_t *sendbuf, const int *sendcount,
                               const flash_f08_handle_t *sendtype, const CFI_cdesc_t *recvbuf,
                               const int *recvcount, const flash_f08_handle_t *recvtype,
                               MPIX_Flash_compute_fn *produce, void *produce_arg,
                               MPIX_Flash_compute_fn *consume, void *consume_arg,
                               const MPIX_Flash_hints *hints, const flash_f08_handle_t *comm,
                               int *ierror)
{
    flash_f08_call_t call = flash_f08_begin("MPIX_Alltoall_compute", comm);
    void *from = flash_f08_buffer(&call, sendbuf);
    void *to = flash_f08_buffer(&call, recvbuf);

    if (call.error == MPI_SUCCESS) {
        call.error = MPIX_Alltoall_compute(
            from, *sendcount, MPI_Type_f2c(sendtype->MPI_VAL), to, *recvcount,
            MPI_Type_f2c(recvtype->MPI_VAL), flash_f08_function(produce), produce_arg,
            flash_f08_function(consume), consume_arg, hints, call.comm);
    }
    flash_f08_end(&call, ierror);
}

void mpix_ialltoallv_compute_f08(const CFI_cdesc_t *sendbuf, const CFI_cdesc_t *sendcounts,
                                 const CFI_cdesc_t *sdispls, const flash_f08_handle_t *sendtype,
                                 const CFI_cdesc_t *recvbuf, const CFI_cdesc_t *recvcounts,
                                 const CFI_cdesc_t *rdispls, const flash_f08_handle_t *recvtype,
                                 MPIX_Flash_compute_fn *produce, void *produce_arg,
                                 MPIX_Flash_compute_fn *consume, void *consume_arg,
                                 const MPIX_Flash_hints *hints, const flash_f08_handle_t *comm,
                                 flash_f08_handle_t *request, int *ierror)
{
    flash_f08_call_t call = flash_f08_begin("MPIX_Ialltoallv_compute", comm);
    void *from = flash_f08_buffer(&call, sendbuf);
    const int *c_sendcounts = flash_f08_numbers(&call, sendcounts);
    const int *c_sdispls = flash_f08_numbers(&call, sdispls);
    void *to = flash_f08_buffer(&call, recvbuf);
    const int *c_recvcounts = flash_f08_numbers(&call, recvcounts);
    const int *c_rdispls = flash_f08_numbers(&call, rdispls);

    if (call.error == MPI_SUCCESS) {
        call.error = MPIX_Ialltoallv_compute(
            from, c_sendcounts, c_sdispls, MPI_Type_f2c(sendtype->MPI_VAL), to, c_recvcounts,
            c_rdispls, MPI_Type_f2c(recvtype->MPI_VAL), flash_f08_function(produce), produce_arg,
            flash_f08_function(consume), consume_arg, hints, call.comm, &call.request);
    }
    flash_f08_end_started(&call, request, ierror);
}

void mpix_alltoallv_compute_f08(const CFI_cdesc_t *sendbuf, const CFI_cdesc_t *sendcounts,
                                const CFI_cdesc_t *sdispls, const flash_f08_handle_t *sendtype,
                                const CFI_cdesc_t *recvbuf, const CFI_cdesc_t *recvcounts,
                                const CFI_cdesc_t *rdispls, const flash_f08_handle_t *recvtype,
                                MPIX_Flash_compute_fn *produce, void *produce_arg,
                                MPIX_Flash_compute_fn *consume, void *consume_arg,
                                const MPIX_Flash_hints *hints, const flash_f08_handle_t *comm,
                                int *ierror)
{
    flash_f08_call_t call = flash_f08_begin("MPIX_Alltoallv_compute", comm);
    void *from = flash_f08_buffer(&call, sendbuf);
    const int *c_sendcounts = flash_f08_numbers(&call, sendcounts);
    const int *c_sdispls = flash_f08_numbers(&call, sdispls);
    void *to = flash_f08_buffer(&call, recvbuf);
    const int *c_recvcounts = flash_f08_numbers(&call, recvcounts);
    const int *c_rdispls = flash_f08_numbers(&call, rdispls);

    if (call.error == MPI_SUCCESS) {
        call.error = MPIX_Alltoallv_compute(
            from, c_sendcounts, c_sdispls, MPI_Type_f2c(sendtype->MPI_VAL), to, c_recvcounts,
            c_rdispls, MPI_Type_f2c(recvtype->MPI_VAL), flash_f08_function(produce), produce_arg,
            flash_f08_function(consume), consume_arg, hints, call.comm);
    }
    flash_f08_end(&call, ierror);
}
