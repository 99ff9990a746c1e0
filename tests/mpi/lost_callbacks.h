/*
 * lost_callbacks.h: calls with callbacks, in which the victim dies or a piece stays pending.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef LOST_CALLBACKS_H
#define LOST_CALLBACKS_H

#include <stdbool.h>

#include <mpi.h>

/* The calls, on the buffers of lost_calls.h. */
int lost_gather_compute(MPI_Request *request);
int lost_reduce_compute(MPI_Request *request);

/*
 * Before each operation. `hold`: its callbacks leave their first piece pending. dies_in: the
 * callback, counted from 1, in which this process dies; 0: none.
 */
void lost_callbacks_begin(bool hold, int dies_in);
/* Waits for an operation that holds a piece. Until the piece is let go, it cannot end. */
int lost_wait_holding(MPI_Request *request);

#endif /* LOST_CALLBACKS_H */
