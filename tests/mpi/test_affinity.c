/*
 * test_affinity.c: where the threads of a rank may run: all of them where the rank may (`inside`),
 * or one of them, flash's progress thread, elsewhere (`outside`). For jobs whose ranks are bound.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "mpitest.h"

#include <dirent.h>
#include <sched.h>
#include <time.h>

/* The progress thread starts with the first ring. */
static void exchange(void)
{
    enum { LENGTH_OF_BLOCK = 1 << 16 };
    int *mine = get_memory(LENGTH_OF_BLOCK * sizeof(int));
    int *all = get_memory((size_t) world_size * LENGTH_OF_BLOCK * sizeof(int));
    MPI_Request request;
    int wrong = 0;

    for (int k = 0; k < LENGTH_OF_BLOCK; k++) {
        mine[k] = world_rank + k;
    }
    MPI_Iallgather(mine, LENGTH_OF_BLOCK, MPI_INT, all, LENGTH_OF_BLOCK, MPI_INT, MPI_COMM_WORLD,
                   &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int k = 0; k < world_size * LENGTH_OF_BLOCK; k++) {
        wrong += all[k] != k / LENGTH_OF_BLOCK + k % LENGTH_OF_BLOCK;
    }
    check(wrong == 0, "%d elements are wrong", wrong);
    free(mine);
    free(all);
}

/* How many threads may run where the first one, this one, may not. */
static int threads_outside(void)
{
    DIR *threads = opendir("/proc/self/task");
    int outside = 0;
    cpu_set_t own;

    check(threads != NULL && sched_getaffinity(0, sizeof(own), &own) == 0, "no masks");
    for (struct dirent *entry; threads != NULL && (entry = readdir(threads)) != NULL;) {
        pid_t thread = (pid_t) atoi(entry->d_name);
        cpu_set_t mask, both;

        if (thread > 0 && sched_getaffinity(thread, sizeof(mask), &mask) == 0) {
            CPU_AND(&both, &mask, &own);
            outside += !CPU_EQUAL(&both, &mask);
        }
    }
    if (threads != NULL) {
        closedir(threads);
    }
    return outside;
}

/*
 * A thread that has just started may not have bound itself yet: that takes no processor time worth
 * naming.
 */
static int threads_outside_at_last(int expected)
{
    int outside = threads_outside();

    for (int tries = 0; outside != expected && tries < 1000; tries++) {
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
        outside = threads_outside();
    }
    return outside;
}

static void inside(void)
{
    exchange();
    exchange();
    nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
    check(threads_outside() == 0, "%d threads may run elsewhere", threads_outside());
}

/* The first rank has the first choice; the machine may have no hardware thread for the others. */
static void outside(void)
{
    int threads;

    exchange();
    if (world_rank == 0) {
        threads = threads_outside_at_last(1);
        check(threads == 1, "%d threads may run elsewhere", threads);
    }
}

TEST_PROGRAM(test_affinity, MPI_THREAD_SINGLE, {"inside", inside}, {"outside", outside});
