/*
 * flash_ucx_found.c: the ways to others that UCX has found: what a context has, and what an
 * endpoint goes by.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "flash_ucx_internal.h"

#include <stdio.h>
#include <stdlib.h>

/* Of the endpoint, or of the context if that is NULL. */
static void find(ucp_ep_h ep, ucp_context_h context, flash_ucx_ways_t *ways)
{
    char *printed = NULL;
    size_t length = 0;
    FILE *stream = open_memstream(&printed, &length);

    *ways = (flash_ucx_ways_t){.tcp = false};
    if (stream == NULL) {
        return;
    }
    if (ep != NULL) {
        ucp_ep_print_info(ep, stream);
    } else {
        ucp_context_print_info(context, stream);
    }
    if (fclose(stream) == 0) {
        flash_ucx_ways_read(printed, ways);
    }
    free(printed);
}

void flash_ucx_ways(const flash_peer_t *peer, flash_ucx_ways_t *ways)
{
    *ways = (flash_ucx_ways_t){.tcp = false};
    if (peer->ep != NULL) {
        find(peer->ep, NULL, ways);
    }
}

void flash_ucx_find(ucp_context_h context, flash_ucx_ways_t *ways)
{
    find(NULL, context, ways);
}
