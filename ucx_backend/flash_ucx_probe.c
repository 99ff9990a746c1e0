/*
 * flash_ucx_probe.c: whether peers are there, and whether what they send comes in.
 *
 * Where a peer is silent for longer than its user likes, a second endpoint, a probe, is made to it:
 * one with error handling, whose failure tells that the process has gone. Probes have a worker of
 * their own, the prober, for UCX would take them for the other ends of the peer's endpoints.
 *
 * From there this process also sends a message to itself, an echo. Within a node, all that others send
 * to a process comes through one queue in shared memory, in order. A process that is killed between
 * taking a place there and saying that it is complete jams it for good, of which UCX says nothing: the
 * echo does not come in either. (That the worker cannot be armed is no sign of it: it cannot either
 * while a message of ours waits for room in another one's queue.)
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "flash_ucx_internal.h"

#include <string.h>

#define FAILED_PROBES 2 /* in a row: the peer has gone */
#define ECHO          1 /* the active message; the other one is flash_ucx_peer.c's */

static bool open_prober(flash_ucx_t *ucx)
{
    ucp_worker_params_t params = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                                  .thread_mode = UCS_THREAD_MODE_SERIALIZED};

    if (ucx->prober == NULL && ucp_worker_create(ucx->context, &params, &ucx->prober) != UCS_OK) {
        ucx->prober = NULL;
    }
    return ucx->prober != NULL;
}

/* UCX looks after its endpoints in one of 32 calls only. */
static void progress_prober(flash_ucx_t *ucx)
{
    for (int k = 0; k < 64 && ucx->prober != NULL; k++) {
        ucp_worker_progress(ucx->prober);
    }
}

static void probe_failed(void *arg, ucp_ep_h ep, ucs_status_t status)
{
    flash_peer_t *peer = arg;

    (void) ep;
    (void) status;
    peer->probe_failed = true;
}

/* An endpoint that cannot be made for want of something here tells nothing about the peer. */
static bool tells_of_peer(ucs_status_t status)
{
    return status == UCS_ERR_REJECTED || status == UCS_ERR_CONNECTION_RESET ||
           status == UCS_ERR_NOT_CONNECTED || status == UCS_ERR_ENDPOINT_TIMEOUT;
}

void flash_ucx_probe(flash_peer_t *peer, const void *address)
{
    ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS |
                                            UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                                            UCP_EP_PARAM_FIELD_ERR_HANDLER,
                              .address = address,
                              .err_mode = UCP_ERR_HANDLING_MODE_PEER,
                              .err_handler = {.cb = probe_failed, .arg = peer}};
    flash_ucx_t *ucx = peer->ucx;
    ucs_status_t status;

    if (peer->probe != NULL || peer->lost || !open_prober(ucx)) {
        return;
    }
    status = ucp_ep_create(ucx->prober, &params, &peer->probe);
    if (status != UCS_OK) {
        peer->probe = NULL;
        peer->probe_failed = tells_of_peer(status);
    }
}

static void close_probe(flash_peer_t *peer)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS,
                                 .flags = UCP_EP_CLOSE_FLAG_FORCE};
    ucs_status_ptr_t request = NULL;

    if (peer->probe != NULL) {
        request = ucp_ep_close_nbx(peer->probe, &param);
    }
    if (UCS_PTR_IS_PTR(request)) {
        ucp_request_free(request);
    }
    peer->probe = NULL;
}

/* One failed probe may be a mishap here; the next look makes another, and that one counts. */
static void judge_probe(flash_peer_t *peer)
{
    if (peer->probe_failed) {
        peer->probe_failed = false;
        close_probe(peer);
        peer->failed_probes++;
        if (peer->failed_probes == FAILED_PROBES) {
            flash_ucx_lose(peer);
        }
    }
}

void flash_ucx_look_at_probes(flash_transport_t *transport)
{
    flash_ucx_t *ucx = flash_ucx_of(transport);

    progress_prober(ucx);
    for (flash_peer_t *peer = ucx->peers; peer != NULL; peer = peer->next) {
        judge_probe(peer);
    }
}

void flash_ucx_end_probes(flash_transport_t *transport)
{
    flash_ucx_t *ucx = flash_ucx_of(transport);

    if (ucx->prober == NULL) {
        return;
    }
    ucp_worker_destroy(ucx->prober); /* with its endpoints; the peers drop theirs */
    ucx->prober = NULL;
    ucx->echo = NULL;
    ucx->echoed = ucx->echoes;
    for (flash_peer_t *peer = ucx->peers; peer != NULL; peer = peer->next) {
        peer->probe = NULL;
        peer->probe_failed = false;
        peer->failed_probes = 0;
    }
}

/* ---------------------------------------------------------------------- echoes */

static ucs_status_t hear_echo(void *arg, const void *header, size_t header_length, void *data,
                              size_t length, const ucp_am_recv_param_t *param)
{
    flash_ucx_t *ucx = arg;

    (void) data, (void) length, (void) param;
    if (header_length == sizeof(ucx->echoed)) {
        memcpy(&ucx->echoed, header, sizeof(ucx->echoed));
    }
    return UCS_OK;
}

ucs_status_t flash_ucx_hear_echoes(flash_ucx_t *ucx)
{
    ucp_am_handler_param_t param = {.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID |
                                                  UCP_AM_HANDLER_PARAM_FIELD_CB |
                                                  UCP_AM_HANDLER_PARAM_FIELD_ARG,
                                    .id = ECHO,
                                    .cb = hear_echo,
                                    .arg = ucx};

    return ucp_worker_set_am_recv_handler(ucx->worker, &param);
}

/* Without error handling, as the endpoints that messages go through. */
static bool open_echo(flash_ucx_t *ucx)
{
    ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS,
                              .address = ucx->address};

    if (open_prober(ucx) && ucx->echo == NULL &&
        ucp_ep_create(ucx->prober, &params, &ucx->echo) != UCS_OK) {
        ucx->echo = NULL;
    }
    return ucx->echo != NULL;
}

/* What cannot be sent is not missed. */
static void send_echo(flash_ucx_t *ucx)
{
    ucp_request_param_t param = {.op_attr_mask = 0};
    ucs_status_ptr_t request;

    ucx->echoes++;
    request = ucp_am_send_nbx(ucx->echo, ECHO, &ucx->echoes, sizeof(ucx->echoes), NULL, 0, &param);
    if (UCS_PTR_IS_PTR(request)) {
        ucp_request_free(request);
    } else if (UCS_PTR_IS_ERR(request)) {
        ucx->echoed = ucx->echoes;
    }
}

unsigned flash_ucx_echo(flash_transport_t *transport)
{
    flash_ucx_t *ucx = flash_ucx_of(transport);

    if (ucx->echoed != ucx->echoes) {
        ucx->overdue++;
    } else {
        ucx->overdue = 0;
        if (open_echo(ucx)) {
            send_echo(ucx);
        }
    }
    progress_prober(ucx);
    return ucx->overdue;
}
