/*
 * coll_flash_error.c: flash's statuses as MPI's error codes.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "job/coll_flash_job.h"

int mca_coll_flash_error(int status)
{
    switch (status) {
    case FLASH_OK:
        return MPI_SUCCESS;
    case FLASH_ERR_NO_MEMORY:
        return MPI_ERR_NO_MEM;
    case FLASH_ERR_TRUNCATED:
        return MPI_ERR_TRUNCATE;
    default:
        return status > 0 ? status : MPI_ERR_OTHER;
    }
}
