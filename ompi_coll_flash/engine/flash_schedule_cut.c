/*
 * flash_schedule_cut.c: how long blocks are, and how they are cut; see flash_schedule.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "engine/flash_schedule.h"

/* The blocks among which one is, and its number there. */
static const flash_blocks_t *blocks_of(const flash_schedule_t *schedule, uint32_t *block)
{
    if (schedule->kind == FLASH_ALLTOALL && *block >= schedule->ring.nranks) {
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

    if (length == 0) {
        return 0;
    }
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
