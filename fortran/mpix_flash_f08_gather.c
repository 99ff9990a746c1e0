/*
 * mpix_flash_f08_gather.c: an allgather's calls, which programs know from the module.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "mpix_flash_f08_c.h"

void mpix_iallgather_compute_f08(const CFI_cdesc_t *sendbuf, const int *sendcount,
                                 const flash_f08_handle_t *sendtype, const CFI_cdesc_t *recvbuf,
                                 const int *recvcount, const flash_f08_handle_t *recvtype,
                                 MPIX_Flash_compute_fn *consume, void *arg,
                                 const MPIX_Flash_hints *hints, const flash_f08_handle_t *comm,
                                 flash_f08_handle_t *request, int *ierror)
{
    flash_f08_call_t call = flash_f08_begin("MPIX_Iallgather_compute", comm);
    void *from = flash_f08_buffer(&call, sendbuf);
    void *to = flash_f08_buffer(&call, recvbuf);

    if (call.error == MPI_SUCCESS) {
        call.error = MPIX_Iallgather_compute(from, *sendcount, MPI_Type_f2c(sendtype->MPI_VAL), to,
                                             *recvcount, MPI_Type_f2c(recvtype->MPI_VAL),
                                             flash_f08_function(consume), arg, hints, call.comm,
                                             &call.request);
    }
    flash_f08_end_started(&call, request, ierror);
}

void mpix_allgather_compute_f08(const CFI_cdesc_t *sendbuf, const int *sendcount,
                                const flash_f08_handle_t *sendtype, const CFI_cdesc_t *recvbuf,
                                const int *recvcount, const flash_f08_handle_t *recvtype,
                                MPIX_Flash_compute_fn *consume, void *arg,
                                const MPIX_Flash_hints *hints, const flash_f08_handle_t *comm,
                                int *ierror)
{
    flash_f08_call_t call = flash_f08_begin("MPIX_Allgather_compute", comm);
    void *from = flash_f08_buffer(&call, sendbuf);
    void *to = flash_f08_buffer(&call, recvbuf);

    if (call.error == MPI_SUCCESS) {
        call.error = MPIX_Allgather_compute(from, *sendcount, MPI_Type_f2c(sendtype->MPI_VAL), to,
                                            *recvcount, MPI_Type_f2c(recvtype->MPI_VAL),
                                            flash_f08_function(consume), arg, hints, call.comm);
    }
    flash_f08_end(&call, ierror);
}

void mpix_iallgatherv_compute_f08(const CFI_cdesc_t *sendbuf, const int *sendcount,
                                  const flash_f08_handle_t *sendtype, const CFI_cdesc_t *recvbuf,
                                  const CFI_cdesc_t *recvcounts, const CFI_cdesc_t *displs,
                                  const flash_f08_handle_t *recvtype,
                                  MPIX_Flash_compute_fn *consume, void *arg,
                                  const MPIX_Flash_hints *hints, const flash_f08_handle_t *comm,
                                  flash_f08_handle_t *request, int *ierror)
{
    flash_f08_call_t call = flash_f08_begin("MPIX_Iallgatherv_compute", comm);
    void *from = flash_f08_buffer(&call, sendbuf);
    void *to = flash_f08_buffer(&call, recvbuf);
    const int *c_recvcounts = flash_f08_numbers(&call, recvcounts);
    const int *c_displs = flash_f08_numbers(&call, displs);

    if (call.error == MPI_SUCCESS) {
        call.error = MPIX_Iallgatherv_compute(
            from, *sendcount, MPI_Type_f2c(sendtype->MPI_VAL), to, c_recvcounts, c_displs,
            MPI_Type_f2c(recvtype->MPI_VAL), flash_f08_function(consume), arg, hints, call.comm,
            &call.request);
    }
    flash_f08_end_started(&call, request, ierror);
}

void mpix_allgatherv_compute_f08(const CFI_cdesc_t *sendbuf, const int *sendcount,
                                 const flash_f08_handle_t *sendtype, const CFI_cdesc_t *recvbuf,
                                 const CFI_cdesc_t *recvcounts, const CFI_cdesc_t *displs,
                                 const flash_f08_handle_t *recvtype, MPIX_Flash_compute_fn *consume,
                                 void *arg, const MPIX_Flash_hints *hints,
                                 const flash_f08_handle_t *comm, int *ierror)
{
    flash_f08_call_t call = flash_f08_begin("MPIX_Allgatherv_compute", comm);
    void *from = flash_f08_buffer(&call, sendbuf);
    void *to = flash_f08_buffer(&call, recvbuf);
    const int *c_recvcounts = flash_f08_numbers(&call, recvcounts);
    const int *c_displs = flash_f08_numbers(&call, displs);

    if (call.error == MPI_SUCCESS) {
        call.error = MPIX_Allgatherv_compute(
            from, *sendcount, MPI_Type_f2c(sendtype->MPI_VAL), to, c_recvcounts, c_displs,
            MPI_Type_f2c(recvtype->MPI_VAL), flash_f08_function(consume), arg, hints, call.comm);
    }
    flash_f08_end(&call, ierror);
}
