/*
 * flash_ucx_settle.c: whether UCX has sent all that it was given.
 *
 * A send that leaves is done when UCX has its data. UCX may have to send some of it later, as to a socket
 * that was full: that takes progress, which an event asks for. The progress thread also looks without an
 * event, and has to know until when. A flush of the endpoint tells. By TCP a flush is a message that the
 * peer's UCX answers, so that it begins only when no operation runs. The message that tells a peer that it
 * is given up is waited for likewise.
 *
 * `unsettled` lists the peers to which something has left since their last flush, and those that are told.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "flash_ucx_internal.h"

/* So many flushes begin at a time: behind an exchange each rank flushes its endpoints to all others. */
#define MOST_AT_ONCE 32

static void list_peer(flash_peer_t *peer)
{
    if (!peer->unsettled) {
        peer->unsettled = true;
        peer->next_unsettled = peer->ucx->unsettled;
        peer->ucx->unsettled = peer;
    }
}

void flash_ucx_leave(flash_peer_t *peer)
{
    peer->left = true;
    list_peer(peer);
}

/* UCX frees a request that is under way when it is done. */
void flash_ucx_stop_settling(flash_peer_t *peer)
{
    if (peer->settling != NULL) {
        ucp_request_free(peer->settling);
        peer->settling = NULL;
    }
    peer->left = false;
}

void flash_ucx_settle_behind(flash_peer_t *peer, void *request)
{
    flash_ucx_stop_settling(peer);
    peer->settling = request;
    list_peer(peer);
}

/* Whether there is nothing to wait for. `begun`: flushes, up to MOST_AT_ONCE. */
static bool is_settled(flash_peer_t *peer, unsigned *begun)
{
    ucp_request_param_t param = {.op_attr_mask = 0};
    ucs_status_ptr_t request;
    bool left = peer->left;

    if (peer->failing) { /* nothing arrives there any more */
        flash_ucx_stop_settling(peer);
        return true;
    }
    if (peer->settling != NULL && ucp_request_check_status(peer->settling) == UCS_INPROGRESS) {
        return false;
    }
    if (left && *begun == MOST_AT_ONCE) {
        return false;
    }
    flash_ucx_stop_settling(peer);
    if (left) {
        request = ucp_ep_flush_nbx(peer->ep, &param);
        peer->settling = UCS_PTR_IS_PTR(request) ? request : NULL;
        ++*begun;
    }
    return peer->settling == NULL;
}

bool flash_ucx_settled(flash_transport_t *transport)
{
    flash_ucx_t *ucx = flash_ucx_of(transport);
    flash_peer_t **link = &ucx->unsettled, *peer;
    unsigned begun = 0;

    while ((peer = *link) != NULL) {
        if (is_settled(peer, &begun)) {
            peer->unsettled = false;
            *link = peer->next_unsettled;
        } else {
            link = &peer->next_unsettled;
        }
    }
    return ucx->unsettled == NULL && !ucx->untold;
}
