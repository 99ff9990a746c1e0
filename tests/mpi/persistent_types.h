/*
 * persistent_types.h: a persistent allgather of every kind of type.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef PERSISTENT_TYPES_H
#define PERSISTENT_TYPES_H

#include <stdbool.h>

#include "typed.h"

/*
 * Started three times, of `units` of a signature (typed.h) to a block. The ranks describe the same
 * data each in its own way, most of them with gaps. Unequal: the v form, its blocks in reverse
 * order with room between, some of them empty. Early: the types are freed before the first start.
 */
void persistent_types_run(int signature, int units, bool unequal, bool early);

#endif /* PERSISTENT_TYPES_H */
