/*
 * flash_ucx_internal.h: what the files of the UCX transport share.
 *
 *   flash_ucx_config.c how the context is configured
 *   flash_ucx.c        opening and closing: context, worker
 *   flash_ucx_exchange.c  what exchanges with all ranks are sent by
 *   flash_ucx_peer.c   peers: connecting, losing them, giving them up
 *   flash_ucx_found.c  the ways to others that UCX has found
 *   flash_ucx_probe.c  whether they are there, and whether what they send comes in
 *   flash_ucx_prober.c the worker that asks whether they are there
 *   flash_ucx_ping.c   whether the way to them is
 *   flash_ucx_close.c  the end of endpoints
 *   flash_ucx_messages.c  messages under way
 *   flash_ucx_send.c   messages: sending, receiving, progress
 *   flash_ucx_settle.c what has left, and is still UCX's to send
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef FLASH_UCX_INTERNAL_H
#define FLASH_UCX_INTERNAL_H

#include <stdbool.h>
#include <time.h>

#include <ucp/api/ucp.h>

#include "flash_ucx.h"

typedef struct flash_ucx flash_ucx_t;

#define FLASH_UCX_RING_ENDPOINTS 2   /* a neighbour on either side */
#define FLASH_UCX_RC_ENDPOINTS   256 /* UCX's default for the most that have a queue pair each */

/*
 * One send or receive in UCX's hands. Apart from the engine's transfer, because UCX has no way to
 * call a send back: when a peer is lost, the transfer ends, and what UCX still holds of it is an
 * orphan until UCX lets go, or the worker is closed.
 */
typedef struct flash_message {
    flash_transfer_t *transfer; /* NULL: an orphan */
    flash_peer_t *peer;
    struct flash_message *next, **link; /* in the peer's messages, the orphans or the spare ones */
    struct flash_message *next_retry;   /* in ucx->retries */
    void *request;                      /* UCX's; NULL: UCX has not taken it yet */
    bool sends;
    bool on_device; /* the buffer is a CUDA device's */
    bool leaves;    /* see flash_transfer_t */
    uint64_t tag, mask;
    void *buffer;
    size_t length;
} flash_message_t;

struct flash_peer {
    flash_ucx_t *ucx;
    flash_peer_t *next;
    flash_peer_t *twin; /* the same process, of the other kind; NULL: there is none */
    bool exchanges;     /* sent to by the worker of exchanges */
    ucp_ep_h ep;        /* NULL before the first send */
    bool used;      /* a message has gone to the peer; or, but of an exchange, has come from it */
    void *flush;    /* UCX's request, while the endpoint is flushed or closed */
    bool unflushed; /* that failed, or did not end in time */
    bool unsettled; /* listed in ucx->unsettled */
    flash_peer_t *next_unsettled;
    bool left; /* something has, since `settling` began */
    void *
        settling; /* UCX's request: a flush behind what has left, or the news that it is given up */
    uint64_t id;  /* of its process, see flash_ucx_id() */
    ucp_ep_h probe;    /* NULL before somebody doubts that the process is alive */
    void *probe_flush; /* UCX's request, while the probe connects */
    bool failing;      /* the endpoint failed: to be lost */
    bool misses;       /* with `failing`: the peer is well, and to be told */
    bool probe_failed;
    unsigned failed_probes; /* in this silence */
    bool lost;
    bool pinging;              /* a ping has not left yet */
    bool untold;               /* that it has been given up */
    flash_message_t *messages; /* under way, but for orphans */
};

struct flash_ucx {
    flash_transport_t super;
    ucp_context_h context;
    bool rdma; /* as far as is known, it can use such a device */
    ucp_worker_h worker;
    flash_ucx_surroundings_t around;
    char *networks;                 /* those of `around`, or NULL */
    ucp_context_h exchange_context; /* NULL before the first exchange that goes by it */
    ucp_worker_h exchange_worker;   /* likewise */
    unsigned exchange_peers;        /* 0: exchanges go as rings do */
    int both_fd;                    /* readable if a worker's descriptor is; -1: there is none */
    ucp_context_h probe_context;    /* by TCP alone; NULL: not open, or probes go by `context` */
    ucp_worker_h prober;            /* NULL before the first probe */
    ucp_worker_h loopback_worker;   /* NULL before the first loopback probe */
    ucp_ep_h loopback_ep;           /* its endpoint to the worker, or NULL */
    bool loopback_failed;           /* it is of no use any more */
    uint64_t loopbacks_sent;        /* the number of the latest; stays while UCX sends it */
    uint64_t loopback_arrived;      /* the number of the latest that has come in */
    unsigned overdue;               /* times in a row that the latest was missing */
    ucp_address_t *address;
    size_t address_length;
    uint64_t own_id; /* by which peers know this process; stays while UCX sends it */
    flash_peer_t *peers, *unsettled;
    bool failing;        /* some peer is */
    bool untold;         /* likewise */
    uint64_t *strangers; /* who gave this process up before it connected to them */
    size_t nstrangers;
    flash_message_t *orphans;
    flash_message_t *spare;                   /* to be used again */
    size_t messages;                          /* in all, but for orphans */
    size_t reserved;                          /* as many are there, at least */
    flash_message_t *posting;                 /* being handed to UCX, and not done meanwhile */
    flash_message_t *retries, **retries_tail; /* in the order in which they were begun */
    unsigned refusals;                        /* of the first of them, in a row */
    time_t refused_since;                     /* seconds of CLOCK_MONOTONIC */
};

/* The worker whose endpoints lead to the peer. */
static inline ucp_worker_h flash_ucx_sender(const flash_peer_t *peer)
{
    return peer->exchanges ? peer->ucx->exchange_worker : peer->ucx->worker;
}

static inline flash_ucx_t *flash_ucx_of(flash_transport_t *transport)
{
    return (flash_ucx_t *) transport;
}

int flash_ucx_status(ucs_status_t status);
/* Puts the cause into `reason` (FLASH_UCX_REASON_MAX bytes); returns the status as flash's. */
int flash_ucx_fail(char *reason, const char *what, ucs_status_t status);

extern const flash_transport_ops_t flash_ucx_ops;

/* Of the plugin's table, see flash_ucx.h. */
flash_peer_t *flash_ucx_peer(flash_transport_t *transport);
flash_peer_t *flash_ucx_exchange_peer(flash_peer_t *peer);
bool flash_ucx_is_connected(const flash_peer_t *peer);
int flash_ucx_connect(flash_peer_t *peer, const void *address, size_t length,
                      char reason[FLASH_UCX_REASON_MAX]);
void flash_ucx_ways(const flash_peer_t *peer, flash_ucx_ways_t *ways);
bool flash_ucx_probe(flash_peer_t *peer, const void *address, const char **reason);
void flash_ucx_ping(flash_peer_t *peer);
void flash_ucx_look_at_probes(flash_transport_t *transport);
void flash_ucx_end_probes(flash_transport_t *transport);
/* Likewise, and waits for those that are still connecting, but not for long. False: some are, and their
   worker stays, and with it its context. */
bool flash_ucx_end_all_probes(flash_ucx_t *ucx);
bool flash_ucx_loopback(flash_transport_t *transport);
unsigned flash_ucx_progress_loopback(flash_transport_t *transport);
uint64_t flash_ucx_loopback_arrived(const flash_transport_t *transport);
uint64_t flash_ucx_next_loopback(const flash_transport_t *transport);
bool flash_ucx_flush(flash_transport_t *transport);
bool flash_ucx_is_probed(const flash_peer_t *peer);
bool flash_ucx_is_lost(const flash_peer_t *peer);
void flash_ucx_lose(flash_peer_t *peer);

/* What a context is for, between nodes. */
typedef enum flash_ucx_devices {
    FLASH_UCX_RDMA,      /* RDMA devices */
    FLASH_UCX_TCP,       /* TCP, since UCX finds nothing else */
    FLASH_UCX_WITHOUT_IB /* TCP, since the transports of RDMA devices cannot be used */
} flash_ucx_devices_t;

/* The configuration of such a context; to be released. FLASH_OK or FLASH_ERR_*. */
int flash_ucx_configure(flash_ucx_devices_t devices, const flash_ucx_surroundings_t *around,
                        ucp_config_t **config, char *reason);
/* A context that is told of so many endpoints. FLASH_OK or FLASH_ERR_*. */
int flash_ucx_open_context(const flash_ucx_t *ucx, flash_ucx_devices_t devices, unsigned endpoints,
                           ucp_context_h *context, char *reason);
/*
 * What the environment says of a setting, in the order in which it counts; `otherwise` if nothing.
 */
const char *flash_ucx_set_to(const char *name, const char *otherwise);
/* Exchanges go by a context of their own if that number of peers needs one. */
void flash_ucx_set_exchanges(flash_ucx_t *ucx, unsigned peers);
void flash_ucx_end_exchanges(flash_ucx_t *ucx, bool held);
/* The configuration of a context for probes by TCP over those devices, with commas. */
int flash_ucx_configure_probes(const char *devices, ucp_config_t **config, char *reason);
/* The ways that lead from the context to other processes. */
void flash_ucx_find(ucp_context_h context, flash_ucx_ways_t *ways);

/* Ends all that is under way with the peer; what UCX cannot give back becomes an orphan. */
void flash_ucx_end_messages(flash_peer_t *peer);
/* flash_ucx_messages.c */
void flash_ucx_link(flash_message_t **list, flash_message_t *message);
/* Tells the engine, and takes the message off its list. */
void flash_ucx_finish(flash_message_t *message, int status, uint64_t tag, size_t length);
/* UCX has it still, and the engine does not. */
void flash_ucx_orphan(flash_message_t *message);
/* Of the transport's table. */
int flash_ucx_reserve(flash_transport_t *transport, uint32_t transfers);
void flash_ucx_unreserve(flash_transport_t *transport, uint32_t transfers);
flash_message_t *flash_ucx_take_spare(flash_ucx_t *ucx);
void flash_ucx_free_messages(flash_ucx_t *ucx);
void flash_ucx_free_peers(flash_ucx_t *ucx);
/* Loses the peers whose endpoints have failed, or that said so. Not from within UCX's progress. */
void flash_ucx_lose_failing(flash_ucx_t *ucx);
/* A number for a process, by its address, which is no other's. */
uint64_t flash_ucx_id(const void *address, size_t length);

/*
 * Active messages: a peer gives this process up; this process to itself, see `loopback probe` in
 * flash_ucx.h; from a peer that waits for this process.
 */
enum { FLASH_UCX_GIVEN_UP, FLASH_UCX_LOOPBACK, FLASH_UCX_PING };
/* What takes them in; `arg`: the flash_ucx_t. */
ucs_status_t flash_ucx_hear_given_up(void *arg, const void *header, size_t header_length,
                                     void *data, size_t length, const ucp_am_recv_param_t *param);
ucs_status_t flash_ucx_hear_loopback(void *arg, const void *header, size_t header_length,
                                     void *data, size_t length, const ucp_am_recv_param_t *param);
ucs_status_t flash_ucx_hear_ping(void *arg, const void *header, size_t header_length, void *data,
                                 size_t length, const ucp_am_recv_param_t *param);

/* flash_ucx_settle.c */
/* A send that leaves is begun. */
void flash_ucx_leave(flash_peer_t *peer);
/* Nothing of the peer is waited for any more. */
void flash_ucx_stop_settling(flash_peer_t *peer);
/* That request is, instead of what was; NULL: none is. */
void flash_ucx_settle_behind(flash_peer_t *peer, void *request);
/* Of the transport's table. */
bool flash_ucx_settled(flash_transport_t *transport);

/* Closes the endpoints, which have been flushed. */
void flash_ucx_close(flash_ucx_t *ucx);

/* flash_ucx_close.c: of CLOCK_MONOTONIC. */
int64_t flash_ucx_milliseconds(void);

/* A worker of the context's; NULL: there is none. */
ucp_worker_h flash_ucx_new_worker(ucp_context_h context);
/* The worker of probes, unless it is open. False: there is none, for that reason. */
bool flash_ucx_open_prober(flash_ucx_t *ucx, const char **reason);
void flash_ucx_close_prober(flash_ucx_t *ucx);

/* Tells those that could not be told so far that they have been given up. */
void flash_ucx_tell(flash_ucx_t *ucx);
/* See `give_up` in flash_transport.h. */
void flash_ucx_give_up(flash_peer_t *peer);

#endif /* FLASH_UCX_INTERNAL_H */
