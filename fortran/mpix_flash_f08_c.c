/*
 * mpix_flash_f08_c.c: what Fortran passes, and the calls that communicate nothing. Programs know
 * these from the module.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <stdbool.h>
#include <stdio.h>

#include "mpix_flash_f08_c.h"

/* What the module says of its types. */
_Static_assert(sizeof(int) == sizeof(MPI_Fint), "mpi_f08's numbers are C's int");
_Static_assert(sizeof(MPIX_Flash_hints) == 8 * sizeof(void *), "as the module's `size` says");

/* Of the module. */
void flash_f08_sentinels(void **in_place, void **bottom);

const void *flash_f08_address(const void *variable)
{
    return variable;
}

/* Its address is what counts. */
int mpix_flash_fn_null_f08(const MPIX_Flash_block *block, void *arg)
{
    (void) block;
    (void) arg;
    return MPI_ERR_INTERN;
}

MPIX_Flash_compute_fn *flash_f08_function(MPIX_Flash_compute_fn *function)
{
    return function == mpix_flash_fn_null_f08 ? NULL : function;
}

/*
 * Unlike CFI_is_contiguous(), which compilers have taken literally, this lets dimensions of length
 * 1 have any stride, and arrays without elements any at all: a(:, 2:2, 3:3) has no gaps.
 */
static bool has_gaps(const CFI_cdesc_t *array)
{
    CFI_index_t dense = (CFI_index_t) array->elem_len;
    bool gaps = false;

    for (int k = 0; k < array->rank; k++) {
        CFI_index_t extent = array->dim[k].extent;

        /* Of an array of assumed size (the last extent is -1), nothing can have been left out. */
        if (extent == 0 || extent == -1) {
            return false;
        }
        gaps = gaps || (extent > 1 && array->dim[k].sm != dense);
        dense *= extent;
    }
    return gaps;
}

static void refuse(flash_f08_call_t *call, int error, const char *what)
{
    fprintf(stderr, "%s: %s.\n", call->name, what);
    call->error = error;
    MPI_Comm_call_errhandler(call->comm, error);
}

flash_f08_call_t flash_f08_begin(const char *name, const flash_f08_handle_t *comm)
{
    return (flash_f08_call_t){name, MPI_Comm_f2c(comm->MPI_VAL), MPI_SUCCESS, MPI_REQUEST_NULL};
}

void *flash_f08_buffer(flash_f08_call_t *call, const CFI_cdesc_t *buffer)
{
    void *in_place, *bottom;

    flash_f08_sentinels(&in_place, &bottom);
    if (buffer->base_addr == in_place) {
        return MPI_IN_PLACE;
    }
    if (buffer->base_addr == bottom) {
        return MPI_BOTTOM;
    }
    if (call->error == MPI_SUCCESS && has_gaps(buffer)) {
        refuse(call, MPI_ERR_BUFFER,
               "a buffer is an array section with gaps: pass its first element, and a derived "
               "datatype that describes it");
    }
    return buffer->base_addr;
}

const int *flash_f08_numbers(flash_f08_call_t *call, const CFI_cdesc_t *numbers)
{
    if (call->error == MPI_SUCCESS && has_gaps(numbers)) {
        refuse(call, MPI_ERR_ARG,
               "an array of counts or displacements has gaps: pass a contiguous one");
    }
    return numbers->base_addr;
}

void flash_f08_end(const flash_f08_call_t *call, int *ierror)
{
    if (ierror != NULL) {
        *ierror = call->error;
    }
}

void flash_f08_end_started(const flash_f08_call_t *call, flash_f08_handle_t *request, int *ierror)
{
    request->MPI_VAL = MPI_Request_c2f(call->request);
    flash_f08_end(call, ierror);
}

void flash_f08_active(const flash_f08_handle_t *comm, int *served, int *ierror)
{
    flash_f08_call_t call = flash_f08_begin("MPIX_Flash_active", comm);

    *served = 0;
    call.error = MPIX_Flash_active(call.comm, served);
    flash_f08_end(&call, ierror);
}

flash_f08_handle_t mpix_flash_block_datatype_f08(const MPIX_Flash_block *block)
{
    return (flash_f08_handle_t){MPI_Type_c2f(block->datatype)};
}

/* Calls no MPI, as C's does not. */
void mpix_flash_complete_f08(const MPIX_Flash_handle *handle, const int *error, int *ierror)
{
    int status = MPIX_Flash_complete(*handle, *error);

    if (ierror != NULL) {
        *ierror = status;
    }
}

void mpix_flash_type_f08(const int *which, flash_f08_handle_t *datatype, int *ierror)
{
    MPI_Datatype type = MPI_DATATYPE_NULL;
    int error = MPIX_Flash_type(*which, &type);

    /* Without MPI there are no handles to convert. */
    if (error == MPI_SUCCESS) {
        datatype->MPI_VAL = MPI_Type_c2f(type);
    }
    if (ierror != NULL) {
        *ierror = error;
    }
}
