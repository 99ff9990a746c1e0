/*
 * flash_stager.c: see flash_stager.h.
 *
 * Shared between threads:
 *   gpu        atomic: stored (release) by whoever has loaded the plugin, under `mutex`; it is
 *              never unloaded
 *   elsewhere  stored before `gpu`, by the same
 * A stager is its operation's. What it holds does not change while copies are under way.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "device/flash_stager_internal.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

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
static flash_elsewhere_t elsewhere;

const flash_gpu_ops_t *flash_stager_gpu(void)
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

bool flash_stager_load(const char *plugin, size_t keeps, char *reason)
{
    const flash_gpu_ops_t *ops;

    pthread_mutex_lock(&mutex);
    ops = flash_stager_gpu();
    if (ops == NULL) {
        ops = load(plugin, reason);
        if (ops != NULL) {
            flash_stager_make_pools(ops, keeps);
            elsewhere = (flash_elsewhere_t){.poll = ops->poll, .busy = ops->busy};
            atomic_store_explicit(&gpu, ops, memory_order_release);
        }
    }
    pthread_mutex_unlock(&mutex);
    return ops != NULL;
}

const char *flash_stager_complaint(void)
{
    return flash_stager_gpu()->complaint();
}

void flash_stager_fini(void)
{
    if (flash_stager_gpu() != NULL) {
        flash_stager_clear_pools();
        flash_stager_gpu()->end();
    }
}

/* ------------------------------------------------------------------- operations */

/* The same lane, if it can be: copies in and out go different ways there. */
static flash_gpu_lane_t *open_output(const flash_stager_t *stager, const void *output,
                                     void *const *stream)
{
    return stager->input != NULL && flash_stager_gpu()->serves(stager->input, output)
               ? stager->input
               : flash_stager_gpu()->open(output, stream);
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
    stager->input = asks ? flash_stager_gpu()->open(input, stream) : NULL;
    stager->output = writes ? open_output(stager, output, stream) : NULL;
    if ((asks && stager->input == NULL) || (writes && stager->output == NULL)) {
        flash_stager_close(stager);
        return FLASH_ERR_DEVICE;
    }
    if (asks && writes && stager->input != stager->output) {
        flash_stager_gpu()->join(stager->input, stager->output);
    }
    *opened = stager;
    return FLASH_OK;
}

void flash_stager_close(flash_stager_t *stager)
{
    if (stager == NULL) {
        return;
    }
    flash_stager_repay(&stager->failed_ranks);
    flash_stager_repay(&stager->store);
    flash_stager_repay(&stager->scratch);
    if (stager->pieces != NULL) {
        flash_stager_gpu()->release_on_device(stager->input, stager->pieces);
    }
    if (stager->output != NULL && stager->output != stager->input) {
        flash_stager_gpu()->close(stager->output);
    }
    if (stager->input != NULL) {
        flash_stager_gpu()->close(stager->input);
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

flash_gpu_lane_t *flash_stager_lane(const flash_stager_t *stager, bool input)
{
    return (input && stager->input != NULL) || stager->output == NULL ? stager->input
                                                                      : stager->output;
}

bool flash_stager_covers(const flash_stager_t *stager, bool input, const void *block)
{
    return flash_stager_gpu()->covers(flash_stager_lane(stager, input), block);
}

size_t flash_stager_reach(const void *address)
{
    return flash_stager_gpu()->reach(address);
}

bool flash_stager_copy(const flash_stager_t *stager, bool input, void *to, const void *from,
                       size_t size)
{
    return flash_stager_gpu()->copy(flash_stager_lane(stager, input), NULL, to, from, size);
}

bool flash_stager_begin(const flash_stager_t *stager, bool input, void *to, const void *from,
                        size_t size, flash_gpu_copy_t *copy)
{
    return flash_stager_gpu()->begin(flash_stager_lane(stager, input), to, from, size, copy);
}

void flash_stager_poll(void)
{
    const flash_gpu_ops_t *loaded = flash_stager_gpu();

    if (loaded != NULL) {
        loaded->poll();
    }
}

int flash_stager_make_pieces(flash_stager_t *stager, size_t size, void **pieces)
{
    stager->pieces = flash_stager_gpu()->allocate_on_device(stager->input, size);
    *pieces = stager->pieces;
    return *pieces == NULL ? FLASH_ERR_DEVICE : FLASH_OK;
}

bool flash_stager_fetch_pieces(const flash_stager_t *stager, void *to, size_t size)
{
    return flash_stager_gpu()->copy(stager->input, &stager->stream, to, stager->pieces, size);
}

bool flash_stager_wait(const flash_stager_t *stager)
{
    return flash_stager_gpu()->copy(stager->input, &stager->stream, NULL, NULL, 0);
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
        return flash_stager_gpu()->combine(stager->input, stager->kernel, work->in, work->inout,
                                           work->out, work->count, copy);
    }
    return flash_stager_gpu()->begin(flash_stager_lane(stager, work->kind == FLASH_WORK_STAGE_IN),
                                     work->inout, work->in, work->size, copy);
}

int flash_stager_begin_work(void *arg, const flash_work_t *work)
{
    const flash_stager_t *stager = arg;
    carried_t *carried = malloc(sizeof(*carried));

    if (carried == NULL) {
        return FLASH_ERR_NO_MEMORY;
    }
    *carried = (carried_t){
        .copy = {.done = done,
                 .way = work->kind == FLASH_WORK_STAGE_OUT,
                 .pageable = work->kind == FLASH_WORK_COPY || !flash_stager_pins(stager)},
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
        stager->kernel = flash_stager_gpu()->kernel(stager->input, output, operation, type);
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
        flash_stager_wait(stager); /* nobody will hear of its end */
        return FLASH_ERR_NO_MEMORY;
    }
    *piece = (piece_t){.copy = {.done = computed},
                       .ended = {.end = end_piece},
                       .progress = stager->progress,
                       .op = op,
                       .number = number,
                       .status = status};
    if (!flash_stager_gpu()->notify(stager->input, stager->stream, &piece->copy)) {
        free(piece);
        return FLASH_ERR_DEVICE;
    }
    return FLASH_PENDING;
}

bool flash_stager_enter(const flash_stager_t *stager)
{
    return stager != NULL && flash_stager_gpu()->enter(flash_stager_lane(stager, true));
}

void flash_stager_leave(void)
{
    flash_stager_gpu()->leave();
}
