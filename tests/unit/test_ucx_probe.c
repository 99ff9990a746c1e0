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
    int endpoints, closed, sent;
    bool connecting; /* endpoints that are made from now on, until it is false */
    int64_t milliseconds;
    int workers, contexts;     /* open */
    ucp_context_h context;     /* the last worker's */
    ucp_err_handler_t handler; /* the last endpoint's */
    unsigned minor;            /* of UCX's version */
    const char *tcp_devices;   /* of flash's context; NULL: none */
    char probe_devices[64];    /* of the context for probes */
} fake;

static int endpoint, worker, context, probe_context, config, flush; /* for their addresses */

/* ---------------------------------------------------------------------- UCX */

ucs_status_t ucp_worker_create(ucp_context_h of, const ucp_worker_params_t *params,
                               ucp_worker_h *made)
{
    (void) params;
    fake.context = of;
    fake.workers++;
    *made = (ucp_worker_h) (void *) &worker;
    return UCS_OK;
}

void ucp_worker_destroy(ucp_worker_h gone)
{
    (void) gone;
    fake.workers--;
}

void ucp_get_version(unsigned *major, unsigned *minor, unsigned *release)
{
    *major = 1;
    *minor = fake.minor;
    *release = 0;
}

ucs_status_t ucp_init_version(unsigned major, unsigned minor, const ucp_params_t *params,
                              const ucp_config_t *with, ucp_context_h *made)
{
    (void) major, (void) minor, (void) params, (void) with;
    fake.contexts++;
    *made = (ucp_context_h) (void *) &probe_context;
    return UCS_OK;
}

void ucp_cleanup(ucp_context_h gone)
{
    (void) gone;
    fake.contexts--;
}

void ucp_config_release(ucp_config_t *gone)
{
    (void) gone;
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

ucs_status_ptr_t ucp_ep_flush_nbx(ucp_ep_h ep, const ucp_request_param_t *param)
{
    (void) ep, (void) param;
    return fake.connecting ? &flush : NULL;
}

ucs_status_t ucp_request_check_status(void *request)
{
    (void) request;
    return fake.connecting ? UCS_INPROGRESS : UCS_OK;
}

void ucp_request_free(void *request)
{
    (void) request;
}

/* Of flash_ucx_config.c. */
int flash_ucx_configure_probes(const char *devices, ucp_config_t **made, char *reason)
{
    (void) reason;
    snprintf(fake.probe_devices, sizeof(fake.probe_devices), "%s", devices);
    *made = (ucp_config_t *) (void *) &config;
    return FLASH_OK;
}

/* Of flash_ucx_found.c. */
void flash_ucx_find(ucp_context_h of, flash_ucx_ways_t *ways)
{
    (void) of;
    *ways = (flash_ucx_ways_t){.tcp = fake.tcp_devices != NULL, .faster = true};
    if (ways->tcp) {
        snprintf(ways->tcp_devices, sizeof(ways->tcp_devices), "%s", fake.tcp_devices);
    }
}

/* Of flash_ucx_close.c. */
int64_t flash_ucx_milliseconds(void)
{
    return fake.milliseconds += 100;
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
    fake.minor = 13;
    rig->ucx.context = (ucp_context_h) (void *) &context;
    rig->peer.ucx = &rig->ucx;
    rig->ucx.peers = &rig->peer;
}

/* One look at a silent peer, whose endpoint, if there is one, fails meanwhile. */
static void look(rig_t *rig)
{
    const char *reason;

    (void) flash_ucx_probe(&rig->peer, "address", &reason);
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

static void probes_that_still_connect_stay(void)
{
    const char *reason;
    rig_t rig;

    set_up(&rig);
    fake.connecting = true;
    (void) flash_ucx_probe(&rig.peer, "address", &reason);
    flash_ucx_end_probes(&rig.ucx.super);
    (void) flash_ucx_probe(&rig.peer, "address", &reason);
    ok(fake.closed == 0 && fake.workers == 1 && fake.endpoints == 1,
       "the peer is heard again: a probe that still connects stays, for the next silence");
    ok(!flash_ucx_end_all_probes(&rig.ucx) && fake.closed == 0 && fake.milliseconds >= 2000,
       "at the end it is waited for, and left");
    fake.connecting = false;
    flash_ucx_end_probes(&rig.ucx.super);
    ok(fake.closed == 1 && fake.workers == 0, "it is connected: it is closed");
}

static void probes_that_fail_connecting(void)
{
    rig_t rig;

    set_up(&rig);
    fake.connecting = true;
    look(&rig);
    look(&rig);
    ok(rig.peer.lost && flash_ucx_end_all_probes(&rig.ucx) && fake.closed == 2 && fake.workers == 0,
       "probes that fail while they connect count, and are closed");
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

/* ---------------------------------------------------------- what probes go by */

/* Whether the probe is made: from a worker of that context. */
static bool goes_by(rig_t *rig, void *expected)
{
    const char *reason = NULL;

    return flash_ucx_probe(&rig->peer, "address", &reason) && reason == NULL &&
           fake.endpoints == 1 && fake.workers == 1 && (void *) fake.context == expected;
}

/* Whether there is none, for a reason, and nothing is open. */
static bool goes_by_nothing(rig_t *rig)
{
    const char *reason = NULL;

    return !flash_ucx_probe(&rig->peer, "address", &reason) && reason != NULL &&
           fake.endpoints == 0 && fake.workers == 0 && fake.contexts == 0;
}

static void set_up_rdma(rig_t *rig, unsigned minor, const char *tcp_devices)
{
    set_up(rig);
    fake.minor = minor;
    fake.tcp_devices = tcp_devices;
    rig->ucx.rdma = rig->ucx.around.outlives = true;
}

static void what_probes_go_by(void)
{
    rig_t rig;

    set_up(&rig);
    ok(goes_by(&rig, &context) && fake.contexts == 0, "without RDMA: as messages go");
    set_up_rdma(&rig, 14, "eth0");
    ok(goes_by(&rig, &context) && fake.contexts == 0, "RDMA, UCX 1.14: as messages go");
    set_up_rdma(&rig, 13, "lo,eth0,eth1");
    ok(goes_by(&rig, &probe_context) && strcmp(fake.probe_devices, "lo,eth0,eth1") == 0,
       "RDMA, UCX 1.13: by TCP");
    flash_ucx_end_probes(&rig.ucx.super);
    ok(fake.workers == 0 && fake.contexts == 0 && fake.closed == 1, "nothing of it stays open");
    set_up_rdma(&rig, 13, "lo,eth0,eth1");
    rig.ucx.around.networks = "eth1,eth2";
    ok(goes_by(&rig, &probe_context) && strcmp(fake.probe_devices, "eth1") == 0,
       "by the interfaces that Open MPI uses");
    flash_ucx_end_probes(&rig.ucx.super);
    set_up_rdma(&rig, 13, NULL);
    ok(goes_by_nothing(&rig), "RDMA, UCX 1.13, no TCP: not at all, for a reason");
    set_up_rdma(&rig, 13, "eth0");
    rig.ucx.around.outlives = false;
    ok(goes_by(&rig, &context) && fake.contexts == 0,
       "RDMA, UCX 1.13, a job that outlives no process: as messages go");
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
    const char *reason = NULL;
    rig_t rig;

    set_up(&rig);
    (void) flash_ucx_probe(&rig.peer, "address", &reason);
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
    probes_that_still_connect_stay();
    probes_that_fail_connecting();
    probes_that_cannot_be_opened();
    what_probes_go_by();
    loopback_probes();
    loopback_probes_that_come_late();
    loopback_probes_that_cannot_be_sent();
    what_probes_open_is_closed();
    return tap_done();
}
