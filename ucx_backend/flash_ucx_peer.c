/*
 * flash_ucx_peer.c: peers: connecting, losing them, giving them up.
 *
 * Messages go through endpoints without UCX's error handling: with it, UCX gives up the fast ways
 * through shared memory (a ring of two ranks on a node took two to three times as long).
 *
 * A process that UCX fails while the peer is well gives that one up, and tells it by an active
 * message: no receive has to wait for such a one. It says who sent it, by a number that follows
 * from the process' address: the peer may not have connected to it yet.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "flash_ucx_internal.h"

#include <stdlib.h>
#include <string.h>

flash_peer_t *flash_ucx_peer(flash_transport_t *transport)
{
    flash_ucx_t *ucx = flash_ucx_of(transport);
    flash_peer_t *peer = calloc(1, sizeof(*peer));

    if (peer != NULL) {
        peer->ucx = ucx;
        peer->next = ucx->peers;
        ucx->peers = peer;
    }
    return peer;
}

void flash_ucx_free_peers(flash_ucx_t *ucx)
{
    flash_peer_t *peer;

    while ((peer = ucx->peers) != NULL) {
        ucx->peers = peer->next;
        free(peer);
    }
    free(ucx->strangers);
}

static void endpoint_failed(void *arg, ucp_ep_h ep, ucs_status_t status)
{
    flash_peer_t *peer = arg;

    (void) ep;
    (void) status;
    /* Called from within UCX's progress: no place to cancel what UCX may be working on. */
    peer->failing = true;
    peer->ucx->failing = true;
}

/* FNV-1a of the bytes. */
uint64_t flash_ucx_id(const void *address, size_t length)
{
    const unsigned char *bytes = address;
    uint64_t id = UINT64_C(0xcbf29ce484222325);

    for (size_t k = 0; k < length; k++) {
        id = (id ^ bytes[k]) * UINT64_C(0x100000001b3);
    }
    return id;
}

/* Whether it has given this process up. */
static bool is_remembered(const flash_ucx_t *ucx, uint64_t id)
{
    for (size_t k = 0; k < ucx->nstrangers; k++) {
        if (ucx->strangers[k] == id) {
            return true;
        }
    }
    return false;
}

bool flash_ucx_is_connected(const flash_peer_t *peer)
{
    return peer->ep != NULL;
}

/*
 * A handler even without error handling: what UCX notices by itself, as a connection that breaks,
 * would else end this process.
 */
int flash_ucx_connect(flash_peer_t *peer, const void *address, size_t length,
                      char reason[FLASH_UCX_REASON_MAX])
{
    ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS |
                                            UCP_EP_PARAM_FIELD_ERR_HANDLER,
                              .address = address,
                              .err_handler = {.cb = endpoint_failed, .arg = peer}};
    ucs_status_t status;

    if (flash_ucx_is_connected(peer)) {
        return FLASH_OK;
    }
    status = ucp_ep_create(flash_ucx_sender(peer), &params, &peer->ep);
    if (status != UCS_OK) {
        peer->ep = NULL;
        return flash_ucx_fail(reason, "no UCX transport reaches the peer", status);
    }
    peer->id = flash_ucx_id(address, length);
    peer->failing = is_remembered(peer->ucx, peer->id);
    peer->ucx->failing |= peer->failing;
    return FLASH_OK;
}

bool flash_ucx_is_probed(const flash_peer_t *peer)
{
    return peer->probe != NULL;
}

bool flash_ucx_is_lost(const flash_peer_t *peer)
{
    return peer->lost;
}

static void lose(flash_peer_t *peer)
{
    if (!peer->lost) {
        peer->lost = true;
        flash_ucx_stop_settling(peer);
        flash_ucx_end_messages(peer);
    }
}

void flash_ucx_lose(flash_peer_t *peer)
{
    lose(peer);
    if (peer->twin != NULL) {
        lose(peer->twin);
    }
}

/* ------------------------------------------------------------------ giving up */

/* No connection leads there yet: it is to be lost as soon as there is one. */
static void remember_stranger(flash_ucx_t *ucx, uint64_t id)
{
    uint64_t *more = realloc(ucx->strangers, (ucx->nstrangers + 1) * sizeof(*more));

    if (more != NULL) {
        ucx->strangers = more;
        ucx->strangers[ucx->nstrangers++] = id;
    }
}

ucs_status_t flash_ucx_hear_given_up(void *arg, const void *header, size_t header_length,
                                     void *data, size_t length, const ucp_am_recv_param_t *param)
{
    flash_ucx_t *ucx = arg;
    bool known = false;
    uint64_t id;

    (void) data, (void) length, (void) param;
    if (header_length != sizeof(id)) {
        return UCS_OK;
    }
    memcpy(&id, header, sizeof(id));
    for (flash_peer_t *peer = ucx->peers; peer != NULL; peer = peer->next) {
        if (peer->ep != NULL && peer->id == id) {
            peer->failing = ucx->failing = known = true;
        }
    }
    if (!known) {
        remember_stranger(ucx, id);
    }
    return UCS_OK;
}

/* What UCX has no memory for now is said later; until then the peer waits, and is warned. */
static void tell(flash_peer_t *peer)
{
    flash_ucx_t *ucx = peer->ucx;
    ucp_request_param_t param = {.op_attr_mask = 0};
    ucs_status_ptr_t request;

    request = ucp_am_send_nbx(peer->ep, FLASH_UCX_GIVEN_UP, &ucx->own_id, sizeof(ucx->own_id), NULL,
                              0, &param);
    /* Else it is told, or the endpoint has failed. */
    peer->untold = UCS_PTR_IS_ERR(request) && UCS_PTR_STATUS(request) == UCS_ERR_NO_MEMORY;
    ucx->untold |= peer->untold;
    flash_ucx_settle_behind(peer, UCS_PTR_IS_PTR(request) ? request : NULL);
}

void flash_ucx_tell(flash_ucx_t *ucx)
{
    ucx->untold = false;
    for (flash_peer_t *peer = ucx->peers; peer != NULL; peer = peer->next) {
        if (peer->untold) {
            tell(peer);
        }
    }
}

void flash_ucx_give_up(flash_peer_t *peer)
{
    flash_peer_t *told = peer->ep == NULL && peer->twin != NULL ? peer->twin : peer;
    bool lost = peer->lost;

    flash_ucx_lose(peer);
    if (!lost && told->ep != NULL) {
        tell(told);
    }
}

void flash_ucx_lose_failing(flash_ucx_t *ucx)
{
    flash_peer_t *peer = ucx->failing ? ucx->peers : NULL;

    ucx->failing = false;
    for (; peer != NULL; peer = peer->next) {
        if (peer->misses) {
            peer->misses = peer->failing = false; /* the news is to arrive */
            flash_ucx_give_up(peer);
        } else if (peer->failing) {
            flash_ucx_lose(peer);
        }
    }
}
