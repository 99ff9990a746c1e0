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

bool flash_schedule_chains(flash_kind_t kind)
{
    return kind == FLASH_BCAST || kind == FLASH_REDUCE;
}

/* Whether the root exchanges a block with each other rank. */
static bool is_rooted_exchange(flash_kind_t kind)
{
    return kind == FLASH_GATHER || kind == FLASH_SCATTER;
}

bool flash_schedule_has_root(flash_kind_t kind)
{
    return flash_schedule_chains(kind) || is_rooted_exchange(kind);
}

bool flash_schedule_exchanges(flash_kind_t kind)
{
    return kind == FLASH_ALLTOALL || kind == FLASH_PAIRWISE_REDUCE_SCATTER ||
           is_rooted_exchange(kind);
}

bool flash_schedule_gathers(flash_kind_t kind)
{
    return kind == FLASH_ALLGATHER || kind == FLASH_GATHER;
}

bool flash_schedule_scatters(flash_kind_t kind)
{
    return kind == FLASH_REDUCE_SCATTER || kind == FLASH_PAIRWISE_REDUCE_SCATTER ||
           kind == FLASH_SCATTER;
}

bool flash_schedule_reduces(flash_kind_t kind)
{
    return kind == FLASH_REDUCE_SCATTER || kind == FLASH_PAIRWISE_REDUCE_SCATTER ||
           kind == FLASH_ALLREDUCE || kind == FLASH_REDUCE;
}

uint32_t flash_schedule_blocks(const flash_schedule_t *schedule)
{
    return flash_schedule_chains(schedule->kind)
               ? 1
               : schedule->ring.nranks * (is_alltoall(schedule) ? 2 : 1);
}

static bool is_root(const flash_schedule_t *schedule)
{
    return schedule->from_root == 0;
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
    case FLASH_GATHER:
    case FLASH_SCATTER:
        return is_root(schedule) ? n - 1 : 1;
    default:
        return n;
    }
}

/* The root alone has what is broadcast or scattered, and what a reduce or a gather results in. Each
   rank contributes to these, and gets what is broadcast, or its block of what is scattered. */
static bool is_roots_alone(flash_kind_t kind, flash_walk_t walk)
{
    return walk == FLASH_PRODUCED ? kind == FLASH_BCAST || kind == FLASH_SCATTER
                                  : kind == FLASH_REDUCE || kind == FLASH_GATHER;
}

uint32_t flash_schedule_length(const flash_schedule_t *schedule, flash_walk_t walk)
{
    bool one = flash_schedule_chains(schedule->kind) ||
               (walk == FLASH_PRODUCED ? flash_schedule_gathers(schedule->kind)
                                       : flash_schedule_scatters(schedule->kind));

    if (walk == FLASH_STEPS) {
        return steps(schedule);
    }
    if (is_roots_alone(schedule->kind, walk) && !is_root(schedule)) {
        return 0;
    }
    return one ? 1 : schedule->ring.nranks;
}

/* The block that goes to the rank so many places to the right. */
static uint32_t out_block(const flash_schedule_t *schedule, uint32_t ahead)
{
    return (is_alltoall(schedule) ? schedule->ring.nranks : 0) +
           flash_ring_rank(&schedule->ring, ahead);
}

/* The block of the rank so many places to the left. */
static uint32_t block_behind(const flash_schedule_t *schedule, uint32_t behind)
{
    uint32_t n = schedule->ring.nranks;

    return flash_ring_rank(&schedule->ring, n - behind % n);
}

/* By a step of a gather or a scatter. */
static uint32_t roots_block(const flash_schedule_t *schedule, uint32_t step)
{
    if (!is_root(schedule)) {
        return flash_schedule_own_result(schedule);
    }
    return schedule->kind == FLASH_GATHER ? block_behind(schedule, step + 1)
                                          : out_block(schedule, step + 1);
}

/* By a step of those that exchange with each rank in turn. */
static uint32_t exchanged_block(const flash_schedule_t *schedule, uint32_t step)
{
    uint32_t turn = step / 2 + 1;

    if (is_rooted_exchange(schedule->kind)) {
        return roots_block(schedule, step);
    }
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
    if (walk == FLASH_STEPS && flash_schedule_exchanges(schedule->kind)) {
        return exchanged_block(schedule, at);
    }
    if (walk == FLASH_CONSUMED || flash_schedule_gathers(schedule->kind)) {
        return block_behind(schedule, at);
    }
    return flash_schedule_reduces(schedule->kind) ? block_behind(schedule, at + 1)
                                                  : out_block(schedule, at + 1);
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

/* Whether a step of a gather or a scatter sends; else, it receives. */
static bool roots_step_sends(const flash_schedule_t *schedule)
{
    return is_root(schedule) == (schedule->kind == FLASH_SCATTER);
}

static flash_step_t exchanging_step(const flash_schedule_t *schedule, uint32_t step)
{
    bool out = is_rooted_exchange(schedule->kind) ? roots_step_sends(schedule) : step % 2 == 0;
    bool pairwise = is_pairwise(schedule), last = pairwise && step == steps(schedule) - 1;

    return (flash_step_t){.receives = !out,
                          .contributes = out,
                          .adds = pairwise && (!out || last),
                          .sends = out && !last,
                          .delivers = pairwise ? last : !out};
}

static flash_step_t chain_step(const flash_schedule_t *schedule)
{
    bool root = is_root(schedule), last = schedule->from_root == schedule->ring.nranks - 1;

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

uint32_t flash_schedule_exchange_step(uint32_t distance, bool sends)
{
    return 2 * (distance - 1) + (sends ? 0 : 1);
}

uint32_t flash_schedule_roots_step(flash_kind_t kind, uint32_t ranks, uint32_t distance)
{
    return kind == FLASH_GATHER ? ranks - distance - 1 : distance - 1;
}

bool flash_schedule_takes(const flash_schedule_t *schedule, flash_walk_t walk, uint32_t at)
{
    return walk != FLASH_STEPS || schedule->taken == NULL || flash_steps_has(schedule->taken, at);
}

/* Of a rank that is not the root: how many places to the right its block goes. */
static uint32_t way_of_block(const flash_schedule_t *schedule)
{
    return schedule->kind == FLASH_GATHER ? schedule->ring.nranks - schedule->from_root
                                          : schedule->from_root;
}

uint32_t flash_schedule_distance(const flash_schedule_t *schedule, uint32_t step)
{
    uint32_t turn = step / 2 + 1;

    if (!flash_schedule_exchanges(schedule->kind)) {
        return 1;
    }
    if (is_rooted_exchange(schedule->kind)) {
        return is_root(schedule) ? step + 1 : way_of_block(schedule);
    }
    return is_pairwise(schedule) ? schedule->ring.nranks - turn : turn;
}

uint32_t flash_schedule_turn(uint32_t step)
{
    return step / 2;
}
