/*
 * fake_send.c: sends of the fake transport: what becomes of a message, and when its sender may use
 * the buffer again.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <stdlib.h>
#include <string.h>

#include "fake_internal.h"
#include "prng.h"

static message_t *new_message(node_t *node, uint64_t tag, const void *content, size_t length,
                              bool on_device, bool copied)
{
    message_t *message = malloc(sizeof(*message) + (copied ? length : 0));

    *message = (message_t){.from = node,
                           .name = fake_new_name(node, ARRIVAL, node->stats.messages),
                           .tag = tag,
                           .length = length,
                           .content = content,
                           .on_device = on_device,
                           .sum = fake_checksum(content, length)};
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

    if (fake_fails(node, FAKE_REFUSE_SEND, past ? options->fail_nth : call)) {
        return FLASH_ERR_REFUSED;
    }
    return fake_fails(node, FAKE_FAIL_SEND, call) ||
                   fake_fails(node, FAKE_FAIL_SENDS, past ? options->fail_nth : call)
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
        fake_end_send_later(message, message->sender, message->content, FLASH_OK);
    }
    free(message);
}

/*
 * It is on its way, or fails with `status`. `at_once`: the sender's buffer is free when this
 * returns.
 */
static void send_message(node_t *node, const flash_peer_t *peer, uint64_t tag, const void *content,
                         size_t length, flash_transfer_t *transfer, bool at_once, int status)
{
    fake_net_t *net = node->net;
    bool copied =
        at_once || status != FLASH_OK || !prng_percent(&net->random, net->options.rendezvous);
    message_t *message = new_message(node, tag, content, length, transfer->on_device, copied);

    message->sender = copied ? NULL : transfer;
    message->left = at_once && transfer->leaves && status == FLASH_OK && net->script == NULL;
    node->left += message->left;
    if (status == FLASH_OK) {
        fake_script_depart(node, peer->to, message);
    }
    if (copied && !at_once) {
        fake_end_send_later(message, transfer, content, status);
    }
    if (status != FLASH_OK) {
        free(message);
    } else {
        depart(node, peer->to, message);
    }
    if (at_once) {
        fake_end(node, transfer, status, tag, length);
    }
}

void fake_send(flash_transport_t *transport, flash_peer_t *peer, uint64_t tag, const void *content,
               size_t length, flash_transfer_t *transfer)
{
    node_t *node = (node_t *) transport;
    fake_net_t *net = node->net;
    bool at_once = (net->options.leaving && transfer->leaves) ||
                   prng_percent(&net->random, net->options.inline_sends);
    int status;

    if (peer->from != node) {
        fake_violation(net, "sent through a peer of another rank");
    }
    if (peer->lost) {
        transfer->done(transfer, FLASH_ERR_LOST, 0, 0);
        return;
    }
    fake_begin(node);
    node->stats.messages++;
    node->stats.bytes += length;
    node->stats.peers += !peer->used;
    peer->used = true;
    transfer->handle = NULL;
    status = send_status(node);
    if (status == FLASH_ERR_REFUSED) {
        fake_end(node, transfer, status, tag, length);
        fake_give_up(transport, peer);
        return;
    }
    send_message(node, peer, tag, content, length, transfer, at_once, status);
}
