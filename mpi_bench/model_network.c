/*
 * model_network.c: see model_network.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "model_network.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct model_event {
    double time;
    uint64_t number; /* of events at one time, the older comes first */
    void (*happen)(void *arg);
    void *arg;
} model_event_t;

/* A message under way, or come and not matched; or a receive that waits for one. */
typedef struct model_item {
    struct model_item *next;
    struct model_place *to;
    flash_transfer_t *transfer; /* the sender's; of a receive, its own */
    uint64_t tag, mask;
    size_t length;
} model_item_t;

typedef struct model_list {
    model_item_t *head, **tail;
} model_list_t;

typedef struct model_place {
    flash_transport_t super; /* first, so that it is the place */
    model_network_t *network;
    double free_at;    /* when all that it has sent has left */
    double arrived_at; /* the latest of what it has sent, at its receiver */
    model_list_t posted, unmatched;
    uint64_t messages;
} model_place_t;

struct model_network {
    model_link_t link;
    double now;
    uint64_t random, numbers;
    model_event_t *heap;
    size_t events, room;
    model_place_t places[];
};

_Noreturn static void out_of_memory(void)
{
    fprintf(stderr, "flash_simulate: no memory: simulate shorter blocks, or longer segments\n");
    exit(EXIT_FAILURE);
}

/* ------------------------------------------------------------------- events */

static bool earlier(const model_event_t *a, const model_event_t *b)
{
    return a->time < b->time || (a->time == b->time && a->number < b->number);
}

static void push_event(model_network_t *network, model_event_t event)
{
    size_t k = network->events++;

    if (network->events > network->room) {
        network->room = 2 * network->events;
        network->heap = realloc(network->heap, network->room * sizeof(*network->heap));
        if (network->heap == NULL) {
            out_of_memory();
        }
    }
    for (; k > 0 && earlier(&event, &network->heap[(k - 1) / 2]); k = (k - 1) / 2) {
        network->heap[k] = network->heap[(k - 1) / 2];
    }
    network->heap[k] = event;
}

static model_event_t pop_event(model_network_t *network)
{
    model_event_t *heap = network->heap, first = heap[0], last = heap[--network->events];
    size_t k = 0, child;

    while ((child = 2 * k + 1) < network->events) {
        child += child + 1 < network->events && earlier(&heap[child + 1], &heap[child]);
        if (!earlier(&heap[child], &last)) {
            break;
        }
        heap[k] = heap[child];
        k = child;
    }
    heap[k] = last;
    return first;
}

double model_network_now(const model_network_t *network)
{
    return network->now;
}

void model_network_after(model_network_t *network, double seconds, void (*event)(void *arg),
                         void *arg)
{
    push_event(network, (model_event_t){.time = network->now + seconds,
                                        .number = network->numbers++,
                                        .happen = event,
                                        .arg = arg});
}

bool model_network_step(model_network_t *network)
{
    model_event_t event;

    if (network->events == 0) {
        return false;
    }
    event = pop_event(network);
    network->now = event.time;
    event.happen(event.arg);
    return true;
}

/* xorshift64* */
static double random_delay(model_network_t *network)
{
    uint64_t x = network->random;

    if (network->link.jitter <= 0) {
        return 0;
    }
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    network->random = x;
    x *= UINT64_C(2685821657736338717);
    return -network->link.jitter * log1p(-(double) (x >> 11) / 9007199254740992.0);
}

/* ------------------------------------------------------------------ messages */

static void list_init(model_list_t *list)
{
    list->head = NULL;
    list->tail = &list->head;
}

static void list_push(model_list_t *list, model_item_t *item)
{
    item->next = NULL;
    *list->tail = item;
    list->tail = &item->next;
}

static model_item_t *list_take(model_list_t *list, model_item_t **link)
{
    model_item_t *item = *link;

    *link = item->next;
    if (item->next == NULL) {
        list->tail = link;
    }
    return item;
}

static model_item_t *make_item(model_place_t *to, flash_transfer_t *transfer, uint64_t tag,
                               uint64_t mask, size_t length)
{
    model_item_t *item = malloc(sizeof(*item));

    if (item == NULL) {
        out_of_memory();
    }
    *item =
        (model_item_t){.to = to, .transfer = transfer, .tag = tag, .mask = mask, .length = length};
    return item;
}

static bool matches(const model_item_t *receive, const model_item_t *message)
{
    return ((receive->tag ^ message->tag) & receive->mask) == 0;
}

static void sent(void *arg)
{
    flash_transfer_t *transfer = arg;

    transfer->done(transfer, FLASH_OK, 0, 0);
}

/* Frees both. */
static void match(model_item_t *receive, model_item_t *message)
{
    model_network_t *network = message->to->network;
    flash_transfer_t *transfer = receive->transfer;
    int status = message->length > receive->length ? FLASH_ERR_TRUNCATED : FLASH_OK;
    uint64_t tag = message->tag;
    size_t length = message->length;

    model_network_after(network, network->link.latency, sent, message->transfer);
    free(receive);
    free(message);
    transfer->done(transfer, status, tag, length);
}

static void arrive(void *arg)
{
    model_item_t *message = arg;
    model_list_t *posted = &message->to->posted;

    for (model_item_t **link = &posted->head; *link != NULL; link = &(*link)->next) {
        if (matches(*link, message)) {
            match(list_take(posted, link), message);
            return;
        }
    }
    list_push(&message->to->unmatched, message);
}

static void model_send(flash_transport_t *transport, flash_peer_t *peer, uint64_t tag,
                       const void *buffer, size_t length, flash_transfer_t *transfer)
{
    model_place_t *place = (model_place_t *) transport, *to = (model_place_t *) peer;
    model_network_t *network = place->network;
    const model_link_t *link = &network->link;
    double arrival;

    (void) buffer;
    place->messages++;
    place->free_at =
        fmax(network->now, place->free_at) + link->message + (double) length / link->rate;
    arrival = place->free_at + link->latency + random_delay(network);
    place->arrived_at = fmax(place->arrived_at, arrival);
    model_network_after(network, place->arrived_at - network->now, arrive,
                        make_item(to, transfer, tag, 0, length));
}

static void model_recv(flash_transport_t *transport, flash_peer_t *peer, uint64_t tag,
                       uint64_t mask, void *buffer, size_t length, flash_transfer_t *transfer)
{
    model_place_t *place = (model_place_t *) transport;
    model_item_t *receive = make_item(place, transfer, tag, mask, length);
    model_list_t *unmatched = &place->unmatched;

    (void) peer, (void) buffer;
    for (model_item_t **link = &unmatched->head; *link != NULL; link = &(*link)->next) {
        if (matches(receive, *link)) {
            match(receive, list_take(unmatched, link));
            return;
        }
    }
    list_push(&place->posted, receive);
}

/* Only operations that fail cancel, and none does here. */
static void model_cancel(flash_transport_t *transport, flash_transfer_t *transfer)
{
    (void) transport, (void) transfer;
    abort();
}

/* Nor does any give a neighbour up. */
static void model_give_up(flash_transport_t *transport, flash_peer_t *peer)
{
    (void) transport, (void) peer;
    abort();
}

static int model_reserve(flash_transport_t *transport, uint32_t transfers)
{
    (void) transport, (void) transfers;
    return FLASH_OK;
}

static void model_unreserve(flash_transport_t *transport, uint32_t transfers)
{
    (void) transport, (void) transfers;
}

/* Events come from model_network_step(). */
static unsigned model_progress(flash_transport_t *transport)
{
    (void) transport;
    return 0;
}

static int model_arm(flash_transport_t *transport)
{
    (void) transport;
    return FLASH_OK;
}

static bool model_settled(flash_transport_t *transport)
{
    (void) transport;
    return true;
}

static const flash_transport_ops_t model_ops = {.reserve = model_reserve,
                                                .unreserve = model_unreserve,
                                                .send = model_send,
                                                .recv = model_recv,
                                                .cancel = model_cancel,
                                                .give_up = model_give_up,
                                                .progress = model_progress,
                                                .arm = model_arm,
                                                .settled = model_settled};

/* -------------------------------------------------------------- the network */

model_network_t *model_network_create(const model_link_t *link, uint32_t places, uint32_t seed)
{
    model_network_t *network = calloc(1, sizeof(*network) + places * sizeof(*network->places));

    if (network == NULL) {
        return NULL;
    }
    network->link = *link;
    network->random = ((uint64_t) seed + 1) * UINT64_C(0x9e3779b97f4a7c15);
    for (uint32_t p = 0; p < places; p++) {
        model_place_t *place = &network->places[p];

        place->super = (flash_transport_t){.ops = &model_ops, .event_fd = -1};
        place->network = network;
        list_init(&place->posted);
        list_init(&place->unmatched);
    }
    return network;
}

void model_network_destroy(model_network_t *network)
{
    free(network->heap);
    free(network);
}

flash_transport_t *model_network_transport(model_network_t *network, uint32_t place)
{
    return &network->places[place].super;
}

flash_peer_t *model_network_peer(model_network_t *network, uint32_t place)
{
    return (flash_peer_t *) &network->places[place];
}

uint64_t model_network_messages(const model_network_t *network, uint32_t place)
{
    return network->places[place].messages;
}
