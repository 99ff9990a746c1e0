/*
 * coll_flash_setup.c: the set-ups under way, and what waits for them: see coll_flash_setup.h.
 *
 * Shared between threads: `mutex` protects the list of set-ups and their queues of waiters. One thread
 * at a time, which holds `moving`, moves set-ups on and lets waiters go on, without the mutex. A set-up
 * is READY or REFUSED in its module (release; whoever finds it so acquires) when no waiter is left, so
 * that no later call overtakes an earlier one. `pending` is a hint that the list is not empty.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "ring/coll_flash_setup.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "request/coll_flash_algorithm.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static mca_coll_flash_setup_t *setups;
static atomic_uint pending;
static atomic_flag moving = ATOMIC_FLAG_INIT;

static mca_coll_flash_setup_state_t state_of(const mca_coll_flash_module_t *module,
                                             mca_coll_flash_setup_kind_t kind)
{
    return atomic_load_explicit(&module->setups[kind], memory_order_acquire);
}

mca_coll_flash_setup_kind_t mca_coll_flash_setup_for(flash_kind_t kind, bool pairwise)
{
    return pairwise || flash_schedule_exchanges(kind) ? FLASH_SETUP_PAIRS : FLASH_SETUP_RING;
}

/* A call by the ring does not overtake an exchange that waits. */
mca_coll_flash_setup_state_t mca_coll_flash_setup_look(const mca_coll_flash_module_t *module,
                                                       mca_coll_flash_setup_kind_t kind)
{
    mca_coll_flash_setup_state_t state = state_of(module, kind);

    return state == FLASH_SETUP_NONE || state_of(module, FLASH_SETUP_PAIRS) == FLASH_SETUP_PENDING
               ? FLASH_SETUP_PENDING
               : state;
}

bool mca_coll_flash_setup_is_refused(const mca_coll_flash_module_t *module)
{
    return state_of(module, FLASH_SETUP_RING) == FLASH_SETUP_REFUSED;
}

/* -------------------------------------------------------------------- the list */

/* The mutex is held. */
static void enlist(mca_coll_flash_module_t *module, mca_coll_flash_setup_kind_t kind)
{
    mca_coll_flash_setup_t *setup, **link = &setups;

    if (state_of(module, kind) != FLASH_SETUP_NONE) {
        return;
    }
    setup = calloc(1, sizeof(*setup));
    if (setup == NULL) {
        mca_coll_flash_no_memory(module->comm);
    }
    setup->module = module;
    setup->kind = kind;
    setup->last = &setup->first;
    OBJ_RETAIN(module->comm);
    OBJ_RETAIN(module);
    while (*link != NULL) {
        link = &(*link)->next;
    }
    *link = setup;
    atomic_store_explicit(&module->setups[kind], FLASH_SETUP_PENDING, memory_order_relaxed);
    atomic_fetch_add_explicit(&pending, 1, memory_order_relaxed);
}

/* What a waiter of that kind waits for; NULL: nothing any more. The mutex is held. */
static mca_coll_flash_setup_t *find(const mca_coll_flash_module_t *module,
                                    mca_coll_flash_setup_kind_t kind)
{
    mca_coll_flash_setup_kind_t last =
        state_of(module, FLASH_SETUP_PAIRS) == FLASH_SETUP_PENDING ? FLASH_SETUP_PAIRS : kind;
    mca_coll_flash_setup_t *setup = setups;

    while (setup != NULL && (setup->module != module || setup->kind != last)) {
        setup = setup->next;
    }
    return setup;
}

static void begin(mca_coll_flash_module_t *module, mca_coll_flash_setup_kind_t kind)
{
    enlist(module, FLASH_SETUP_RING);
    enlist(module, kind);
}

void mca_coll_flash_setup_await(mca_coll_flash_module_t *module, mca_coll_flash_setup_kind_t kind,
                                mca_coll_flash_waiter_t *waiter)
{
    mca_coll_flash_setup_t *setup;

    mca_coll_flash_poll();
    pthread_mutex_lock(&mutex);
    begin(module, kind);
    setup = find(module, kind);
    if (setup != NULL) {
        waiter->next = NULL;
        *setup->last = waiter;
        setup->last = &waiter->next;
    }
    pthread_mutex_unlock(&mutex);
    if (setup == NULL) {
        waiter->go_on(waiter, state_of(module, kind) == FLASH_SETUP_READY);
    } else {
        (void) mca_coll_flash_setups_progress();
    }
}

mca_coll_flash_setup_state_t mca_coll_flash_setup_wait(mca_coll_flash_module_t *module,
                                                       mca_coll_flash_setup_kind_t kind)
{
    mca_coll_flash_setup_state_t state;

    if (state_of(module, kind) == FLASH_SETUP_NONE) {
        mca_coll_flash_poll();
        pthread_mutex_lock(&mutex);
        begin(module, kind);
        pthread_mutex_unlock(&mutex);
    }
    while ((state = mca_coll_flash_setup_look(module, kind)) == FLASH_SETUP_PENDING) {
        opal_progress();
    }
    return state;
}

/* ------------------------------------------------------------------- moving on */

/* The next waiter; NULL: there is none, and from now on calls start at once, or fall back. */
static mca_coll_flash_waiter_t *take_waiter(mca_coll_flash_setup_t *setup,
                                            mca_coll_flash_setup_state_t state)
{
    mca_coll_flash_setup_t **link = &setups;
    mca_coll_flash_waiter_t *waiter;

    pthread_mutex_lock(&mutex);
    waiter = setup->first;
    if (waiter != NULL) {
        setup->first = waiter->next;
        setup->last = setup->first == NULL ? &setup->first : setup->last;
    } else {
        while (*link != setup) {
            link = &(*link)->next;
        }
        *link = setup->next;
        atomic_store_explicit(&setup->module->setups[setup->kind], state, memory_order_release);
        atomic_fetch_sub_explicit(&pending, 1, memory_order_relaxed);
    }
    pthread_mutex_unlock(&mutex);
    return waiter;
}

static void end(mca_coll_flash_setup_t *setup, mca_coll_flash_setup_state_t state)
{
    ompi_communicator_t *comm = setup->module->comm;
    mca_coll_flash_waiter_t *waiter;

    while ((waiter = take_waiter(setup, state)) != NULL) {
        waiter->go_on(waiter, state == FLASH_SETUP_READY);
    }
    OBJ_RELEASE(setup->module);
    flash_compat_release_comm(comm);
    free(setup);
}

/* Those that come meanwhile stand behind the last one. */
static mca_coll_flash_setup_t *next_of(mca_coll_flash_setup_t *setup)
{
    mca_coll_flash_setup_t *next;

    pthread_mutex_lock(&mutex);
    next = setup == NULL ? setups : setup->next;
    pthread_mutex_unlock(&mutex);
    return next;
}

int mca_coll_flash_setups_progress(void)
{
    mca_coll_flash_setup_t *setup, *next;
    int ended = 0;

    if (atomic_load_explicit(&pending, memory_order_relaxed) == 0 ||
        atomic_flag_test_and_set_explicit(&moving, memory_order_acquire)) {
        return 0;
    }
    for (setup = next_of(NULL); setup != NULL; setup = next) {
        mca_coll_flash_setup_state_t state = mca_coll_flash_setup_advance(setup);

        next = next_of(setup);
        if (state != FLASH_SETUP_PENDING) {
            end(setup, state);
            ended++;
        }
    }
    atomic_flag_clear_explicit(&moving, memory_order_release);
    return ended;
}

bool mca_coll_flash_setups_pending(void)
{
    return atomic_load_explicit(&pending, memory_order_relaxed) > 0;
}

void mca_coll_flash_setups_watch(void)
{
    const unsigned most = mca_coll_flash_params.stall_seconds;

    if (most == 0 || atomic_flag_test_and_set_explicit(&moving, memory_order_acquire)) {
        return;
    }
    for (mca_coll_flash_setup_t *setup = next_of(NULL); setup != NULL; setup = next_of(setup)) {
        if (++setup->watches == most) {
            ompi_communicator_t *comm = setup->module->comm;
            int rank = mca_coll_flash_setup_awaited(setup);

            FLASH_HELP("set-up-stalled", opal_process_info.nodename, (int) getpid(), most,
                       flash_compat_comm_id(comm), comm->c_name,
                       (int) ompi_group_get_proc_name(comm->c_local_group, rank).vpid);
        }
    }
    atomic_flag_clear_explicit(&moving, memory_order_release);
}
