/*
 * unattended.h: a rank refuses an operation that has a root, and nobody waits for the refusal's end.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef UNATTENDED_H
#define UNATTENDED_H

#include "sim.h"

/* Whether the other ranks end, and lack what they must, in each `stride`-th of many cases. */
bool unattended_ends_well(uint64_t seed, flash_kind_t kind, uint32_t stride);

#endif /* UNATTENDED_H */
