/*
 * coll_compute.h: a computation of a given length: so much work, or so much time.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef COLL_COMPUTE_H
#define COLL_COMPUTE_H

typedef enum coll_compute_kind {
    COLL_WORK,  /* what takes so long where nothing else uses the core, and longer elsewhere: what
                   communication takes from it shows */
    COLL_CLOCK, /* keeps the core until the time is over, as in the OSU benchmarks: what
                   communication takes from it does not show */
    COLL_SLEEP  /* leaves the core for so long, as while an accelerator computes */
} coll_compute_kind_t;

/* Finds out how much work takes how long, on all ranks at a time. Collective over MPI_COMM_WORLD.
 */
void coll_compute_calibrate(void);

void coll_compute(double seconds, coll_compute_kind_t kind);

#endif /* COLL_COMPUTE_H */
