/*
 * coll_flash_kept.h: arguments that outlive their call: of persistent requests, and of calls that are held.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef COLL_FLASH_KEPT_H
#define COLL_FLASH_KEPT_H

#include "calls/coll_flash_calls.h"

/*
 * Of arguments that are kept: puts copies in the place of the arrays of counts and displacements, to be
 * freed by the caller, whatever comes of it. MPI has the user leave them alone. But Open MPI's Fortran
 * interface passes temporary ones where INTEGER is not int. MPI_SUCCESS or MPI_ERR_NO_MEM.
 */
int mca_coll_flash_arguments_copy(mca_coll_flash_arguments_t *arguments, int ranks,
                                  flash_count_t **copies);
/* Of arguments that are kept: their types and their operation, NULL or not. */
void mca_coll_flash_arguments_retain(const mca_coll_flash_arguments_t *arguments);
void mca_coll_flash_arguments_release(const mca_coll_flash_arguments_t *arguments);

#endif /* COLL_FLASH_KEPT_H */
