/*
 * coll_compute.h: a computation of a given length: so much work, or so long a sleep.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef COLL_COMPUTE_H
#define COLL_COMPUTE_H

#include <stdbool.h>

/* Finds out how much work takes how long, on all ranks at a time. Collective over MPI_COMM_WORLD.
 */
void coll_compute_calibrate(void);

/*
 * Work that takes `seconds` where nothing else uses the core, and longer where something does: what
 * communication takes from it shows. Or sleeps that long, as while an accelerator computes.
 */
void coll_compute(double seconds, bool sleep);

#endif /* COLL_COMPUTE_H */
