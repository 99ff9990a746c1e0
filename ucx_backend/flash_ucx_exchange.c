/*
 * flash_ucx_exchange.c: what exchanges with all ranks are sent by.
 *
 * A ring needs two endpoints, an exchange one to each other rank. UCX is told how many endpoints a
 * context will have, and takes connections (RC), each with a queue pair, for up to UCX_RC_MAX_NUM_EPS
 * of them, 256 by default; for more it takes what shares queue pairs (DC, UD). A job on RDMA devices
 * that may have more has two contexts: that of rings keeps its few fast connections, and that of
 * exchanges is told the number of the other ranks. The second one is opened with the first exchange.
 *
 * It only sends. Receives are posted on the worker of rings, whose address is the one that peers
 * know, whoever sends. A process that rings and exchanges both send to is two peers, twins, that are
 * lost together.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "flash_ucx_internal.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <unistd.h>

static unsigned most_connections(void)
{
    const char *most = flash_ucx_set_to("RC_MAX_NUM_EPS", NULL);

    if (most == NULL) {
        return FLASH_UCX_RC_ENDPOINTS;
    }
    return strcasecmp(most, "inf") == 0 ? UINT_MAX : (unsigned) strtoul(most, NULL, 10);
}

/* Both workers wake the progress thread by one descriptor, which is there from the begin. */
static bool watch(const flash_ucx_t *ucx, int fd)
{
    struct epoll_event event = {.events = EPOLLIN};

    return epoll_ctl(ucx->both_fd, EPOLL_CTL_ADD, fd, &event) == 0;
}

/* Not within a node, nor where the environment has told UCX a number, which holds for both contexts. */
static bool are_apart(const flash_ucx_t *ucx, unsigned peers)
{
    return ucx->rdma && ucx->around.across_nodes && flash_ucx_set_to("NUM_EPS", NULL) == NULL &&
           peers > most_connections();
}

void flash_ucx_set_exchanges(flash_ucx_t *ucx, unsigned peers)
{
    ucx->both_fd = -1;
    if (!are_apart(ucx, peers)) {
        return;
    }
    if (ucx->super.event_fd >= 0) {
        ucx->both_fd = epoll_create1(EPOLL_CLOEXEC);
        if (ucx->both_fd < 0 || !watch(ucx, ucx->super.event_fd)) {
            flash_ucx_end_exchanges(ucx, false);
            return; /* exchanges go as rings do */
        }
        ucx->super.event_fd = ucx->both_fd;
    }
    ucx->exchange_peers = peers;
}

/* `held`: messages to lost peers hold memory of the context, see leave_context() in flash_ucx.c. */
static void close_exchanges(flash_ucx_t *ucx, bool held)
{
    if (ucx->exchange_worker != NULL) {
        ucp_worker_destroy(ucx->exchange_worker);
    }
    if (ucx->exchange_context != NULL && !held) {
        ucp_cleanup(ucx->exchange_context);
    }
    ucx->exchange_worker = NULL;
    ucx->exchange_context = NULL;
}

static bool open_exchanges(flash_ucx_t *ucx)
{
    char reason[FLASH_UCX_REASON_MAX];
    int fd;

    if (ucx->exchange_worker != NULL) {
        return true;
    }
    if (flash_ucx_open_context(ucx, FLASH_UCX_RDMA, ucx->exchange_peers, &ucx->exchange_context,
                               reason) != FLASH_OK) {
        return false;
    }
    ucx->exchange_worker = flash_ucx_new_worker(ucx->exchange_context);
    if (ucx->exchange_worker == NULL ||
        (ucx->both_fd >= 0 &&
         (ucp_worker_get_efd(ucx->exchange_worker, &fd) != UCS_OK || !watch(ucx, fd)))) {
        close_exchanges(ucx, false);
        return false;
    }
    return true;
}

/* Without a context of their own exchanges go as rings do. */
flash_peer_t *flash_ucx_exchange_peer(flash_peer_t *peer)
{
    flash_ucx_t *ucx = peer->ucx;

    if (ucx->exchange_peers > 0 && !open_exchanges(ucx)) {
        ucx->exchange_peers = 0;
    }
    if (ucx->exchange_peers == 0) {
        return peer;
    }
    if (peer->twin == NULL && (peer->twin = flash_ucx_peer(&ucx->super)) != NULL) {
        peer->twin->twin = peer;
        peer->twin->exchanges = true;
        peer->twin->lost = peer->lost;
    }
    return peer->twin;
}

void flash_ucx_end_exchanges(flash_ucx_t *ucx, bool held)
{
    close_exchanges(ucx, held);
    if (ucx->both_fd >= 0) {
        close(ucx->both_fd);
    }
    ucx->both_fd = -1;
}
