/*
 * copies.h: copies of the plugin's that a test begins, and how they end. One thread polls.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef COPIES_H
#define COPIES_H

#include "device/flash_gpu.h"

extern const flash_gpu_ops_t *gpu; /* the test's */

extern int ended, failed; /* so many copies, since a test has set them to 0 */

/* For flash_gpu_copy_t. */
void copy_ended(flash_gpu_copy_t *copy, bool well);
/* Whether that many end, whichever way. */
bool all_end(int count);
/* A device's memory; ends the program if there is none. */
char *allocate(size_t bytes);

#endif /* COPIES_H */
