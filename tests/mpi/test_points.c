/*
 * test_points.c: for points.sh, which is about what becomes of points that share a job: one that
 * fails, one that dies, one that hangs; and what a point's settings reach.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <signal.h>
#include <time.h>

#include "mpitest.h"

static void passes(void)
{
    check(world_size > 0, "no ranks");
}

static void fails(void)
{
    check(world_rank != 1, "this rank fails");
}

static void dies(void)
{
    if (world_rank == 1) {
        raise(SIGKILL);
    }
}

static int die(MPI_Comm comm, int key, void *value, void *extra)
{
    (void) comm;
    (void) key;
    (void) value;
    (void) extra;
    if (world_rank == 1) {
        raise(SIGKILL);
    }
    return MPI_SUCCESS;
}

/* MPI_Finalize frees MPI_COMM_SELF first. */
static void dies_at_end(void)
{
    int key;

    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, die, &key, NULL);
    MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
    MPI_Comm_free_keyval(&key);
}

/*
 * On all ranks: one that waits for another in MPI uses up its processor time as well, and may be
 * the first to say so. ThreadSanitizer delivers a signal with the next call that it intercepts.
 */
static void hangs(void)
{
    volatile bool hanging = true;
    struct timespec now;

    while (hanging) {
        clock_gettime(CLOCK_MONOTONIC, &now);
    }
}

/* What the communicator holds for a key; NULL: it has none. */
static const char *key_of(MPI_Comm comm, const char *key)
{
    static char value[MPI_MAX_INFO_VAL + 1];
    MPI_Info info;
    int found;

    MPI_Comm_get_info(comm, &info);
    MPI_Info_get(info, (char *) (uintptr_t) key, MPI_MAX_INFO_VAL, value, &found);
    MPI_Info_free(&info);
    return found ? value : NULL;
}

static void expect_key(MPI_Comm comm, const char *what)
{
    const char *wanted = getenv("FLASH_TEST_EXPECTED");
    const char *found = key_of(comm, "mpix_flash_segment_bytes");

    check(found != NULL && strcmp(found, wanted) == 0, "%s: %s, not %s", what,
          found == NULL ? "no key" : found, wanted);
}

/* FLASH_TEST_EXPECTED bytes to a segment, of each communicator. */
static void segment(void)
{
    MPI_Comm comm;

    expect_key(MPI_COMM_WORLD, "MPI_COMM_WORLD");
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    expect_key(comm, "a duplicate");
    MPI_Comm_free(&comm);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -world_rank, &comm);
    expect_key(comm, "one that was split off");
    MPI_Comm_free(&comm);
}

TEST_PROGRAM(test_points, MPI_THREAD_SINGLE, {"passes", passes}, {"fails", fails}, {"dies", dies},
             {"dies_at_end", dies_at_end}, {"hangs", hangs}, {"segment", segment});
