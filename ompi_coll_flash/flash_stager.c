/*
 * flash_stager.c: see flash_stager.h.
 *
 * Shared between threads:
 *   gpu      atomic: stored (release) by whoever has loaded the plugin, under `mutex`; it is never
 *            unloaded
 *   pools    under `mutex`, which nobody has while the driver makes or frees memory
 *   context, elsewhere  stored before `gpu`, by the same
 * A stager is its operation's. What it holds does not change while copies are under way.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "flash_stager.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "flash_gpu.h"
#include "flash_pool.h"

/*
 * What operations on a device's memory have left for each other: making pinned memory takes
 * milliseconds, telling a network of it as long, and freeing it waits for the device.
 */
typedef struct pools {
    int device;
    flash_pool_t pinned, direct;
} pools_t;

/* Memory of a pool's; pool NULL: none, or it is not to be used again. */
typedef struct loan {
    flash_pool_t *pool;
    void *memory;
    size_t size;
} loan_t;

struct flash_stager {
    flash_progress_t *progress;
    flash_gpu_lane_t *input, *output; /* NULL: that one is the host's. May be the same */
    void *stream;                     /* the application's, of an operation that has one */
    bool stages_in; /* what `input` is for; else it is there for the stream alone */
    bool produces;
    const flash_gpu_kernel_t *kernel; /* for sums; or NULL */
    loan_t scratch, blames;
    loan_t store; /* of the device: sums that wait to be sent */
    void *pieces; /* of the device, where a producer writes; or NULL */
};

/* A copy under way. */
typedef struct carried {
    flash_gpu_copy_t copy;
    flash_ended_t ended;
    flash_work_t work;
    flash_progress_t *progress;
} carried_t;

/* A piece whose computation is on its way in the application's stream. */
typedef struct piece {
    flash_gpu_copy_t copy;
    flash_ended_t ended;
    flash_progress_t *progress;
    flash_op_t *op;
    uint64_t number;
    int status; /* the callback's */
} piece_t;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(const flash_gpu_ops_t *) gpu;
static pools_t pools[FLASH_GPU_DEVICES];
static flash_context_t context;
static flash_elsewhere_t elsewhere;

static const flash_gpu_ops_t *loaded(void)
{
    return atomic_load_explicit(&gpu, memory_order_acquire);
}

/* ------------------------------------------------------------------ the plugin */

static const flash_gpu_ops_t *load(const char *plugin, char *reason)
{
    void *library = dlopen(plugin, RTLD_NOW | RTLD_LOCAL);
    flash_gpu_plugin_fn *ask = NULL;
    const flash_gpu_ops_t *ops;
    const char *why = "it is of another version of flash";

    if (library == NULL) {
        snprintf(reason, FLASH_STAGER_REASON_MAX, "%s", dlerror());
        return NULL;
    }
    *(void **) &ask = dlsym(library, FLASH_GPU_SYMBOL);
    ops = ask == NULL ? NULL : ask(&why);
    if (ops == NULL) {
        snprintf(reason, FLASH_STAGER_REASON_MAX, "%s: %s", plugin, why);
        dlclose(library);
    }
    return ops;
}

static void make_pools(const flash_gpu_ops_t *ops, size_t keeps)
{
    for (int device = 0; device < FLASH_GPU_DEVICES; device++) {
        pools_t *made = &pools[device];

        made->device = device;
        made->pinned = (flash_pool_t){.allocate = ops->allocate_pinned,
                                      .release = ops->release_pinned,
                                      .arg = &made->device,
                                      .largest = keeps};
        made->direct = (flash_pool_t){.allocate = ops->allocate_direct,
                                      .release = ops->release_direct,
                                      .arg = &made->device,
                                      .largest = keeps};
    }
}

bool flash_stager_load(const char *plugin, size_t keeps, char *reason)
{
    const flash_gpu_ops_t *ops;

    pthread_mutex_lock(&mutex);
    ops = loaded();
    if (ops == NULL) {
        ops = load(plugin, reason);
        if (ops != NULL) {
            make_pools(ops, keeps);
            context = (flash_context_t){.enter = ops->enter_home, .leave = ops->leave_home};
            elsewhere = (flash_elsewhere_t){.poll = ops->poll, .busy = ops->busy};
            atomic_store_explicit(&gpu, ops, memory_order_release);
        }
    }
    pthread_mutex_unlock(&mutex);
    return ops != NULL;
}

const char *flash_stager_complaint(void)
{
    return loaded()->complaint();
}

void flash_stager_fini(void)
{
    for (int device = 0; loaded() != NULL && device < FLASH_GPU_DEVICES; device++) {
        flash_pool_clear(&pools[device].pinned);
        flash_pool_clear(&pools[device].direct);
    }
    if (loaded() != NULL) {
        loaded()->end();
    }
}

/* -------------------------------------------------------------------- memory */

static bool borrow(flash_pool_t *pool, size_t size, loan_t *loan)
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
 * Whole blocks, in steps of an eighth to a quarter of it, if that much is kept: of few sizes there is
 * soon one for every operation. What is freed would have to be unmapped by all processes that have
 * mapped it, each of which learns of that only when other memory comes to lie there.
 */
static bool borrow_direct(flash_pool_t *pool, size_t size, loan_t *loan)
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

static void give_back(loan_t *loan)
{
    if (loan->pool != NULL) {
        pthread_mutex_lock(&mutex);
        flash_pool_exchange(loan->pool, &loan->memory, &loan->size);
        pthread_mutex_unlock(&mutex);
        loan->pool->release(loan->pool->arg, loan->memory, loan->size);
    }
}

/* ------------------------------------------------------------------- operations */

/* The same lane, if it can be: copies in and out go different ways there. */
static flash_gpu_lane_t *open_output(const flash_stager_t *stager, const void *output,
                                     void *const *stream)
{
    return stager->input != NULL && loaded()->serves(stager->input, output)
               ? stager->input
               : loaded()->open(output, stream);
}

int flash_stager_open(flash_progress_t *progress, const void *input, const void *output,
                      const flash_stager_order_t *order, flash_stager_t **opened)
{
    flash_stager_t *stager = calloc(1, sizeof(*stager));
    void *const *stream = order == NULL ? NULL : &order->stream;
    bool writes = output != NULL, asks;

    if (stager == NULL) {
        return FLASH_ERR_NO_MEMORY;
    }
    stager->progress = progress;
    if (progress != NULL) { /* NULL: without an engine */
        flash_progress_set_elsewhere(progress, &elsewhere);
    }
    if (order != NULL) {
        stager->stream = order->stream;
        stager->produces = order->produces;
    }
    stager->stages_in = input != NULL || stager->produces;
    asks = stager->stages_in || (order != NULL && order->awaits);
    stager->input = asks ? loaded()->open(input, stream) : NULL;
    stager->output = writes ? open_output(stager, output, stream) : NULL;
    if ((asks && stager->input == NULL) || (writes && stager->output == NULL)) {
        flash_stager_close(stager);
        return FLASH_ERR_DEVICE;
    }
    if (asks && writes && stager->input != stager->output) {
        loaded()->join(stager->input, stager->output);
    }
    *opened = stager;
    return FLASH_OK;
}

void flash_stager_close(flash_stager_t *stager)
{
    if (stager == NULL) {
        return;
    }
    give_back(&stager->blames);
    give_back(&stager->store);
    give_back(&stager->scratch);
    if (stager->pieces != NULL) {
        loaded()->release_far(stager->input, stager->pieces);
    }
    if (stager->output != NULL && stager->output != stager->input) {
        loaded()->close(stager->output);
    }
    if (stager->input != NULL) {
        loaded()->close(stager->input);
    }
    free(stager);
}

void flash_stager_abandon(flash_stager_t *stager)
{
    if (stager != NULL) {
        stager->scratch.pool = NULL;
        flash_stager_close(stager);
    }
}

static flash_gpu_lane_t *lane_of(const flash_stager_t *stager, bool input)
{
    return (input && stager->input != NULL) || stager->output == NULL ? stager->input
                                                                      : stager->output;
}

bool flash_stager_copy(const flash_stager_t *stager, bool input, void *to, const void *from,
                       size_t size)
{
    return loaded()->copy(lane_of(stager, input), NULL, to, from, size);
}

int flash_stager_make_pieces(flash_stager_t *stager, size_t size, void **pieces)
{
    stager->pieces = loaded()->allocate_far(stager->input, size);
    *pieces = stager->pieces;
    return *pieces == NULL ? FLASH_ERR_DEVICE : FLASH_OK;
}

bool flash_stager_fetch_pieces(const flash_stager_t *stager, void *to, size_t size)
{
    return loaded()->copy(stager->input, &stager->stream, to, stager->pieces, size);
}

bool flash_stager_wait(const flash_stager_t *stager)
{
    return loaded()->copy(stager->input, &stager->stream, NULL, NULL, 0);
}

/* ----------------------------------------------------------------------- copies */

static void end(flash_ended_t *ended)
{
    carried_t *carried = (carried_t *) ((char *) ended - offsetof(carried_t, ended));

    flash_engine_finish(&carried->work, ended->status);
    free(carried);
}

/* In a thread that polls, without the lock. */
static void done(flash_gpu_copy_t *copy, bool well)
{
    carried_t *carried = (carried_t *) copy;

    carried->ended.status = well ? FLASH_OK : FLASH_ERR_DEVICE;
    flash_progress_ended(carried->progress, &carried->ended);
}

static bool carry(const flash_stager_t *stager, const flash_work_t *work, flash_gpu_copy_t *copy)
{
    if (work->kind == FLASH_WORK_COMBINE) {
        return loaded()->combine(stager->input, stager->kernel, work->in, work->inout, work->out,
                                 work->count, copy);
    }
    return loaded()->begin(lane_of(stager, work->kind == FLASH_WORK_STAGE_IN), work->inout,
                           work->in, work->size, copy);
}

static int begin(void *arg, const flash_work_t *work)
{
    const flash_stager_t *stager = arg;
    carried_t *carried = malloc(sizeof(*carried));

    if (carried == NULL) {
        return FLASH_ERR_NO_MEMORY;
    }
    *carried = (carried_t){.copy = {.done = done, .way = work->kind == FLASH_WORK_STAGE_OUT},
                           .ended = {.end = end},
                           .work = *work,
                           .progress = stager->progress};
    if (!carry(stager, work, &carried->copy)) {
        free(carried);
        return FLASH_ERR_DEVICE;
    }
    return FLASH_LATER;
}

bool flash_stager_add_by(flash_stager_t *stager, const void *output, flash_gpu_operator_t operation,
                         flash_gpu_type_t type)
{
    if (stager->input != NULL && stager->output != NULL) {
        stager->kernel = loaded()->kernel(stager->input, output, operation, type);
    }
    return stager->kernel != NULL;
}

static void end_piece(flash_ended_t *ended)
{
    piece_t *piece = (piece_t *) ((char *) ended - offsetof(piece_t, ended));

    flash_engine_end_pending(piece->op, piece->number, ended->status);
    free(piece);
}

/* In a thread that polls, without the lock. */
static void computed(flash_gpu_copy_t *copy, bool well)
{
    piece_t *piece = (piece_t *) copy;

    piece->ended.status = piece->status == FLASH_OK && !well ? FLASH_ERR_DEVICE : piece->status;
    flash_progress_ended(piece->progress, &piece->ended);
}

int flash_stager_await(flash_stager_t *stager, flash_op_t *op, uint64_t number, int status)
{
    piece_t *piece = malloc(sizeof(*piece));

    if (piece == NULL) {
        return FLASH_ERR_NO_MEMORY;
    }
    *piece = (piece_t){.copy = {.done = computed},
                       .ended = {.end = end_piece},
                       .progress = stager->progress,
                       .op = op,
                       .number = number,
                       .status = status};
    if (!loaded()->notify(stager->input, stager->stream, &piece->copy)) {
        free(piece);
        return FLASH_ERR_DEVICE;
    }
    return FLASH_PENDING;
}

bool flash_stager_enter(const flash_stager_t *stager)
{
    return stager != NULL && loaded()->enter(lane_of(stager, true));
}

void flash_stager_leave(void)
{
    loaded()->leave();
}

static int find_pieces(flash_stager_t *stager, flash_op_params_t *params)
{
    size_t size = flash_op_pieces_size(params);

    return size == 0 ? FLASH_OK : flash_stager_make_pieces(stager, size, &params->pieces);
}

static bool is_at_home(const flash_gpu_lane_t *lane, int device)
{
    return lane == NULL || (loaded()->device(lane) == device && loaded()->is_at_home(lane));
}

/*
 * Takes the scratch, and the blames, of device memory for the transport to reach. That is not told
 * of the application's memory: of its own there is little, and it stays, so that a network's
 * hardware learns of it once, and no call's memory is freed under it. A copy within the device
 * costs next to nothing. What would not be kept is not worth making.
 */
static bool find_direct(flash_stager_t *stager, flash_op_params_t *params)
{
    int device = loaded()->device(lane_of(stager, false));
    bool reduces = params->combine != NULL;
    size_t size = flash_op_scratch_size(params);

    if (size == 0 || size > pools[device].direct.largest || (reduces && !params->combine_far) ||
        !is_at_home(stager->input, device) || !is_at_home(stager->output, device) ||
        !borrow_direct(&pools[device].direct, size, &stager->scratch)) {
        return false;
    }
    if (!borrow(&pools[device].pinned, flash_op_blames_size(params), &stager->blames) ||
        !loaded()->settle(device)) {
        give_back(&stager->blames);
        give_back(&stager->scratch);
        stager->blames = stager->scratch = (loan_t){.pool = NULL};
        return false;
    }
    params->scratch = stager->scratch.memory;
    params->blames = stager->blames.memory;
    flash_progress_set_context(stager->progress, &context);
    return true;
}

/* Of the device that adds, and whose copies are the input's. */
static bool find_store(flash_stager_t *stager, flash_op_params_t *params)
{
    size_t size = flash_op_store_size(params);
    int device = size == 0 ? 0 : loaded()->device(stager->input);

    if (size > 0 && (!is_at_home(stager->input, device) ||
                     !borrow_direct(&pools[device].direct, size, &stager->store))) {
        return false;
    }
    params->store = stager->store.memory;
    return true;
}

size_t flash_stager_unkept(const flash_stager_t *stager)
{
    const loan_t *loan = &stager->scratch;

    return loan->pool != NULL && loan->size > loan->pool->largest ? loan->size : 0;
}

static int find_pinned(flash_stager_t *stager, flash_op_params_t *params)
{
    flash_pool_t *pool = &pools[loaded()->device(lane_of(stager, false))].pinned;
    size_t size;

    if (!find_store(stager, params)) {
        params->bound = 0;
    }
    size = flash_op_scratch_size(params);
    if (size > 0 && !borrow(pool, size, &stager->scratch)) {
        return FLASH_ERR_NO_MEMORY;
    }
    params->scratch = stager->scratch.memory;
    return FLASH_OK;
}

int flash_stager_fill(flash_stager_t *stager, bool direct, flash_op_params_t *params)
{
    params->stage_in = stager->stages_in;
    params->stage_out = stager->output != NULL;
    params->combine_far = stager->kernel != NULL;
    params->begin = begin;
    params->begin_arg = stager;
    if (stager->produces && find_pieces(stager, params) != FLASH_OK) {
        return FLASH_ERR_DEVICE;
    }
    params->scratch_far = direct; /* whose size has no bound */
    params->scratch_far = direct && find_direct(stager, params);
    return params->scratch_far ? FLASH_OK : find_pinned(stager, params);
}
