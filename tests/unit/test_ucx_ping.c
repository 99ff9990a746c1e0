/*
 * test_ucx_ping.c: pings to silent peers, over UCX calls of this file's own.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "flash_ucx_internal.h"
#include "tap.h"

static int endpoint, request; /* for their addresses */

static struct {
    void *sends; /* what UCX returns of a send */
    int sent, freed;
    ucp_request_param_t param; /* of the last one */
} fake;

ucs_status_ptr_t ucp_am_send_nbx(ucp_ep_h ep, unsigned id, const void *header, size_t header_length,
                                 const void *buffer, size_t count, const ucp_request_param_t *param)
{
    (void) header, (void) header_length, (void) buffer, (void) count;
    fake.sent += ep == (ucp_ep_h) (void *) &endpoint && id == FLASH_UCX_PING;
    fake.param = *param;
    return fake.sends;
}

void ucp_request_free(void *freed)
{
    fake.freed += freed == &request;
}

typedef struct rig {
    flash_ucx_t ucx;
    flash_peer_t peer;
} rig_t;

static void set_up(rig_t *rig, void *sends)
{
    memset(rig, 0, sizeof(*rig));
    memset(&fake, 0, sizeof(fake));
    fake.sends = sends;
    rig->peer.ucx = &rig->ucx;
    rig->peer.ep = (ucp_ep_h) (void *) &endpoint;
    rig->peer.used = true;
}

static void end_send(ucs_status_t status)
{
    fake.param.cb.send(&request, status, fake.param.user_data);
}

static void pings_that_leave(void)
{
    rig_t rig;

    set_up(&rig, NULL);
    flash_ucx_ping(&rig.peer);
    flash_ucx_ping(&rig.peer);
    ok(fake.sent == 2 && !rig.ucx.failing, "each look sends a ping, if the last one has left");
    set_up(&rig, &request);
    flash_ucx_ping(&rig.peer);
    flash_ucx_ping(&rig.peer);
    ok(fake.sent == 1, "none, while the last one has not");
    end_send(UCS_OK);
    flash_ucx_ping(&rig.peer);
    ok(fake.sent == 2 && fake.freed == 1 && !rig.ucx.failing, "and then another one");
}

static void pings_that_fail(void)
{
    rig_t rig;

    set_up(&rig, &request);
    flash_ucx_ping(&rig.peer);
    end_send(UCS_ERR_ENDPOINT_TIMEOUT);
    ok(rig.peer.failing && rig.ucx.failing && fake.freed == 1,
       "one that fails: the way to the peer is broken");
    set_up(&rig, UCS_STATUS_PTR(UCS_ERR_NO_MEMORY));
    flash_ucx_ping(&rig.peer);
    flash_ucx_ping(&rig.peer);
    ok(fake.sent == 2 && !rig.ucx.failing, "one that UCX has no memory for says nothing");
    set_up(&rig, UCS_STATUS_PTR(UCS_ERR_ENDPOINT_TIMEOUT));
    flash_ucx_ping(&rig.peer);
    ok(rig.peer.failing && rig.ucx.failing, "one that UCX refuses does");
}

static void no_pings(void)
{
    rig_t rig;

    set_up(&rig, NULL);
    rig.peer.lost = true;
    flash_ucx_ping(&rig.peer);
    rig.peer.lost = false;
    rig.peer.used = false;
    flash_ucx_ping(&rig.peer);
    rig.peer.used = true;
    rig.peer.ep = NULL;
    flash_ucx_ping(&rig.peer);
    ok(fake.sent == 0,
       "none to a peer that is lost, not connected, or has sent and received nothing");
}

int main(void)
{
    pings_that_leave();
    pings_that_fail();
    no_pings();
    return tap_done();
}
