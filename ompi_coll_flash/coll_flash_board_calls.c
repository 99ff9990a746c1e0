/*
 * coll_flash_board_calls.c: operations on boards: under way, and complete.
 *
 * They move in MPI calls alone: who is in one posts what fits into its slots, and takes what others
 * have posted. A thread would take from the application what it moves: the same processors do both.
 *
 * A communicator is kept until all ranks have taken what this one has posted, which may be later
 * than its last operation's end, so that its number, and with it the side, is not used again before.
 * Where a rank is lost, for good.
 *
 * Shared between threads: what has arrived, under `arrivals_mutex`, which nobody holds for long;
 * boards, and the list of those that are not done, under `boards_mutex`, which is held while data
 * moves and the user's operations run: a call that starts an operation does not wait for it.
 * `busy`, how many of both there are, is written under either and read without, relaxed: who has put
 * something there polls again.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "coll_flash_board.h"

#include <pthread.h>

/* What one step leaves to be done without the lock. */
typedef struct outcome {
    bool happened;
    flash_board_op_t *ended, **last;
    ompi_communicator_t *left[16]; /* more wait for the next step */
    size_t left_count;
} outcome_t;

static pthread_mutex_t arrivals_mutex = PTHREAD_MUTEX_INITIALIZER;
static mca_coll_flash_request_t *arrived, **arrived_tail = &arrived;

static pthread_mutex_t boards_mutex = PTHREAD_MUTEX_INITIALIZER;
static mca_coll_flash_module_t *active;

static atomic_uint busy;

static void count(int change)
{
    atomic_fetch_add_explicit(&busy, (unsigned) change, memory_order_relaxed);
}

static void enlist(mca_coll_flash_module_t *module)
{
    if (!module->board_active) {
        module->board_active = true;
        module->next_active = active;
        active = module;
        OBJ_RETAIN(module->comm);
        count(1);
    }
}

static void take_arrivals(void)
{
    mca_coll_flash_request_t *request;

    pthread_mutex_lock(&arrivals_mutex);
    request = arrived;
    arrived = NULL;
    arrived_tail = &arrived;
    pthread_mutex_unlock(&arrivals_mutex);
    while (request != NULL) {
        mca_coll_flash_request_t *next = request->next_arrived;

        flash_board_start(request->module->board, &request->board, &request->waiting);
        enlist(request->module);
        count(-1);
        request = next;
    }
}

/* One step of each board. */
static outcome_t step(void)
{
    outcome_t outcome = {.happened = false};
    mca_coll_flash_module_t **at = &active, *module;

    outcome.last = &outcome.ended;
    take_arrivals();
    while ((module = *at) != NULL) {
        flash_board_t *board = module->board;

        outcome.happened |= flash_board_progress(board);
        while ((*outcome.last = flash_board_ended(board)) != NULL) {
            outcome.last = &(*outcome.last)->next;
        }
        if (flash_board_is_busy(board) || !flash_board_is_left(board) ||
            outcome.left_count == sizeof(outcome.left) / sizeof(outcome.left[0])) {
            at = &module->next_active;
        } else {
            module->board_active = false;
            *at = module->next_active;
            outcome.left[outcome.left_count++] = module->comm;
            count(-1);
        }
    }
    return outcome;
}

/* Without the lock: who hears of an end may start operations. */
static int act(const outcome_t *outcome)
{
    flash_board_op_t *op = outcome->ended;
    int completed = 0;

    while (op != NULL) {
        flash_board_op_t *next = op->next;

        mca_coll_flash_request_ended(op->params.user, op->status, op->blamed, false);
        completed++;
        op = next;
    }
    for (size_t k = 0; k < outcome->left_count; k++) {
        ompi_communicator_t *comm = outcome->left[k];

        OBJ_RELEASE(comm); /* may have been freed by its user meanwhile, and go away with this */
    }
    return completed + outcome->happened;
}

int mca_coll_flash_boards_progress(void)
{
    outcome_t outcome;

    if (!mca_coll_flash_boards_busy() || pthread_mutex_trylock(&boards_mutex) != 0) {
        return 0;
    }
    outcome = step();
    pthread_mutex_unlock(&boards_mutex);
    return act(&outcome);
}

bool mca_coll_flash_boards_busy(void)
{
    return atomic_load_explicit(&busy, memory_order_relaxed) > 0;
}

void mca_coll_flash_boards_each(void (*look)(flash_board_t *board))
{
    if (pthread_mutex_trylock(&boards_mutex) != 0) {
        return; /* who has it makes progress, or comes again */
    }
    for (mca_coll_flash_module_t *module = active; module != NULL; module = module->next_active) {
        look(module->board);
    }
    pthread_mutex_unlock(&boards_mutex);
}

void mca_coll_flash_board_begin(mca_coll_flash_request_t *request, const flash_op_params_t *params)
{
    mca_coll_flash_job_poll();
    request->waiting = *params;
    request->next_arrived = NULL;
    pthread_mutex_lock(&arrivals_mutex);
    *arrived_tail = request;
    arrived_tail = &request->next_arrived;
    count(1);
    pthread_mutex_unlock(&arrivals_mutex);
    mca_coll_flash_boards_progress();
}

void mca_coll_flash_board_refuse(mca_coll_flash_module_t *module, flash_kind_t kind)
{
    const flash_op_params_t params = {.schedule = {.kind = kind, .ring = module->ring}};

    mca_coll_flash_job_poll();
    pthread_mutex_lock(&boards_mutex);
    take_arrivals(); /* this one comes behind them */
    if (flash_board_refuse(module->board, &params)) {
        enlist(module);
    }
    pthread_mutex_unlock(&boards_mutex);
}

void mca_coll_flash_board_forget(mca_coll_flash_module_t *module)
{
    mca_coll_flash_module_t **at = &active;

    pthread_mutex_lock(&boards_mutex);
    while (module->board_active && *at != module) {
        at = &(*at)->next_active;
    }
    if (module->board_active) {
        *at = module->next_active;
        count(-1);
    }
    pthread_mutex_unlock(&boards_mutex);
    flash_board_destroy(module->board);
}
