/*
 * flash_affinity.h: where the progress thread runs.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef FLASH_AFFINITY_H
#define FLASH_AFFINITY_H

#include <stdbool.h>
#include <stddef.h>

#define FLASH_AFFINITY_MAX 512 /* bytes of a binding as text */

/* The calling process' binding as text, for the other ranks of the node; "" if it is not bound. */
void flash_affinity_binding(char text[FLASH_AFFINITY_MAX]);

/*
 * The hardware thread for the progress thread of rank `self` out of `count` ranks of this node,
 * whose bindings are given in the same order on all of them: the nearest one to its binding that
 * no rank is bound to and that no rank before it takes, among those that the launcher gave the job.
 * -1: there is none, or some rank is not bound, or the machine cannot be examined, or nothing tells
 * what is the job's.
 */
int flash_affinity_choose(char (*bindings)[FLASH_AFFINITY_MAX], int count, int self);

/* Whether this node has so many hardware threads, of those that processes here may use. */
bool flash_affinity_has_threads(int count);

/* Binds the calling thread to that hardware thread. */
bool flash_affinity_bind(int hardware_thread);

#endif /* FLASH_AFFINITY_H */
