/*
 * flash_flow.c: see flash_flow.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "engine/flash_flow.h"

#include "engine/flash_op.h"

void flash_flow_init(flash_flow_t *flow)
{
    TAILQ_INIT(&flow->ops);
    flow->bytes = 0;
    flow->blocked = 0;
}

static void set_blocked(flash_op_t *op, bool blocked)
{
    op->params.flow->blocked += blocked;
    op->params.flow->blocked -= op->blocked;
    op->blocked = blocked;
}

void flash_flow_join(flash_op_t *op)
{
    if (op->params.flow != NULL) {
        TAILQ_INSERT_TAIL(&op->params.flow->ops, op, next_in_flow);
    }
}

void flash_flow_leave(flash_op_t *op)
{
    if (op->params.flow != NULL) {
        set_blocked(op, false);
        TAILQ_REMOVE(&op->params.flow->ops, op, next_in_flow);
    }
}

/*
 * What older operations have in flight, as far as it matters. One alone leaves room for others: else
 * a brief operation would wait for all blocks of a long one.
 */
static size_t bytes_of_older(const flash_op_t *op)
{
    const flash_op_t *older;
    size_t bytes = 0;

    TAILQ_FOREACH(older, &op->params.flow->ops, next_in_flow)
    {
        if (older == op || bytes >= FLASH_FLOW_BYTES) {
            break;
        }
        bytes += older->bytes_in_flight < FLASH_FLOW_BYTES / 2 ? older->bytes_in_flight
                                                               : FLASH_FLOW_BYTES / 2;
    }
    return bytes;
}

bool flash_flow_send(flash_op_t *op, size_t bytes)
{
    flash_flow_t *flow = op->params.flow;
    size_t older;

    if (flow == NULL) {
        return true;
    }
    if (flow->bytes + bytes > FLASH_FLOW_BYTES) {
        older = bytes_of_older(op);
        if (older > 0 && older + op->bytes_in_flight + bytes > FLASH_FLOW_BYTES) {
            set_blocked(op, true);
            return false;
        }
    }
    op->bytes_in_flight += bytes;
    flow->bytes += bytes;
    return true;
}

void flash_flow_sent(flash_op_t *op, size_t bytes)
{
    if (op->params.flow != NULL) {
        op->bytes_in_flight -= bytes;
        op->params.flow->bytes -= bytes;
    }
}

flash_op_t *flash_flow_unblock(flash_op_t *op)
{
    flash_op_t *other = NULL;

    if (op->params.flow != NULL && op->params.flow->blocked > 0) {
        TAILQ_FOREACH(other, &op->params.flow->ops, next_in_flow)
        {
            if (other->blocked) {
                set_blocked(other, false);
                break;
            }
        }
    }
    return other;
}
