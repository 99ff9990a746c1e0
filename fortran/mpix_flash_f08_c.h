/*
 * mpix_flash_f08_c.h: from what Fortran passes to what <mpix_flash.h> takes.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef MPIX_FLASH_F08_C_H
#define MPIX_FLASH_F08_C_H

#include <ISO_Fortran_binding.h>
#include <mpix_flash.h>

/* mpi_f08's handles, of any kind. */
typedef struct flash_f08_handle {
    MPI_Fint MPI_VAL;
} flash_f08_handle_t;

/* One call, from its arguments to its end. */
typedef struct flash_f08_call {
    const char *name;
    MPI_Comm comm;
    int error; /* the first one, which the communicator's error handler has seen */
    MPI_Request request;
} flash_f08_call_t;

flash_f08_call_t flash_f08_begin(const char *name, const flash_f08_handle_t *comm);

/* Where a buffer begins, MPI_IN_PLACE or MPI_BOTTOM; NULL, and an error, if it has gaps. */
void *flash_f08_buffer(flash_f08_call_t *call, const CFI_cdesc_t *buffer);

/* Likewise an array of counts or displacements. */
const int *flash_f08_numbers(flash_f08_call_t *call, const CFI_cdesc_t *numbers);

/* The function, or NULL for MPIX_FLASH_FN_NULL. */
MPIX_Flash_compute_fn *flash_f08_function(MPIX_Flash_compute_fn *function);

/* Tells the caller, who may not want to hear it (ierror is NULL). */
void flash_f08_end(const flash_f08_call_t *call, int *ierror);
void flash_f08_end_started(const flash_f08_call_t *call, flash_f08_handle_t *request, int *ierror);

#endif /* MPIX_FLASH_F08_C_H */
