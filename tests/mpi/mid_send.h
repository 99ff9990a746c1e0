/*
 * mid_send.h: a process that ends in the middle of a message. A program that is linked with
 * mid_send.c has a memcpy() of its own, ahead of the C library's.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef MID_SEND_H
#define MID_SEND_H

#include <stddef.h>

/*
 * From now on the process kills itself as soon as UCX's transports copy something: into the queue
 * of another process of the node, which it has taken a place in, and not said that it is complete.
 */
void die_mid_send(void);

void *memcpy(void *to, const void *from, size_t bytes);

#endif /* MID_SEND_H */
