/*
 * fake_net.c: the network of fake transports: making and watching it.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <stdlib.h>

#include "fake_internal.h"

fake_net_t *fake_net_create(uint32_t nranks, uint64_t seed, const fake_options_t *options)
{
    fake_net_t *net = calloc(1, sizeof(*net) + nranks * sizeof(net->nodes[0]));

    net->options = *options;
    net->options.burst += net->options.burst == 0;
    net->random = seed;
    net->nranks = nranks;
    for (uint32_t rank = 0; rank < nranks; rank++) {
        net->nodes[rank].transport =
            (flash_transport_t){.ops = &fake_ops, .event_fd = -1, .lets_leave = options->leaving};
        net->nodes[rank].net = net;
        net->nodes[rank].rank = rank;
    }
    return net;
}

void fake_violation(fake_net_t *net, const char *what)
{
    if (net->violations++ == 0) {
        net->first_violation = what;
    }
}

static void *grow(void *items, size_t count, size_t *room, size_t size)
{
    if (count == *room) {
        *room = *room == 0 ? 8 : 2 * *room;
        items = realloc(items, *room * size);
        if (items == NULL) {
            abort();
        }
    }
    return items;
}

void fake_list_add(list_t *list, void *item)
{
    list->items = grow(list->items, list->count, &list->room, sizeof(*list->items));
    list->items[list->count++] = item;
}

void fake_add_event(node_t *node, event_t event)
{
    node->events = grow(node->events, node->nevents, &node->events_room, sizeof(event));
    node->events[node->nevents++] = event;
}

static void destroy_list(list_t *list)
{
    for (size_t k = 0; k < list->count; k++) {
        free(list->items[k]);
    }
    free(list->items);
}

static void destroy_node(node_t *node)
{
    for (size_t k = 0; k < node->nevents; k++) {
        free(node->events[k].message);
        free(node->events[k].receive);
    }
    destroy_list(&node->unexpected);
    destroy_list(&node->posted);
    destroy_list(&node->script);
    for (flash_peer_t *peer = node->peers, *next; peer != NULL; peer = next) {
        next = peer->next;
        free(peer);
    }
    free(node->events);
}

void fake_net_destroy(fake_net_t *net)
{
    for (uint32_t rank = 0; rank < net->nranks; rank++) {
        destroy_node(&net->nodes[rank]);
    }
    free(net);
}

flash_transport_t *fake_net_transport(fake_net_t *net, uint32_t rank)
{
    return &net->nodes[rank].transport;
}

flash_peer_t *fake_net_peer(fake_net_t *net, uint32_t from, uint32_t to)
{
    node_t *node = &net->nodes[from];
    flash_peer_t *peer = node->peers;

    while (peer != NULL && peer->to != &net->nodes[to]) {
        peer = peer->next;
    }
    if (peer == NULL) {
        peer = malloc(sizeof(*peer));
        *peer = (flash_peer_t){.from = node, .to = &net->nodes[to], .next = node->peers};
        node->peers = peer;
    }
    return peer;
}

fake_stats_t fake_net_stats(const fake_net_t *net, uint32_t rank)
{
    fake_stats_t stats = net->nodes[rank].stats;

    stats.reserved = net->nodes[rank].reserved;
    return stats;
}

size_t fake_net_pending(const fake_net_t *net)
{
    size_t count = 0;

    for (uint32_t rank = 0; rank < net->nranks; rank++) {
        count += net->nodes[rank].nevents;
    }
    return count;
}

size_t fake_net_piled(const fake_net_t *net, uint32_t rank)
{
    const node_t *node = &net->nodes[rank];
    size_t count = 0;

    for (size_t k = 0; k < node->nevents; k++) {
        count += node->events[k].kind == ARRIVAL && node->events[k].message->sender == NULL;
    }
    for (size_t k = 0; k < node->unexpected.count; k++) {
        count += ((const message_t *) node->unexpected.items[k])->sender == NULL;
    }
    return count;
}

size_t fake_net_leftovers(const fake_net_t *net)
{
    size_t count = fake_net_pending(net);

    for (uint32_t rank = 0; rank < net->nranks; rank++) {
        count += net->nodes[rank].unexpected.count + net->nodes[rank].posted.count;
    }
    return count;
}

unsigned fake_net_violations(const fake_net_t *net, const char **first)
{
    *first = net->first_violation;
    return net->violations;
}

bool fake_net_failed(const fake_net_t *net)
{
    return net->failed;
}
