/*
 * fake_receive.c: receives of the fake transport: posted, matched with messages, ended, cancelled,
 * and lost with their peer.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <stdlib.h>
#include <string.h>

#include "fake_internal.h"
#include "prng.h"

#define POISON 0xa5

/* Keeps the order of the others: it is the order of matching. */
static void list_remove(list_t *list, size_t k)
{
    list->count--;
    memmove(list->items + k, list->items + k + 1, (list->count - k) * sizeof(*list->items));
}

/* What a device's memory holds looks so to the processor. */
static void invert(unsigned char *bytes, size_t length)
{
    for (size_t k = 0; k < length; k++) {
        bytes[k] = (unsigned char) ~bytes[k];
    }
}

void fake_complete_receive(node_t *node, receive_t *receive, message_t *message)
{
    receive_t r = *receive;
    message_t m = *message;
    int status = m.length > r.length ? FLASH_ERR_TRUNCATED : FLASH_OK;
    size_t length = m.length < r.length ? m.length : r.length;

    if (fake_checksum(m.content, m.length) != m.sum) {
        fake_violation(node->net, "a buffer changed while it was being sent");
    }
    if (length > 0) {
        memcpy(r.buffer, m.content, length);
    }
    if (r.on_device != m.on_device) {
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
        fake_end_send_later(&m, m.sender, m.content, FLASH_OK);
    }
    free(message);
    free(receive);
    r.transfer->handle = NULL;
    fake_end(node, r.transfer, status, m.tag, length);
}

static void match(node_t *node, receive_t *receive, message_t *message, bool now)
{
    receive->posted = false;
    if (now) {
        fake_complete_receive(node, receive, message);
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

void fake_arrive(node_t *node, message_t *message)
{
    message->from->left -= message->left;
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

/* From now on the buffer is the transport's. */
static receive_t *new_receive(node_t *node, const flash_peer_t *peer, uint64_t tag, uint64_t mask,
                              void *buffer, size_t length, flash_transfer_t *transfer)
{
    receive_t *receive = malloc(sizeof(*receive));

    *receive = (receive_t){.transfer = transfer,
                           .peer = peer,
                           .name = fake_new_name(node, CANCELED, node->stats.receives),
                           .tag = tag,
                           .mask = mask,
                           .buffer = buffer,
                           .length = length,
                           .on_device = transfer->on_device,
                           .posted = true,
                           .fails = fake_fails(node, FAKE_FAIL_RECV, node->stats.receives)};
    transfer->handle = receive;
    if (length > 0) {
        memset(buffer, POISON, length);
    }
    return receive;
}

void fake_recv(flash_transport_t *transport, flash_peer_t *peer, uint64_t tag, uint64_t mask,
               void *buffer, size_t length, flash_transfer_t *transfer)
{
    node_t *node = (node_t *) transport;
    const fake_options_t *options = &node->net->options;
    receive_t *receive;

    if (peer->lost) {
        transfer->done(transfer, FLASH_ERR_LOST, 0, 0);
        return;
    }
    fake_begin(node);
    if (peer->from != node) {
        fake_violation(node->net, "receives from a peer of another rank");
    }
    node->stats.receives++;
    if (fake_fails(node, FAKE_REFUSE_RECV, node->stats.receives)) {
        transfer->handle = NULL;
        fake_end(node, transfer, FLASH_ERR_REFUSED, 0, 0);
        fake_give_up(transport, peer);
        return;
    }
    receive = new_receive(node, peer, tag, mask, buffer, length, transfer);
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

void fake_cancel(flash_transport_t *transport, flash_transfer_t *transfer)
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
