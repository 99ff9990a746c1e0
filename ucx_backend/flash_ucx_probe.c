/*
 * flash_ucx_probe.c: whether peers are there, and whether what they send comes in.
 *
 * Where a peer is silent for longer than its user likes, a second endpoint, a probe, is made to it:
 * one with error handling, whose failure tells that the process has gone. Probes have a worker of
 * their own, the prober, for UCX would take them for the other ends of the peer's endpoints.
 *
 * A probe that is still connecting when the peer is heard again stays until it is connected, and so does
 * the prober: UCX 1.12 and 1.13 end a process by an assertion if it closes an endpoint, or its worker,
 * while a datagram by which the endpoint connects (UD) waits to be sent.
 *
 * From one more, the loopback worker, this process also sends a message to itself, a loopback
 * probe. Within a node, all that others send to a process comes through one queue in shared memory,
 * in order. A process that is killed between taking a place there and saying that it is complete
 * blocks it for good, of which UCX says nothing: the loopback probe does not come in either. (That
 * the worker cannot be armed is no sign of it: it cannot either while a message of ours waits for
 * room in another one's queue.)
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "flash_ucx_internal.h"

#include <string.h>

#define FAILED_PROBES 2 /* in a row: the peer has gone */

#define CONNECT_MILLISECONDS 2000 /* for probes that connect when the transport is closed */

/*
 * Looks in a row that miss a loopback probe: the queue is blocked. A process that is there, and that
 * writes what the probe waits behind, may lose its core for less.
 */
#define MISSED_LOOKS 3

ucp_worker_h flash_ucx_new_worker(ucp_context_h context)
{
    ucp_worker_params_t params = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                                  .thread_mode = UCS_THREAD_MODE_SERIALIZED};
    ucp_worker_h worker;

    return ucp_worker_create(context, &params, &worker) == UCS_OK ? worker : NULL;
}

/* UCX looks after a worker's endpoints in one of 32 calls only. */
static unsigned progress(ucp_worker_h worker)
{
    unsigned happened = 0;

    for (int k = 0; k < 64 && worker != NULL; k++) {
        happened += ucp_worker_progress(worker);
    }
    return happened;
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

/* That is over when the endpoint is connected, or has failed. */
static void begin_flush(flash_peer_t *peer)
{
    ucp_request_param_t param = {.op_attr_mask = 0};
    ucs_status_ptr_t request = ucp_ep_flush_nbx(peer->probe, &param);

    peer->probe_flush = UCS_PTR_IS_PTR(request) ? request : NULL;
}

static bool is_connecting(flash_peer_t *peer)
{
    if (peer->probe_flush != NULL &&
        ucp_request_check_status(peer->probe_flush) != UCS_INPROGRESS) {
        ucp_request_free(peer->probe_flush);
        peer->probe_flush = NULL;
    }
    return peer->probe_flush != NULL;
}

bool flash_ucx_probe(flash_peer_t *peer, const void *address, const char **reason)
{
    ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS |
                                            UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                                            UCP_EP_PARAM_FIELD_ERR_HANDLER,
                              .address = address,
                              .err_mode = UCP_ERR_HANDLING_MODE_PEER,
                              .err_handler = {.cb = probe_failed, .arg = peer}};
    flash_ucx_t *ucx = peer->ucx;
    ucs_status_t status;

    if (peer->probe != NULL || peer->lost) {
        return true;
    }
    if (!flash_ucx_open_prober(ucx, reason)) {
        return false;
    }
    status = ucp_ep_create(ucx->prober, &params, &peer->probe);
    if (status != UCS_OK) {
        peer->probe = NULL;
        peer->probe_failed = tells_of_peer(status);
        return true;
    }
    begin_flush(peer);
    return true;
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
    if (peer->probe_flush != NULL) {
        ucp_request_free(peer->probe_flush); /* by UCX, when it is done */
    }
    peer->probe = NULL;
    peer->probe_flush = NULL;
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

    (void) progress(ucx->prober);
    for (flash_peer_t *peer = ucx->peers; peer != NULL; peer = peer->next) {
        judge_probe(peer);
    }
}

/* Sends no loopback probes any more, for now: the next one is not late. */
static void end_loopback(flash_ucx_t *ucx)
{
    if (ucx->loopback_worker != NULL) {
        ucp_worker_destroy(ucx->loopback_worker); /* with its endpoint */
    }
    ucx->loopback_worker = NULL;
    ucx->loopback_ep = NULL;
    ucx->loopback_failed = false;
    ucx->overdue = 0;
}

/* Whether none is left, and the prober is closed. */
static bool end_probes(flash_ucx_t *ucx)
{
    bool connecting = false;

    (void) progress(ucx->prober);
    for (flash_peer_t *peer = ucx->peers; peer != NULL; peer = peer->next) {
        if (!peer->probe_failed && is_connecting(peer)) {
            connecting = true;
        } else {
            close_probe(peer);
            peer->probe_failed = false;
        }
        peer->failed_probes = 0;
    }
    if (!connecting) {
        flash_ucx_close_prober(ucx);
    }
    return !connecting;
}

void flash_ucx_end_probes(flash_transport_t *transport)
{
    flash_ucx_t *ucx = flash_ucx_of(transport);

    end_loopback(ucx);
    if (ucx->prober != NULL) {
        (void) end_probes(ucx);
    }
}

bool flash_ucx_end_all_probes(flash_ucx_t *ucx)
{
    int64_t deadline = flash_ucx_milliseconds() + CONNECT_MILLISECONDS;
    bool ended;

    end_loopback(ucx);
    do {
        ended = ucx->prober == NULL || end_probes(ucx);
    } while (!ended && flash_ucx_milliseconds() < deadline);
    return ended;
}

/* -------------------------------------------------------------- loopback probes */

/* Whoever is slower than its successor is not heard any more. */
ucs_status_t flash_ucx_hear_loopback(void *arg, const void *header, size_t header_length,
                                     void *data, size_t length, const ucp_am_recv_param_t *param)
{
    flash_ucx_t *ucx = arg;
    uint64_t number = 0;

    (void) data, (void) length, (void) param;
    if (header_length == sizeof(number)) {
        memcpy(&number, header, sizeof(number));
    }
    if (number > ucx->loopback_arrived) {
        ucx->loopback_arrived = number;
    }
    return UCS_OK;
}

/* Called from within UCX's progress, as the next one is: no place to close anything. */
static void loopback_failed(void *arg, ucp_ep_h ep, ucs_status_t status)
{
    flash_ucx_t *ucx = arg;

    (void) ep, (void) status;
    ucx->loopback_failed = true;
}

static void loopback_left(void *request, ucs_status_t status, void *arg)
{
    flash_ucx_t *ucx = arg;

    ucx->loopback_failed |= status != UCS_OK;
    ucp_request_free(request);
}

/* An endpoint as those that messages go through, which share the queue. */
static bool open_loopback(flash_ucx_t *ucx)
{
    ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS |
                                            UCP_EP_PARAM_FIELD_ERR_HANDLER,
                              .address = ucx->address,
                              .err_handler = {.cb = loopback_failed, .arg = ucx}};

    if (ucx->loopback_worker == NULL) {
        ucx->loopback_worker = flash_ucx_new_worker(ucx->context);
    }
    if (ucx->loopback_worker != NULL && ucx->loopback_ep == NULL &&
        ucp_ep_create(ucx->loopback_worker, &params, &ucx->loopback_ep) != UCS_OK) {
        ucx->loopback_ep = NULL;
    }
    return ucx->loopback_ep != NULL;
}

/* What cannot be sent is not missed. */
static void send_loopback(flash_ucx_t *ucx)
{
    ucp_request_param_t param = {.op_attr_mask =
                                     UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
                                 .cb.send = loopback_left,
                                 .user_data = ucx};

    ucx->loopbacks_sent++;
    ucx->loopback_failed =
        UCS_PTR_IS_ERR(ucp_am_send_nbx(ucx->loopback_ep, FLASH_UCX_LOOPBACK, &ucx->loopbacks_sent,
                                       sizeof(ucx->loopbacks_sent), NULL, 0, &param));
}

bool flash_ucx_loopback(flash_transport_t *transport)
{
    flash_ucx_t *ucx = flash_ucx_of(transport);

    if (ucx->loopback_failed) {
        end_loopback(ucx);
    }
    if (ucx->loopback_ep != NULL && ucx->loopback_arrived < ucx->loopbacks_sent) {
        return ++ucx->overdue >= MISSED_LOOKS;
    }
    ucx->overdue = 0;
    if (open_loopback(ucx)) {
        send_loopback(ucx);
    }
    return false;
}

unsigned flash_ucx_progress_loopback(flash_transport_t *transport)
{
    return progress(flash_ucx_of(transport)->loopback_worker);
}

uint64_t flash_ucx_loopback_arrived(const flash_transport_t *transport)
{
    return ((const flash_ucx_t *) transport)->loopback_arrived;
}

uint64_t flash_ucx_next_loopback(const flash_transport_t *transport)
{
    return ((const flash_ucx_t *) transport)->loopbacks_sent + 1;
}
