/*
 * fake_transport.c: what the transports of the fake network do for the engine, and how their events
 * happen; fake_receive.c and fake_send.c have the two calls that move data. See fake_transport.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <stdlib.h>
#include <string.h>

#include "fake_internal.h"
#include "prng.h"

void fake_begin(node_t *node)
{
    node->under_way++;
    if (node->reserved > 0 && node->under_way > node->reserved) {
        fake_violation(node->net, "more transfers under way than reserved");
    }
}

void fake_end(node_t *node, flash_transfer_t *transfer, int status, uint64_t tag, size_t length)
{
    node->under_way--;
    transfer->done(transfer, status, tag, length);
}

uint64_t fake_checksum(const void *content, size_t length)
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

uint64_t fake_new_name(const node_t *node, event_kind_t kind, uint64_t count)
{
    return (uint64_t) kind << 62 | (uint64_t) node->rank << 40 | count;
}

void fake_end_send_later(const message_t *message, flash_transfer_t *transfer, const void *content,
                         int status)
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

bool fake_fails(node_t *node, fake_failure_t failure, uint64_t call)
{
    const fake_options_t *options = &node->net->options;
    bool now = options->failure == failure && options->fail_rank == node->rank &&
               options->fail_nth == call;

    node->net->failed |= now;
    return now;
}

void fake_give_up(flash_transport_t *transport, flash_peer_t *peer)
{
    node_t *node = (node_t *) transport;

    fake_net_lose(node->net, node->rank, peer->to->rank);
    fake_net_lose(node->net, peer->to->rank, node->rank);
}

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
        fake_arrive(node, event.message);
        break;
    case RECEIVED:
        fake_complete_receive(node, event.receive, event.message);
        break;
    case SENT:
        if (fake_checksum(event.content, event.length) != event.sum) {
            fake_violation(node->net, "a buffer changed before its send was done");
        }
        fake_end(node, event.transfer, event.status, event.tag, event.length);
        break;
    case CANCELED:
        transfer = event.receive->transfer;
        free(event.receive);
        transfer->handle = NULL;
        fake_end(node, transfer, event.status, prng_next(&node->net->random), 0);
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

static bool fake_settled(flash_transport_t *transport)
{
    return ((node_t *) transport)->left == 0;
}

static int fake_reserve(flash_transport_t *transport, uint32_t transfers)
{
    node_t *node = (node_t *) transport;

    if (fake_fails(node, FAKE_FAIL_RESERVE, ++node->stats.reserves)) {
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
                                        .arm = fake_arm,
                                        .settled = fake_settled};
