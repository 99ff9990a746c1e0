/*
 * fault_endpoints.c: see fault_endpoints.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "fault_endpoints.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include <ucp/api/ucp.h>

int fault_endpoints_made;
static int closed;

ucs_status_ptr_t ucp_ep_close_nbx(ucp_ep_h ep, const ucp_request_param_t *param)
{
    ucs_status_ptr_t (*const next)(ucp_ep_h, const ucp_request_param_t *) =
        dlsym(RTLD_NEXT, "ucp_ep_close_nbx");

    closed += fault_is_flash(__builtin_return_address(0));
    return next(ep, param);
}

void ucp_worker_destroy(ucp_worker_h worker)
{
    void (*const next)(ucp_worker_h) = dlsym(RTLD_NEXT, "ucp_worker_destroy");

    if (getenv("FLASH_TEST_ENDPOINTS") != NULL && fault_is_flash(__builtin_return_address(0))) {
        fprintf(stderr, "endpoints: %d made, %d closed before their worker\n", fault_endpoints_made,
                closed);
    }
    next(worker);
}
