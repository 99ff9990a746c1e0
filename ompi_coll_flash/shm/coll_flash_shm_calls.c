/*
 * coll_flash_shm_calls.c: operations on shared-memory channels: under way, and complete.
 *
 * They move in MPI calls alone: who is in one posts what fits into its slots, and takes what others
 * have posted. A thread would take from the application what it moves: the same processors do both.
 *
 * A communicator is kept until all ranks have taken what this one has posted, which may be later
 * than its last operation's end, so that its number, and with it the side, is not used again
 * before. Where a rank is lost, for good.
 *
 * Shared between threads:
 *   channels, and the list of those that are not done: under `shm_mutex`, which is held while data
 *     moves and the user's operations run. A call that starts an operation does not wait for it
 *   arrived  atomic: the latest of the requests that were to begin while another thread had the
 *     lock, each with the one before it. Who puts one there stores with release order; who has the
 *     lock takes all of them, with acquire
 *   busy  atomic, relaxed: how many channels and such requests there are. Who has put something
 *     there polls again
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "shm/coll_flash_shm.h"

#include <pthread.h>

/* Of a request. */
typedef struct shm_state {
    flash_shm_op_t op;
    flash_op_params_t params;                    /* while it waits for the lock */
    size_t read_above;                           /* longer blocks are read where they are */
    struct mca_coll_flash_request *next_arrived; /* likewise */
} shm_state_t;

/* What one step leaves to be done without the lock. */
typedef struct outcome {
    bool happened;
    flash_shm_op_t *ended;
    ompi_communicator_t *left[16]; /* more wait for the next step */
    size_t left_count;
} outcome_t;

static pthread_mutex_t shm_mutex = PTHREAD_MUTEX_INITIALIZER;
static mca_coll_flash_module_t *active;

static _Atomic(mca_coll_flash_request_t *) arrived;
static atomic_uint busy;

static shm_state_t *state_of(const mca_coll_flash_request_t *request)
{
    return request->algorithm_state;
}

static void count(int change)
{
    atomic_fetch_add_explicit(&busy, (unsigned) change, memory_order_relaxed);
}

static void enlist(mca_coll_flash_module_t *module)
{
    if (!module->shm_active) {
        module->shm_active = true;
        module->next_active = active;
        active = module;
        OBJ_RETAIN(module->comm);
        count(1);
    }
}

static void put_arrival(mca_coll_flash_request_t *request)
{
    mca_coll_flash_request_t *latest = atomic_load_explicit(&arrived, memory_order_relaxed);

    count(1);
    do {
        state_of(request)->next_arrived = latest;
    } while (!atomic_compare_exchange_weak_explicit(&arrived, &latest, request,
                                                    memory_order_release, memory_order_relaxed));
}

/* The oldest first. */
static mca_coll_flash_request_t *turn_round(mca_coll_flash_request_t *latest)
{
    mca_coll_flash_request_t *later = NULL;

    while (latest != NULL) {
        mca_coll_flash_request_t *before = state_of(latest)->next_arrived;

        state_of(latest)->next_arrived = later;
        later = latest;
        latest = before;
    }
    return later;
}

static void start(mca_coll_flash_request_t *request, const flash_op_params_t *params)
{
    shm_state_t *state = state_of(request);

    flash_shm_start(request->module->shm, &state->op, params, state->read_above);
    enlist(request->module);
}

static void take_arrivals(void)
{
    mca_coll_flash_request_t *request;

    if (atomic_load_explicit(&arrived, memory_order_relaxed) == NULL) {
        return; /* mostly; and cheaper than to exchange it */
    }
    request = turn_round(atomic_exchange_explicit(&arrived, NULL, memory_order_acquire));
    while (request != NULL) {
        mca_coll_flash_request_t *next = state_of(request)->next_arrived;

        start(request, &state_of(request)->params);
        count(-1);
        request = next;
    }
}

/*
 * One step of each channel. One that has just done something is not looked at for whether all have
 * taken what it posted: the line that says so is another processor's, and more may come at once.
 */
static void step(outcome_t *outcome)
{
    mca_coll_flash_module_t **at = &active, *module;
    flash_shm_op_t **last = &outcome->ended;

    outcome->happened = false;
    outcome->left_count = 0;
    while ((module = *at) != NULL) {
        flash_shm_t *shm = module->shm;
        bool happened = flash_shm_progress(shm);

        outcome->happened |= happened;
        while ((*last = flash_shm_ended(shm)) != NULL) {
            last = &(*last)->next;
        }
        if (happened || flash_shm_is_busy(shm) || !flash_shm_is_left(shm) ||
            outcome->left_count == sizeof(outcome->left) / sizeof(outcome->left[0])) {
            at = &module->next_active;
        } else {
            module->shm_active = false;
            *at = module->next_active;
            outcome->left[outcome->left_count++] = module->comm;
            count(-1);
        }
    }
    *last = NULL; /* where no channel is active */
}

/* Without the lock: who hears of an end may start operations. */
static int act(const outcome_t *outcome)
{
    flash_shm_op_t *op = outcome->ended;
    int completed = 0;

    while (op != NULL) {
        flash_shm_op_t *next = op->next;

        mca_coll_flash_request_ended(op->params.user, op->status, op->failed_rank, false);
        completed++;
        op = next;
    }
    for (size_t k = 0; k < outcome->left_count; k++) {
        ompi_communicator_t *comm = outcome->left[k];

        /* It may have been freed by its user meanwhile, and go away with this. */
        flash_compat_release_comm(comm);
    }
    return completed + outcome->happened;
}

static bool is_busy(void)
{
    return atomic_load_explicit(&busy, memory_order_relaxed) > 0;
}

static int progress(void)
{
    outcome_t outcome;

    if (!is_busy() || pthread_mutex_trylock(&shm_mutex) != 0) {
        return 0;
    }
    take_arrivals();
    step(&outcome);
    pthread_mutex_unlock(&shm_mutex);
    return act(&outcome);
}

void mca_coll_flash_shm_each(void (*look)(flash_shm_t *shm))
{
    if (pthread_mutex_trylock(&shm_mutex) != 0) {
        return; /* who has it makes progress, or comes again */
    }
    for (mca_coll_flash_module_t *module = active; module != NULL; module = module->next_active) {
        look(module->shm);
    }
    pthread_mutex_unlock(&shm_mutex);
}

/*
 * The longest block that is not read; of more than two ranks, copies were found faster at any size.
 */
static size_t read_above(size_t use, uint32_t nranks)
{
    if (use == FLASH_SHM_READ) {
        return 0;
    }
    return use == FLASH_SHM_AUTO && nranks == 2 ? FLASH_SHM_READ_ABOVE : SIZE_MAX;
}

/*
 * A communicator's operations begin in the order of its calls: those that had to wait come first.
 */
static void begin(mca_coll_flash_request_t *request, flash_op_params_t *params)
{
    const mca_coll_flash_settings_t *settings = request->settings;
    shm_state_t *state = state_of(request);
    outcome_t outcome;

    state->read_above = read_above(settings->shm_use, params->schedule.ring.nranks);
    mca_coll_flash_poll();
    if (pthread_mutex_trylock(&shm_mutex) != 0) {
        state->params = *params;
        put_arrival(request);
        progress();
        return;
    }
    take_arrivals();
    start(request, params);
    step(&outcome);
    pthread_mutex_unlock(&shm_mutex);
    act(&outcome);
}

/* No chain is in shared memory. */
static void refuse(mca_coll_flash_module_t *module, uint32_t sequence, flash_kind_t kind,
                   flash_part_t part)
{
    const flash_op_params_t params = {.schedule = {.kind = kind, .ring = module->ring}};

    (void) sequence;
    (void) part;
    mca_coll_flash_poll();
    pthread_mutex_lock(&shm_mutex);
    take_arrivals(); /* this one comes behind them */
    if (flash_shm_refuse(module->shm, &params)) {
        enlist(module);
    }
    pthread_mutex_unlock(&shm_mutex);
}

static void forget(mca_coll_flash_module_t *module)
{
    mca_coll_flash_module_t **at = &active;

    pthread_mutex_lock(&shm_mutex);
    while (module->shm_active && *at != module) {
        at = &(*at)->next_active;
    }
    if (module->shm_active) {
        *at = module->next_active;
        count(-1);
    }
    pthread_mutex_unlock(&shm_mutex);
    flash_shm_destroy(module->shm);
}

mca_coll_flash_ticket_t mca_coll_flash_shm_ticket(mca_coll_flash_module_t *module)
{
    return (mca_coll_flash_ticket_t){.algorithm = &mca_coll_flash_shm,
                                     .sequence = module->shm_sequence++,
                                     .settings = &module->settings};
}

const mca_coll_flash_algorithm_t mca_coll_flash_shm = {.state_bytes = sizeof(shm_state_t),
                                                       .gives_up = true,
                                                       .begin = begin,
                                                       .refuse = refuse,
                                                       .progress = progress,
                                                       .is_busy = is_busy,
                                                       .watch = mca_coll_flash_shm_watch,
                                                       .forget = forget};
