/*
 * deaf.c: a library that is loaded before UCX into each rank: the descriptor that UCX gives flash to sleep on never
 * becomes readable, as if UCX missed every event.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <sys/eventfd.h>

#include <ucp/api/ucp.h>

ucs_status_t ucp_worker_get_efd(ucp_worker_h worker, int *fd)
{
    (void) worker;
    *fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return *fd < 0 ? UCS_ERR_IO_ERROR : UCS_OK;
}
