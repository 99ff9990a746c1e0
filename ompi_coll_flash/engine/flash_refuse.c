/*
 * flash_refuse.c: taking part in an operation that this rank cannot perform.
 *
 * Its neighbours cannot know that it has no memory, say: one waits for its segments, the other
 * sends it some. With memory set aside for this it goes around the ring all the same, as if all
 * blocks were empty, and marks whatever it sends as poisoned.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/flash_op.h"

/* A segment that leaves, and one that comes. */
#define SLOTS 2

struct flash_refusal {
    flash_op_t op;
    flash_slot_t slots[SLOTS];
    flash_steps_t taken;   /* if the schedule leaves out steps: the caller's may go */
    flash_refusal_t *next; /* of the engine's; the first FLASH_REFUSALS are one array */
};

flash_refusal_t *flash_refusals_create(flash_transport_t *transport)
{
    flash_refusal_t *refusals = calloc(FLASH_REFUSALS, sizeof(*refusals));

    if (refusals != NULL &&
        transport->ops->reserve(transport, FLASH_REFUSALS * SLOTS) != FLASH_OK) {
        free(refusals);
        return NULL;
    }
    for (size_t k = 0; refusals != NULL && k + 1 < FLASH_REFUSALS; k++) {
        refusals[k].next = &refusals[k + 1];
    }
    return refusals;
}

void flash_refusals_free(flash_refusal_t *refusals)
{
    flash_refusal_t *more = refusals[FLASH_REFUSALS - 1].next, *next;

    for (; more != NULL; more = next) {
        next = more->next;
        free(more);
    }
    free(refusals);
}

static flash_refusal_t *one_more(flash_transport_t *transport)
{
    flash_refusal_t *refusal = calloc(1, sizeof(*refusal));

    if (refusal != NULL && transport->ops->reserve(transport, SLOTS) != FLASH_OK) {
        free(refusal);
        return NULL;
    }
    return refusal;
}

/* One that a lost peer's message may still touch is never used again. */
static flash_refusal_t *find_unused(flash_engine_t *engine)
{
    flash_refusal_t *refusal = engine->refusals;

    while (refusal->op.refused) {
        if (refusal->next == NULL) {
            refusal->next = one_more(engine->transport);
            return refusal->next;
        }
        refusal = refusal->next;
    }
    return refusal;
}

bool flash_engine_refuse(flash_engine_t *engine, const flash_op_params_t *params)
{
    flash_refusal_t *refusal = find_unused(engine);
    flash_op_params_t empty = {.schedule = {.kind = params->schedule.kind,
                                            .ring = params->schedule.ring,
                                            .from_root = params->schedule.from_root,
                                            .pieces = 1,
                                            .row = 1,
                                            .segment_elements = 1},
                               .element = 1,
                               .left = params->left,
                               .right = params->right,
                               .recv_tag = params->recv_tag,
                               .send_tag = params->send_tag,
                               .pairs = params->pairs,
                               .depth = SLOTS,
                               .input = refusal,
                               .output = refusal,
                               .user = params->user};

    if (refusal == NULL) {
        return false;
    }
    if (params->schedule.taken != NULL) {
        refusal->taken = *params->schedule.taken;
        empty.schedule.taken = &refusal->taken;
    }
    if (params->user == NULL) { /* nobody waits, and keeps the ring's order: its own name is left */
        empty.schedule.ring.ranks = NULL;
        empty.schedule.ring.place = flash_ring_rank(&params->schedule.ring, 0);
    }
    memset(&refusal->op, 0, sizeof(refusal->op));
    memset(refusal->slots, 0, sizeof(refusal->slots));
    flash_op_init(&refusal->op, engine, &empty, refusal->slots);
    refusal->op.scratch = refusal; /* of segments without length */
    refusal->op.sums = &refusal->op.sum_one;
    refusal->op.refused = true;
    flash_op_fail(&refusal->op, FLASH_ERR_NO_MEMORY, flash_ring_rank(&params->schedule.ring, 0));
    flash_op_start(&refusal->op);
    return true;
}
