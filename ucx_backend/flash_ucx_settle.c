/*
 * flash_ucx_settle.c: whether what has left is out of UCX's hands.
 *
 * A send that leaves is done when UCX has its data. UCX may have to send some of it later, as of a socket
 * that was full, which takes progress and thus an event; one that is missed is made up for by who looks,
 * and that one has to know. A flush of the endpoint, begun when no operation runs, is done when nothing is
 * left. By TCP it takes a message, so that it is no matter for each operation's end. `unsettled` lists the
 * peers to which something has left since their last flush.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "flash_ucx_internal.h"

void flash_ucx_leave(flash_peer_t *peer)
{
    peer->left = true;
    if (!peer->unsettled) {
        peer->unsettled = true;
        peer->next_unsettled = peer->ucx->unsettled;
        peer->ucx->unsettled = peer;
    }
}

/* A request that is under way is freed by UCX when it is done. */
void flash_ucx_stop_settling(flash_peer_t *peer)
{
    if (peer->settling != NULL) {
        ucp_request_free(peer->settling);
        peer->settling = NULL;
    }
}

/* Of a lost peer nothing is sent any more that anybody waits for; an endpoint that fails is one's. */
static bool is_settled(flash_peer_t *peer)
{
    ucp_request_param_t param = {.op_attr_mask = 0};
    ucs_status_ptr_t request;

    if (peer->settling != NULL && !peer->lost &&
        ucp_request_check_status(peer->settling) == UCS_INPROGRESS) {
        return false;
    }
    flash_ucx_stop_settling(peer);
    if (peer->left && !peer->lost && !peer->failing) {
        peer->left = false;
        request = ucp_ep_flush_nbx(peer->ep, &param);
        peer->settling = UCS_PTR_IS_PTR(request) ? request : NULL;
    }
    return peer->settling == NULL;
}

bool flash_ucx_settled(flash_transport_t *transport)
{
    flash_ucx_t *ucx = flash_ucx_of(transport);
    flash_peer_t **link = &ucx->unsettled, *peer;

    while ((peer = *link) != NULL) {
        if (is_settled(peer)) {
            peer->unsettled = false;
            *link = peer->next_unsettled;
        } else {
            link = &peer->next_unsettled;
        }
    }
    return ucx->unsettled == NULL && !ucx->untold;
}
