/*
 * flash_flow.h: what the operations of a communicator have in flight together.
 *
 * An operation of a flow waits for older operations of the flow alone. All ranks make the calls of
 * a communicator in the same order: a receiver may wait for an older operation before it begins a
 * younger one, and never the other way round. Callbacks, and a user's operator, may wait for a
 * younger operation's end; operations that have any belong to no flow.
 *
 * A receiver that has not begun an operation has posted no receives for its messages. UCX keeps
 * such messages in memory of the receiver, which UCX never gives back. Each operation limits its own
 * messages (`sends` in flash_engine.h); the flow limits the bytes of all its operations together.
 *
 * All of it is ordered by the engine's lock, see flash_engine.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef FLASH_FLOW_H
#define FLASH_FLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

/* Enough for two operations that each have one of the longest segments (4 MiB) in flight. */
#define FLASH_FLOW_BYTES ((size_t) 8 << 20)

struct flash_op;

typedef struct flash_flow {
    TAILQ_HEAD(flash_flow_ops, flash_op)
    ops;              /* those that have not completed, in the order of their calls */
    size_t bytes;     /* that they have in flight */
    uint32_t blocked; /* operations that wait for others' bytes */
} flash_flow_t;

void flash_flow_init(flash_flow_t *flow);

/* Of an operation whose parameters name no flow, these functions do nothing. */
void flash_flow_join(struct flash_op *op);
void flash_flow_leave(struct flash_op *op);
/*
 * Whether the operation may send so many bytes now, which are in flight then. Else it is blocked.
 */
bool flash_flow_send(struct flash_op *op, size_t bytes);
/* They are in flight no more. */
void flash_flow_sent(struct flash_op *op, size_t bytes);
/*
 * The oldest operation of the same flow that is blocked, and is not from now on; NULL: there is
 * none.
 */
struct flash_op *flash_flow_unblock(struct flash_op *op);

#endif /* FLASH_FLOW_H */
