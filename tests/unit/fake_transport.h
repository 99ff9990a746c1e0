/*
 * fake_transport.h: a network of ranks inside one process, as hostile as the contract in
 * flash_transport.h allows.
 *
 * Messages take random time and overtake each other unless their tags are equal. Sends complete
 * at once, later, or when they are received; receives at once or later. The memory of a posted
 * receive is overwritten at once and the memory of a send is summed up when it begins and when it
 * ends, so that a buffer in two uses at a time shows.
 *
 * Each rank's events happen only in that rank's progress(), or in its own calls.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef FAKE_TRANSPORT_H
#define FAKE_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/flash_transport.h"

typedef struct fake_net fake_net_t;

/*
 * What goes wrong: the nth send or receive (from 1) of a rank ends with FLASH_ERR_TRANSPORT, or
 * FLASH_ERR_REFUSED, or the nth time that it reserves there is no memory.
 */
typedef enum fake_failure {
    FAKE_FAIL_NONE,
    FAKE_FAIL_SEND,   /* and the message does not arrive */
    FAKE_FAIL_RECV,   /* the message is used up, the buffer garbage */
    FAKE_FAIL_SENDS,  /* from the nth on */
    FAKE_REFUSE_SEND, /* likewise, and the peer given up */
    FAKE_REFUSE_RECV, /* no message is taken, and the peer given up */
    FAKE_FAIL_RESERVE
} fake_failure_t;

typedef struct fake_options {
    unsigned inline_sends; /* percent of the sends that are done within send() */
    unsigned rendezvous;   /* percent of the rest that are done once they are received */
    unsigned inline_recvs; /* percent of receives done within recv() if the message is there */
    unsigned late_data;    /* percent of matches whose data comes later than the match */
    unsigned lazy;         /* percent of progress() calls that do nothing though they could */
    unsigned burst;        /* most events in one progress() */
    bool leaving;          /* all sends that may leave are done within send() */
    uint64_t unordered;    /* bits of the tag that do not make messages different (marks) */
    bool manual;           /* nothing happens but what fake_net_select() names */

    fake_failure_t failure;
    uint32_t fail_rank;
    uint64_t fail_nth;
} fake_options_t;

typedef struct fake_stats {
    uint64_t messages, bytes; /* sent */
    uint64_t receives;        /* posted */
    uint64_t reserves;        /* calls */
    uint32_t reserved;        /* transfers, at present */
    uint32_t peers;           /* that something was sent to */
} fake_stats_t;

fake_net_t *fake_net_create(uint32_t nranks, uint64_t seed, const fake_options_t *options);
void fake_net_destroy(fake_net_t *net);
flash_transport_t *fake_net_transport(fake_net_t *net, uint32_t rank);
/* The way from one rank to another; the same one each time. The network owns it. */
flash_peer_t *fake_net_peer(fake_net_t *net, uint32_t from, uint32_t to);

fake_stats_t fake_net_stats(const fake_net_t *net, uint32_t rank);
/*
 * `from` loses `to`: its posted receives from there end, and whatever it begins with it later.
 * Messages that are on their way arrive, or are left over. Not for sends by rendezvous.
 */
void fake_net_lose(fake_net_t *net, uint32_t from, uint32_t to);
/* Events that could happen now, on all ranks. */
size_t fake_net_pending(const fake_net_t *net);
/*
 * Messages that a rank has not taken, and whose senders do not wait for that: they lie in its
 * memory.
 */
size_t fake_net_piled(const fake_net_t *net, uint32_t rank);
/* Whatever is not finished: events, messages nobody received, receives without a message. */
size_t fake_net_leftovers(const fake_net_t *net);
/* How often the user broke the contract; the first time in words. */
unsigned fake_net_violations(const fake_net_t *net, const char **first);
/* Whether the failure of the options came about. */
bool fake_net_failed(const fake_net_t *net);

/*
 * For manual mode: the names of the events that may happen next on `rank` (at most `most`), and
 * the choice of the one that its next progress() delivers. A name does not depend on the order of
 * events on other ranks, so that a run can be repeated in another order.
 */
size_t fake_net_events(const fake_net_t *net, uint32_t rank, uint64_t *names, size_t most);
void fake_net_select(fake_net_t *net, uint32_t rank, uint64_t name);
/* Whether an event needs no other rank: a receive that is matched, or was cancelled, ends. */
bool fake_net_is_local(uint64_t name);

/*
 * For manual mode: one rank alone. fake_net_record() before a run keeps a copy of all that is sent
 * in it. fake_net_play() in another network of as many ranks, before anything happens there, puts
 * all that was recorded for `rank` on its way to it. What `rank` sends itself is to be, message by
 * message, what it sent in the recorded run, at most 64; it goes nowhere, but ends as if it were
 * received. The recorded network is to outlive the other.
 */
void fake_net_record(fake_net_t *net);
void fake_net_play(fake_net_t *net, const fake_net_t *recorded, uint32_t rank);

/*
 * What a rank has exchanged with the network. Each half stands for a set: equal numbers, equal
 * events, in whatever order.
 */
typedef struct fake_traffic {
    uint64_t taken; /* arrivals, and ends of sends, that were delivered to it */
    uint64_t given; /* messages that it sent, receives that it ended */
} fake_traffic_t;

fake_traffic_t fake_net_traffic(const fake_net_t *net, uint32_t rank);

#endif /* FAKE_TRANSPORT_H */
