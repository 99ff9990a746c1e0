/*
 * flash_stager_memory.c: the memory that operations on devices' memory take: pinned, and of the
 * device.
 *
 * Shared between threads:
 *   pools    under `mutex`, which nobody has while the driver makes or frees memory
 *   context, and what pools are made of: written before the plugin's functions are given to anybody
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "device/flash_stager_internal.h"

#include <pthread.h>

/*
 * What operations on a device's memory have left for each other: making pinned memory takes
 * milliseconds, telling a network of it as long, and freeing it waits for the device.
 */
typedef struct pools {
    int device;
    flash_pool_t pinned, direct, ordinary;
} pools_t;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pools_t pools[FLASH_GPU_DEVICES];
static flash_context_t context;

/* --------------------------------------------------------------------- pools */

void flash_stager_make_pools(const flash_gpu_ops_t *gpu, size_t keeps)
{
    context = (flash_context_t){.enter = gpu->enter_home, .leave = gpu->leave_home};
    for (int device = 0; device < FLASH_GPU_DEVICES; device++) {
        pools_t *made = &pools[device];

        made->device = device;
        made->pinned = (flash_pool_t){.allocate = gpu->allocate_pinned,
                                      .release = gpu->release_pinned,
                                      .arg = &made->device,
                                      .largest = keeps};
        made->direct = (flash_pool_t){.allocate = gpu->allocate_direct,
                                      .release = gpu->release_direct,
                                      .arg = &made->device,
                                      .largest = keeps};
        flash_pool_init(&made->ordinary);
    }
}

void flash_stager_clear_pools(void)
{
    for (int device = 0; device < FLASH_GPU_DEVICES; device++) {
        flash_pool_clear(&pools[device].pinned);
        flash_pool_clear(&pools[device].direct);
        flash_pool_clear(&pools[device].ordinary);
    }
}

static pools_t *pools_of(const flash_stager_t *stager)
{
    return &pools[flash_stager_gpu()->device(flash_stager_lane(stager, false))];
}

static bool borrow(flash_pool_t *pool, size_t size, flash_loan_t *loan)
{
    pthread_mutex_lock(&mutex);
    loan->memory = flash_pool_take(pool, size, &loan->size);
    pthread_mutex_unlock(&mutex);
    if (loan->memory == NULL) {
        loan->size = size;
        loan->memory = pool->allocate(pool->arg, size);
    }
    loan->pool = loan->memory == NULL ? NULL : pool;
    return loan->memory != NULL;
}

static size_t round_up(size_t size, size_t step)
{
    return (size + step - 1) / step * step;
}

/*
 * Takes whole blocks, and up to a quarter more than `size`, so that there are few sizes: memory of
 * another operation fits sooner, and less is freed. A process that has mapped what is freed learns
 * of it only when other memory comes to lie there.
 */
static bool borrow_direct(flash_pool_t *pool, size_t size, flash_loan_t *loan)
{
    size_t step = FLASH_GPU_BLOCK;

    while (step <= size / 8) {
        step *= 2;
    }
    if (round_up(size, step) > pool->largest) {
        step = FLASH_GPU_BLOCK;
    }
    return borrow(pool, round_up(size, step), loan);
}

/* What is made and freed each time takes longer than copies from and to other memory. */
bool flash_stager_borrow(const flash_stager_t *stager, size_t size, flash_loan_t *loan)
{
    flash_pool_t *pool = &pools_of(stager)->pinned;

    return size <= pool->largest && borrow(pool, size, loan);
}

void flash_stager_repay(flash_loan_t *loan)
{
    if (loan->pool != NULL) {
        pthread_mutex_lock(&mutex);
        flash_pool_exchange(loan->pool, &loan->memory, &loan->size);
        pthread_mutex_unlock(&mutex);
        loan->pool->release(loan->pool->arg, loan->memory, loan->size);
    }
}

/* ------------------------------------------------------------ an operation's */

static int find_pieces(flash_stager_t *stager, flash_op_params_t *params)
{
    size_t size = flash_op_pieces_size(params);

    return size == 0 ? FLASH_OK : flash_stager_make_pieces(stager, size, &params->pieces);
}

static bool is_at_home(const flash_gpu_lane_t *lane, int device)
{
    return lane == NULL ||
           (flash_stager_gpu()->device(lane) == device && flash_stager_gpu()->is_at_home(lane));
}

/*
 * Takes the scratch, and the room for failed ranks, of device memory for the transport to reach.
 * That is not told of the application's memory: of its own there is little, and it stays, so that a
 * network's hardware learns of it once, and no call's memory is freed under it. A copy within the
 * device costs next to nothing. What would not be kept is not worth making.
 */
static bool find_direct(flash_stager_t *stager, flash_op_params_t *params)
{
    int device = flash_stager_gpu()->device(flash_stager_lane(stager, false));
    bool reduces = params->combine != NULL;
    size_t size = flash_op_scratch_size(params);

    if (size == 0 || round_up(size, FLASH_GPU_BLOCK) > pools[device].direct.largest ||
        (reduces && !params->combine_on_device) || !is_at_home(stager->input, device) ||
        !is_at_home(stager->output, device) ||
        !borrow_direct(&pools[device].direct, size, &stager->scratch)) {
        return false;
    }
    if (!borrow(&pools[device].pinned, flash_op_failed_ranks_size(params), &stager->failed_ranks) ||
        !flash_stager_gpu()->settle(device)) {
        flash_stager_repay(&stager->failed_ranks);
        flash_stager_repay(&stager->scratch);
        stager->failed_ranks = stager->scratch = (flash_loan_t){.pool = NULL};
        return false;
    }
    params->scratch = stager->scratch.memory;
    params->failed_ranks = stager->failed_ranks.memory;
    flash_progress_set_context(stager->progress, &context);
    return true;
}

/* Of the device that adds, and whose copies are the input's. */
static bool find_store(flash_stager_t *stager, flash_op_params_t *params)
{
    size_t size = flash_op_store_size(params);
    int device = size == 0 ? 0 : flash_stager_gpu()->device(stager->input);

    if (size > 0 && (!is_at_home(stager->input, device) ||
                     !borrow_direct(&pools[device].direct, size, &stager->store))) {
        return false;
    }
    params->store = stager->store.memory;
    return true;
}

size_t flash_stager_unkept(const flash_stager_t *stager)
{
    const flash_loan_t *loan = &stager->scratch;

    return loan->pool != NULL && loan->size > loan->pool->largest && flash_stager_pins(stager)
               ? loan->size
               : 0;
}

bool flash_stager_pins(const flash_stager_t *stager)
{
    return stager->scratch.pool != &pools_of(stager)->ordinary;
}

/*
 * A pairwise reduce-scatter keeps what all others contribute until its turn comes, which has no
 * bound. The host adds it: so it may lie in memory that is not pinned, to and from which copies
 * take longer.
 */
static flash_pool_t *find_pool(const flash_stager_t *stager, const flash_op_params_t *params,
                               size_t size)
{
    bool too_much = params->schedule.kind == FLASH_PAIRWISE_REDUCE_SCATTER && params->bound > 0 &&
                    size > params->bound;

    return too_much ? &pools_of(stager)->ordinary : &pools_of(stager)->pinned;
}

static int find_pinned(flash_stager_t *stager, flash_op_params_t *params)
{
    size_t size;

    if (!find_store(stager, params)) {
        params->combine_on_device = false; /* the host's sums wait in the host's memory */
    }
    size = flash_op_scratch_size(params);
    if (size > 0 && !borrow(find_pool(stager, params, size), size, &stager->scratch)) {
        return FLASH_ERR_NO_MEMORY;
    }
    params->scratch = stager->scratch.memory;
    return FLASH_OK;
}

/* Blocks that are told by displacements may lie in several allocations. */
static bool covers_blocks(const flash_stager_t *stager, const flash_op_params_t *params, bool input)
{
    const flash_schedule_t *schedule = &params->schedule;
    const char *base = input ? params->input : params->output;
    flash_walk_t walk = input ? FLASH_PRODUCED : FLASH_CONSUMED;
    uint32_t blocks = flash_schedule_length(schedule, walk);
    bool covers = true;

    for (uint32_t at = 0; at < blocks && covers; at++) {
        uint32_t block = flash_schedule_block(schedule, walk, at);

        covers = flash_schedule_count(schedule, block) == 0 ||
                 flash_stager_covers(stager, input,
                                     base + flash_schedule_displ(schedule, block) *
                                                (ptrdiff_t) params->element);
    }
    return covers;
}

/* The operation's sides in devices' memory that have a block for each rank. */
static bool covers_sides(const flash_stager_t *stager, const flash_op_params_t *params)
{
    const flash_schedule_t *schedule = &params->schedule;
    bool inputs = stager->stages_in && !flash_schedule_gathers(schedule->kind);
    bool outputs = stager->output != NULL && !flash_schedule_scatters(schedule->kind);

    return (schedule->blocks.displs == NULL && schedule->out.displs == NULL) ||
           ((!inputs || covers_blocks(stager, params, true)) &&
            (!outputs || covers_blocks(stager, params, false)));
}

int flash_stager_fill(flash_stager_t *stager, bool direct, flash_op_params_t *params)
{
    params->stage_in = stager->stages_in;
    params->stage_out = stager->output != NULL;
    params->combine_on_device = stager->kernel != NULL;
    params->begin = flash_stager_begin_work;
    params->begin_arg = stager;
    if (!covers_sides(stager, params)) {
        return FLASH_ERR_DEVICE;
    }
    if (stager->produces && find_pieces(stager, params) != FLASH_OK) {
        return FLASH_ERR_DEVICE;
    }
    params->scratch_on_device = direct; /* whose size has no bound */
    params->scratch_on_device = direct && find_direct(stager, params);
    return params->scratch_on_device ? FLASH_OK : find_pinned(stager, params);
}
