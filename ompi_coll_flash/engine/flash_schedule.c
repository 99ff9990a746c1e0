/*
 * flash_schedule.c: see flash_schedule.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "engine/flash_schedule.h"

uint32_t flash_ring_rank(const flash_ring_t *ring, uint32_t ahead)
{
    uint32_t place = (uint32_t) (((uint64_t) ring->place + ahead) % ring->nranks);

    return ring->ranks == NULL ? place : ring->ranks[place];
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

bool flash_schedule_scatters(flash_kind_t kind)
{
    return kind == FLASH_REDUCE_SCATTER || kind == FLASH_PAIRWISE_REDUCE_SCATTER;
}

bool flash_schedule_reduces(flash_kind_t kind)
{
    return flash_schedule_scatters(kind) || kind == FLASH_ALLREDUCE;
}

uint32_t flash_schedule_blocks(const flash_schedule_t *schedule)
{
    return schedule->ring.nranks * (is_alltoall(schedule) ? 2 : 1);
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
    default:
        return n;
    }
}

uint32_t flash_schedule_length(const flash_schedule_t *schedule, flash_walk_t walk)
{
    bool own = walk == FLASH_PRODUCED ? schedule->kind == FLASH_ALLGATHER
                                      : flash_schedule_scatters(schedule->kind);

    if (walk == FLASH_STEPS) {
        return steps(schedule);
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
    return block % schedule->ring.nranks;
}

uint32_t flash_schedule_own_input(const flash_schedule_t *schedule)
{
    uint32_t rank = flash_ring_rank(&schedule->ring, 0);

    return is_alltoall(schedule) ? schedule->ring.nranks + rank : rank;
}

uint32_t flash_schedule_own_result(const flash_schedule_t *schedule)
{
    return flash_ring_rank(&schedule->ring, 0);
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

flash_step_t flash_schedule_step(const flash_schedule_t *schedule, uint32_t step)
{
    bool reduces = flash_schedule_reduces(schedule->kind);

    if (flash_schedule_exchanges(schedule->kind)) {
        return exchanging_step(schedule, step);
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

/* ------------------------------------------------------------ how it is cut */

/* The blocks among which one is, and its number there. */
static const flash_blocks_t *blocks_of(const flash_schedule_t *schedule, uint32_t *block)
{
    if (is_alltoall(schedule) && *block >= schedule->ring.nranks) {
        *block -= schedule->ring.nranks;
        return &schedule->out;
    }
    return &schedule->blocks;
}

size_t flash_schedule_count(const flash_schedule_t *schedule, uint32_t block)
{
    const flash_blocks_t *blocks = blocks_of(schedule, &block);

    return blocks->counts == NULL ? blocks->count : blocks->counts[block];
}

ptrdiff_t flash_schedule_displ(const flash_schedule_t *schedule, uint32_t block)
{
    const flash_blocks_t *blocks = blocks_of(schedule, &block);

    return blocks->displs == NULL ? (ptrdiff_t) (block * blocks->count) : blocks->displs[block];
}

static size_t divide_up(size_t a, size_t b)
{
    return a / b + (a % b != 0);
}

/* Where part k begins when `total` is cut into `parts` of nearly equal length. */
static size_t part_begin(size_t total, uint32_t parts, uint32_t k)
{
    size_t whole = total / parts, rest = total % parts;

    return whole * k + (k < rest ? k : rest);
}

/* The least whole number whose square is not less than the product; or `most`, where that is less. */
static size_t square_root(size_t one, size_t other, size_t most)
{
    size_t below = 0, root = most;

    if (other > most || one > most / other * most) {
        return most;
    }
    while (root - below > 1) {
        size_t middle = below + (root - below) / 2;

        if (middle * middle < one * other) {
            below = middle;
        } else {
            root = middle;
        }
    }
    return root;
}

/*
 * A piece of more elements never wants shorter segments: flash_schedule_max_segment() relies on
 * that.
 */
static size_t wanted_segment(const flash_schedule_t *schedule, size_t piece)
{
    size_t least = schedule->segment_elements, longest = schedule->longest_segment, wanted;

    if (longest <= least) {
        return least;
    }
    wanted = schedule->square > 0 ? square_root(piece, schedule->square, longest)
                                  : divide_up(piece, schedule->parts);
    wanted = wanted < longest ? wanted : longest;
    return wanted > least ? wanted : least;
}

flash_split_t flash_schedule_split(const flash_schedule_t *schedule, uint32_t block)
{
    flash_split_t split = {.count = flash_schedule_count(schedule, block),
                           .row = schedule->row,
                           .segments_per_piece = 1};

    split.rows = divide_up(split.count, split.row);
    split.pieces = schedule->pieces < split.rows ? schedule->pieces : (uint32_t) split.rows;
    if (split.pieces > 0) {
        size_t longest = divide_up(split.rows, split.pieces) * split.row;

        if (longest > split.count) {
            longest = split.count;
        }
        split.segments_per_piece = (uint32_t) divide_up(longest, wanted_segment(schedule, longest));
    }
    return split;
}

uint32_t flash_split_segments(const flash_split_t *split)
{
    return split->pieces == 0 ? 1 : split->pieces * split->segments_per_piece;
}

flash_range_t flash_split_piece(const flash_split_t *split, uint32_t piece)
{
    flash_range_t range = {0, 0};

    if (split->pieces > 0) {
        size_t end = part_begin(split->rows, split->pieces, piece + 1) * split->row;

        range.offset = part_begin(split->rows, split->pieces, piece) * split->row;
        range.count = (end < split->count ? end : split->count) - range.offset;
    }
    return range;
}

flash_range_t flash_split_segment(const flash_split_t *split, uint32_t segment)
{
    uint32_t parts = split->segments_per_piece;
    flash_range_t piece = flash_split_piece(split, segment / parts);
    size_t begin = part_begin(piece.count, parts, segment % parts);

    return (flash_range_t){piece.offset + begin,
                           part_begin(piece.count, parts, segment % parts + 1) - begin};
}

/*
 * Equal blocks are all alike, so that one stands for all: the loops below take constant time
 * for them. (An all-to-all's go out as they come in.)
 */
static bool alike(const flash_schedule_t *schedule)
{
    return schedule->blocks.counts == NULL;
}

static uint32_t distinct_blocks(const flash_schedule_t *schedule)
{
    return alike(schedule) ? 1 : flash_schedule_blocks(schedule);
}

uint64_t flash_schedule_pieces(const flash_schedule_t *schedule, flash_walk_t walk)
{
    uint32_t length = flash_schedule_length(schedule, walk);
    uint32_t distinct = alike(schedule) ? 1 : length;
    uint64_t total = 0;

    for (uint32_t at = 0; at < distinct; at++) {
        total += flash_schedule_split(schedule, flash_schedule_block(schedule, walk, at)).pieces;
    }
    return total * (length / distinct);
}

size_t flash_schedule_max_segment(const flash_schedule_t *schedule)
{
    size_t piece = flash_schedule_max_piece(schedule), wanted = wanted_segment(schedule, piece);

    return piece < wanted ? piece : wanted;
}

size_t flash_schedule_max_piece(const flash_schedule_t *schedule)
{
    uint32_t distinct = distinct_blocks(schedule);
    size_t longest = 0;

    for (uint32_t block = 0; block < distinct; block++) {
        flash_split_t split = flash_schedule_split(schedule, block);
        size_t count = flash_split_piece(&split, 0).count; /* the first piece is never shorter */

        longest = count > longest ? count : longest;
    }
    return longest;
}

uint32_t flash_schedule_max_segments(const flash_schedule_t *schedule)
{
    uint32_t distinct = distinct_blocks(schedule), most = 1;

    for (uint32_t block = 0; block < distinct; block++) {
        flash_split_t split = flash_schedule_split(schedule, block);
        uint32_t segments = flash_split_segments(&split);

        most = segments > most ? segments : most;
    }
    return most;
}

uint64_t flash_schedule_segments(const flash_schedule_t *schedule)
{
    uint32_t distinct = distinct_blocks(schedule);
    uint64_t total = 0;

    for (uint32_t block = 0; block < distinct; block++) {
        flash_split_t split = flash_schedule_split(schedule, block);

        total += flash_split_segments(&split);
    }
    return total * (flash_schedule_blocks(schedule) / distinct);
}
