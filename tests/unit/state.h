/*
 * state.h: the fingerprint of a rank's state in a simulation.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef STATE_H
#define STATE_H

#include "sim.h"
#include "table.h"

/*
 * Adds all that decides what can still happen on a rank, and whether it is right: two states of
 * one case with equal fingerprints have equal futures. For a manual network, between two moves.
 */
void state_add_rank(fingerprint_t *print, const sim_t *sim, uint32_t rank);

#endif /* STATE_H */
