/*
 * unequal.h: calls of MPI_Igatherv and MPI_Iscatterv, and what their buffers must hold.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef UNEQUAL_H
#define UNEQUAL_H

#include "typed.h"

enum { UNEQUAL_RANKS = 16, UNEQUAL_OWN_WAY = -1 };

/* How long the block of a rank is. */
typedef enum unequal_shape {
    UNEQUAL_ALIKE,
    UNEQUAL_MIXED, /* some are empty, some short, some have the length */
    UNEQUAL_LONE,  /* one rank has a long block, and nobody else has any */
    UNEQUAL_OWN,   /* the root alone has a block */
    UNEQUAL_EMPTY, /* the root's is empty */
    UNEQUAL_SHORT, /* one rank has a long block, all others short ones */
    UNEQUAL_SHAPES
} unequal_shape_t;

/* The root has all blocks, by a type of its own, and each rank one of them. */
typedef struct unequal {
    bool gathers; /* or scatters */
    unequal_shape_t shape;
    typed_t all, one;
    int units, root; /* units of a long block */
    bool persistent, in_place;
    bool apart; /* on a communicator that is made and freed again */
    unsigned salt;
} unequal_t;

/* The root's counts and places of all blocks, in elements from `first` on. */
typedef struct unequal_blocks {
    int counts[UNEQUAL_RANKS], displs[UNEQUAL_RANKS], elements, first;
} unequal_blocks_t;

/* A buffer, and what all of it must hold in the end. */
typedef struct unequal_image {
    unsigned char *memory, *wanted;
    size_t bytes;
} unequal_image_t;

/* Units of a rank's block. */
int unequal_units(const unequal_t *call, int rank);
/* Its types; UNEQUAL_OWN_WAY: another one on each rank. */
void unequal_types(unequal_t *call, int signature, int all_way, int one_way);

/* What there is of a call between its beginning and its end. */
typedef struct unequal_run {
    unequal_t *call;
    unequal_blocks_t blocks;
    unequal_image_t all, one;
    MPI_Comm comm;
    MPI_Request request;
} unequal_run_t;

/* Of a call with types: makes its buffers. */
unequal_run_t unequal_prepare(unequal_t *call, MPI_Comm comm);
/* Fills them, of a round, and starts it; a persistent request is made by the first one. */
void unequal_start(unequal_run_t *run, unsigned round);
/* Waits, and compares all of the buffers. */
void unequal_end(unequal_run_t *run, unsigned round);
void unequal_free(unequal_run_t *run);
/* All of that, or three rounds. */
void unequal_run(unequal_t *call, int signature, int all_way, int one_way);

#endif /* UNEQUAL_H */
