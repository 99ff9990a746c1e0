/*
 * test_ucx_exchange.c: when exchanges with all ranks go by a context of their own, and what UCX is
 * told of it, over UCX calls of this file's own.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "flash_ucx_internal.h"
#include "tap.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* What UCX does, and what it was asked for. */
static struct {
    const char *most;   /* UCX_RC_MAX_NUM_EPS; NULL: not set */
    const char *number; /* UCX_NUM_EPS; likewise */
    int status;         /* of opening a context */
    unsigned told;      /* of so many endpoints */
    int contexts, workers, opened;
    int fd; /* the second worker's */
} fake;

static int context, worker; /* for their addresses */
static flash_peer_t twin;

const char *flash_ucx_set_to(const char *name, const char *otherwise)
{
    const char *set = strcmp(name, "RC_MAX_NUM_EPS") == 0 ? fake.most
                      : strcmp(name, "NUM_EPS") == 0      ? fake.number
                                                          : NULL;

    return set != NULL ? set : otherwise;
}

int flash_ucx_open_context(const flash_ucx_t *ucx, flash_ucx_devices_t devices, unsigned endpoints,
                           ucp_context_h *made, char *reason)
{
    (void) ucx, (void) devices, (void) reason;
    fake.opened++;
    if (fake.status == FLASH_OK) {
        fake.told = endpoints;
        fake.contexts++;
        *made = (ucp_context_h) (void *) &context;
    }
    return fake.status;
}

ucp_worker_h flash_ucx_new_worker(ucp_context_h of)
{
    (void) of;
    fake.workers++;
    return (ucp_worker_h) (void *) &worker;
}

ucs_status_t ucp_worker_get_efd(ucp_worker_h of, int *fd)
{
    (void) of;
    *fd = fake.fd;
    return UCS_OK;
}

void ucp_worker_destroy(ucp_worker_h gone)
{
    (void) gone;
    fake.workers--;
}

void ucp_cleanup(ucp_context_h gone)
{
    (void) gone;
    fake.contexts--;
}

/* Of flash_ucx_peer.c. */
flash_peer_t *flash_ucx_peer(flash_transport_t *transport)
{
    twin = (flash_peer_t){.ucx = flash_ucx_of(transport)};
    return &twin;
}

/* ---------------------------------------------------------------------------- */

typedef struct rig {
    flash_ucx_t ucx;
    flash_peer_t peer;
    int fd; /* the first worker's */
} rig_t;

static void set_up(rig_t *rig, bool rdma, const char *most, unsigned peers)
{
    memset(rig, 0, sizeof(*rig));
    memset(&fake, 0, sizeof(fake));
    fake.most = most;
    fake.fd = eventfd(0, 0);
    rig->fd = eventfd(0, 0);
    rig->ucx.super.event_fd = rig->fd;
    rig->ucx.rdma = rdma;
    rig->ucx.around.across_nodes = true;
    rig->peer.ucx = &rig->ucx;
    flash_ucx_set_exchanges(&rig->ucx, peers);
}

static void tear_down(rig_t *rig)
{
    flash_ucx_end_exchanges(&rig->ucx, false);
    close(rig->fd);
    close(fake.fd);
}

static void together(const char *when, bool rdma, const char *most, unsigned peers)
{
    rig_t rig;

    set_up(&rig, rdma, most, peers);
    ok(flash_ucx_exchange_peer(&rig.peer) == &rig.peer && fake.opened == 0 &&
           rig.ucx.super.event_fd == rig.fd,
       "%s: exchanges go as rings do", when);
    tear_down(&rig);
}

/* Set up anew: the rig has no context yet. */
static bool are_together(rig_t *rig)
{
    tear_down(rig);
    rig->ucx.super.event_fd = rig->fd = eventfd(0, 0);
    fake.fd = eventfd(0, 0);
    rig->ucx.exchange_peers = 0;
    flash_ucx_set_exchanges(&rig->ucx, 1000);
    return flash_ucx_exchange_peer(&rig->peer) == &rig->peer && fake.opened == 0;
}

static void together_after_all(void)
{
    rig_t rig;

    set_up(&rig, true, NULL, 1000);
    rig.ucx.around.across_nodes = false;
    ok(are_together(&rig), "1000 peers of one node: exchanges go as rings do");
    rig.ucx.around.across_nodes = true;
    fake.number = "1000";
    ok(are_together(&rig), "1000 peers, and the environment tells UCX of them: likewise");
    tear_down(&rig);
}

static void apart(const char *when, const char *most, unsigned peers)
{
    rig_t rig;

    set_up(&rig, true, most, peers);
    ok(flash_ucx_exchange_peer(&rig.peer) == &twin && twin.twin == &rig.peer && twin.exchanges &&
           !rig.peer.exchanges && fake.told == peers,
       "%s: exchanges have a context, which is told of %u endpoints", when, peers);
    ok(flash_ucx_exchange_peer(&rig.peer) == &twin && fake.opened == 1, "likewise the next time");
    tear_down(&rig);
    ok(fake.contexts == 0 && fake.workers == 0, "which is closed at the end");
}

static bool is_readable(int fd)
{
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};

    return poll(&poll_fd, 1, 0) == 1;
}

/* Whether an event of the worker's wakes the sleeper, and wakes it no more when it has been read. */
static bool wakes(const rig_t *rig, int fd)
{
    uint64_t events = 1;
    bool woken;

    woken = write(fd, &events, sizeof(events)) == sizeof(events) &&
            is_readable(rig->ucx.super.event_fd);
    return woken && read(fd, &events, sizeof(events)) == sizeof(events) &&
           !is_readable(rig->ucx.super.event_fd);
}

static void both_wake_the_sleeper(void)
{
    rig_t rig;
    int fd;

    set_up(&rig, true, NULL, 1000);
    fd = rig.ucx.super.event_fd;
    ok(wakes(&rig, rig.fd), "before the first exchange an event wakes the sleeper");
    (void) flash_ucx_exchange_peer(&rig.peer);
    ok(rig.ucx.super.event_fd == fd && wakes(&rig, rig.fd) && wakes(&rig, fake.fd),
       "then one of either worker does, by the same descriptor");
    tear_down(&rig);
}

static void lost_before(void)
{
    rig_t rig;

    set_up(&rig, true, NULL, 1000);
    rig.peer.lost = true;
    ok(flash_ucx_exchange_peer(&rig.peer)->lost, "a peer that is lost is lost for exchanges");
    tear_down(&rig);
}

static void cannot_be_opened(void)
{
    rig_t rig;

    set_up(&rig, true, NULL, 1000);
    fake.status = FLASH_ERR_NO_MEMORY;
    ok(flash_ucx_exchange_peer(&rig.peer) == &rig.peer &&
           flash_ucx_exchange_peer(&rig.peer) == &rig.peer && fake.opened == 1,
       "no second context: exchanges go as rings do, and it is not tried again");
    tear_down(&rig);
}

int main(void)
{
    together("256 peers", true, NULL, 256);
    together("1000 peers without RDMA", false, NULL, 1000);
    together("1000 peers, and no limit", true, "INF", 1000);
    together_after_all();
    apart("257 peers", NULL, 257);
    apart("3 peers, and a limit of 2", "2", 3);
    both_wake_the_sleeper();
    lost_before();
    cannot_be_opened();
    return tap_done();
}
