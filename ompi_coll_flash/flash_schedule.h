/*
 * flash_schedule.h: which block, which piece, which segment, in which step. Pure arithmetic.
 *
 * N ranks stand in a ring, each sends to its right neighbour and receives from its left. There are
 * N steps; in each, the rank at place p handles the block of the rank at another place:
 *
 *   Flash-AG (allgather)       step i: place (p - i) mod N, the own block first
 *   Flash-RS (reduce-scatter)  step i: place (p - 1 - i) mod N, the own block last
 *
 * In step i > 0 a rank receives that block (AG) or the partial sum of it (RS) from the left; in
 * step i < N - 1 it sends the block or the sum on to the right (arXiv 2604.24013).
 *
 * A block is cut twice. *Pieces* are what the user's callback sees: a whole number of rows.
 * *Segments* are what travels: each piece is cut into equally many segments of nearly equal
 * length, sized for the wire and the cache, apart from the pieces (as in FLUX, arXiv 2406.06858).
 * An empty block has no pieces, but one empty segment, so that each step has a message and
 * ranks that disagree about sizes notice instead of waiting forever.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef FLASH_SCHEDULE_H
#define FLASH_SCHEDULE_H

#include <stddef.h>
#include <stdint.h>

typedef enum flash_kind { FLASH_ALLGATHER, FLASH_REDUCE_SCATTER } flash_kind_t;

/* Where this rank stands among the others. */
typedef struct flash_ring {
    uint32_t nranks; /* at least 2 */
    uint32_t place;  /* this rank's */
    const uint32_t
        *ranks; /* from place 0 on, the caller's; NULL: each at the place of its number */
} flash_ring_t;

/*
 * The blocks of all ranks: equal ones (counts == NULL) one after another, or as the arrays say.
 * Lengths and places are in elements. The arrays belong to the caller and outlive the schedule.
 */
typedef struct flash_blocks {
    size_t count;            /* elements in each block, if counts is NULL */
    const size_t *counts;    /* elements in each block, or NULL */
    const ptrdiff_t *displs; /* where each block begins, or NULL: equal blocks in rank order */
} flash_blocks_t;

typedef struct flash_schedule {
    flash_kind_t kind;
    flash_ring_t ring;
    uint32_t pieces;         /* wanted pieces to a block, at least 1 */
    size_t row;              /* elements that no piece separates, at least 1 */
    size_t segment_elements; /* wanted elements in a segment, at least 1 */
    flash_blocks_t blocks;
} flash_schedule_t;

/* How one block is cut. Segment s belongs to piece s / segments_per_piece. */
typedef struct flash_split {
    size_t count;
    size_t row;
    size_t rows;                 /* whole and broken rows in the block */
    uint32_t pieces;             /* 0 for an empty block */
    uint32_t segments_per_piece; /* at least 1 */
} flash_split_t;

typedef struct flash_range {
    size_t offset, count; /* in elements of the block */
} flash_range_t;

/* The rank that stands `ahead` places to the right: 0 is this one, nranks - 1 its left neighbour.
 */
uint32_t flash_ring_rank(const flash_ring_t *ring, uint32_t ahead);

uint32_t flash_schedule_block(const flash_schedule_t *schedule, uint32_t step);
size_t flash_schedule_count(const flash_schedule_t *schedule, uint32_t block);
ptrdiff_t flash_schedule_displ(const flash_schedule_t *schedule, uint32_t block);
flash_split_t flash_schedule_split(const flash_schedule_t *schedule, uint32_t block);

/* The sum of the pieces of all blocks. Takes time proportional to the number of ranks. */
uint64_t flash_schedule_total_pieces(const flash_schedule_t *schedule);

/* The longest piece and the most segments of any block. */
size_t flash_schedule_max_piece(const flash_schedule_t *schedule);
uint32_t flash_schedule_max_segments(const flash_schedule_t *schedule);

uint32_t flash_split_segments(const flash_split_t *split); /* at least 1 */
flash_range_t flash_split_piece(const flash_split_t *split, uint32_t piece);
flash_range_t flash_split_segment(const flash_split_t *split, uint32_t segment);

#endif /* FLASH_SCHEDULE_H */
