/*
 * flash_ucx_ping.c: whether the way that messages take to a silent peer is still there.
 *
 * A process whose peer is silent may have nothing under way there that could fail: it waits for an answer that was
 * lost with the other side's end of the connection (a queue pair in its error state, for one). UCX notices a broken
 * way when it sends. So this process sends something: a ping, which the peer ignores. A probe tells nothing of that
 * way, since it has one of its own.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "flash_ucx_internal.h"

static void ping_left(void *request, ucs_status_t status, void *arg)
{
    flash_peer_t *peer = arg;

    peer->pinging = false;
    if (status != UCS_OK) {
        peer->failing = peer->ucx->failing = true;
    }
    ucp_request_free(request);
}

/* Not the first message of an endpoint: the peer's UCX would make another end for it. */
void flash_ucx_ping(flash_peer_t *peer)
{
    ucp_request_param_t param = {.op_attr_mask =
                                     UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
                                 .cb.send = ping_left,
                                 .user_data = peer};
    ucs_status_ptr_t request;

    if (peer->ep == NULL || !peer->used || peer->lost || peer->pinging) {
        return;
    }
    request = ucp_am_send_nbx(peer->ep, FLASH_UCX_PING, NULL, 0, NULL, 0, &param);
    peer->pinging = UCS_PTR_IS_PTR(request);
    if (UCS_PTR_IS_ERR(request) && UCS_PTR_STATUS(request) != UCS_ERR_NO_MEMORY) {
        peer->failing = peer->ucx->failing = true;
    }
}

ucs_status_t flash_ucx_hear_ping(void *arg, const void *header, size_t header_length, void *data,
                                 size_t length, const ucp_am_recv_param_t *param)
{
    (void) arg, (void) header, (void) header_length, (void) data, (void) length, (void) param;
    return UCS_OK;
}
