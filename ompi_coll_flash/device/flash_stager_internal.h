/*
 * flash_stager_internal.h: what the stager's files share: flash_stager.c has the plugin, operations
 * and copies, flash_stager_memory.c the memory that they take.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef FLASH_STAGER_INTERNAL_H
#define FLASH_STAGER_INTERNAL_H

#include "device/flash_stager.h"

#include "engine/flash_pool.h"

struct flash_stager {
    flash_progress_t *progress;
    flash_gpu_lane_t *input, *output; /* NULL: that one is the host's. May be the same */
    void *stream;                     /* the application's, of an operation that has one */
    bool stages_in; /* what `input` is for; else it is there for the stream alone */
    bool produces;
    const flash_gpu_kernel_t *kernel; /* for sums; or NULL */
    flash_loan_t scratch, failed_ranks;
    flash_loan_t store; /* of the device: sums that wait to be sent */
    void *pieces;       /* of the device, where a producer writes; or NULL */
};

/* NULL: no plugin has been loaded. */
const flash_gpu_ops_t *flash_stager_gpu(void);
/* For copies to or from the memory of its input, or of its output. */
flash_gpu_lane_t *flash_stager_lane(const flash_stager_t *stager, bool input);
/* For flash_op_params_t. */
int flash_stager_begin_work(void *arg, const flash_work_t *work);

/* With the plugin's functions, before anybody is given them. */
void flash_stager_make_pools(const flash_gpu_ops_t *gpu, size_t keeps);
void flash_stager_clear_pools(void);

#endif /* FLASH_STAGER_INTERNAL_H */
