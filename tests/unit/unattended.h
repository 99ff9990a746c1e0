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

/* A rank refuses its operation, and nobody waits for the refusal's end. */
void unattended_refuse(sim_t *sim, uint32_t refuser);
/* Runs to the end; whether each rank ends as that refusal says. Frees the simulation. */
bool unattended_refusal_ends(sim_t *sim, uint32_t refuser);

#endif /* UNATTENDED_H */
