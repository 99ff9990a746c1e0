/*
 * odd_rank.c: see odd_rank.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "odd_rank.h"

#include "prng.h"

/* The lengths of the messages that make up a block are the same by both schedules. */
static bool alike(const flash_schedule_t *a, uint32_t received, const flash_schedule_t *b,
                  uint32_t sent)
{
    flash_split_t x = flash_schedule_split(a, received), y = flash_schedule_split(b, sent);
    uint32_t segments = flash_split_segments(&x);

    if (segments != flash_split_segments(&y)) {
        return false;
    }
    for (uint32_t k = 0; k < segments; k++) {
        if (flash_split_segment(&x, k).count != flash_split_segment(&y, k).count) {
            return false;
        }
    }
    return true;
}

static const flash_schedule_t *schedule_of(const sim_t *sim, uint32_t rank)
{
    return &sim->instances[(size_t) rank * sim->nspecs].schedule;
}

/* `rank` gets a message whose length it does not expect. */
static bool sees_it(const sim_t *sim, uint32_t rank)
{
    uint32_t n = sim->nranks;
    const flash_schedule_t *mine = schedule_of(sim, rank);

    for (uint32_t step = 0; step < flash_schedule_length(mine, FLASH_STEPS); step++) {
        uint32_t block = flash_schedule_block(mine, FLASH_STEPS, step);
        uint32_t left = sim_neighbour(sim, rank, n - flash_schedule_distance(mine, step));
        uint32_t sent = mine->kind == FLASH_ALLTOALL ? n + rank : block;

        if (flash_schedule_step(mine, step).receives &&
            !alike(mine, block, schedule_of(sim, left), sent)) {
            return true;
        }
    }
    return false;
}

/*
 * A rank that sees a wrong length fails by it, unless another one failed before: that one's
 * poisoned messages have no length to be compared, and in a reduce-scatter they may pass without
 * any harm to this rank's result.
 */
void odd_rank_judge(sim_t *sim)
{
    uint32_t seeing = 0, truncated = 0;

    for (uint32_t k = 0; k < sim->nranks; k++) {
        seeing += sees_it(sim, k);
        truncated += sim_status(sim, k, 0) == FLASH_ERR_TRUNCATED;
    }
    for (uint32_t k = 0; k < sim->nranks; k++) {
        int status = sim_status(sim, k, 0);

        if (seeing == 0) {
            judge_status(sim, k, FLASH_OK);
        } else if (seeing == 1 && sees_it(sim, k)) {
            judge_status(sim, k, FLASH_ERR_TRUNCATED);
        } else if (status != FLASH_OK && status != FLASH_ERR_PEER &&
                   !(status == FLASH_ERR_TRUNCATED && sees_it(sim, k))) {
            sim_complain(sim, "rank %u ends with %d", k, status);
        }
    }
    if (seeing > 0 && truncated == 0) {
        sim_complain(sim, "nobody sees the wrong length");
    }
}

void odd_rank_make(uint64_t *random, sim_spec_t *spec, oddity_t oddity, uint32_t nranks,
                   size_t *counts, size_t *odd_counts)
{
    sim_shape_t *odd = &spec->odd_shape;

    spec->odd_rank = prng_below(random, nranks);
    *odd = spec->shape;
    if (oddity == OTHER_BLOCK || (oddity == OTHER_ALL && prng_percent(random, 50))) {
        for (uint32_t k = 0; k < nranks; k++) {
            odd_counts[k] = counts[k] = prng_percent(random, 25) ? 0 : prng_below(random, 20);
        }
        odd_counts[prng_below(random, nranks)] = prng_below(random, 40);
        spec->shape.counts = counts;
        odd->counts = odd_counts;
    }
    if (oddity == OTHER_COUNT || oddity == OTHER_ALL) {
        odd->count = prng_below(random, 40); /* 0 too */
    }
    if (oddity == OTHER_SEGMENT || oddity == OTHER_ALL) {
        odd->segment = 1 + prng_below(random, 10);
    }
    if (oddity == OTHER_PIECES || oddity == OTHER_ALL) {
        odd->pieces = 1 + prng_below(random, 5);
        odd->row = 1 + prng_below(random, 3);
    }
}
