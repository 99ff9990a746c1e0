/*
 * coll_measure.h: times a collective at one size, on flash and on Open MPI's own component in turn.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef COLL_MEASURE_H
#define COLL_MEASURE_H

#include "bench_counters.h"
#include "bench_stats.h"
#include "coll_operation.h"
#include "coll_options.h"

/* Seconds; of the maximum over ranks, over the iterations. */
typedef struct coll_times {
    bench_stats_t
        alone; /* the call and MPI_Wait, or the blocking call (--blocking: flash's, too) */
    /* The call, a computation that takes as long as `alone`, MPI_Wait: all of it, and its parts. */
    bench_stats_t overall, start, test, wait;
    bench_stats_t compute; /* the same computation alone */
    bench_stats_t floor;   /* and under a call that moves nothing: of flash's side, with --floor */
    /* But for `alone`, no numbers with --alone. */
} coll_times_t;

/*
 * The sides that take turns. Each has buffers of its own, data[side]: what a call leaves in the
 * caches of other ranks the next one with the same memory has to take back from there, and which
 * lines those are differs from one way to the other. With the same memory, each would pay for the
 * one before it.
 */
typedef enum coll_side { COLL_FLASH, COLL_OWN, COLL_BLOCKING, COLL_SIDES } coll_side_t;

/* How many of them are measured. */
int coll_sides(const coll_options_t *options);

typedef struct coll_row {
    size_t bytes, total_bytes; /* the size; of all blocks */
    int iterations;
    coll_times_t times[COLL_SIDES]; /* on rank 0; COLL_BLOCKING: Open MPI's own, `alone` only */
    bench_counters_t flash; /* of rank 0, in COLL_FLASH's calls under computation, or alone with
                               --alone */
    long wrong;             /* results, on all ranks */
} coll_row_t;

/*
 * Calls of all sides for a fraction of a second, before the first size is measured: while a job
 * starts, its launcher still needs the cores.
 */
void coll_warm_up(coll_data_t data[], const coll_options_t *options, MPI_Comm flash, MPI_Comm own);

/*
 * Measures the size that all of `data` has been shaped for. Collective. flash serves the one
 * communicator, Open MPI's own component the other.
 */
void coll_measure(coll_data_t data[], const coll_options_t *options, MPI_Comm flash, MPI_Comm own,
                  coll_row_t *row);

/* What the OSU benchmarks call overlap, in percent. */
double coll_overlap(const coll_times_t *times);

#endif /* COLL_MEASURE_H */
