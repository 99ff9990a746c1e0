/*
 * flash_stager.h: operations on the memory of GPUs, which go through pinned memory of the host.
 *
 * Knows no MPI, and GPUs by flash_gpu.h alone, whose plugin it loads once a buffer needs it.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef FLASH_STAGER_H
#define FLASH_STAGER_H

#include <stdbool.h>
#include <stddef.h>

#include "flash_progress.h"

typedef struct flash_stager flash_stager_t; /* one operation's */

#define FLASH_STAGER_REASON_MAX 256

/*
 * For an operation with an input or an output, or both, in a device's memory; NULL: not in one, or
 * none. `plugin` is the path of the plugin. NULL if that is not possible, and why.
 */
flash_stager_t *flash_stager_open(flash_progress_t *progress, const char *plugin, const void *input,
                                  const void *output, char *reason);
/* Of an operation that is complete, or was never started. NULL: does nothing. */
void flash_stager_close(flash_stager_t *stager);
/* Has the operation staged. */
void flash_stager_fill(flash_stager_t *stager, flash_op_params_t *params);
/* Copies to or from the memory of one of its buffers, and waits for it. */
bool flash_stager_copy(const flash_stager_t *stager, void *to, const void *from, size_t size);
/* What the driver last refused, and why. */
const char *flash_stager_complaint(void);
/* Frees what operations have left for each other, once there are no more of them. */
void flash_stager_fini(void);

#endif /* FLASH_STAGER_H */
