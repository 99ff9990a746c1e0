/*
 * shm_trio.c: see shm_trio.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "shm_trio.h"

#include <stdlib.h>

void trio_set_up(trio_t *trio, flash_kind_t kind, size_t count)
{
    flash_shm_side_t *sides[TRIO];

    *trio = (trio_t){.memory = shm_sides(TRIO), .plan = {.kind = kind, .equal = true, .seed = 5}};
    for (uint32_t rank = 0; rank < TRIO; rank++) {
        sides[rank] = &trio->memory[rank];
        trio->plan.counts[rank] = count;
        trio->plan.displs[rank] = (ptrdiff_t) (rank * count);
    }
    for (uint32_t rank = 0; rank < TRIO; rank++) {
        trio->shms[rank] = flash_shm_create(TRIO, rank, sides);
    }
}

void trio_tear_down(trio_t *trio)
{
    for (uint32_t rank = 0; rank < TRIO; rank++) {
        flash_shm_destroy(trio->shms[rank]);
        shm_free_call(&trio->calls[rank]);
    }
    free(trio->memory);
}

flash_op_params_t trio_begin(trio_t *trio, uint32_t rank)
{
    shm_free_call(&trio->calls[rank]);
    return shm_params(&trio->calls[rank], &trio->plan, TRIO, rank);
}

void trio_start(trio_t *trio, uint32_t rank, const flash_op_params_t *params)
{
    flash_shm_start(trio->shms[rank], &trio->calls[rank].op, params, trio->read_above);
}

bool trio_finish(trio_t *trio, uint32_t ranks)
{
    bool busy = true;

    for (int k = 0; k < 1000 && busy; k++) {
        busy = false;
        for (uint32_t rank = 0; rank < ranks; rank++) {
            flash_shm_progress(trio->shms[rank]);
            shm_collect(trio->shms[rank]);
            busy |= flash_shm_is_busy(trio->shms[rank]);
        }
    }
    return !busy;
}

bool trio_all_start_and_end(trio_t *trio)
{
    bool right;

    for (uint32_t rank = 0; rank < TRIO; rank++) {
        flash_op_params_t params = trio_begin(trio, rank);

        trio_start(trio, rank, &params);
    }
    right = trio_finish(trio, TRIO);
    for (uint32_t rank = 0; rank < TRIO; rank++) {
        right &= shm_is_right(&trio->calls[rank], TRIO, rank);
    }
    return right;
}

void trio_set_up_reading(trio_t *trio, size_t count)
{
    trio_set_up(trio, FLASH_ALLGATHER, count);
    for (uint32_t rank = 0; rank < TRIO; rank++) {
        flash_shm_read_by(trio->shms[rank], shm_read, NULL);
    }
    trio->read_above = 0;
}

bool trio_ended_by_loss(trio_t *trio, uint32_t rank, uint32_t lost)
{
    shm_collect(trio->shms[rank]);
    return trio->calls[rank].ended && trio->calls[rank].op.status == FLASH_ERR_LOST &&
           trio->calls[rank].op.failed_rank == lost && !flash_shm_is_left(trio->shms[rank]);
}
