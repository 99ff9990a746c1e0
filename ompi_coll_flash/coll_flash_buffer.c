/*
 * coll_flash_buffer.c: whether a buffer is one that flash can use.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "coll_flash.h"

#include <unistd.h>

#include "flash_device.h"

int mca_coll_flash_check_buffer(const void *address)
{
    if (address == NULL) {
        return MPI_ERR_BUFFER;
    }
    if (flash_device_owns(address)) {
        FLASH_HELP("device-memory", opal_process_info.nodename, (int) getpid());
        return MPI_ERR_BUFFER;
    }
    return MPI_SUCCESS;
}
