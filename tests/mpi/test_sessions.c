/*
 * test_sessions.c: communicators of sessions. They may be made before, while and after
 * MPI_COMM_WORLD is there, with which flash's ranks agree on what it does, so that flash leaves
 * them to the components below it; the extension works all the same.
 *
 * Argument: `alone`, without MPI_Init; `empty`, likewise, of a group that began as MPI_GROUP_EMPTY,
 * and has no instance in Open MPI 5.0; `again`, likewise, twice; `world`, within MPI_Init and
 * MPI_Finalize; `around`, around these. Open MPI 4.1 has no sessions. `again` takes an argument,
 * after how many seconds to give up. Then the exit status is 75: all was well, but for the second
 * session, which could not be had. Without flash, too, Open MPI 5.0.7 fails there in one job of 50
 * with two ranks: MPI_Session_init does not wait for the other rank, whose shared memory it then
 * does not find, or waits for its launcher for good.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <mpix_flash.h>

#include "keep_libraries.h"

#if OMPI_MAJOR_VERSION < 5
int main(void)
{
    return EXIT_FAILURE;
}
#else

enum { MOST_RANKS = 64, BLOCK = 1000, NOT_OPENED = 75 };

static volatile sig_atomic_t failures;

static void check(bool good, int rank, const char *what)
{
    if (!good) {
        fprintf(stderr, "rank %d: %s\n", rank, what);
        failures++;
    }
}

static bool is_gathered(const int *all, int size)
{
    for (int k = 0; k < size * BLOCK; k++) {
        if (all[k] != k) {
            return false;
        }
    }
    return true;
}

typedef struct seen {
    int rows;
    bool right;
} seen_t;

static int consume(const MPIX_Flash_block *block, void *arg)
{
    seen_t *seen = arg;
    const int *data = block->data;

    for (int k = 0; k < (int) block->count; k++) {
        seen->right &= data[k] == block->rank * BLOCK + (int) block->offset + k;
    }
    seen->rows += (int) block->count;
    return MPI_SUCCESS;
}

/* A plain call, waited for by MPI_Test, and one with callbacks. */
static void gather(MPI_Comm comm, bool served)
{
    static int all[MOST_RANKS * BLOCK];
    int own[BLOCK], rank, size, active, done = 0;
    seen_t seen = {.right = true};
    MPI_Request request;

    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    MPIX_Flash_active(comm, &active);
    check((active != 0) == (served && size > 1), rank, "MPIX_Flash_active says otherwise");
    for (int k = 0; k < BLOCK; k++) {
        own[k] = rank * BLOCK + k;
    }
    memset(all, 0, sizeof(all));
    MPI_Iallgather(own, BLOCK, MPI_INT, all, BLOCK, MPI_INT, comm, &request);
    while (!done) {
        MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    }
    check(is_gathered(all, size), rank, "MPI_Iallgather's result is wrong");
    memset(all, 0, sizeof(all));
    MPIX_Allgather_compute(own, BLOCK, MPI_INT, all, BLOCK, MPI_INT, consume, &seen, NULL, comm);
    check(is_gathered(all, size), rank, "MPIX_Allgather_compute's result is wrong");
    check(seen.right && seen.rows == size * BLOCK, rank, "its callbacks saw something else");
}

static int fail(const MPIX_Flash_block *block, void *arg)
{
    (void) block, (void) arg;
    return MPI_ERR_OTHER;
}

/* Its request is freed by this thread's next operation, which may be one of the next session. */
static void fail_last(MPI_Comm comm)
{
    static int all[MOST_RANKS];
    int own = 0, rank;
    MPI_Comm copy;

    MPI_Comm_rank(comm, &rank);
    MPI_Comm_dup(comm, &copy);
    MPI_Comm_set_errhandler(copy, MPI_ERRORS_RETURN);
    check(MPIX_Allgather_compute(&own, 1, MPI_INT, all, 1, MPI_INT, fail, NULL, NULL, copy) !=
              MPI_SUCCESS,
          rank, "a callback's error is lost");
    MPI_Comm_free(&copy);
}

static void check_type(bool there)
{
    MPI_Datatype type;
    bool got = MPIX_Flash_type(MPIX_FLASH_BF16, &type) == MPI_SUCCESS;

    check(got == there, -1, "MPIX_Flash_type says otherwise");
}

typedef struct opened {
    MPI_Session session;
    MPI_Comm comm;
} opened_t;

/* What the process ends with if a session cannot be had: of the first one, failure. */
static volatile sig_atomic_t status_without = EXIT_FAILURE;

static void give_up(int number)
{
    (void) number;
    _exit(failures > 0 ? EXIT_FAILURE : status_without);
}

/* Within so many seconds, if not 0. Of a group that is the session's, or was empty at first. */
static opened_t open_session(unsigned seconds, bool of_empty)
{
    opened_t opened;
    MPI_Group group, whole;

    alarm(seconds);
    if (MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &opened.session) != MPI_SUCCESS) {
        give_up(0);
    }
    alarm(0);
    MPI_Group_from_session_pset(opened.session, "mpi://WORLD", &group);
    if (of_empty) {
        MPI_Group_union(MPI_GROUP_EMPTY, group, &whole);
        MPI_Group_free(&group);
        group = whole;
    }
    MPI_Comm_create_from_group(group, "flash-test", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL,
                               &opened.comm);
    MPI_Group_free(&group);
    return opened;
}

static void use_session(const opened_t *opened)
{
    MPI_Comm copy;

    gather(opened->comm, false);
    MPI_Comm_dup(opened->comm, &copy);
    gather(copy, false);
    MPI_Comm_free(&copy);
    gather(opened->comm, false);
}

static void close_session(opened_t *opened)
{
    MPI_Comm_free(&opened->comm);
    MPI_Session_finalize(&opened->session);
}

/* What is made of MPI_COMM_WORLD's group without it has no number that all ranks share. */
static void use_world(void)
{
    MPI_Group group;
    MPI_Comm comm, copy;

    gather(MPI_COMM_WORLD, true);
    MPI_Comm_group(MPI_COMM_WORLD, &group);
    MPI_Comm_create_from_group(group, "flash-world", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
    gather(comm, false);
    MPI_Comm_create_group(MPI_COMM_WORLD, group, 0, &copy);
    gather(copy, true);
    MPI_Comm_free(&copy);
    MPI_Comm_free(&comm);
    MPI_Group_free(&group);
    check_type(true);
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "alone";
    bool world = strcmp(how, "world") == 0, around = strcmp(how, "around") == 0;
    opened_t opened;

    if (world) {
        MPI_Init(&argc, &argv);
    }
    signal(SIGALRM, give_up);
    opened = open_session(0, strcmp(how, "empty") == 0);
    use_session(&opened);
    if (around) {
        check_type(false);
        MPI_Init(&argc, &argv);
    }
    if (world || around) {
        use_world();
        use_session(&opened);
    }
    if (around) {
        MPI_Finalize();
        use_session(&opened);
    }
    if (!world) {
        check_type(false);
    }
    fail_last(opened.comm);
    close_session(&opened);
    if (strcmp(how, "again") == 0) {
        status_without = NOT_OPENED;
        opened = open_session(argc > 2 ? (unsigned) atoi(argv[2]) : 0, false);
        use_session(&opened);
        close_session(&opened);
    }
    if (world) {
        MPI_Finalize();
    }
    return failures > 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
#endif
