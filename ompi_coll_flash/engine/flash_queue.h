/*
 * flash_queue.h: the engine's queues of operations.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef FLASH_QUEUE_H
#define FLASH_QUEUE_H

#include "engine/flash_op.h"

/* A queue of operations through one of their link fields; `in` says whether one is in it. */
#define OP_QUEUE(name, link, in)                                              \
    static inline void name##_push(flash_op_queue_t *queue, flash_op_t *op)   \
    {                                                                         \
        if (!op->in) {                                                        \
            op->in = true;                                                    \
            op->link = NULL;                                                  \
            *queue->tail = op;                                                \
            queue->tail = &op->link;                                          \
        }                                                                     \
    }                                                                         \
    static inline void name##_remove(flash_op_queue_t *queue, flash_op_t *op) \
    {                                                                         \
        flash_op_t **link = &queue->head;                                     \
                                                                              \
        if (!op->in) {                                                        \
            return;                                                           \
        }                                                                     \
        while (*link != op) {                                                 \
            link = &(*link)->link;                                            \
        }                                                                     \
        *link = op->link;                                                     \
        if (op->link == NULL) {                                               \
            queue->tail = link;                                               \
        }                                                                     \
        op->in = false;                                                       \
    }

OP_QUEUE(running, next_running, in_running)
OP_QUEUE(dirty, next_dirty, in_dirty)
OP_QUEUE(combine, next_combine, in_combine)
OP_QUEUE(callback, next_callback, in_callback)
OP_QUEUE(staging, next_staging, in_staging)
OP_QUEUE(completed, next_completed, in_completed)

/* A reduction combines, the others copy. */
static inline flash_op_queue_t *combine_queue(flash_op_t *op)
{
    flash_engine_t *engine = op->engine;

    if (!flash_op_reduces(&op->params)) {
        return &engine->copy;
    }
    return op->params.combine_is_users ? &engine->users_combine : &engine->combine;
}

static inline flash_op_queue_t *callback_queue(flash_op_t *op)
{
    return op->params.on_callback_thread ? &op->engine->callback_on_thread : &op->engine->callback;
}

#endif /* FLASH_QUEUE_H */
