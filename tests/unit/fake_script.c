/*
 * fake_script.c: one rank alone, with the messages of a run that was recorded.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <stdlib.h>
#include <string.h>

#include "fake_internal.h"

void fake_net_record(fake_net_t *net)
{
    net->records = true;
}

/* One that owns its content, and whose sender waits for nothing. */
static message_t *copy_message(const message_t *message)
{
    message_t *copy = malloc(sizeof(*copy) + message->length);

    *copy = *message;
    if (message->length > 0) {
        memcpy(copy->copy, message->content, message->length);
    }
    copy->content = copy->copy;
    copy->sender = NULL;
    return copy;
}

static void note(node_t *node, const node_t *to, const message_t *message)
{
    message_t *copy = copy_message(message);

    copy->to = to->rank;
    fake_list_add(&node->script, copy);
}

/* The first of this tag that was not sent yet: several operations may be under way in any order. */
static const message_t *find(node_t *node, const message_t *message)
{
    const list_t *script = &node->net->script->nodes[node->rank].script;
    uint64_t mask = ~node->net->options.unordered;

    for (size_t k = 0; k < script->count && k < 64; k++) {
        const message_t *other = script->items[k];

        if ((node->played >> k & 1) == 0 && ((other->tag ^ message->tag) & mask) == 0) {
            node->played |= UINT64_C(1) << k;
            return other;
        }
    }
    return NULL;
}

void fake_script_depart(node_t *node, const node_t *to, message_t *message)
{
    const message_t *other;

    if (node->net->records) {
        note(node, to, message);
    }
    if (node->net->script == NULL) {
        return;
    }
    other = find(node, message);
    if (other == NULL || other->to != to->rank || other->tag != message->tag ||
        other->length != message->length || other->sum != message->sum) { /* of the content */
        fake_violation(node->net, "not a message that is sent in another order of moves");
        return;
    }
    message->name = other->name;
}

void fake_net_play(fake_net_t *net, const fake_net_t *recorded, uint32_t rank)
{
    net->script = recorded;
    for (uint32_t from = 0; from < net->nranks; from++) {
        const list_t *script = &recorded->nodes[from].script;

        for (size_t k = 0; k < script->count; k++) {
            const message_t *message = script->items[k];

            if (message->to == rank) {
                message_t *copy = copy_message(message);

                copy->from = &net->nodes[from];
                fake_add_event(&net->nodes[rank],
                               (event_t){.kind = ARRIVAL, .name = copy->name, .message = copy});
            }
        }
    }
}

bool fake_net_is_local(uint64_t name)
{
    event_kind_t kind = (event_kind_t) (name >> 62);

    return kind == RECEIVED || kind == CANCELED;
}

fake_traffic_t fake_net_traffic(const fake_net_t *net, uint32_t rank)
{
    const node_t *node = &net->nodes[rank];

    return (fake_traffic_t){.taken = node->taken, .given = node->given};
}
