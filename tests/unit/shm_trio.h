/*
 * shm_trio.h: three ranks on shared-memory channels, of which one may go wrong.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef SHM_TRIO_H
#define SHM_TRIO_H

#include "shm_rig.h"

enum { TRIO = 3 };

typedef struct trio {
    flash_shm_side_t *memory;
    flash_shm_t *shms[TRIO];
    shm_call_t calls[TRIO];
    shm_plan_t plan;
    size_t read_above; /* bytes; SIZE_MAX: nothing is read */
} trio_t;

/* Of blocks of `count` elements; nothing is read. */
void trio_set_up(trio_t *trio, flash_kind_t kind, size_t count);
/* An allgather, whose blocks are read. */
void trio_set_up_reading(trio_t *trio, size_t count);
void trio_tear_down(trio_t *trio);

/* The next operation of a rank; `params` are what trio_begin() returns, or not quite that. */
flash_op_params_t trio_begin(trio_t *trio, uint32_t rank);
void trio_start(trio_t *trio, uint32_t rank, const flash_op_params_t *params);
/* The first `ranks` do what they can. False: that has no end. */
bool trio_finish(trio_t *trio, uint32_t ranks);
/* An operation of all, from its start to its end. Whether its results are right. */
bool trio_all_start_and_end(trio_t *trio);

/* Whether the rank's operation has ended because that other one is lost. */
bool trio_ended_by_loss(trio_t *trio, uint32_t rank, uint32_t lost);

#endif /* SHM_TRIO_H */
