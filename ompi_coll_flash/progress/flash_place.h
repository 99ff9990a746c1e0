/*
 * flash_place.h: where the progress thread runs.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef FLASH_PLACE_H
#define FLASH_PLACE_H

#include <stdbool.h>
#include <stddef.h>

#define FLASH_PLACE_MAX 512 /* bytes of a binding as text */

/* The calling process' binding as text, for the other ranks of the node; "" if it is not bound. */
void flash_place_binding(char text[FLASH_PLACE_MAX]);

/*
 * The hardware thread for the progress thread of rank `self` out of `count` ranks of this node,
 * whose bindings are given in the same order on all of them: the nearest one to its binding that
 * no rank is bound to and that no rank before it takes. -1: there is none, or some rank is not
 * bound, or the machine cannot be examined.
 */
int flash_place_choose(char (*bindings)[FLASH_PLACE_MAX], int count, int self);

/* Whether this node has so many hardware threads, of those that processes here may use. */
bool flash_place_has_threads(int count);

/* Binds the calling thread to that hardware thread. */
bool flash_place_bind(int hardware_thread);

#endif /* FLASH_PLACE_H */
