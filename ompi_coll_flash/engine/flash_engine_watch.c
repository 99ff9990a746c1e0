/*
 * flash_engine_watch.c: operations that wait for a neighbour, and for how long.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "engine/flash_slot.h"

/* The oldest segment under way, if what it waits for is a neighbour. */
static const flash_slot_t *waits_for_neighbour(const flash_op_t *op)
{
    const flash_slot_t *slot = &op->slots[op->retired % op->depth];

    return op->retired < op->opened && slot->posted && op->held == 0 ? slot : NULL;
}

static flash_silence_t silence_of(const flash_op_t *op, const flash_slot_t *slot)
{
    const flash_schedule_t *schedule = &op->params.schedule;
    bool sending = slot->state == FLASH_SLOT_SENDING;

    return (flash_silence_t){.user = op->params.user,
                             .watches = op->watches,
                             .not_oldest = slot != &op->slots[op->retired % op->depth],
                             .peer = flash_slot_peer(slot, sending),
                             .rank = flash_slot_neighbour(slot, sending),
                             .sending = sending,
                             .step = slot->step,
                             .block = flash_schedule_rank(schedule, slot->block),
                             .segment = slot->segment,
                             .steps = flash_schedule_length(schedule, FLASH_STEPS)};
}

static bool is_among(const flash_silence_t *silences, size_t count, const flash_peer_t *peer)
{
    for (size_t k = 0; k < count; k++) {
        if (silences[k].peer == peer) {
            return true;
        }
    }
    return false;
}

/* Behind those found already, unless the peer is among them. */
static size_t add_silence(flash_silence_t *silences, size_t found, size_t most,
                          const flash_silence_t *silence)
{
    if (found == most || is_among(silences, found, silence->peer)) {
        return found;
    }
    silences[found] = *silence;
    return found + 1;
}

static size_t add_not_oldest(flash_silence_t *silences, size_t found, size_t most,
                             const flash_op_t *op)
{
    for (uint64_t number = op->retired; number < op->opened; number++) {
        const flash_slot_t *slot = &op->slots[number % op->depth];

        if (slot->posted) {
            flash_silence_t silence = silence_of(op, slot);

            found = add_silence(silences, found, most, &silence);
        }
    }
    return found;
}

size_t flash_engine_watch(flash_engine_t *engine, flash_silence_t *silences, size_t most)
{
    size_t found = 0;

    for (flash_op_t *op = engine->running.head; op != NULL; op = op->next_running) {
        const flash_slot_t *slot = waits_for_neighbour(op);
        flash_silence_t silence;

        if (!flash_op_has_user(op) || slot == NULL || op->events_had != op->events_seen) {
            op->events_seen = op->events_had;
            op->watches = 0;
            continue;
        }
        op->watches++;
        silence = silence_of(op, slot);
        found = add_silence(silences, found, most, &silence);
    }
    for (flash_op_t *op = engine->running.head; op != NULL; op = op->next_running) {
        if (op->watches > 0) {
            found = add_not_oldest(silences, found, most, op);
        }
    }
    return found;
}
