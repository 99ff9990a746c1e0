/*
 * test_schedule.c: what flash_schedule.h promises, over many shapes.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <string.h>

#include "prng.h"
#include "ring_schedule.h"
#include "tap.h"

#define MOST_RANKS 1000

/* --- which block in which step --- */

/* A walk comes to each block once, and to the own one in its place. */
static bool each_block_once(const flash_schedule_t *schedule, flash_walk_t walk, uint32_t own_at)
{
    unsigned char seen[2 * MOST_RANKS] = {0};
    uint32_t rank = schedule->ring.place;

    for (uint32_t at = 0; at < flash_schedule_length(schedule, walk); at++) {
        uint32_t block = flash_schedule_block(schedule, walk, at);

        if (block >= flash_schedule_blocks(schedule) || seen[block]++ > 0 ||
            (flash_schedule_rank(schedule, block) == rank) != (at == own_at)) {
            return false;
        }
    }
    return true;
}

/* All blocks are produced and consumed, or the own one. */
static bool walks_are_right(flash_kind_t kind, uint32_t nranks, uint32_t rank)
{
    flash_schedule_t schedule = ring(kind, nranks, rank);
    uint32_t produced = kind == FLASH_ALLGATHER ? 1 : nranks;
    uint32_t consumed = flash_schedule_scatters(kind) ? 1 : nranks;

    return flash_schedule_length(&schedule, FLASH_PRODUCED) == produced &&
           flash_schedule_length(&schedule, FLASH_CONSUMED) == consumed &&
           each_block_once(&schedule, FLASH_PRODUCED, produced - 1) &&
           each_block_once(&schedule, FLASH_CONSUMED, 0) &&
           flash_schedule_block(&schedule, FLASH_PRODUCED, produced - 1) ==
               flash_schedule_own_input(&schedule) &&
           flash_schedule_block(&schedule, FLASH_CONSUMED, 0) ==
               flash_schedule_own_result(&schedule);
}

/* What is sent is what is received, by the rank where it goes, and nothing else. */
static bool sent_is_received(flash_kind_t kind, uint32_t nranks, uint32_t rank)
{
    flash_schedule_t schedule = ring(kind, nranks, rank);
    uint32_t steps = flash_schedule_length(&schedule, FLASH_STEPS), sends = 0, receives = 0;

    for (uint32_t step = 0; step < steps; step++) {
        uint32_t to = (rank + flash_schedule_distance(&schedule, step)) % nranks;
        flash_schedule_t other = ring(kind, nranks, to);
        uint32_t then = step + 1, sent, received;

        receives += flash_schedule_step(&schedule, step).receives;
        if (!flash_schedule_step(&schedule, step).sends) {
            continue;
        }
        sends++;
        sent = flash_schedule_block(&schedule, FLASH_STEPS, step);
        received = flash_schedule_block(&other, FLASH_STEPS, then);
        if (then >= steps || !flash_schedule_step(&other, then).receives ||
            flash_schedule_distance(&other, then) != flash_schedule_distance(&schedule, step) ||
            (kind == FLASH_ALLTOALL ? sent != nranks + to || received != rank : sent != received)) {
            return false;
        }
    }
    return sends == receives;
}

/* What a rank contributes leaves or is added in the order of production; results likewise. */
static bool steps_follow_walks(flash_kind_t kind, uint32_t nranks, uint32_t rank)
{
    flash_schedule_t schedule = ring(kind, nranks, rank);
    uint32_t contributed = 0, delivered = kind == FLASH_ALLGATHER || kind == FLASH_ALLTOALL;

    for (uint32_t step = 0; step < flash_schedule_length(&schedule, FLASH_STEPS); step++) {
        uint32_t block = flash_schedule_block(&schedule, FLASH_STEPS, step);
        flash_step_t way = flash_schedule_step(&schedule, step);

        if ((way.contributes &&
             block != flash_schedule_block(&schedule, FLASH_PRODUCED, contributed++)) ||
            (way.delivers &&
             block != flash_schedule_block(&schedule, FLASH_CONSUMED, delivered++))) {
            return false;
        }
    }
    return contributed ==
               flash_schedule_length(&schedule, FLASH_PRODUCED) - (kind == FLASH_ALLTOALL) &&
           delivered == flash_schedule_length(&schedule, FLASH_CONSUMED);
}

static void test_ring(flash_kind_t kind, const char *name)
{
    bool walks = true, messages = true, orders = true, words = true;

    for (size_t k = 0; k < RING_SIZES; k++) {
        uint32_t n = ring_sizes[k];

        for (uint32_t rank = 0; rank < n; rank++) {
            flash_schedule_t schedule = ring(kind, n, rank);
            uint32_t first = kind == FLASH_ALLGATHER  ? rank
                             : kind == FLASH_ALLTOALL ? n + (rank + 1) % n
                                                      : (rank + n - 1) % n;

            walks &= walks_are_right(kind, n, rank);
            messages &= sent_is_received(kind, n, rank);
            orders &= steps_follow_walks(kind, n, rank);
            words &= flash_schedule_block(&schedule, FLASH_STEPS, 0) == first;
        }
    }
    ok(walks, "%s: each block once, the own block in its place", name);
    ok(messages, "%s: what is received is what another rank sent", name);
    ok(orders, "%s: blocks travel as they are produced, and arrive as they are consumed", name);
    ok(words, "%s: begins with the block that the paper says", name);
}

/* --- how a block is cut --- */

/* What one cut must hold; NULL or what does not. */
static const char *check_pieces(const flash_split_t *split, const flash_schedule_t *schedule)
{
    size_t at = 0, shortest = SIZE_MAX, longest = 0;

    for (uint32_t piece = 0; piece < split->pieces; piece++) {
        flash_range_t range = flash_split_piece(split, piece);
        size_t rows = (range.count + schedule->row - 1) / schedule->row;

        if (range.offset != at || range.count == 0) {
            return "pieces follow each other, none is empty";
        }
        if (range.offset % schedule->row != 0 ||
            (range.count % schedule->row != 0 && piece + 1 < split->pieces)) {
            return "no piece but the last breaks a row";
        }
        shortest = rows < shortest ? rows : shortest;
        longest = rows > longest ? rows : longest;
        at += range.count;
    }
    if (at != split->count) {
        return "the pieces are the block";
    }
    return split->pieces > 0 && longest > shortest + 1 ? "pieces are nearly equal" : NULL;
}

/* The segments of one piece: its range, `at` and what comes of it. */
static const char *check_piece_segments(const flash_split_t *split, uint32_t piece, size_t wanted)
{
    flash_range_t whole = flash_split_piece(split, piece);
    size_t at = whole.offset, shortest = SIZE_MAX, longest = 0;

    for (uint32_t k = 0; k < split->segments_per_piece; k++) {
        flash_range_t range = flash_split_segment(split, piece * split->segments_per_piece + k);

        if (range.offset != at) {
            return "segments follow each other";
        }
        at += range.count;
        shortest = range.count < shortest ? range.count : shortest;
        longest = range.count > longest ? range.count : longest;
    }
    if (at != whole.offset + whole.count) {
        return "the segments are the piece";
    }
    if (longest > shortest + 1) {
        return "segments of a piece differ by one at most";
    }
    return longest > wanted ? "no segment is longer than wanted" : NULL;
}

static const char *check_split(const flash_schedule_t *schedule, uint32_t block)
{
    flash_split_t split = flash_schedule_split(schedule, block);
    size_t rows = (split.count + schedule->row - 1) / schedule->row;
    flash_range_t range;
    const char *wrong;

    if (split.count != flash_schedule_count(schedule, block) || split.rows != rows ||
        split.pieces != (rows < schedule->pieces ? rows : schedule->pieces)) {
        return "as many pieces as wanted, or as there are rows";
    }
    if (split.pieces == 0) {
        range = flash_split_segment(&split, 0);
        return flash_split_segments(&split) != 1 || range.count != 0 || range.offset != 0
                   ? "an empty block is one empty segment"
                   : NULL;
    }
    if (flash_split_segments(&split) != split.pieces * split.segments_per_piece) {
        return "pieces have equally many segments";
    }
    wrong = check_pieces(&split, schedule);
    for (uint32_t piece = 0; piece < split.pieces && wrong == NULL; piece++) {
        wrong = check_piece_segments(&split, piece, schedule->segment_elements);
    }
    return wrong;
}

static void report(const char *name, const char *wrong, const flash_schedule_t *schedule,
                   size_t count)
{
    if (!ok(wrong == NULL, "%s", name)) {
        diag("not so: %s; count %zu, pieces %u, row %zu, segment %zu", wrong, count,
             schedule->pieces, schedule->row, schedule->segment_elements);
    }
}

/* All small shapes. */
static void test_small_splits(void)
{
    flash_schedule_t schedule = ring(FLASH_ALLGATHER, 2, 0);
    const char *wrong = NULL;
    size_t count = 0;

    for (unsigned k = 0; k < 41 * 8 * 7 * 12 && wrong == NULL; k++) {
        count = schedule.blocks.count = k % 41;
        schedule.pieces = 1 + k / 41 % 8;
        schedule.row = 1 + k / 41 / 8 % 7;
        schedule.segment_elements = 1 + k / 41 / 8 / 7;
        wrong = check_split(&schedule, k % 2);
    }
    report("all small cuts", wrong, &schedule, count);
}

/* An eighth of a piece, within the bounds. */
static void test_long_pieces(void)
{
    static const struct {
        size_t count;
        uint32_t pieces, segments;
        size_t longest;
    } cuts[] = {{1000, 1, 4, 256},    {2048, 1, 8, 256},    {2049, 1, 8, 257},
                {16384, 1, 8, 2048},  {32768, 1, 8, 4096},  {32769, 1, 9, 4096},
                {65536, 1, 16, 4096}, {65536, 4, 32, 2048}, {1, 1, 1, 1},
                {16384, 8, 64, 256}};
    flash_schedule_t schedule = ring(FLASH_ALLGATHER, 2, 0);
    bool so = true;

    schedule.segment_elements = 256;
    schedule.longest_segment = 4096;
    schedule.parts = FLASH_USUAL_PARTS;
    for (size_t k = 0; k < sizeof(cuts) / sizeof(cuts[0]) && so; k++) {
        flash_split_t split;

        schedule.blocks.count = cuts[k].count;
        schedule.pieces = cuts[k].pieces;
        split = flash_schedule_split(&schedule, 0);
        so = flash_split_segments(&split) == cuts[k].segments &&
             flash_schedule_max_segment(&schedule) == cuts[k].longest &&
             flash_split_segment(&split, 0).count <= cuts[k].longest;
        if (!so) {
            diag("%zu in %u pieces: %u segments, no longer than %zu", cuts[k].count, cuts[k].pieces,
                 flash_split_segments(&split), flash_schedule_max_segment(&schedule));
        }
    }
    ok(so, "long pieces have longer segments");
}

/* Sizes that do not fit in 32 bits. */
static void test_large_splits(uint64_t *random)
{
    flash_schedule_t schedule = ring(FLASH_REDUCE_SCATTER, 3, 1);
    const char *wrong = NULL;
    size_t count = 0;

    for (int k = 0; k < 300 && wrong == NULL; k++) {
        count = schedule.blocks.count = prng_next(random) >> (20 + prng_below(random, 44));
        schedule.pieces = 1 + prng_below(random, 300);
        schedule.row = 1 + (prng_next(random) >> (24 + prng_below(random, 40)));
        schedule.segment_elements = 1 + count / (1 + prng_below(random, 2000));
        wrong = check_split(&schedule, 2);
        if (flash_schedule_displ(&schedule, 2) != (ptrdiff_t) (2 * count)) {
            wrong = "equal blocks lie one after another";
        }
    }
    report("large cuts", wrong, &schedule, count);
}

/* --- what is summed over blocks --- */

static bool pieces_hold(const flash_schedule_t *schedule, flash_walk_t walk)
{
    uint64_t pieces = 0;

    for (uint32_t at = 0; at < flash_schedule_length(schedule, walk); at++) {
        uint32_t block = flash_schedule_block(schedule, walk, at);

        pieces += flash_schedule_split(schedule, block).pieces;
    }
    return flash_schedule_pieces(schedule, walk) == pieces;
}

static bool totals_hold(const flash_schedule_t *schedule)
{
    size_t longest = 0;
    uint32_t most = 0;

    for (uint32_t block = 0; block < flash_schedule_blocks(schedule); block++) {
        flash_split_t split = flash_schedule_split(schedule, block);
        uint32_t segments = flash_split_segments(&split);

        most = segments > most ? segments : most;
        for (uint32_t piece = 0; piece < split.pieces; piece++) {
            size_t count = flash_split_piece(&split, piece).count;

            longest = count > longest ? count : longest;
        }
    }
    return pieces_hold(schedule, FLASH_STEPS) && pieces_hold(schedule, FLASH_PRODUCED) &&
           pieces_hold(schedule, FLASH_CONSUMED) && flash_schedule_max_piece(schedule) == longest &&
           flash_schedule_max_segments(schedule) == most;
}

static flash_schedule_t random_schedule(uint64_t *random)
{
    flash_schedule_t schedule =
        ring(prng_below(random, FLASH_KINDS), 2 + prng_below(random, 30), 0);

    schedule.pieces = 1 + prng_below(random, 6);
    schedule.row = 1 + prng_below(random, 5);
    schedule.segment_elements = 1 + prng_below(random, 20);
    schedule.blocks.count = schedule.out.count = prng_below(random, 60);
    return schedule;
}

static void test_totals(uint64_t *random)
{
    bool equal = true, unequal = true, same = true;

    for (int k = 0; k < 2000; k++) {
        flash_schedule_t schedule = random_schedule(random), arrays = schedule;
        uint32_t ranks = schedule.ring.nranks, blocks = flash_schedule_blocks(&schedule);
        size_t counts[64];
        ptrdiff_t displs[64];

        equal &= totals_hold(&schedule);
        for (uint32_t block = 0; block < blocks; block++) {
            counts[block] = schedule.blocks.count;
            displs[block] = (ptrdiff_t) (block % ranks * schedule.blocks.count);
        }
        arrays.blocks = (flash_blocks_t){.count = 12345, .counts = counts, .displs = displs};
        arrays.out =
            (flash_blocks_t){.count = 12345, .counts = counts + ranks, .displs = displs + ranks};
        for (uint32_t block = 0; block < blocks; block++) {
            flash_split_t a = flash_schedule_split(&schedule, block);
            flash_split_t b = flash_schedule_split(&arrays, block);

            same &= a.count == b.count && a.row == b.row && a.rows == b.rows &&
                    a.pieces == b.pieces && a.segments_per_piece == b.segments_per_piece &&
                    flash_schedule_displ(&schedule, block) == flash_schedule_displ(&arrays, block);
        }
        same &= totals_hold(&arrays);
        for (uint32_t block = 0; block < blocks; block++) {
            counts[block] = prng_percent(random, 30) ? 0 : prng_below(random, 60);
        }
        unequal &= totals_hold(&arrays);
    }
    ok(equal, "totals of equal blocks");
    ok(same, "arrays of equal blocks say the same as one number");
    ok(unequal, "totals of unequal blocks, empty ones among them");
}

int main(int argc, char **argv)
{
    uint64_t random = tap_seed(argc, argv);

    test_ring(FLASH_ALLGATHER, "allgather");
    test_ring(FLASH_REDUCE_SCATTER, "reduce-scatter");
    test_ring(FLASH_ALLREDUCE, "allreduce");
    test_ring(FLASH_ALLTOALL, "all-to-all");
    test_ring(FLASH_PAIRWISE_REDUCE_SCATTER, "pairwise reduce-scatter");
    test_small_splits();
    test_long_pieces();
    test_large_splits(&random);
    test_totals(&random);
    return tap_done();
}
