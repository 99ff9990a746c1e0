/*
 * flash_ucx.h: the transport over UCX: one UCP context, one worker, endpoints on demand.
 *
 * A table of functions in a plugin of its own, flash_ucx.so: only a process that opens UCX loads
 * it, and what loading it changes in the process can be taken back. The plugin knows nothing of
 * MPI.
 *
 * The context is flash's own, so that its settings, its tags and its progress are apart from any
 * other user of UCX in the process. It is configured by UCX_*, as every UCX program, and by
 * UCX_FLASH_* for flash alone, which wins (UCX_FLASH_TLS=tcp,self, for instance).
 *
 * Locking as in flash_transport.h: one lock around all of these.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef FLASH_UCX_H
#define FLASH_UCX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/flash_transport.h"
#include "flash_ucx_ways.h"

#define FLASH_UCX_REASON_MAX 256 /* bytes for the text that says why something failed */

/* What UCX is opened for. */
typedef struct flash_ucx_surroundings {
    bool across_nodes; /* some peers are on other nodes: for the choice of protocols */
    unsigned on_node;  /* ranks of the job on this one */
    unsigned peers;    /* the most other ranks that this one exchanges messages with */
    bool outlives;     /* the job is to go on when one of its processes has died */
    /* The interfaces to use, with commas, of a host without RDMA and where the environment says
       nothing of UCX's; NULL: all. */
    const char *networks;
} flash_ucx_surroundings_t;

typedef struct flash_ucx_calls {
    /*
     * Opens UCX. NULL on failure, with the cause in `reason`. The transport's event_fd is -1 where
     * UCX was built without support for threads: two may then not even use it in turn.
     */
    flash_transport_t *(*create)(const flash_ucx_surroundings_t *around,
                                 char reason[FLASH_UCX_REASON_MAX]);

    /*
     * Waits until what this process has sent has arrived, some seconds at most. Before any process
     * of the job destroys its transport. False: some of it has not. What was sent to peers that are
     * known to be lost does not count.
     */
    bool (*flush)(flash_transport_t *transport);

    /* Closes the endpoints and the worker. No transfer may be under way; nothing is sent any more.
       */
    void (*destroy)(flash_transport_t *transport);

    /* The address by which other processes connect; valid as long as the transport. */
    const void *(*address)(const flash_transport_t *transport, size_t *length);

    /*
     * Another process, to receive from; to send to once it is connected. Lives as long as the
     * transport. NULL if there is no memory.
     */
    flash_peer_t *(*peer)(flash_transport_t *transport);

    /*
     * The same process, to exchange messages with in operations in which each rank sends to all
     * others: `peer` itself, or one that goes by other transports, and that is lost with `peer`.
     * NULL if there is no memory.
     */
    flash_peer_t *(*exchange_peer)(flash_peer_t *peer);

    /* Whether there is an endpoint to it. */
    bool (*is_connected)(const flash_peer_t *peer);

    /*
     * Makes an endpoint to the peer, whose address of `length` bytes that is, unless there is one.
     * Local: the connection is made by progress. FLASH_OK, FLASH_ERR_UNREACHABLE or
     * FLASH_ERR_NO_MEMORY, with the cause in `reason`.
     */
    int (*connect)(flash_peer_t *peer, const void *address, size_t length,
                   char reason[FLASH_UCX_REASON_MAX]);

    /* The ways by which messages go to a peer; none, where it is not connected, or UCX does not
       tell. */
    void (*ways)(const flash_peer_t *peer, flash_ucx_ways_t *ways);

    /*
     * Sends the peer, if messages go there, one that it ignores: UCX notices a broken way when it
     * sends. At each look at a silent peer.
     */
    void (*ping)(flash_peer_t *peer);
    /*
     * Has UCX look whether the peer's process, of that address, is there. Looking at what came of
     * it loses the peers that have gone; to be done again and again. False: UCX has no way to look,
     * for the reason given.
     */
    bool (*probe)(flash_peer_t *peer, const void *address, const char **reason);
    void (*look_at_probes)(flash_transport_t *transport);
    /*
     * Nobody is silent any more: closes what probes of both kinds have opened, which cost memory
     * here, and the peer a timer.
     */
    void (*end_probes)(flash_transport_t *transport);

    /*
     * A loopback probe: a message from this process to itself, by the way that those of others on
     * the node take. Sends the next one if the latest has come in, or failed. True: this call and
     * those before it have missed the latest so often that nothing comes in, if there was progress
     * to the end before each of them, and a second between them.
     */
    bool (*loopback)(flash_transport_t *transport);
    /* Makes progress with what sends it. Returns the number of events. */
    unsigned (*progress_loopback)(flash_transport_t *transport);
    /* The number, from 1, of the latest that has come in, and that of the next to be sent. */
    uint64_t (*loopback_arrived)(const flash_transport_t *transport);
    uint64_t (*next_loopback)(const flash_transport_t *transport);

    /* Whether UCX asks whether the peer is there already. */
    bool (*is_probed)(const flash_peer_t *peer);
    bool (*is_lost)(const flash_peer_t *peer);

    /*
     * Gives the peer up, see `recv` in flash_transport.h. Messages that UCX is working on cannot be
     * called back: their memory must stay until the transport is destroyed, unless the process has
     * really gone.
     */
    void (*lose)(flash_peer_t *peer);
} flash_ucx_calls_t;

/* What the plugin exports; another table gets another name. */
#define FLASH_UCX_SYMBOL "flash_ucx_calls_6"
extern const flash_ucx_calls_t flash_ucx_calls_6;

#endif /* FLASH_UCX_H */
