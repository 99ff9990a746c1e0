/*
 * flash_schedule.h: which block, which piece, which segment, in which step. Pure arithmetic.
 *
 * N ranks stand in a ring. Three kinds of operation go around it: each rank sends to its right
 * neighbour and receives from its left one, and in each step the rank at place p handles the block
 * of the rank at another place:
 *
 *   Flash-AG (allgather)       step i < N: place (p - i) mod N, the own block first
 *   Flash-RS (reduce-scatter)  step i < N: place (p - 1 - i) mod N, the own block last
 *   allreduce                  step i < 2N - 1: likewise, so that the last N are an allgather
 *
 * In step i > 0 a rank receives that block, or the partial sum of it, from the left; in all steps
 * but the last it sends the block or the sum on to the right (arXiv 2604.24013).
 *
 * Two others know no ring but the order of the places, and exchange with each rank in turn:
 *
 *   Flash-A2A (all-to-all)     step i < 2(N - 1): even ones send to place p + 1 + i / 2,
 *                              odd ones receive from place p - 1 - i / 2
 *   pairwise reduce-scatter    step i < 2(N - 1): even ones send to place p - 1 - i / 2 what this
 *                              rank contributes to its block, odd ones receive from place
 *                              p + 1 + i / 2 what that one contributes to this rank's; and a last
 *                              one, in which this rank adds its own
 *
 * A pairwise reduce-scatter makes the same additions in the same order as a ring, all of them where
 * the result is to be.
 *
 * Two are halves of an all-to-all: the root alone receives, or the root alone sends. The root takes
 * N - 1 steps, each other rank one:
 *
 *   gather                     step i of the root: it receives from place p - 1 - i; all others send
 *                              their blocks to the root
 *   scatter                    step i of the root: it sends to place p + 1 + i; all others receive
 *                              their blocks from the root
 *
 * So each block crosses one link, and what bounds the time is the link of the root.
 *
 * An all-to-all has two blocks for each rank: the one that comes from it, which has its number, and
 * the one that goes to it, numbered N further on. The own ones do not travel.
 *
 * An all-to-all, a gather and a scatter may leave out steps (`taken` below): both ranks of a pair know
 * that nothing travels between them in that direction, and no message does. The block of such a step is
 * empty.
 *
 * Two kinds are chains: they have one block, whose number is 0, and one rank is the root. The block
 * goes once along the ring, and each rank takes one step, in which its segments follow each other:
 *
 *   broadcast                  from the root to the right, as far as to the root's left neighbour
 *   reduce                     from the root's right neighbour to the root: each rank adds what it
 *                              contributes to the partial sum of the ranks before it, the root last
 *
 * A root is told as a distance, which is the same whatever the places of the ring are called.
 *
 * A block is cut twice. *Pieces* are what the user's callback sees: a whole number of rows.
 * *Segments* are what travels: each piece is cut into equally many segments of nearly equal
 * length, sized for the wire and the cache, apart from the pieces (as in FLUX, arXiv 2406.06858).
 * Segments of long pieces are longer, since each costs messages and copies of a device's, and
 * eight of a piece are enough for one to be added or sent on while the next arrives. How a block
 * is cut depends on its length alone, which is what both who send it and who receive it know.
 * An empty block has no pieces, but one empty segment, so that each step that is taken has a
 * message and ranks that disagree about sizes notice instead of waiting forever.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef FLASH_SCHEDULE_H
#define FLASH_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where none is asked for: bytes of segments, and of long ones, and how many a long piece has. */
#define FLASH_USUAL_SEGMENT   ((size_t) 256 << 10)
#define FLASH_LONGEST_SEGMENT ((size_t) 4 << 20)
#define FLASH_USUAL_PARTS     8

typedef enum flash_kind {
    FLASH_ALLGATHER,
    FLASH_REDUCE_SCATTER,
    FLASH_ALLREDUCE,
    FLASH_ALLTOALL,
    FLASH_BCAST,
    FLASH_REDUCE,
    FLASH_GATHER,
    FLASH_SCATTER,
    FLASH_PAIRWISE_REDUCE_SCATTER
} flash_kind_t;
#define FLASH_KINDS 9

/* The orders in which an operation goes through blocks. */
typedef enum flash_walk {
    FLASH_STEPS,    /* as they travel */
    FLASH_PRODUCED, /* as this rank may compute what it contributes: the own block last */
    FLASH_CONSUMED  /* as it may use the results: the own block first */
} flash_walk_t;

/* The most ranks among which ranks exchange with each other. */
#define FLASH_EXCHANGE_RANKS 4096

/* Steps of an exchange, a bit for each. */
typedef struct flash_steps {
    uint64_t bits[2 * FLASH_EXCHANGE_RANKS / 64];
} flash_steps_t;

static inline bool flash_steps_has(const flash_steps_t *steps, uint32_t step)
{
    return (steps->bits[step / 64] >> step % 64 & 1) != 0;
}

static inline void flash_steps_add(flash_steps_t *steps, uint32_t step)
{
    steps->bits[step / 64] |= UINT64_C(1) << step % 64;
}

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
    size_t segment_elements; /* least elements in a segment, at least 1 */
    size_t
        longest_segment; /* most elements; if it is not more than the above, that holds for all */
    uint32_t parts;      /* between these two, a piece has so many segments, at least 1, or, */
    size_t square;       /* if this is not 0, segments whose square is this times the piece */
    flash_blocks_t blocks;
    flash_blocks_t out; /* of an all-to-all: those that go to the ranks */
    uint32_t from_root; /* of a kind with a root: places from the root to the right as far as this
                           rank; 0: it is the root */
    /* Of an all-to-all, a gather or a scatter: the steps that are taken; NULL: all. The caller's, like
       the arrays. */
    const flash_steps_t *taken;
} flash_schedule_t;

/* What a rank does with a block in a step. */
typedef struct flash_step {
    bool receives;    /* it, or a partial sum of it */
    bool contributes; /* what this rank has of it; to what it receives, if it does */
    bool adds;        /* that, or what it receives, to a sum that stays here, in its turn */
    bool sends;       /* it on, or away */
    bool delivers;    /* it to the user: what the step ends with is a result */
} flash_step_t;

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
/*
 * How many places to the left a rank stands: 0 is this one. Takes time proportional to the ranks,
 * unless each stands at the place of its number.
 */
uint32_t flash_ring_distance(const flash_ring_t *ring, uint32_t rank);

/*
 * Whether ranks exchange with ranks at any distance; else, with their neighbours alone. Each does with
 * all others, unless there is a root, which does, and with which all others do.
 */
bool flash_schedule_exchanges(flash_kind_t kind);
/* Whether one block goes along the ring once. */
bool flash_schedule_chains(flash_kind_t kind);
bool flash_schedule_has_root(flash_kind_t kind);
bool flash_schedule_reduces(flash_kind_t kind);
/* Whether a rank contributes its own block alone, and whether its results are that. */
bool flash_schedule_gathers(flash_kind_t kind);
bool flash_schedule_scatters(flash_kind_t kind);

/* How many blocks there are, and how many a walk comes to: 0 where only the root has what it walks
 * through, and this rank is none. */
uint32_t flash_schedule_blocks(const flash_schedule_t *schedule);
uint32_t flash_schedule_length(const flash_schedule_t *schedule, flash_walk_t walk);
uint32_t flash_schedule_block(const flash_schedule_t *schedule, flash_walk_t walk, uint32_t at);
/* The rank whose a block is, or that it goes to; of a chain, the root. */
uint32_t flash_schedule_rank(const flash_schedule_t *schedule, uint32_t block);
/* The block of this rank's that it contributes to, and the one that is its result; of a chain, the
 * one block. */
uint32_t flash_schedule_own_input(const flash_schedule_t *schedule);
uint32_t flash_schedule_own_result(const flash_schedule_t *schedule);
flash_step_t flash_schedule_step(const flash_schedule_t *schedule, uint32_t step);
/* The steps of an all-to-all that send to the rank so many places to the right, or receive from the
   one as many places to the left. */
uint32_t flash_schedule_exchange_step(uint32_t distance, bool sends);
/* The root's step of a gather or a scatter that exchanges with the rank so many places to the right, of
   that many ranks. Each other rank has step 0 alone. */
uint32_t flash_schedule_roots_step(flash_kind_t kind, uint32_t ranks, uint32_t distance);
/* Whether the step at that place of the walk is taken, if the walk is one of steps. */
bool flash_schedule_takes(const flash_schedule_t *schedule, flash_walk_t walk, uint32_t at);
/* How far to the right the rank stands to which a step sends, and to the left the other. */
uint32_t flash_schedule_distance(const flash_schedule_t *schedule, uint32_t step);
/* Of a step that adds: how many have added to the sum before. */
uint32_t flash_schedule_turn(uint32_t step);

size_t flash_schedule_count(const flash_schedule_t *schedule, uint32_t block);
ptrdiff_t flash_schedule_displ(const flash_schedule_t *schedule, uint32_t block);
flash_split_t flash_schedule_split(const flash_schedule_t *schedule, uint32_t block);

/* The sum of the pieces of all blocks of a walk. Takes time proportional to their number, but for
 * equal blocks. */
uint64_t flash_schedule_pieces(const flash_schedule_t *schedule, flash_walk_t walk);

/*
 * The longest piece and the most segments of any block; and what its segments are no longer than.
 */
size_t flash_schedule_max_piece(const flash_schedule_t *schedule);
size_t flash_schedule_max_segment(const flash_schedule_t *schedule);
uint32_t flash_schedule_max_segments(const flash_schedule_t *schedule);
/* Those of all blocks together. */
uint64_t flash_schedule_segments(const flash_schedule_t *schedule);

uint32_t flash_split_segments(const flash_split_t *split); /* at least 1 */
flash_range_t flash_split_piece(const flash_split_t *split, uint32_t piece);
flash_range_t flash_split_segment(const flash_split_t *split, uint32_t segment);

#endif /* FLASH_SCHEDULE_H */
