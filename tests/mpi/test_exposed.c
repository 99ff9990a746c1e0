/*
 * test_exposed.c: what counts as exposed, and what as hidden: waiting does, and computing, in a
 * callback or elsewhere.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include <mpix_flash.h>

#include "mpitest.h"
#include "pvars.h"

enum { COUNT = 1 << 16, PAUSE_NS = 20000000, MOST_RANKS = 64 };

static MPI_T_pvar_handle under_way, exposed;

static void pause_a_moment(void)
{
    struct timespec pause = {.tv_nsec = PAUSE_NS};

    nanosleep(&pause, NULL);
}

static double hidden(void)
{
    return pvar_seconds(under_way) - pvar_seconds(exposed);
}

static bool active(void)
{
    int flag;

    MPIX_Flash_active(MPI_COMM_WORLD, &flag);
    return flag != 0;
}

/* The allgather, to be called with buffers that it frees. */
static void gather(MPIX_Flash_compute_fn *consume, void *arg)
{
    double *send = get_memory(COUNT * sizeof(double));
    double *recv = get_memory(COUNT * sizeof(double) * (size_t) world_size);

    memset(send, 0, COUNT * sizeof(double));
    MPIX_Allgather_compute(send, COUNT, MPI_DOUBLE, recv, COUNT, MPI_DOUBLE, consume, arg, NULL,
                           MPI_COMM_WORLD);
    free(send);
    free(recv);
}

static int do_nothing(const MPIX_Flash_block *block, void *arg)
{
    (void) block;
    (void) arg;
    return MPI_SUCCESS;
}

/* Rank 0 comes late, and the others wait for it. */
static void wait_for_one(void)
{
    double before;

    MPI_Barrier(MPI_COMM_WORLD);
    before = pvar_seconds(exposed);
    if (world_rank == 0) {
        pause_a_moment();
    }
    gather(do_nothing, NULL);
    check(world_rank == 0 || !active() || pvar_seconds(exposed) > before, "%g s exposed, as before",
          before);
}

static int take_long(const MPIX_Flash_block *block, void *arg)
{
    (void) block;
    (void) arg;
    pause_a_moment();
    return MPI_SUCCESS;
}

static void compute_in_callbacks(void)
{
    double before = hidden(), computed = 1e-9 * PAUSE_NS * world_size;

    gather(take_long, NULL);
    check(!active() || hidden() - before >= computed, "%g s hidden of %g s", hidden() - before,
          computed);
}

/* A thread that computes elsewhere: begins when it has all pieces. */
typedef struct elsewhere {
    pthread_t thread;
    MPIX_Flash_handle pieces[MOST_RANKS];
    atomic_int given;
} elsewhere_t;

static void *compute_elsewhere(void *arg)
{
    elsewhere_t *elsewhere = arg;

    while (atomic_load_explicit(&elsewhere->given, memory_order_acquire) < world_size) {
        sched_yield();
    }
    pause_a_moment();
    for (int k = 0; k < world_size; k++) {
        MPIX_Flash_complete(elsewhere->pieces[k], MPI_SUCCESS);
    }
    return NULL;
}

static int give_away(const MPIX_Flash_block *block, void *arg)
{
    elsewhere_t *elsewhere = arg;
    int given = atomic_load_explicit(&elsewhere->given, memory_order_relaxed);

    elsewhere->pieces[given] = block->handle;
    atomic_store_explicit(&elsewhere->given, given + 1, memory_order_release);
    return MPIX_FLASH_PENDING;
}

static void compute_pending(void)
{
    elsewhere_t elsewhere = {.given = 0};
    double before = hidden(), computed = 1e-9 * PAUSE_NS;

    pthread_create(&elsewhere.thread, NULL, compute_elsewhere, &elsewhere);
    gather(give_away, &elsewhere);
    pthread_join(elsewhere.thread, NULL);
    check(!active() || hidden() - before >= computed, "%g s hidden of %g s", hidden() - before,
          computed);
}

static void measured(void (*run)(void))
{
    under_way = pvar_of("coll_flash_in_flight_seconds", MPI_T_PVAR_CLASS_TIMER, MPI_DOUBLE);
    exposed = pvar_of("coll_flash_exposed_seconds", MPI_T_PVAR_CLASS_TIMER, MPI_DOUBLE);
    run();
    pvar_free(&under_way);
    pvar_free(&exposed);
}

static void all(void)
{
    measured(wait_for_one);
    measured(compute_in_callbacks);
    measured(compute_pending);
}

static void times(void)
{
    pvars_with(all);
}

TEST_PROGRAM(test_exposed, MPI_THREAD_SINGLE, {"times", times});
