/*
 * fake_transport.c: see fake_transport.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <stdlib.h>
#include <string.h>

#include "fake_internal.h"
#include "prng.h"

#define POISON 0xa5

/* Of a user that reserves at all. */
static void begin(node_t *node)
{
    node->under_way++;
    if (node->reserved > 0 && node->under_way > node->reserved) {
        fake_violation(node->net, "more transfers under way than reserved");
    }
}

static void end(node_t *node, flash_transfer_t *transfer, int status, uint64_t tag, size_t length)
{
    node->under_way--;
    transfer->done(transfer, status, tag, length);
}

/* Keeps the order of the others: it is the order of matching. */
static void list_remove(list_t *list, size_t k)
{
    list->count--;
    memmove(list->items + k, list->items + k + 1, (list->count - k) * sizeof(*list->items));
}

static uint64_t checksum(const void *content, size_t length)
{
    const unsigned char *bytes = content;
    uint64_t sum = length;

    for (; length >= 8; bytes += 8, length -= 8) {
        uint64_t word;

        memcpy(&word, bytes, 8);
        sum = prng_mix(sum + word);
    }
    for (; length > 0; length--) {
        sum = prng_mix(sum + *bytes++);
    }
    return sum;
}

/*
 * Names of one kind differ by rank and by which message or receive of the rank's it is, those of
 * different kinds by their upper bits.
 */
static uint64_t new_name(const node_t *node, event_kind_t kind, uint64_t count)
{
    return (uint64_t) kind << 62 | (uint64_t) node->rank << 40 | count;
}

/* The sender's buffer is to stay as it is until then. */
static void end_send_later(const message_t *message, flash_transfer_t *transfer,
                           const void *content, int status)
{
    fake_add_event(message->from, (event_t){.kind = SENT,
                                            .name = (uint64_t) SENT << 62 | message->name,
                                            .transfer = transfer,
                                            .status = status,
                                            .tag = message->tag,
                                            .sum = message->sum,
                                            .content = content,
                                            .length = message->length});
}

/* --- receiving --- */

/* What a device's memory holds looks so to the processor. */
static void invert(unsigned char *bytes, size_t length)
{
    for (size_t k = 0; k < length; k++) {
        bytes[k] = (unsigned char) ~bytes[k];
    }
}

/* Ends a receive with its message: the last use of both. */
static void complete_receive(node_t *node, receive_t *receive, message_t *message)
{
    receive_t r = *receive;
    message_t m = *message;
    int status = m.length > r.length ? FLASH_ERR_TRUNCATED : FLASH_OK;
    size_t length = m.length < r.length ? m.length : r.length;

    if (checksum(m.content, m.length) != m.sum) {
        fake_violation(node->net, "a buffer changed while it was being sent");
    }
    if (length > 0) {
        memcpy(r.buffer, m.content, length);
    }
    if (r.far != m.far) {
        invert(r.buffer, length);
    }
    if (r.fails) { /* neither the content nor tag and length mean anything now */
        node->net->failed = true;
        status = FLASH_ERR_TRANSPORT;
        if (r.length > 0) {
            memset(r.buffer, POISON, r.length);
        }
        m.tag = prng_next(&node->net->random);
        length = r.length / 2;
    }
    node->given += prng_mix((uint64_t) RECEIVED << 62 | m.name);
    if (m.sender != NULL) {
        end_send_later(&m, m.sender, m.content, FLASH_OK);
    }
    free(message);
    free(receive);
    r.transfer->handle = NULL;
    end(node, r.transfer, status, m.tag, length);
}

static void match(node_t *node, receive_t *receive, message_t *message, bool now)
{
    receive->posted = false;
    if (now) {
        complete_receive(node, receive, message);
        return;
    }
    fake_add_event(node, (event_t){.kind = RECEIVED,
                                   .name = (uint64_t) RECEIVED << 62 | message->name,
                                   .message = message,
                                   .receive = receive});
}

static bool matches(const receive_t *receive, const message_t *message)
{
    return ((receive->tag ^ message->tag) & receive->mask) == 0;
}

static void arrive(node_t *node, message_t *message)
{
    for (size_t k = 0; k < node->posted.count; k++) {
        receive_t *receive = node->posted.items[k];

        if (matches(receive, message)) {
            list_remove(&node->posted, k);
            match(node, receive, message,
                  !prng_percent(&node->net->random, node->net->options.late_data));
            return;
        }
    }
    fake_list_add(&node->unexpected, message);
}

/* Whether call number `call` is the one that fails so. */
static bool fails(node_t *node, fake_failure_t failure, uint64_t call)
{
    const fake_options_t *options = &node->net->options;
    bool now = options->failure == failure && options->fail_rank == node->rank &&
               options->fail_nth == call;

    node->net->failed |= now;
    return now;
}

static void fake_give_up(flash_transport_t *transport, flash_peer_t *peer)
{
    node_t *node = (node_t *) transport;

    fake_net_lose(node->net, node->rank, peer->to->rank);
    fake_net_lose(node->net, peer->to->rank, node->rank);
}

static void fake_recv(flash_transport_t *transport, flash_peer_t *peer, uint64_t tag, uint64_t mask,
                      void *buffer, size_t length, flash_transfer_t *transfer)
{
    node_t *node = (node_t *) transport;
    const fake_options_t *options = &node->net->options;
    receive_t *receive;

    if (peer->lost) {
        transfer->done(transfer, FLASH_ERR_LOST, 0, 0);
        return;
    }
    begin(node);
    if (peer->from != node) {
        fake_violation(node->net, "receives from a peer of another rank");
    }
    node->stats.receives++;
    if (fails(node, FAKE_REFUSE_RECV, node->stats.receives)) {
        transfer->handle = NULL;
        end(node, transfer, FLASH_ERR_REFUSED, 0, 0);
        fake_give_up(transport, peer);
        return;
    }
    receive = malloc(sizeof(*receive));
    *receive = (receive_t){.transfer = transfer,
                           .peer = peer,
                           .name = new_name(node, CANCELED, node->stats.receives),
                           .tag = tag,
                           .mask = mask,
                           .buffer = buffer,
                           .length = length,
                           .far = transfer->far,
                           .posted = true,
                           .fails = fails(node, FAKE_FAIL_RECV, node->stats.receives)};
    transfer->handle = receive;
    if (length > 0) {
        memset(buffer, POISON, length); /* it is the transport's from now on */
    }
    for (size_t k = 0; k < node->unexpected.count; k++) {
        message_t *message = node->unexpected.items[k];

        if (matches(receive, message)) {
            list_remove(&node->unexpected, k);
            match(node, receive, message, prng_percent(&node->net->random, options->inline_recvs));
            return;
        }
    }
    fake_list_add(&node->posted, receive);
}

static void fake_cancel(flash_transport_t *transport, flash_transfer_t *transfer)
{
    node_t *node = (node_t *) transport;
    receive_t *receive = transfer->handle;

    if (receive == NULL) {
        fake_violation(node->net, "cancelled what is not a receive under way");
        return;
    }
    for (size_t k = 0; k < node->posted.count && receive->posted; k++) {
        if (node->posted.items[k] == receive) {
            list_remove(&node->posted, k);
            receive->posted = false;
            fake_add_event(node, (event_t){.kind = CANCELED,
                                           .name = receive->name,
                                           .receive = receive,
                                           .status = FLASH_ERR_CANCELED});
        }
    }
}

void fake_net_lose(fake_net_t *net, uint32_t from, uint32_t to)
{
    node_t *node = &net->nodes[from];
    flash_peer_t *peer = fake_net_peer(net, from, to);
    size_t k = 0;

    peer->lost = true;
    while (k < node->posted.count) {
        receive_t *receive = node->posted.items[k];

        if (receive->peer != peer) {
            k++;
            continue;
        }
        list_remove(&node->posted, k);
        receive->posted = false;
        fake_add_event(node, (event_t){.kind = CANCELED,
                                       .name = receive->name,
                                       .receive = receive,
                                       .status = FLASH_ERR_LOST});
    }
}

/* --- sending --- */

static message_t *new_message(node_t *node, uint64_t tag, const void *content, size_t length,
                              bool far, bool copied)
{
    message_t *message = malloc(sizeof(*message) + (copied ? length : 0));

    *message = (message_t){.from = node,
                           .name = new_name(node, ARRIVAL, node->stats.messages),
                           .tag = tag,
                           .length = length,
                           .content = content,
                           .far = far,
                           .sum = checksum(content, length)};
    if (copied) {
        if (length > 0) {
            memcpy(message->copy, content, length);
        }
        message->content = message->copy;
    }
    return message;
}

static int send_status(node_t *node)
{
    const fake_options_t *options = &node->net->options;
    uint64_t call = node->stats.messages;
    bool past = call > options->fail_nth; /* of those that last */

    if (fails(node, FAKE_REFUSE_SEND, past ? options->fail_nth : call)) {
        return FLASH_ERR_REFUSED;
    }
    return fails(node, FAKE_FAIL_SEND, call) ||
                   fails(node, FAKE_FAIL_SENDS, past ? options->fail_nth : call)
               ? FLASH_ERR_TRANSPORT
               : FLASH_OK;
}

static void depart(node_t *node, node_t *to, message_t *message)
{
    node->given += prng_mix(message->name);
    if (node->net->script == NULL) {
        fake_add_event(to, (event_t){.kind = ARRIVAL, .name = message->name, .message = message});
        return;
    }
    if (message->sender != NULL) { /* whoever receives it may do so at any time from now on */
        end_send_later(message, message->sender, message->content, FLASH_OK);
    }
    free(message);
}

static void fake_send(flash_transport_t *transport, flash_peer_t *peer, uint64_t tag,
                      const void *content, size_t length, flash_transfer_t *transfer)
{
    node_t *node = (node_t *) transport;
    fake_net_t *net = node->net;
    bool at_once = (net->options.leaving && transfer->leaves) ||
                   prng_percent(&net->random, net->options.inline_sends);
    bool copied;
    message_t *message;
    int status;

    if (peer->from != node) {
        fake_violation(net, "sent through a peer of another rank");
    }
    if (peer->lost) {
        transfer->done(transfer, FLASH_ERR_LOST, 0, 0);
        return;
    }
    begin(node);
    node->stats.messages++;
    node->stats.bytes += length;
    node->stats.peers += !peer->used;
    peer->used = true;
    transfer->handle = NULL;
    status = send_status(node);
    if (status == FLASH_ERR_REFUSED) {
        end(node, transfer, status, tag, length);
        fake_give_up(transport, peer);
        return;
    }
    copied = at_once || status != FLASH_OK || !prng_percent(&net->random, net->options.rendezvous);
    message = new_message(node, tag, content, length, transfer->far, copied);
    message->sender = copied ? NULL : transfer;
    if (status == FLASH_OK) {
        fake_script_depart(node, peer->to, message);
    }
    if (copied && !at_once) {
        end_send_later(message, transfer, content, status);
    }
    if (status != FLASH_OK) {
        free(message);
    } else {
        depart(node, peer->to, message);
    }
    if (at_once) {
        end(node, transfer, status, tag, length);
    }
}

/* --- progress --- */

/*
 * The event that has to come before event k: k itself, or the oldest arrival among those that
 * must not overtake each other.
 */
static size_t first_of(const node_t *node, size_t k)
{
    const message_t *message = node->events[k].message;
    uint64_t mask = ~node->net->options.unordered;

    if (node->events[k].kind != ARRIVAL) {
        return k;
    }
    for (size_t j = 0; j < node->nevents; j++) {
        const message_t *other = node->events[j].message;

        if (node->events[j].kind == ARRIVAL && other->from == message->from &&
            ((other->tag ^ message->tag) & mask) == 0 && other->name < message->name) {
            message = other;
            k = j;
        }
    }
    return k;
}

static void fire(node_t *node, size_t k)
{
    event_t event = node->events[k];
    flash_transfer_t *transfer;

    node->events[k] = node->events[--node->nevents];
    if (event.kind == ARRIVAL || event.kind == SENT) {
        node->taken += prng_mix(event.name);
    }
    switch (event.kind) {
    case ARRIVAL:
        arrive(node, event.message);
        break;
    case RECEIVED:
        complete_receive(node, event.receive, event.message);
        break;
    case SENT:
        if (checksum(event.content, event.length) != event.sum) {
            fake_violation(node->net, "a buffer changed before its send was done");
        }
        end(node, event.transfer, event.status, event.tag, event.length);
        break;
    case CANCELED:
        transfer = event.receive->transfer;
        free(event.receive);
        transfer->handle = NULL;
        end(node, transfer, event.status, prng_next(&node->net->random), 0);
        break;
    }
}

static unsigned progress_manual(node_t *node)
{
    for (size_t k = 0; k < node->nevents && node->selected != 0; k++) {
        if (node->events[k].name == node->selected) {
            node->selected = 0;
            fire(node, k);
            return 1;
        }
    }
    return 0;
}

static unsigned progress_random(node_t *node)
{
    fake_net_t *net = node->net;
    unsigned most = 1 + prng_below(&net->random, net->options.burst), count = 0;

    if (node->nevents == 0 || prng_percent(&net->random, net->options.lazy)) {
        return 0;
    }
    for (; count < most && node->nevents > 0; count++) {
        fire(node, first_of(node, prng_below(&net->random, (uint32_t) node->nevents)));
    }
    return count;
}

static unsigned fake_progress(flash_transport_t *transport)
{
    node_t *node = (node_t *) transport;
    unsigned count;

    if (node->in_progress) {
        fake_violation(node->net, "progress() called from inside progress()");
        return 0;
    }
    node->in_progress = true;
    count = node->net->options.manual ? progress_manual(node) : progress_random(node);
    node->in_progress = false;
    return count;
}

size_t fake_net_events(const fake_net_t *net, uint32_t rank, uint64_t *names, size_t most)
{
    const node_t *node = &net->nodes[rank];
    size_t count = 0;

    for (size_t k = 0; k < node->nevents && count < most; k++) {
        if (first_of(node, k) == k) {
            names[count++] = node->events[k].name;
        }
    }
    return count;
}

void fake_net_select(fake_net_t *net, uint32_t rank, uint64_t name)
{
    net->nodes[rank].selected = name;
}

static int fake_arm(flash_transport_t *transport)
{
    return ((node_t *) transport)->nevents > 0 ? FLASH_BUSY : FLASH_OK;
}

static int fake_reserve(flash_transport_t *transport, uint32_t transfers)
{
    node_t *node = (node_t *) transport;

    if (fails(node, FAKE_FAIL_RESERVE, ++node->stats.reserves)) {
        return FLASH_ERR_NO_MEMORY;
    }
    node->reserved += transfers;
    return FLASH_OK;
}

static void fake_unreserve(flash_transport_t *transport, uint32_t transfers)
{
    node_t *node = (node_t *) transport;

    if (transfers > node->reserved) {
        fake_violation(node->net, "more is no longer reserved than was");
    }
    node->reserved -= transfers;
}

const flash_transport_ops_t fake_ops = {.reserve = fake_reserve,
                                        .unreserve = fake_unreserve,
                                        .send = fake_send,
                                        .recv = fake_recv,
                                        .cancel = fake_cancel,
                                        .give_up = fake_give_up,
                                        .progress = fake_progress,
                                        .arm = fake_arm};
