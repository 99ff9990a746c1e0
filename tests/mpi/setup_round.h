/*
 * setup_round.h: calls of all kinds on a communicator that its first calls set up, and calls of other
 * kinds in between.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef SETUP_ROUND_H
#define SETUP_ROUND_H

#include "mpitest.h"
#include "persistent.h"

enum { SETUP_COUNT = 16384 }; /* ints of a block */

/* What a round of calls sends and receives. */
typedef struct setup_round {
    MPI_Comm comm;
    int rank, size, salt;
    int *counts, *displs; /* of calls with counts */
    int *sent, *spread, *gathered, *again, *exchanged, *exchanged_again, *reduced, *block, *passed,
        *collected, *collected_again, *dealt, *summed;
    int scanned;
    MPI_Request requests[13];
    int calls;
} setup_round_t;

int *setup_ints(size_t count);
void setup_open_round(setup_round_t *round, MPI_Comm comm, int salt);
/* None of them may wait for another rank. */
void setup_call_all(setup_round_t *round);
/* Waits, and checks the results. */
void setup_end_round(setup_round_t *round);
/* All of that. The rank `late` makes its calls when all others say that they have made theirs; none: -1. */
void setup_run_round(MPI_Comm comm, int late, int salt);

#endif /* SETUP_ROUND_H */
