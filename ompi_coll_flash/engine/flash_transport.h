/*
 * flash_transport.h: what the ring engine asks of a transport, and nothing else.
 *
 * A table of functions, so that the engine runs unchanged over UCX and over the fake transport of
 * the unit tests. A transport is not thread-safe: its user calls every function, and receives
 * every `done`, under one lock (flash_progress.h).
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef FLASH_TRANSPORT_H
#define FLASH_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Status of an operation, a transfer or a call inside flash. Negative values are flash's own;
 * positive values are MPI error codes that a user's callback returned, passed through untouched.
 */
enum {
    FLASH_OK = 0,
    FLASH_BUSY = -1,            /* events are waiting: make progress, then ask again */
    FLASH_ERR_NO_MEMORY = -2,   /* an allocation failed */
    FLASH_ERR_TRUNCATED = -3,   /* sizes disagree between ranks */
    FLASH_ERR_CANCELED = -4,    /* the receive was cancelled before it matched */
    FLASH_ERR_TRANSPORT = -5,   /* the transport reported an error */
    FLASH_ERR_PEER = -6,        /* another rank failed and said so */
    FLASH_ERR_UNREACHABLE = -7, /* no connection to the peer could be made */
    FLASH_ERR_LOST = -8,        /* the peer's process has gone, or was given up */
    FLASH_ERR_REFUSED = -9,     /* the transport took the message neither at once nor later */
    FLASH_ERR_DEVICE = -10,     /* the device, or its driver, failed */
    FLASH_ERR_UNREADABLE = -11  /* a process of this node does not let its memory be read */
};

/*
 * One message under way. Embedded in the engine's own structures; lives until `done` has been
 * called. `handle` belongs to the transport.
 */
typedef struct flash_transfer flash_transfer_t;
struct flash_transfer {
    /*
     * Called exactly once for each send or receive, from progress() or from within the call that
     * began it. Of a receive, `tag` and `length` are the sender's tag and the bytes received;
     * of a send they mean nothing. The tag is told for FLASH_ERR_TRUNCATED, too, not for other
     * errors.
     */
    void (*done)(flash_transfer_t *transfer, int status, uint64_t tag, size_t length);
    bool on_device; /* the buffer is in a device's memory: see `reaches_devices` */
    bool leaves;    /* a send that may be done before it is matched: see send() */
    void *handle;
};

typedef struct flash_peer flash_peer_t; /* another process; opaque, owned by the transport */
typedef struct flash_transport flash_transport_t;

typedef struct flash_transport_ops {
    /*
     * Sets memory aside for so many more transfers under way at a time, or does so no longer. One
     * within what is reserved does not fail for want of memory, unless peers have been lost.
     * FLASH_OK, or FLASH_ERR_NO_MEMORY and nothing is reserved.
     */
    int (*reserve)(flash_transport_t *transport, uint32_t transfers);
    void (*unreserve)(flash_transport_t *transport, uint32_t transfers);
    /*
     * Sends `length` bytes; the buffer must stay as it is until done. Done when the receiver has
     * matched the message, so that the sender's limit on sends bounds what piles up there; or, if
     * it `leaves`, when it has left, which saves the receiver's word. A send
     * that fails has not arrived, or its peer is lost. With FLASH_ERR_REFUSED the transport has
     * tried for long, and the peer is given up, as below.
     */
    void (*send)(flash_transport_t *transport, flash_peer_t *peer, uint64_t tag, const void *buffer,
                 size_t length, flash_transfer_t *transfer);
    /*
     * Receives a message whose tag equals `tag` in the bits of `mask`. A longer message gives
     * FLASH_ERR_TRUNCATED and writes nothing past `length`. Messages of equal tags from one
     * sender match in the order in which they were sent. `peer` is who is expected to send: the
     * receive ends with FLASH_ERR_LOST if that one is lost. All its transfers do, and whatever
     * is begun with it later; nothing waits for a lost peer. A receive that ends with
     * FLASH_ERR_REFUSED has taken no message, one that ends with FLASH_ERR_NO_MEMORY has dropped
     * one, and its peer is given up, as below.
     */
    void (*recv)(flash_transport_t *transport, flash_peer_t *peer, uint64_t tag, uint64_t mask,
                 void *buffer, size_t length, flash_transfer_t *transfer);
    /* Cancels a receive that is under way; `done` follows, with FLASH_ERR_CANCELED or as usual. */
    void (*cancel)(flash_transport_t *transport, flash_transfer_t *transfer);
    /*
     * Loses the peer and tells it so, that it loses this process: each would wait for messages of
     * the other that never come, or that nobody takes. `done` of its transfers follows, or comes
     * from within.
     */
    void (*give_up)(flash_transport_t *transport, flash_peer_t *peer);
    /* Moves data, calls `done`; returns how much happened, 0 for nothing. */
    unsigned (*progress)(flash_transport_t *transport);
    /*
     * Makes event_fd readable at the next event. FLASH_OK, or FLASH_BUSY when something has
     * happened since the last progress() and sleeping now would miss it.
     */
    int (*arm)(flash_transport_t *transport);
    /*
     * Once all sends are done: whether progress() has nothing left to send of them. False: it may have, and
     * this is to be asked again. To find out may take a message.
     */
    bool (*settled)(flash_transport_t *transport);
} flash_transport_ops_t;

struct flash_transport {
    const flash_transport_ops_t *ops;
    int event_fd; /* for poll(); -1 if the transport cannot wake a sleeper */
    /* Whether it sends and receives CUDA devices' memory, and whether it is good at that: better
       than what copies to the host's and back. */
    bool reaches_devices, prefers_devices;
    /*
     * Whether a send that `leaves` is done long before it is matched, whatever its length, and somebody
     * moves what is then still to be sent. Else the engine lets brief messages leave alone.
     */
    bool lets_leave;
};

#endif /* FLASH_TRANSPORT_H */
