/*
 * setup_beside.h: what a thread of the program does while flash opens UCX in another one: it handles a
 * signal, and on rank 1 sets a variable of the environment.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef SETUP_BESIDE_H
#define SETUP_BESIDE_H

#include "mpitest.h"

#define SETUP_BESIDE "FLASH_TEST_BESIDE"

/* Whether it has done so, and handles the signal still. */
bool setup_beside_handles(void);

#endif /* SETUP_BESIDE_H */
