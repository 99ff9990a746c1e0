/*
 * test_ucx_close.c: the end of endpoints, over UCX calls of this file's own: which are flushed and
 * closed, and that nothing waits for good; and what has left, and is still UCX's to send.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "flash_ucx_internal.h"
#include "tap.h"

enum { PEERS = 40, AT_ONCE = 32 }; /* flushes that begin in one look after what has left */

/* What UCX does, and what it was asked for. */
static struct {
    int flushed[PEERS], closed[PEERS]; /* calls, by endpoint */
    int progressed, freed;
    int takes[PEERS];           /* calls of progress until its request is done; -1: it never is */
    ucs_status_t status[PEERS]; /* of one that is done, then or at once */
} fake;

static char places[PEERS]; /* for the addresses of endpoints */
static char requests[PEERS];

static size_t number_of(ucp_ep_h ep)
{
    return (size_t) ((char *) ep - places);
}

static ucs_status_ptr_t begin(ucp_ep_h ep)
{
    size_t number = number_of(ep);

    return fake.takes[number] == 0 ? UCS_STATUS_PTR(fake.status[number]) : &requests[number];
}

ucs_status_ptr_t ucp_ep_flush_nbx(ucp_ep_h ep, const ucp_request_param_t *param)
{
    (void) param;
    fake.flushed[number_of(ep)]++;
    return begin(ep);
}

ucs_status_ptr_t ucp_ep_close_nbx(ucp_ep_h ep, const ucp_request_param_t *param)
{
    (void) param;
    fake.closed[number_of(ep)]++;
    return begin(ep);
}

unsigned ucp_worker_progress(ucp_worker_h worker)
{
    (void) worker;
    fake.progressed++;
    return 0;
}

ucs_status_t ucp_request_check_status(void *of)
{
    size_t number = (size_t) ((char *) of - requests);
    int takes = fake.takes[number];

    return takes >= 0 && fake.progressed >= takes ? fake.status[number] : UCS_INPROGRESS;
}

void ucp_request_free(void *gone)
{
    (void) gone;
    fake.freed++;
}

/* A millisecond passes with each look at the clock. */
int clock_gettime(clockid_t clock, struct timespec *now)
{
    static long looks;

    (void) clock;
    looks++;
    now->tv_sec = looks / 1000;
    now->tv_nsec = looks % 1000 * 1000000;
    return 0;
}

/* ---------------------------------------------------------------------------- */

typedef struct rig {
    flash_ucx_t ucx;
    flash_peer_t peers[PEERS];
} rig_t;

/* All have an endpoint that has been used. */
static void set_up(rig_t *rig, int takes)
{
    memset(rig, 0, sizeof(*rig));
    memset(&fake, 0, sizeof(fake));
    for (int k = 0; k < PEERS; k++) {
        fake.takes[k] = takes;
        rig->peers[k].ucx = &rig->ucx;
        rig->peers[k].ep = (ucp_ep_h) (void *) &places[k];
        rig->peers[k].used = true;
        rig->peers[k].next = rig->ucx.peers;
        rig->ucx.peers = &rig->peers[k];
    }
}

static bool is_each(const int calls[PEERS], int expected)
{
    bool all = true;

    for (int k = 0; k < PEERS; k++) {
        all &= calls[k] == expected;
    }
    return all;
}

static int count(const int calls[PEERS])
{
    int sum = 0;

    for (int k = 0; k < PEERS; k++) {
        sum += calls[k];
    }
    return sum;
}

static void all_that_were_used(void)
{
    rig_t rig;

    set_up(&rig, 0);
    ok(flash_ucx_flush(&rig.ucx.super) && is_each(fake.flushed, 1) && is_each(fake.closed, 0),
       "each endpoint is flushed");
    flash_ucx_close(&rig.ucx);
    ok(is_each(fake.flushed, 1) && is_each(fake.closed, 1) && fake.progressed == 0,
       "each is closed, and nothing else happens meanwhile");
    set_up(&rig, 3);
    ok(flash_ucx_flush(&rig.ucx.super) && fake.progressed == 3 && fake.freed == PEERS,
       "what takes time is waited for");
}

static void not_these(void)
{
    rig_t rig;

    set_up(&rig, 0);
    rig.peers[0].lost = true;
    rig.peers[1].failing = true;
    rig.peers[2].used = false;
    rig.peers[3].ep = NULL;
    ok(flash_ucx_flush(&rig.ucx.super) && count(fake.flushed) == PEERS - 4 &&
           fake.flushed[0] + fake.flushed[1] + fake.flushed[2] + fake.flushed[3] == 0,
       "none to a peer that is lost, or fails, or has sent and got nothing, or has no endpoint");
    flash_ucx_close(&rig.ucx);
    ok(count(fake.closed) == PEERS - 4 &&
           fake.closed[0] + fake.closed[1] + fake.closed[2] + fake.closed[3] == 0,
       "nor are these closed");
}

static void not_for_good(void)
{
    rig_t rig;

    set_up(&rig, -1);
    ok(!flash_ucx_flush(&rig.ucx.super) && fake.freed == PEERS,
       "what never arrives is not waited for for good, and is told");
    flash_ucx_close(&rig.ucx);
    ok(is_each(fake.closed, 0) && fake.freed == PEERS, "its endpoint is left to the worker");
    set_up(&rig, -1);
    flash_ucx_close(&rig.ucx);
    ok(is_each(fake.closed, 1) && fake.freed == PEERS, "nor is what never closes waited for");
}

/* The first that fails ends nothing for the others. */
static void what_fails(void)
{
    rig_t rig;

    set_up(&rig, 3);
    fake.takes[1] = 0;
    fake.takes[2] = 2;
    fake.status[1] = fake.status[2] = UCS_ERR_ENDPOINT_TIMEOUT;
    ok(!flash_ucx_flush(&rig.ucx.super) && fake.progressed == 3 && fake.freed == PEERS - 1,
       "a flush that fails, at once or later, has not arrived, and the others are waited for");
    flash_ucx_close(&rig.ucx);
    ok(fake.closed[0] == 1 && fake.closed[3] == 1 && fake.closed[1] + fake.closed[2] == 0,
       "the endpoints of those that failed are left to the worker, and the others are closed");
    set_up(&rig, 1);
    fake.status[0] = UCS_ERR_ENDPOINT_TIMEOUT;
    flash_ucx_close(&rig.ucx);
    ok(fake.freed == PEERS, "a close that fails is done");
}

static bool is_settled(rig_t *rig)
{
    return flash_ucx_settled(&rig->ucx.super);
}

static void what_has_left(void)
{
    rig_t rig;

    set_up(&rig, 3);
    ok(is_settled(&rig) && is_each(fake.flushed, 0), "nothing has left: nothing is flushed");
    flash_ucx_leave(&rig.peers[0]);
    flash_ucx_leave(&rig.peers[2]);
    flash_ucx_leave(&rig.peers[2]);
    ok(!is_settled(&rig) && !is_settled(&rig) && fake.flushed[0] == 1 && fake.flushed[2] == 1 &&
           fake.flushed[1] + fake.flushed[3] == 0,
       "to where it has left, the endpoint is flushed, once");
    fake.progressed = 3;
    fake.takes[2] = 5;
    flash_ucx_leave(&rig.peers[2]);
    ok(!is_settled(&rig) && fake.flushed[0] == 1, "one flush is done, and the other one is not");
    fake.progressed = 5;
    ok(!is_settled(&rig) && fake.flushed[2] == 2,
       "what has left since the flush began wants another one");
    fake.takes[2] = 6;
    ok(!is_settled(&rig), "which takes as long as it takes");
    fake.progressed = 6;
    ok(is_settled(&rig) && is_settled(&rig) && fake.flushed[0] == 1 && fake.flushed[2] == 2 &&
           fake.freed == 3,
       "all is sent");
    fake.takes[1] = 0;
    flash_ucx_leave(&rig.peers[1]);
    ok(is_settled(&rig) && fake.flushed[1] == 1, "where all was sent at once, too");
    rig.ucx.untold = true;
    ok(!is_settled(&rig), "a peer that was given up is still to be told");
}

static void what_has_left_for_nobody(void)
{
    rig_t rig;

    set_up(&rig, -1);
    flash_ucx_leave(&rig.peers[0]);
    flash_ucx_leave(&rig.peers[1]);
    rig.peers[1].failing = true;
    ok(!is_settled(&rig) && fake.flushed[1] == 0, "nothing is waited for where an endpoint fails");
    rig.peers[0].failing = true;
    ok(is_settled(&rig) && fake.freed == 1, "nor where it does meanwhile");
    set_up(&rig, -1);
    flash_ucx_leave(&rig.peers[3]);
    ok(!is_settled(&rig), "something is to be sent when the endpoints end");
    fake.takes[3] = 0;
    flash_ucx_close(&rig.ucx);
    ok(rig.peers[3].settling == NULL && is_each(fake.closed, 1), "its flush is given back before");
}

static void news(void)
{
    rig_t rig;

    set_up(&rig, -1);
    flash_ucx_leave(&rig.peers[0]);
    (void) is_settled(&rig);
    rig.peers[0].lost = true;
    flash_ucx_settle_behind(&rig.peers[0], &requests[1]);
    ok(!is_settled(&rig) && fake.flushed[0] == 1 && fake.freed == 1,
       "that a peer is given up is waited for, instead of the flush");
    fake.takes[1] = 1;
    fake.progressed = 1;
    ok(is_settled(&rig) && fake.freed == 2, "until it is told");
}

static void not_all_at_once(void)
{
    rig_t rig;

    set_up(&rig, 1);
    for (int k = 0; k < PEERS; k++) {
        flash_ucx_leave(&rig.peers[k]);
    }
    ok(!is_settled(&rig) && count(fake.flushed) == AT_ONCE, "so many flushes begin at once");
    ok(!is_settled(&rig) && is_each(fake.flushed, 1), "and then the others");
    fake.progressed = 1;
    ok(is_settled(&rig) && is_each(fake.flushed, 1), "all is sent");
}

int main(void)
{
    all_that_were_used();
    not_these();
    not_for_good();
    what_fails();
    what_has_left();
    what_has_left_for_nobody();
    news();
    not_all_at_once();
    return tap_done();
}
