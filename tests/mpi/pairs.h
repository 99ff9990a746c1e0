/*
 * pairs.h: calls of MPI_Ialltoallv, and what their buffers must hold.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef PAIRS_H
#define PAIRS_H

#include "typed.h"

enum { PAIRS_CANARY = 0x5a, OWN_WAY = -1, MOST_RANKS = 16 };

/* How long the block from one rank to another is. */
typedef enum shape {
    EQUAL,
    MIXED,    /* some are empty, some short, some have the length */
    LONE,     /* one rank sends, and nobody else */
    OWN,      /* none travels */
    PAIR,     /* one rank sends to the one before it, and nobody else */
    NEIGHBOR, /* a long one to the next rank, short ones to all others */
    SHAPES
} shape_t;

typedef struct call {
    typed_t send, recv;
    shape_t shape;
    int units; /* of a long block */
    bool persistent, in_place;
    bool apart; /* on a communicator that is made and freed again */
    unsigned salt;
} call_t;

/* The counts and places of a side, in elements. */
typedef struct side {
    int counts[MOST_RANKS], displs[MOST_RANKS], elements;
} side_t;

/* Units of the block from one rank to another; in place, as many as the other way. */
int pairs_units(const call_t *call, int from, int to);
/* The blocks that leave this rank, or that arrive: from the last rank's on to the first one's, with an
   element between two. */
side_t pairs_side(const call_t *call, const typed_t *typed, bool leave);
/* Memory for all blocks of a side with a margin on both sides, all canaries. */
unsigned char *pairs_buffer(const typed_t *typed, const side_t *side, size_t *bytes);
/* Writes the blocks that leave this rank, or that have arrived at it. */
void pairs_write(const typed_t *typed, const side_t *side, unsigned char *buffer, bool leave,
                 unsigned salt);
/* A persistent request is made if it is MPI_REQUEST_NULL. */
void pairs_start(const call_t *call, const side_t *from, const void *send, const side_t *to,
                 void *recv, MPI_Comm comm, MPI_Request *request);
/* The types of a call; OWN_WAY: another one on each rank. */
void pairs_types(call_t *call, int signature, int send_way, int recv_way);
/* Makes the call, or three rounds of it, and compares all of the receive buffer. */
void pairs_run(call_t *call, int signature, int send_way, int recv_way);

#endif /* PAIRS_H */
