/*
 * test_sessions.c: communicators made from a session's group. Their numbers differ from rank to
 * rank, so that flash leaves them to the components below it; the extension works all the same.
 * What is made of them has a number that all ranks share, and is served, once MPI_COMM_WORLD is.
 *
 * Argument `world`: MPI_Init, too. Open MPI 4.1 has no sessions.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mpix_flash.h>

#if OMPI_MAJOR_VERSION < 5
int main(void)
{
    return EXIT_FAILURE;
}
#else

enum { MOST_RANKS = 64, BLOCK = 1000 };

static int failures;

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

int main(int argc, char **argv)
{
    bool world = argc > 1 && strcmp(argv[1], "world") == 0;
    MPI_Session session;
    MPI_Group group;
    MPI_Comm comm, copy;

    if (world) {
        MPI_Init(&argc, &argv);
    }
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
    MPI_Comm_create_from_group(group, "flash-test", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
    gather(comm, false);
    MPI_Comm_dup(comm, &copy);
    gather(copy, world);
    gather(comm, false);
    if (world) {
        gather(MPI_COMM_WORLD, true);
    }
    MPI_Comm_free(&copy);
    MPI_Comm_free(&comm);
    MPI_Group_free(&group);
    MPI_Session_finalize(&session);
    if (world) {
        MPI_Finalize();
    }
    return failures > 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
#endif
