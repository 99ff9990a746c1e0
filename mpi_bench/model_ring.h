/*
 * model_ring.h: the ring engine on a simulated network, with simulated computation.
 *
 * A ring of many ranks is folded: some places stand for all of its ranks, each for those whose
 * number leaves the same remainder. Each place goes through all of the ring's steps, so that what a
 * rank sends, receives, computes and holds is the ring's; what is lost is that more ranks meet more
 * of the rare long delays, where a delay is random.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef MODEL_RING_H
#define MODEL_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model_network.h"

typedef struct model_ring {
    bool allgather; /* else reduce-scatter */
    uint32_t nranks, places;
    size_t block_bytes, segment_bytes;
    uint32_t pieces, depth, sends;
    double block_seconds; /* of the application's computation for a block; 0: no callbacks */
    double combine_rate;  /* bytes a second of a sum, or of the copy of the own block */
    model_link_t link;
    uint32_t seed;
} model_ring_t;

typedef struct model_result {
    double seconds;    /* until the last place has completed */
    uint64_t messages; /* that a rank has sent, at most */
    size_t memory;     /* bytes that a rank's operation holds */
} model_result_t;

/* Goes once around the ring. False, with a message, if it does not come to its end. */
bool model_ring_run(const model_ring_t *ring, model_result_t *result);

#endif /* MODEL_RING_H */
