/*
 * state.c: see state.h.
 *
 * Of the engine's operations and segments every byte counts that is not an address: what a later
 * version adds to them is told apart without a change here. In the place of addresses: the numbers
 * of operations and segments, where somebody points to them. And all memory that they point into:
 * the user's buffers with what surrounds them, and all scratch.
 *
 * Not told apart:
 * - what is constant in a case: the parameters of an operation, the input;
 * - in which order the events, messages and receives of a network came to be: they have names, and
 *   what matches first among equal tags has the lower one;
 * - how often something happened to an operation: only the watch of silent neighbours counts that;
 * - the tag of a transfer that failed, which means nothing and is random;
 * - memory that the engine keeps for the next operation, which sim_start() makes all equal.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <string.h>

#include "fake_internal.h"
#include "engine/flash_op.h"
#include "state.h"

#define NONE UINT64_MAX

static void add_bytes(fingerprint_t *print, const void *content, size_t length)
{
    const unsigned char *bytes = content;
    uint64_t word = 0;

    for (; length >= sizeof(word); bytes += sizeof(word), length -= sizeof(word)) {
        memcpy(&word, bytes, sizeof(word));
        fingerprint_add(print, word);
    }
    if (length > 0) {
        word = 0;
        memcpy(&word, bytes, length);
        fingerprint_add(print, word);
    }
}

static void add_memory(fingerprint_t *print, const void *memory, size_t size)
{
    add_bytes(print, memory, memory == NULL ? 0 : size);
}

/* --- the engine --- */

static uint64_t number_of(const flash_op_t *op)
{
    const sim_instance_t *in = flash_op_user(op);

    return in->index;
}

static uint64_t slot_number(const flash_slot_t *slot)
{
    return number_of(slot->op) << 32 | (uint64_t) (slot - slot->op->slots);
}

static void add_slot(fingerprint_t *print, const flash_slot_t *slot)
{
    flash_slot_t copy;

    memcpy(&copy, slot, sizeof(copy));
    copy.transfer = (flash_transfer_t){0};
    copy.op = NULL;
    copy.next = NULL;
    memset(&copy.next_staging, 0, sizeof(copy.next_staging));
    copy.data = NULL; /* these follow from step, segment, the slot's number and what it borrows */
    copy.local = NULL;
    copy.home = NULL;
    copy.posted_at = 0;
    if (copy.status != FLASH_OK && copy.status != FLASH_ERR_TRUNCATED) {
        copy.tag = 0;
    }
    add_bytes(print, &copy, sizeof(copy));
}

static void add_slots(fingerprint_t *print, const flash_slot_queue_t *queue)
{
    for (const flash_slot_t *slot = queue->head; slot != NULL; slot = slot->next) {
        fingerprint_add(print, slot_number(slot));
    }
    fingerprint_add(print, NONE);
}

/* In which order the early ones came means nothing. */
static void add_sum(fingerprint_t *print, const flash_sum_t *sum)
{
    fingerprint_t set = {{0}};

    fingerprint_add(print, sum->added);
    for (const flash_slot_t *slot = sum->early; slot != NULL; slot = slot->next) {
        fingerprint_t member = {{0}};

        fingerprint_add(&member, slot_number(slot));
        fingerprint_add_to_set(&set, member);
    }
    fingerprint_add(print, set.half[0]);
    fingerprint_add(print, set.half[1]);
}

/* Those that are next to be borrowed; what is behind them means nothing. */
static void add_free_bounces(fingerprint_t *print, const flash_op_t *op)
{
    for (flash_bounce_t what = 0; what < FLASH_BOUNCES; what++) {
        const flash_stack_t *stack = &op->free_bounces[what];

        add_bytes(print, op->bounces + stack->first, stack->count * sizeof(*op->bounces));
    }
}

static void add_op(fingerprint_t *print, const flash_op_t *op)
{
    const flash_slot_t *slot;
    flash_op_t copy;

    memcpy(&copy, op, sizeof(copy));
    memset(&copy.params, 0, sizeof(copy.params));
    copy.engine = NULL;
    copy.next_running = copy.next_completed = copy.next_dirty = NULL;
    copy.next_combine = copy.next_callback = copy.next_staging = NULL;
    copy.slots = NULL;
    copy.scratch = NULL;
    copy.near = NULL;
    copy.store = NULL;
    copy.bounces = NULL;
    copy.sum = NULL;
    copy.sums = NULL;
    copy.sum_one.early = NULL;
    memset(&copy.events, 0, sizeof(copy.events));
    memset(&copy.waiting, 0, sizeof(copy.waiting));
    memset(&copy.combining, 0, sizeof(copy.combining));
    memset(&copy.staging, 0, sizeof(copy.staging));
    copy.events_had = copy.events_seen = 0;
    copy.watches = 0;
    copy.started_at = 0;
    add_bytes(print, &copy, sizeof(copy));
    add_slots(print, &op->events);
    add_slots(print, &op->waiting);
    add_slots(print, &op->combining);
    STAILQ_FOREACH(slot, &op->staging, next_staging)
    {
        fingerprint_add(print, slot_number(slot));
    }
    fingerprint_add(print, NONE);
    for (uint32_t k = 0; k < op->depth; k++) {
        add_slot(print, &op->slots[k]);
    }
    for (uint32_t k = 0; k < flash_op_summed_segments(&op->params); k++) {
        add_sum(print, &op->sums[k]);
    }
    add_memory(print, op->scratch, flash_op_scratch_size(&op->params));
    add_memory(print, op->near, op->near_size);
    add_memory(print, op->params.store, flash_op_store_size(&op->params));
    add_free_bounces(print, op);
    add_memory(print, op->params.pieces, flash_op_pieces_size(&op->params));
    add_memory(print, op->params.failed_ranks, flash_op_failed_ranks_size(&op->params));
}

#define ADD_OPS(print, queue, link)                                             \
    do {                                                                        \
        for (const flash_op_t *op = (queue)->head; op != NULL; op = op->link) { \
            fingerprint_add(print, number_of(op));                              \
        }                                                                       \
        fingerprint_add(print, NONE);                                           \
    } while (0)

static void add_engine(fingerprint_t *print, const flash_engine_t *engine)
{
    fingerprint_add(print, engine->started);
    fingerprint_add(print, engine->active);
    for (const flash_op_t *op = engine->orphaned; op != NULL; op = op->next_running) {
        add_op(print, op);
    }
    for (const flash_op_t *op = engine->running.head; op != NULL; op = op->next_running) {
        add_op(print, op);
    }
    ADD_OPS(print, &engine->running, next_running);
    ADD_OPS(print, &engine->dirty, next_dirty);
    ADD_OPS(print, &engine->combine, next_combine);
    ADD_OPS(print, &engine->users_combine, next_combine);
    ADD_OPS(print, &engine->copy, next_combine);
    ADD_OPS(print, &engine->callback, next_callback);
    ADD_OPS(print, &engine->callback_on_thread, next_callback);
    ADD_OPS(print, &engine->staging, next_staging);
    ADD_OPS(print, &engine->completed, next_completed);
}

/* --- the network --- */

static uint64_t transfer_number(const flash_transfer_t *transfer)
{
    return transfer == NULL ? NONE : slot_number((const flash_slot_t *) transfer);
}

static void add_message(fingerprint_t *print, const message_t *message)
{
    fingerprint_add(print, message->name);
    fingerprint_add(print, message->tag);
    fingerprint_add(print, message->length);
    fingerprint_add(print, message->sum);
    fingerprint_add(print, message->sender != NULL);
}

static void add_receive(fingerprint_t *print, const receive_t *receive)
{
    fingerprint_add(print, receive->name);
    fingerprint_add(print, receive->tag);
    fingerprint_add(print, transfer_number(receive->transfer));
}

static void add_event(fingerprint_t *print, const event_t *event)
{
    fingerprint_add(print, event->name);
    fingerprint_add(print, (uint64_t) event->status);
    if (event->message != NULL) {
        add_message(print, event->message);
    }
    if (event->receive != NULL) {
        add_receive(print, event->receive);
    }
    if (event->transfer != NULL) {
        fingerprint_add(print, transfer_number(event->transfer));
        fingerprint_add(print, event->sum);
    }
}

static void add_set(fingerprint_t *print, const fingerprint_t *set)
{
    fingerprint_add(print, set->half[0]);
    fingerprint_add(print, set->half[1]);
}

static void add_events(fingerprint_t *print, const node_t *node)
{
    fingerprint_t set = {{0}};

    for (size_t k = 0; k < node->nevents; k++) {
        fingerprint_t member = {{0}};

        add_event(&member, &node->events[k]);
        fingerprint_add_to_set(&set, member);
    }
    add_set(print, &set);
}

static void add_node(fingerprint_t *print, const node_t *node)
{
    fingerprint_t set = {{0}};

    for (size_t k = 0; k < node->unexpected.count; k++) {
        fingerprint_t member = {{0}};

        add_message(&member, node->unexpected.items[k]);
        fingerprint_add_to_set(&set, member);
    }
    for (size_t k = 0; k < node->posted.count; k++) {
        fingerprint_t member = {{0}};

        add_receive(&member, node->posted.items[k]);
        fingerprint_add_to_set(&set, member);
    }
    add_set(print, &set);
    add_events(print, node);
    fingerprint_add(print, node->reserved);
    fingerprint_add(print, node->under_way);
    fingerprint_add(print, node->stats.messages);
    fingerprint_add(print, node->stats.receives);
    fingerprint_add(print, node->taken);
    fingerprint_add(print, node->given);
    for (const flash_peer_t *peer = node->peers; peer != NULL; peer = peer->next) {
        fingerprint_add(print, (uint64_t) peer->to->rank << 2 | peer->used << 1 | peer->lost);
    }
}

/* --- the application --- */

static void add_instance(fingerprint_t *print, const sim_instance_t *in)
{
    fingerprint_add(print, (uint64_t) in->status);
    fingerprint_add(print, in->failed_rank);
    fingerprint_add(print, (uint64_t) in->produce.at << 32 | in->produce.piece);
    fingerprint_add(print, (uint64_t) in->consume.at << 32 | in->consume.piece);
    fingerprint_add(print, in->callbacks);
    fingerprint_add(print, in->combines);
    fingerprint_add(print, (uint64_t) in->works << 2 | in->in_callback << 1 | in->call_failed);
    add_bytes(print, in->output_memory, sim_instance_output_bytes(in));
}

static void add_held(fingerprint_t *print, const sim_t *sim, uint32_t rank)
{
    fingerprint_t set = {{0}};

    for (size_t k = 0; k < sim->nheld; k++) {
        const sim_held_t *held = &sim->held[k];
        fingerprint_t member = {{0}};

        if (held->rank == rank) {
            fingerprint_add(&member, held->name);
            fingerprint_add(&member, (uint64_t) held->status << 1 | held->ran);
            fingerprint_add_to_set(&set, member);
        }
    }
    add_set(print, &set);
}

void state_add_rank(fingerprint_t *print, const sim_t *sim, uint32_t rank)
{
    add_engine(print, sim->engines[rank]);
    add_node(print, &sim->net->nodes[rank]);
    for (uint32_t spec = 0; spec < sim->nspecs; spec++) {
        add_instance(print, &sim->instances[(size_t) rank * sim->nspecs + spec]);
    }
    add_held(print, sim, rank);
}
