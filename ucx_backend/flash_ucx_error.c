/*
 * flash_ucx_error.c: UCX's statuses as flash's, and in words.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "flash_ucx_internal.h"

#include <stdio.h>

int flash_ucx_status(ucs_status_t status)
{
    switch (status) {
    case UCS_OK:
        return FLASH_OK;
    case UCS_ERR_MESSAGE_TRUNCATED:
        return FLASH_ERR_TRUNCATED;
    case UCS_ERR_CANCELED:
        return FLASH_ERR_CANCELED;
    case UCS_ERR_NO_MEMORY:
        return FLASH_ERR_NO_MEMORY;
    case UCS_ERR_UNREACHABLE:
        return FLASH_ERR_UNREACHABLE;
    default:
        return FLASH_ERR_TRANSPORT;
    }
}

int flash_ucx_fail(char *reason, const char *what, ucs_status_t status)
{
    snprintf(reason, FLASH_UCX_REASON_MAX, "%s: %s", what, ucs_status_string(status));
    return flash_ucx_status(status);
}
