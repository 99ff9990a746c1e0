/*
 * test_left.c: what an operation has sent goes on its way though it has ended and its rank stays out of MPI.
 *
 * Two ranks. Rank 1 makes files that tell rank 0 that all has come; FLASH_TEST_SIGNS is what their names
 * begin with.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <limits.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "mpitest.h"

enum { BYTES = (8 << 20) - 6400, ROUNDS = 3 };

static void sleep_ms(long ms)
{
    struct timespec pause = {ms / 1000, ms % 1000 * 1000000};

    nanosleep(&pause, NULL);
}

static void name_sign(const char *call, int round, char name[PATH_MAX])
{
    const char *signs = getenv("FLASH_TEST_SIGNS");

    check(signs != NULL, "FLASH_TEST_SIGNS");
    snprintf(name, PATH_MAX, "%s-%s-%d", signs, call, round);
}

/* Without MPI, and without end if the rest does not leave. */
static void await_sign(const char *call, int round)
{
    char name[PATH_MAX];

    name_sign(call, round, name);
    while (access(name, F_OK) != 0) {
        sleep_ms(1);
    }
}

static void give_sign(const char *call, int round)
{
    char name[PATH_MAX];
    FILE *file;

    name_sign(call, round, name);
    file = fopen(name, "w");
    check(file != NULL && fclose(file) == 0, "%s: cannot be written", name);
}

/* Slow enough for the sender to be ahead by what the sockets take. */
static void receive_slowly(MPI_Request *request)
{
    for (int flag = 0; !flag; sleep_ms(3)) {
        MPI_Test(request, &flag, MPI_STATUS_IGNORE);
    }
}

static void run(const char *call, void (*start)(unsigned char *block, MPI_Request *request))
{
    unsigned char *block = get_memory(BYTES + 1);
    MPI_Request request;

    for (int round = 0; round < ROUNDS; round++) {
        memset(block, 0, BYTES + 1);
        if (world_rank == 0) {
            fill_pattern(block, BYTES, 0, (unsigned) round);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        start(block, &request);
        if (world_rank == 0) {
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            await_sign(call, round);
        } else {
            receive_slowly(&request);
            check(is_pattern(block, 0, BYTES, 0, (unsigned) round), "%s, round %d: wrong", call,
                  round);
            give_sign(call, round);
        }
    }
    free(block);
}

static void start_bcast(unsigned char *block, MPI_Request *request)
{
    MPI_Ibcast(block, BYTES, MPI_BYTE, 0, MPI_COMM_WORLD, request);
}

static void bcast(void)
{
    run("bcast", start_bcast);
}

/* Rank 0 has received all long before all of its block has left. */
static void start_allgatherv(unsigned char *blocks, MPI_Request *request)
{
    static const int counts[] = {BYTES, 1}, displs[] = {0, BYTES};

    MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_BYTE, blocks, counts, displs, MPI_BYTE, MPI_COMM_WORLD,
                    request);
}

static void allgatherv(void)
{
    run("allgatherv", start_allgatherv);
}

TEST_PROGRAM(test_left, MPI_THREAD_SINGLE, {"bcast", bcast}, {"allgatherv", allgatherv});
