/*
 * fake_internal.h: what the fake network (fake_net.c) and its transports (fake_transport.c,
 * fake_receive.c, fake_send.c) share.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef FAKE_INTERNAL_H
#define FAKE_INTERNAL_H

#include "fake_transport.h"

typedef struct node node_t;

struct flash_peer {
    node_t *from, *to;
    bool used, lost;
    flash_peer_t *next; /* of the same sender */
};

typedef struct message {
    node_t *from;
    uint32_t to;   /* of a recorded one */
    uint64_t name; /* sender and its count of messages */
    uint64_t tag;
    size_t length;
    uint64_t sum; /* of the content when it was sent */
    const void *content;
    bool left;                /* its sender was done before it arrived */
    bool on_device;           /* it comes from a device's memory */
    flash_transfer_t *sender; /* of a rendezvous: waits for the receiver */
    unsigned char copy[];
} message_t;

/* A posted receive; flash_transfer_t.handle while it is under way. */
typedef struct receive {
    flash_transfer_t *transfer;
    const flash_peer_t *peer;
    uint64_t name, tag, mask;
    void *buffer;
    size_t length;
    bool on_device; /* the buffer is in a device's memory */
    bool posted;    /* and not matched or cancelled */
    bool fails;
} receive_t;

typedef enum { ARRIVAL, RECEIVED, SENT, CANCELED } event_kind_t;

/* Something that happens in a later progress(). */
typedef struct event {
    event_kind_t kind;
    uint64_t name;
    message_t *message; /* ARRIVAL, RECEIVED */
    receive_t *receive; /* RECEIVED, CANCELED */
    int status;         /* SENT, CANCELED */
    /* SENT: */
    flash_transfer_t *transfer;
    uint64_t tag, sum;
    const void *content;
    size_t length;
} event_t;

typedef struct list {
    void **items;
    size_t count, room;
} list_t;

struct node {
    flash_transport_t transport; /* first: the engine sees only this */
    fake_net_t *net;
    uint32_t rank;
    flash_peer_t *peers;
    event_t *events;
    size_t nevents, events_room;
    list_t unexpected; /* message_t, in the order of arrival */
    list_t posted;     /* receive_t, in the order of posting */
    uint64_t selected;
    bool in_progress;
    uint32_t reserved, under_way; /* transfers */
    uint32_t left;                /* messages that have, and have not arrived */
    fake_stats_t stats;
    list_t script;         /* message_t: copies of all that it sent, of a network that records */
    uint64_t played;       /* of a network that plays: a bit for each message of the script */
    uint64_t taken, given; /* see fake_traffic_t */
};

struct fake_net {
    fake_options_t options;
    uint64_t random;
    uint32_t nranks;
    unsigned violations;
    const char *first_violation;
    bool failed;
    bool records;
    const fake_net_t *script; /* of a network that plays: what is played */
    node_t nodes[];
};

extern const flash_transport_ops_t fake_ops;

/* fake_net.c */
void fake_list_add(list_t *list, void *item);
void fake_add_event(node_t *node, event_t event);
void fake_violation(fake_net_t *net, const char *what);

/* fake_transport.c */
/* A transfer is under way: of a user that reserves at all, it is one of those reserved. */
void fake_begin(node_t *node);
void fake_end(node_t *node, flash_transfer_t *transfer, int status, uint64_t tag, size_t length);
uint64_t fake_checksum(const void *content, size_t length);
/*
 * Names of one kind differ by rank and by which message or receive of the rank's it is, those of
 * different kinds by their upper bits.
 */
uint64_t fake_new_name(const node_t *node, event_kind_t kind, uint64_t count);
/* A send ends in a later progress(). The sender's buffer is to stay as it is until then. */
void fake_end_send_later(const message_t *message, flash_transfer_t *transfer, const void *content,
                         int status);
/* Whether call number `call` is the one that fails so. */
bool fake_fails(node_t *node, fake_failure_t failure, uint64_t call);
void fake_give_up(flash_transport_t *transport, flash_peer_t *peer);

/* fake_receive.c */
void fake_recv(flash_transport_t *transport, flash_peer_t *peer, uint64_t tag, uint64_t mask,
               void *buffer, size_t length, flash_transfer_t *transfer);
void fake_cancel(flash_transport_t *transport, flash_transfer_t *transfer);
/* A message arrives: it is matched with a receive, or waits for one. */
void fake_arrive(node_t *node, message_t *message);
/* Ends a receive with its message: the last use of both. */
void fake_complete_receive(node_t *node, receive_t *receive, message_t *message);

/* fake_send.c */
void fake_send(flash_transport_t *transport, flash_peer_t *peer, uint64_t tag, const void *content,
               size_t length, flash_transfer_t *transfer);

/* fake_script.c */
/*
 * A message leaves: of a network that records, it is noted; of one that plays, it gets the name of
 * the message that it is to be, and is compared with it.
 */
void fake_script_depart(node_t *node, const node_t *to, message_t *message);

#endif /* FAKE_INTERNAL_H */
