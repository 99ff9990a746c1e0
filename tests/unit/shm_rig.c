/*
 * shm_rig.c: see shm_rig.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "shm_rig.h"

#include <stdlib.h>
#include <string.h>

#include "prng.h"

static uint64_t value(const shm_plan_t *plan, uint32_t from, uint32_t block, size_t at)
{
    return prng_mix(plan->seed + from * UINT64_C(1000003) + block * UINT64_C(10007) + at);
}

static int combine(void *arg, const void *in, void *inout, size_t count)
{
    const uint64_t *from = in;
    uint64_t *to = inout;

    (void) arg;
    for (size_t k = 0; k < count; k++) {
        to[k] = to[k] * 31 + from[k];
    }
    return FLASH_OK;
}

static uint64_t sum(const shm_plan_t *plan, uint32_t nranks, uint32_t block, size_t at)
{
    uint64_t result = value(plan, (block + 1) % nranks, block, at);

    for (uint32_t k = 2; k <= nranks; k++) {
        result = result * 31 + value(plan, (block + k) % nranks, block, at);
    }
    return result;
}

shm_plan_t shm_plan(uint64_t *random, uint32_t nranks)
{
    static const size_t lengths[] = {0, 1, 2, 7, 1000, 8191, 8192, 8193, 70000};
    shm_plan_t plan = {.kind = prng_percent(random, 50) ? FLASH_ALLGATHER : FLASH_REDUCE_SCATTER,
                       .equal = prng_percent(random, 50),
                       .seed = prng_next(random),
                       .hidden = prng_percent(random, 30) ? prng_below(random, 256) : 0};
    ptrdiff_t next = 0;

    for (uint32_t rank = 0; rank < nranks; rank++) {
        uint32_t most = prng_percent(random, 80) ? 6 : sizeof(lengths) / sizeof(lengths[0]);

        plan.counts[rank] =
            plan.equal && rank > 0 ? plan.counts[0] : lengths[prng_below(random, most)];
        plan.displs[rank] = next;
        next += (ptrdiff_t) plan.counts[rank];
    }
    return plan;
}

static size_t elements(const shm_plan_t *plan, uint32_t nranks)
{
    return (size_t) plan->displs[nranks - 1] + plan->counts[nranks - 1];
}

flash_op_params_t shm_params(shm_call_t *call, const shm_plan_t *plan, uint32_t nranks,
                             uint32_t rank)
{
    size_t all = elements(plan, nranks), own = plan->counts[rank];
    bool gathers = plan->kind == FLASH_ALLGATHER;
    flash_op_params_t params = {
        .schedule = {.kind = plan->kind, .ring = {.nranks = nranks, .place = rank}},
        .element = sizeof(uint64_t),
        .combine = combine,
        .user = call};

    if (plan->equal) {
        params.schedule.blocks.count = plan->counts[0];
    } else {
        memcpy(call->counts, plan->counts, sizeof(call->counts));
        params.schedule.blocks.counts = call->counts;
        params.schedule.blocks.displs = plan->displs;
    }
    call->plan = plan;
    call->memory = malloc(((gathers ? own : all) + 2) * sizeof(uint64_t));
    call->input = call->memory + (plan->hidden >> rank & 1);
    call->output = calloc((gathers ? all : own) + 1, sizeof(uint64_t));
    for (uint32_t block = 0; block < nranks; block++) {
        for (size_t k = 0; k < plan->counts[block]; k++) {
            if (!gathers) {
                call->input[(size_t) plan->displs[block] + k] = value(plan, rank, block, k);
            } else if (block == rank) {
                call->input[k] = value(plan, rank, block, k);
            }
        }
    }
    params.input = call->input;
    params.output = call->output;
    return params;
}

bool shm_has_block(const shm_call_t *call, uint32_t block)
{
    const shm_plan_t *plan = call->plan;
    bool right = true;

    for (size_t k = 0; k < plan->counts[block]; k++) {
        right &= call->output[(size_t) plan->displs[block] + k] == value(plan, block, block, k);
    }
    return right;
}

bool shm_is_right(const shm_call_t *call, uint32_t nranks, uint32_t rank)
{
    const shm_plan_t *plan = call->plan;
    bool right = call->op.status == FLASH_OK;

    for (uint32_t block = 0; block < nranks; block++) {
        if (plan->kind == FLASH_ALLGATHER) {
            right &= shm_has_block(call, block);
        }
        for (size_t k = 0;
             plan->kind == FLASH_REDUCE_SCATTER && block == rank && k < plan->counts[block]; k++) {
            right &= call->output[k] == sum(plan, nranks, block, k);
        }
    }
    return right;
}

void shm_free_call(shm_call_t *call)
{
    free(call->memory);
    free(call->output);
    *call = (shm_call_t){.started = false};
}

int shm_read(void *arg, uint32_t rank, void *to, const void *from, size_t bytes)
{
    (void) arg;
    (void) rank;
    if ((uintptr_t) from % _Alignof(max_align_t) != 0) {
        return FLASH_ERR_UNREADABLE;
    }
    memcpy(to, from, bytes);
    return FLASH_OK;
}

flash_shm_side_t *shm_sides(uint32_t count)
{
    flash_shm_side_t *sides =
        aligned_alloc(_Alignof(flash_shm_side_t), count * sizeof(flash_shm_side_t));

    memset(sides, 0, count * sizeof(flash_shm_side_t));
    return sides;
}

void shm_collect(flash_shm_t *shm)
{
    flash_shm_op_t *op;

    while ((op = flash_shm_ended(shm)) != NULL) {
        ((shm_call_t *) op->params.user)->ended = true;
    }
}
