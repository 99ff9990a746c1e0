/*
 * fault_memory.h: which memory flash's library holds. For faults.c, which sees all allocations.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef FAULT_MEMORY_H
#define FAULT_MEMORY_H

/* Any thread. Both take NULL; the second also what is not flash's. */
void fault_memory_add(const void *memory);
void fault_memory_remove(const void *memory);

#endif /* FAULT_MEMORY_H */
