/*
 * flash_schedule.c: which block when; see flash_schedule.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "engine/flash_schedule.h"

uint32_t flash_ring_rank(const flash_ring_t *ring, uint32_t ahead)
{
    uint32_t place = (uint32_t) (((uint64_t) ring->place + ahead) % ring->nranks);

    return ring->ranks == NULL ? place : ring->ranks[place];
}

uint32_t flash_ring_distance(const flash_ring_t *ring, uint32_t rank)
{
    uint32_t place = ring->ranks == NULL ? rank : 0;

    while (ring->ranks != NULL && place + 1 < ring->nranks && ring->ranks[place] != rank) {
        place++;
    }
    return (ring->place + ring->nranks - place) % ring->nranks;
}

/* ------------------------------------------------------------ which block when */

static bool is_alltoall(const flash_schedule_t *schedule)
{
    return schedule->kind == FLASH_ALLTOALL;
}

static bool is_pairwise(const flash_schedule_t *schedule)
{
    return schedule->kind == FLASH_PAIRWISE_REDUCE_SCATTER;
}

bool flash_schedule_exchanges(flash_kind_t kind)
{
    return kind == FLASH_ALLTOALL || kind == FLASH_PAIRWISE_REDUCE_SCATTER;
}

bool flash_schedule_chains(flash_kind_t kind)
{
    return kind == FLASH_BCAST || kind == FLASH_REDUCE;
}

bool flash_schedule_scatters(flash_kind_t kind)
{
    return kind == FLASH_REDUCE_SCATTER || kind == FLASH_PAIRWISE_REDUCE_SCATTER;
}

bool flash_schedule_reduces(flash_kind_t kind)
{
    return flash_schedule_scatters(kind) || kind == FLASH_ALLREDUCE || kind == FLASH_REDUCE;
}

uint32_t flash_schedule_blocks(const flash_schedule_t *schedule)
{
    return flash_schedule_chains(schedule->kind)
               ? 1
               : schedule->ring.nranks * (is_alltoall(schedule) ? 2 : 1);
}

static uint32_t steps(const flash_schedule_t *schedule)
{
    uint32_t n = schedule->ring.nranks;

    switch (schedule->kind) {
    case FLASH_ALLREDUCE:
    case FLASH_PAIRWISE_REDUCE_SCATTER:
        return 2 * n - 1;
    case FLASH_ALLTOALL:
        return 2 * (n - 1);
    case FLASH_BCAST:
    case FLASH_REDUCE:
        return 1;
    default:
        return n;
    }
}

/* Of a chain: whether this rank has the block there. The root alone has what is broadcast, and what
   a reduce results in; each rank contributes to a reduce, and gets what is broadcast. */
static bool has_block(const flash_schedule_t *schedule, flash_walk_t walk)
{
    bool of_root = (walk == FLASH_PRODUCED) == (schedule->kind == FLASH_BCAST);

    return !of_root || schedule->from_root == 0;
}

uint32_t flash_schedule_length(const flash_schedule_t *schedule, flash_walk_t walk)
{
    bool own = walk == FLASH_PRODUCED ? schedule->kind == FLASH_ALLGATHER
                                      : flash_schedule_scatters(schedule->kind);

    if (walk == FLASH_STEPS) {
        return steps(schedule);
    }
    if (flash_schedule_chains(schedule->kind)) {
        return has_block(schedule, walk) ? 1 : 0;
    }
    return own ? 1 : schedule->ring.nranks;
}

/* The block that goes to the rank so many places to the right. */
static uint32_t out_block(const flash_schedule_t *schedule, uint32_t ahead)
{
    return schedule->ring.nranks + flash_ring_rank(&schedule->ring, ahead);
}

/* The block of the rank so many places to the left. */
static uint32_t block_behind(const flash_schedule_t *schedule, uint32_t behind)
{
    uint32_t n = schedule->ring.nranks;

    return flash_ring_rank(&schedule->ring, n - behind % n);
}

/* By a step of those that exchange with each rank in turn. */
static uint32_t exchanged_block(const flash_schedule_t *schedule, uint32_t step)
{
    uint32_t turn = step / 2 + 1;

    if (is_pairwise(schedule)) {
        return block_behind(schedule, step % 2 == 0 ? turn : 0);
    }
    return step % 2 == 0 ? out_block(schedule, turn) : block_behind(schedule, turn);
}

uint32_t flash_schedule_block(const flash_schedule_t *schedule, flash_walk_t walk, uint32_t at)
{
    if (flash_schedule_chains(schedule->kind)) {
        return 0;
    }
    if (walk == FLASH_CONSUMED || schedule->kind == FLASH_ALLGATHER) {
        return block_behind(schedule, at);
    }
    if (walk == FLASH_STEPS && flash_schedule_exchanges(schedule->kind)) {
        return exchanged_block(schedule, at);
    }
    return is_alltoall(schedule) ? out_block(schedule, at + 1) : block_behind(schedule, at + 1);
}

uint32_t flash_schedule_rank(const flash_schedule_t *schedule, uint32_t block)
{
    return flash_schedule_chains(schedule->kind) ? block_behind(schedule, schedule->from_root)
                                                 : block % schedule->ring.nranks;
}

uint32_t flash_schedule_own_input(const flash_schedule_t *schedule)
{
    uint32_t own = flash_schedule_own_result(schedule);

    return is_alltoall(schedule) ? schedule->ring.nranks + own : own;
}

uint32_t flash_schedule_own_result(const flash_schedule_t *schedule)
{
    return flash_schedule_chains(schedule->kind) ? 0 : flash_ring_rank(&schedule->ring, 0);
}

static flash_step_t exchanging_step(const flash_schedule_t *schedule, uint32_t step)
{
    bool out = step % 2 == 0, pairwise = is_pairwise(schedule);
    bool last = pairwise && step == steps(schedule) - 1;

    return (flash_step_t){.receives = !out,
                          .contributes = out,
                          .adds = pairwise && (!out || last),
                          .sends = out && !last,
                          .delivers = pairwise ? last : !out};
}

static flash_step_t chain_step(const flash_schedule_t *schedule)
{
    bool root = schedule->from_root == 0, last = schedule->from_root == schedule->ring.nranks - 1;

    if (schedule->kind == FLASH_BCAST) {
        return (flash_step_t){
            .receives = !root, .contributes = root, .sends = !last, .delivers = !root};
    }
    return (flash_step_t){.receives = schedule->from_root != 1,
                          .contributes = true,
                          .sends = !root,
                          .delivers = root};
}

flash_step_t flash_schedule_step(const flash_schedule_t *schedule, uint32_t step)
{
    bool reduces = flash_schedule_reduces(schedule->kind);

    if (flash_schedule_exchanges(schedule->kind)) {
        return exchanging_step(schedule, step);
    }
    if (flash_schedule_chains(schedule->kind)) {
        return chain_step(schedule);
    }
    return (flash_step_t){.receives = step > 0,
                          .contributes = step < (reduces ? schedule->ring.nranks : 1),
                          .sends = step < steps(schedule) - 1,
                          .delivers = reduces ? step + 1 >= schedule->ring.nranks : step > 0};
}

uint32_t flash_schedule_distance(const flash_schedule_t *schedule, uint32_t step)
{
    uint32_t turn = step / 2 + 1;

    if (!flash_schedule_exchanges(schedule->kind)) {
        return 1;
    }
    return is_pairwise(schedule) ? schedule->ring.nranks - turn : turn;
}

uint32_t flash_schedule_turn(uint32_t step)
{
    return step / 2;
}
