/*
 * test_ucx_probe.c: what flash concludes from probes, over UCX calls of this file's own: when a
 * silent process counts as gone, and when the queue of the node counts as blocked.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "flash_ucx_internal.h"
#include "tap.h"

/* What UCX does next, and what it was asked for. */
static struct {
    ucs_status_t ep_create, send;
    int endpoints, closed, sent, workers;
    ucp_err_handler_t handler; /* the last endpoint's */
} fake;

static int endpoint, worker; /* for their addresses */

/* ---------------------------------------------------------------------- UCX */

ucs_status_t ucp_worker_create(ucp_context_h context, const ucp_worker_params_t *params,
                               ucp_worker_h *made)
{
    (void) context, (void) params;
    *made = (ucp_worker_h) (void *) &worker;
    fake.workers++;
    return UCS_OK;
}

void ucp_worker_destroy(ucp_worker_h gone)
{
    (void) gone;
    fake.workers--;
}

unsigned ucp_worker_progress(ucp_worker_h with)
{
    (void) with;
    return 0;
}

ucs_status_t ucp_ep_create(ucp_worker_h of, const ucp_ep_params_t *params, ucp_ep_h *made)
{
    (void) of;
    if (fake.ep_create == UCS_OK) {
        fake.endpoints++;
        fake.handler = params->err_handler;
        *made = (ucp_ep_h) (void *) &endpoint;
    }
    return fake.ep_create;
}

ucs_status_ptr_t ucp_ep_close_nbx(ucp_ep_h ep, const ucp_request_param_t *param)
{
    (void) ep, (void) param;
    fake.closed++;
    return NULL;
}

ucs_status_ptr_t ucp_am_send_nbx(ucp_ep_h ep, unsigned id, const void *header, size_t header_length,
                                 const void *buffer, size_t count, const ucp_request_param_t *param)
{
    (void) ep, (void) id, (void) header, (void) header_length;
    (void) buffer, (void) count, (void) param;
    fake.sent++;
    return UCS_STATUS_PTR(fake.send);
}

void ucp_request_free(void *request)
{
    (void) request;
}

/* Of flash_ucx_peer.c. */
void flash_ucx_lose(flash_peer_t *peer)
{
    peer->lost = true;
}

/* ------------------------------------------------------------------- probes */

typedef struct rig {
    flash_ucx_t ucx;
    flash_peer_t peer;
} rig_t;

static void set_up(rig_t *rig)
{
    memset(rig, 0, sizeof(*rig));
    memset(&fake, 0, sizeof(fake));
    rig->peer.ucx = &rig->ucx;
    rig->ucx.peers = &rig->peer;
}

/* One look at a silent peer, whose endpoint fails meanwhile, if there is one. */
static void look(rig_t *rig)
{
    flash_ucx_probe(&rig->peer, "address");
    if (rig->peer.probe != NULL) {
        fake.handler.cb(fake.handler.arg, rig->peer.probe, UCS_ERR_CONNECTION_RESET);
    }
    flash_ucx_look_at_probes(&rig->ucx.super);
}

static void one_failed_probe_is_not_enough(void)
{
    rig_t rig;

    set_up(&rig);
    look(&rig);
    ok(!rig.peer.lost && fake.endpoints == 1 && fake.closed == 1,
       "a probe fails: the peer is not lost");
    look(&rig);
    ok(rig.peer.lost && fake.endpoints == 2, "the next fails, too: the peer is lost");
}

static void silences_are_counted_apart(void)
{
    rig_t rig;

    set_up(&rig);
    look(&rig);
    flash_ucx_end_probes(&rig.ucx.super);
    look(&rig);
    ok(!rig.peer.lost, "probes of two silences fail: the peer is not lost");
}

/* Looks at a peer to which no endpoint can be made. */
static bool is_lost_by(ucs_status_t status)
{
    rig_t rig;

    set_up(&rig);
    fake.ep_create = status;
    for (int k = 0; k < 10; k++) {
        look(&rig);
    }
    return rig.peer.lost;
}

static void probes_that_cannot_be_opened(void)
{
    ok(!is_lost_by(UCS_ERR_NO_MEMORY) && !is_lost_by(UCS_ERR_NO_RESOURCE) &&
           !is_lost_by(UCS_ERR_IO_ERROR) && !is_lost_by(UCS_ERR_UNREACHABLE),
       "a probe that this host cannot open tells nothing about the peer");
    ok(is_lost_by(UCS_ERR_REJECTED) && is_lost_by(UCS_ERR_CONNECTION_RESET) &&
           is_lost_by(UCS_ERR_NOT_CONNECTED) && is_lost_by(UCS_ERR_ENDPOINT_TIMEOUT),
       "one that the other host refuses does");
}

/* ---------------------------------------------------------- loopback probes */

static void arrives(rig_t *rig, uint64_t number)
{
    (void) flash_ucx_hear_loopback(&rig->ucx, &number, sizeof(number), NULL, 0, NULL);
}

/* Whether the queue counts as blocked at that look behind the one that sent a loopback probe, and not before. */
static bool is_blocked_at(rig_t *rig, int number)
{
    for (int k = 1; k < number; k++) {
        if (flash_ucx_loopback(&rig->ucx.super)) {
            return false;
        }
    }
    return flash_ucx_loopback(&rig->ucx.super);
}

static void loopback_probes(void)
{
    rig_t rig;

    set_up(&rig);
    ok(!flash_ucx_loopback(&rig.ucx.super) && fake.sent == 1, "a loopback probe leaves");
    ok(is_blocked_at(&rig, 3) && fake.sent == 1, "three looks miss it: the queue is blocked");
    arrives(&rig, 1);
    ok(!flash_ucx_loopback(&rig.ucx.super) && fake.sent == 2, "it comes in: the queue is not");
    ok(is_blocked_at(&rig, 3), "looks are counted from the next one on");
}

static void loopback_probes_that_come_late(void)
{
    rig_t rig;
    bool blocked = false;

    set_up(&rig);
    for (uint64_t number = 1; number <= 5; number++) {
        for (int look = 0; look < 3; look++) { /* the first sends, two miss it */
            blocked |= flash_ucx_loopback(&rig.ucx.super);
        }
        arrives(&rig, number);
    }
    ok(!blocked && fake.sent == 5, "two looks miss each of five: the queue is not blocked");
}

static void loopback_probes_that_cannot_be_sent(void)
{
    bool blocked = false;
    rig_t rig;

    set_up(&rig);
    fake.send = UCS_ERR_NO_MEMORY;
    for (int k = 0; k < 10; k++) {
        blocked |= flash_ucx_loopback(&rig.ucx.super);
    }
    ok(!blocked && fake.sent == 10, "what cannot be sent is not missed");
}

static void what_probes_open_is_closed(void)
{
    rig_t rig;

    set_up(&rig);
    flash_ucx_probe(&rig.peer, "address");
    (void) flash_ucx_loopback(&rig.ucx.super);
    ok(fake.workers == 2, "probes and loopback probes have a worker each");
    (void) is_blocked_at(&rig, 2);
    flash_ucx_end_probes(&rig.ucx.super);
    ok(fake.workers == 0 && rig.peer.probe == NULL, "none when nobody is silent any more");
    ok(!flash_ucx_loopback(&rig.ucx.super) && fake.sent == 2 && fake.workers == 1,
       "in the next silence a loopback probe leaves");
    ok(is_blocked_at(&rig, 3), "looks are counted from there on");
}

int main(void)
{
    one_failed_probe_is_not_enough();
    silences_are_counted_apart();
    probes_that_cannot_be_opened();
    loopback_probes();
    loopback_probes_that_come_late();
    loopback_probes_that_cannot_be_sent();
    what_probes_open_is_closed();
    return tap_done();
}
