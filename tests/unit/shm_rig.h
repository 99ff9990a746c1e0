/*
 * shm_rig.h: random operations on shared-memory channels, and what must come of them.
 *
 * Results are compared with what each rank is known to have sent. Sums are made by an operation
 * that shows the order of its operands: the ring's.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef SHM_RIG_H
#define SHM_RIG_H

#include "shm/flash_shm.h"

enum { SHM_RANKS = 8 };

/* What all ranks know of an operation. */
typedef struct shm_plan {
    flash_kind_t kind;
    size_t counts[SHM_RANKS];
    ptrdiff_t displs[SHM_RANKS];
    bool equal; /* blocks of counts[0], one after another */
    uint64_t seed;
    uint32_t hidden; /* a bit for each rank: its input is not to be read by others */
} shm_plan_t;

/* One of a rank's. */
typedef struct shm_call {
    flash_shm_op_t op;
    const shm_plan_t *plan;
    size_t counts[SHM_RANKS];
    uint64_t *memory, *input, *output;
    bool started, ended;
} shm_call_t;

/* A random one. */
shm_plan_t shm_plan(uint64_t *random, uint32_t nranks);
/* With memory of the call's, which holds what the rank contributes. */
flash_op_params_t shm_params(shm_call_t *call, const shm_plan_t *plan, uint32_t nranks,
                             uint32_t rank);
/* Of one that has ended. */
/* Of an allgather, whether that block has come. */
bool shm_has_block(const shm_call_t *call, uint32_t block);
bool shm_is_right(const shm_call_t *call, uint32_t nranks, uint32_t rank);
void shm_free_call(shm_call_t *call);

/*
 * What ranks of one process read each other's memory with, see flash_shm_read_by(): what a plan
 * hides is FLASH_ERR_UNREADABLE, and told by its address.
 */
int shm_read(void *arg, uint32_t rank, void *to, const void *from, size_t bytes);

/* Of so many ranks, to be freed. */
flash_shm_side_t *shm_sides(uint32_t count);
/* Marks the calls that have ended. */
void shm_collect(flash_shm_t *shm);

#endif /* SHM_RIG_H */
