/*
 * flash_ucx_close.c: the end of endpoints: what was sent arrives, then they are closed.
 *
 * Processes of a job end at different times. An RDMA device repeats a message for seconds when the
 * process that it is for has closed its end, and datagrams (UD) wait for an answer by that process.
 * So `flush` makes sure that all messages of this process have arrived, while no process of the job
 * has closed anything; `close` comes when all processes have flushed, and finds nothing to wait for.
 *
 * Without error handling, which flash's endpoints do without (flash_ucx_peer.c), UCX closes an
 * endpoint by flushing it, and in no other way. An endpoint to a lost peer, whose messages arrive
 * nowhere, is left to ucp_worker_destroy(), and so is one whose flush failed or did not end in time.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "flash_ucx_internal.h"

#define FLUSH_MILLISECONDS 5000 /* a process that has died, and is not known to be lost */
#define CLOSE_MILLISECONDS 100  /* likewise; after a flush it takes none */

typedef ucs_status_ptr_t (*begin_t)(ucp_ep_h ep, const ucp_request_param_t *param);

int64_t flash_ucx_milliseconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000) + now.tv_nsec / 1000000;
}

/* An endpoint that has carried no message may not be connected: its flush waits for the other end. */
static bool may_flush(const flash_peer_t *peer)
{
    return peer->ep != NULL && peer->used && !peer->unflushed && !peer->lost && !peer->failing;
}

/* With each endpoint. Whether there is anything to wait for. */
static bool begin_all(flash_ucx_t *ucx, begin_t begin)
{
    ucp_request_param_t param = {.op_attr_mask = 0};
    bool waits = false;

    for (flash_peer_t *peer = ucx->peers; peer != NULL; peer = peer->next) {
        flash_ucx_stop_settling(peer);
    }
    for (flash_peer_t *peer = ucx->peers; peer != NULL; peer = peer->next) {
        ucs_status_ptr_t request = may_flush(peer) ? begin(peer->ep, &param) : NULL;

        peer->unflushed |= UCS_PTR_IS_ERR(request);
        peer->flush = UCS_PTR_IS_PTR(request) ? request : NULL;
        waits |= peer->flush != NULL;
    }
    return waits;
}

static void end(flash_peer_t *peer, ucs_status_t status)
{
    peer->unflushed |= status != UCS_OK;
    ucp_request_free(peer->flush); /* by UCX, when it is done */
    peer->flush = NULL;
}

/* Whether some are still under way. */
static bool look(flash_ucx_t *ucx)
{
    bool waits = false;

    for (flash_peer_t *peer = ucx->peers; peer != NULL; peer = peer->next) {
        ucs_status_t status = peer->flush != NULL ? ucp_request_check_status(peer->flush) : UCS_OK;

        if (peer->flush != NULL && status != UCS_INPROGRESS) {
            end(peer, status);
        }
        waits |= peer->flush != NULL;
    }
    return waits;
}

/* Those of processes that have died do not arrive. */
static void end_all(flash_ucx_t *ucx, begin_t begin, int64_t most)
{
    bool waits = begin_all(ucx, begin);
    int64_t deadline = flash_ucx_milliseconds() + most;

    while (waits && flash_ucx_milliseconds() < deadline) {
        (void) ucp_worker_progress(ucx->worker);
        if (ucx->exchange_worker != NULL) {
            (void) ucp_worker_progress(ucx->exchange_worker);
        }
        waits = look(ucx);
    }
    for (flash_peer_t *peer = ucx->peers; waits && peer != NULL; peer = peer->next) {
        if (peer->flush != NULL) {
            end(peer, UCS_INPROGRESS);
        }
    }
}

bool flash_ucx_flush(flash_transport_t *transport)
{
    flash_ucx_t *ucx = flash_ucx_of(transport);
    bool arrived = true;

    end_all(ucx, ucp_ep_flush_nbx, FLUSH_MILLISECONDS);
    for (const flash_peer_t *peer = ucx->peers; peer != NULL; peer = peer->next) {
        arrived &= !peer->unflushed;
    }
    return arrived;
}

void flash_ucx_close(flash_ucx_t *ucx)
{
    end_all(ucx, ucp_ep_close_nbx, CLOSE_MILLISECONDS);
}
