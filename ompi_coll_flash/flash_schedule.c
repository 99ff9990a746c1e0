/*
 * flash_schedule.c: see flash_schedule.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "flash_schedule.h"

uint32_t flash_ring_rank(const flash_ring_t *ring, uint32_t ahead)
{
    uint32_t place = (uint32_t) (((uint64_t) ring->place + ahead) % ring->nranks);

    return ring->ranks == NULL ? place : ring->ranks[place];
}

uint32_t flash_schedule_block(const flash_schedule_t *schedule, uint32_t step)
{
    uint32_t behind = schedule->kind == FLASH_ALLGATHER ? step : step + 1; /* at most nranks */

    return flash_ring_rank(&schedule->ring, schedule->ring.nranks - behind);
}

size_t flash_schedule_count(const flash_schedule_t *schedule, uint32_t block)
{
    const flash_blocks_t *blocks = &schedule->blocks;

    return blocks->counts == NULL ? blocks->count : blocks->counts[block];
}

ptrdiff_t flash_schedule_displ(const flash_schedule_t *schedule, uint32_t block)
{
    const flash_blocks_t *blocks = &schedule->blocks;

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
        split.segments_per_piece = (uint32_t) divide_up(longest, schedule->segment_elements);
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
 * for them.
 */
static uint32_t distinct_blocks(const flash_schedule_t *schedule)
{
    return schedule->blocks.counts == NULL ? 1 : schedule->ring.nranks;
}

uint64_t flash_schedule_total_pieces(const flash_schedule_t *schedule)
{
    uint32_t distinct = distinct_blocks(schedule);
    uint64_t total = 0;

    for (uint32_t block = 0; block < distinct; block++) {
        total += flash_schedule_split(schedule, block).pieces;
    }
    return total * (schedule->ring.nranks / distinct);
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
