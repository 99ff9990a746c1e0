/*
 * mpix_flash_f08_reduce.c: the reductions' calls, which programs know from the module.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "mpix_flash_f08_c.h"

void mpix_ireduce_scatter_block_compute_f08(MPIX_Flash_compute_fn *produce, void *arg,
                                            const MPIX_Flash_hints *hints,
                                            const CFI_cdesc_t *recvbuf, const int *recvcount,
                                            const flash_f08_handle_t *datatype,
                                            const flash_f08_handle_t *op,
                                            const flash_f08_handle_t *comm,
                                            flash_f08_handle_t *request, int *ierror)
{
    flash_f08_call_t call = flash_f08_begin("MPIX_Ireduce_scatter_block_compute", comm);
    void *to = flash_f08_buffer(&call, recvbuf);

    if (call.error == MPI_SUCCESS) {
        call.error = MPIX_Ireduce_scatter_block_compute(
            flash_f08_function(produce), arg, hints, to, *recvcount,
            MPI_Type_f2c(datatype->MPI_VAL), MPI_Op_f2c(op->MPI_VAL), call.comm, &call.request);
    }
    flash_f08_end_started(&call, request, ierror);
}

void mpix_reduce_scatter_block_compute_f08(MPIX_Flash_compute_fn *produce, void *arg,
                                           const MPIX_Flash_hints *hints,
                                           const CFI_cdesc_t *recvbuf, const int *recvcount,
                                           const flash_f08_handle_t *datatype,
                                           const flash_f08_handle_t *op,
                                           const flash_f08_handle_t *comm, int *ierror)
{
    flash_f08_call_t call = flash_f08_begin("MPIX_Reduce_scatter_block_compute", comm);
    void *to = flash_f08_buffer(&call, recvbuf);

    if (call.error == MPI_SUCCESS) {
        call.error = MPIX_Reduce_scatter_block_compute(flash_f08_function(produce), arg, hints, to,
                                                       *recvcount, MPI_Type_f2c(datatype->MPI_VAL),
                                                       MPI_Op_f2c(op->MPI_VAL), call.comm);
    }
    flash_f08_end(&call, ierror);
}

void mpix_ireduce_scatter_compute_f08(MPIX_Flash_compute_fn *produce, void *arg,
                                      const MPIX_Flash_hints *hints, const CFI_cdesc_t *recvbuf,
                                      const CFI_cdesc_t *recvcounts,
                                      const flash_f08_handle_t *datatype,
                                      const flash_f08_handle_t *op, const flash_f08_handle_t *comm,
                                      flash_f08_handle_t *request, int *ierror)
{
    flash_f08_call_t call = flash_f08_begin("MPIX_Ireduce_scatter_compute", comm);
    void *to = flash_f08_buffer(&call, recvbuf);
    const int *c_recvcounts = flash_f08_numbers(&call, recvcounts);

    if (call.error == MPI_SUCCESS) {
        call.error = MPIX_Ireduce_scatter_compute(
            flash_f08_function(produce), arg, hints, to, c_recvcounts,
            MPI_Type_f2c(datatype->MPI_VAL), MPI_Op_f2c(op->MPI_VAL), call.comm, &call.request);
    }
    flash_f08_end_started(&call, request, ierror);
}

void mpix_reduce_scatter_compute_f08(MPIX_Flash_compute_fn *produce, void *arg,
                                     const MPIX_Flash_hints *hints, const CFI_cdesc_t *recvbuf,
                                     const CFI_cdesc_t *recvcounts,
                                     const flash_f08_handle_t *datatype,
                                     const flash_f08_handle_t *op, const flash_f08_handle_t *comm,
                                     int *ierror)
{
    flash_f08_call_t call = flash_f08_begin("MPIX_Reduce_scatter_compute", comm);
    void *to = flash_f08_buffer(&call, recvbuf);
    const int *c_recvcounts = flash_f08_numbers(&call, recvcounts);

    if (call.error == MPI_SUCCESS) {
        call.error = MPIX_Reduce_scatter_compute(flash_f08_function(produce), arg, hints, to,
                                                 c_recvcounts, MPI_Type_f2c(datatype->MPI_VAL),
                                                 MPI_Op_f2c(op->MPI_VAL), call.comm);
    }
    flash_f08_end(&call, ierror);
}

void mpix_iallreduce_compute_f08(MPIX_Flash_compute_fn *produce, void *produce_arg,
                                 MPIX_Flash_compute_fn *consume, void *consume_arg,
                                 const MPIX_Flash_hints *hints, const CFI_cdesc_t *recvbuf,
                                 const int *count, const flash_f08_handle_t *datatype,
                                 const flash_f08_handle_t *op, const flash_f08_handle_t *comm,
                                 flash_f08_handle_t *request, int *ierror)
{
    flash_f08_call_t call = flash_f08_begin("MPIX_Iallreduce_compute", comm);
    void *to = flash_f08_buffer(&call, recvbuf);

    if (call.error == MPI_SUCCESS) {
        call.error = MPIX_Iallreduce_compute(flash_f08_function(produce), produce_arg,
                                             flash_f08_function(consume), consume_arg, hints, to,
                                             *count, MPI_Type_f2c(datatype->MPI_VAL),
                                             MPI_Op_f2c(op->MPI_VAL), call.comm, &call.request);
    }
    flash_f08_end_started(&call, request, ierror);
}

void mpix_allreduce_compute_f08(MPIX_Flash_compute_fn *produce, void *produce_arg,
                                MPIX_Flash_compute_fn *consume, void *consume_arg,
                                const MPIX_Flash_hints *hints, const CFI_cdesc_t *recvbuf,
                                const int *count, const flash_f08_handle_t *datatype,
                                const flash_f08_handle_t *op, const flash_f08_handle_t *comm,
                                int *ierror)
{
    flash_f08_call_t call = flash_f08_begin("MPIX_Allreduce_compute", comm);
    void *to = flash_f08_buffer(&call, recvbuf);

    if (call.error == MPI_SUCCESS) {
        call.error = MPIX_Allreduce_compute(
            flash_f08_function(produce), produce_arg, flash_f08_function(consume), consume_arg,
            hints, to, *count, MPI_Type_f2c(datatype->MPI_VAL), MPI_Op_f2c(op->MPI_VAL), call.comm);
    }
    flash_f08_end(&call, ierror);
}
