/*
 * coll_flash_unequal.h: calls whose blocks have lengths of their own: each of these goes the way that its
 * length says.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef COLL_FLASH_UNEQUAL_H
#define COLL_FLASH_UNEQUAL_H

#include "calls/coll_flash_calls.h"

/* What the functions that Open MPI calls have in common, once the arguments are filled in: `unequal` is
   set. */
int mca_coll_flash_start_unequal(const mca_coll_flash_collective_t *collective, const char *name,
                                 mca_coll_flash_arguments_t *arguments,
                                 mca_coll_base_module_t *base, ompi_request_t **request);
/* The same of the blocking form. */
int mca_coll_flash_block_unequal(const mca_coll_flash_collective_t *collective, const char *name,
                                 mca_coll_flash_arguments_t *arguments,
                                 mca_coll_base_module_t *base);
/* The same of the persistent forms. */
int mca_coll_flash_persist_unequal(const mca_coll_flash_collective_t *collective, const char *name,
                                   const mca_coll_flash_arguments_t *arguments,
                                   struct ompi_info_t *info, mca_coll_base_module_t *base,
                                   ompi_request_t **request);

#endif /* COLL_FLASH_UNEQUAL_H */
