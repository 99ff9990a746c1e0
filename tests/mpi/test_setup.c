/*
 * test_setup.c: communicators that are set up by their first calls: what MPI_Init leaves undone, calls
 * that do not wait for a rank that is late, and calls of all kinds in between, which go by other ways.
 *
 * A program that knows nothing of flash.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "mpitest.h"
#include "persistent.h"

enum { COUNT = 16384, THREADS = 3 }; /* ints of a block */

/* What a round of calls sends and receives. */
typedef struct round {
    MPI_Comm comm;
    int rank, size, salt;
    int *sent, *spread, *gathered, *again, *exchanged, *reduced, *block, *passed, *collected,
        *summed;
    int scanned;
    MPI_Request requests[10];
    int calls;
} round_t;

static int *ints(size_t count)
{
    return get_memory(count * sizeof(int));
}

static void open_round(round_t *round, MPI_Comm comm, int salt)
{
    size_t all;

    round->comm = comm;
    round->salt = salt;
    round->calls = 0;
    round->scanned = -1;
    MPI_Comm_rank(comm, &round->rank);
    MPI_Comm_size(comm, &round->size);
    all = (size_t) round->size * COUNT;
    round->sent = ints(COUNT);
    round->spread = ints(all);
    round->gathered = ints(all);
    round->again = ints(all);
    round->exchanged = ints(all);
    round->reduced = ints(COUNT);
    round->block = ints(COUNT);
    round->passed = ints(COUNT);
    round->collected = ints(all);
    round->summed = ints(COUNT);
    for (int k = 0; k < COUNT; k++) {
        round->sent[k] = 1000 * round->rank + k % 97 + salt;
        round->passed[k] = round->rank == 0 ? k + salt : -1;
    }
    for (size_t k = 0; k < all; k++) {
        round->spread[k] = 10 * round->rank + (int) (k / COUNT) + salt;
        round->gathered[k] = round->again[k] = round->exchanged[k] = round->collected[k] = -1;
    }
}

/* None of them may wait for another rank. */
static void call_all(round_t *round)
{
    MPI_Request *next = round->requests;
    MPI_Comm comm = round->comm;

    MPI_Iallgather(round->sent, COUNT, MPI_INT, round->gathered, COUNT, MPI_INT, comm, next++);
    MPI_Ibarrier(comm, next++);
    MPI_Iallreduce(round->sent, round->reduced, COUNT, MPI_INT, MPI_SUM, comm, next++);
    MPI_Iscan(&round->rank, &round->scanned, 1, MPI_INT, MPI_SUM, comm, next++);
    MPI_Ialltoall(round->spread, COUNT, MPI_INT, round->exchanged, COUNT, MPI_INT, comm, next++);
    MPI_Iallgather(round->sent, COUNT, MPI_INT, round->again, COUNT, MPI_INT, comm, next++);
    MPI_Ireduce_scatter_block(round->spread, round->block, COUNT, MPI_INT, MPI_SUM, comm, next++);
    MPI_Ibcast(round->passed, COUNT, MPI_INT, 0, comm, next++);
    MPI_Igather(round->sent, COUNT, MPI_INT, round->collected, COUNT, MPI_INT, round->size - 1,
                comm, next++);
    MPI_Ireduce(round->sent, round->summed, COUNT, MPI_INT, MPI_SUM, 0, comm, next++);
    round->calls = (int) (next - round->requests);
}

static bool all_gathered(const round_t *round, const int *gathered)
{
    bool good = true;

    for (int k = 0; k < round->size * COUNT; k++) {
        good &= gathered[k] == 1000 * (k / COUNT) + k % COUNT % 97 + round->salt;
    }
    return good;
}

static void end_round(round_t *round)
{
    int size = round->size, ranks = size * (size - 1) / 2;
    bool reduced = true, exchanged = true, block = true, passed = true, summed = true;

    MPI_Waitall(round->calls, round->requests, MPI_STATUSES_IGNORE);
    for (int k = 0; k < COUNT; k++) {
        int sum = 1000 * ranks + size * (k % 97 + round->salt);

        reduced &= round->reduced[k] == sum;
        summed &= round->rank != 0 || round->summed[k] == sum;
        block &= round->block[k] == 10 * ranks + size * (round->rank + round->salt);
        passed &= round->passed[k] == k + round->salt;
    }
    for (int k = 0; k < size * COUNT; k++) {
        exchanged &= round->exchanged[k] == 10 * (k / COUNT) + round->rank + round->salt;
    }
    check(all_gathered(round, round->gathered), "the first MPI_Iallgather");
    check(all_gathered(round, round->again), "the second MPI_Iallgather");
    check(round->rank != size - 1 || all_gathered(round, round->collected), "MPI_Igather");
    check(reduced, "MPI_Iallreduce");
    check(summed, "MPI_Ireduce");
    check(exchanged, "MPI_Ialltoall");
    check(block, "MPI_Ireduce_scatter_block");
    check(passed, "MPI_Ibcast");
    check(round->scanned == round->rank * (round->rank + 1) / 2, "MPI_Iscan");
    free(round->sent), free(round->spread), free(round->gathered), free(round->again);
    free(round->exchanged), free(round->reduced), free(round->block), free(round->passed);
    free(round->collected), free(round->summed);
}

/* The rank `late` makes its calls when all others say that they have made theirs; none: -1. */
static void run_round(MPI_Comm comm, int late, int salt)
{
    round_t round;
    int token = 0;

    open_round(&round, comm, salt);
    for (int rank = 0; round.rank == late && rank < round.size; rank++) {
        if (rank != late) {
            MPI_Recv(&token, 1, MPI_INT, rank, salt, comm, MPI_STATUS_IGNORE);
        }
    }
    call_all(&round);
    if (late >= 0 && round.rank != late) {
        MPI_Send(&token, 1, MPI_INT, late, salt, comm);
    }
    end_round(&round);
}

static bool ucx_is_loaded(void)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[1024];
    bool found = false;

    while (maps != NULL && fgets(line, sizeof(line), maps) != NULL) {
        found |= strstr(line, "/flash_ucx.so") != NULL;
    }
    if (maps != NULL) {
        fclose(maps);
    }
    return found;
}

/* The first case: nothing is loaded until a call goes by messages of flash's. */
static void opens(void)
{
    int value = world_rank, sum = -1;

    check(!ucx_is_loaded(), "MPI_Init has loaded UCX");
    MPI_Reduce(&value, &sum, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    check(!ucx_is_loaded(), "calls that flash does not serve have loaded UCX");
    run_round(MPI_COMM_WORLD, -1, 1);
    check(world_size == 1 || ucx_is_loaded(), "UCX is not loaded");
}

static void late(void)
{
    MPI_Comm comm;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    run_round(comm, world_size - 1, 2);
    run_round(comm, 0, 3);
    run_round(comm, -1, 4);
    MPI_Comm_free(&comm);
}

/* The last rank comes after three seconds. */
static void slow(void)
{
    MPI_Comm comm;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    if (world_rank == world_size - 1) {
        sleep(3);
    }
    run_round(comm, -1, 10);
    MPI_Comm_free(&comm);
}

/* Two communicators at a time, of some ranks each. */
static void two_communicators(bool free_early)
{
    MPI_Comm half, copy;
    round_t first, second;

    MPI_Comm_split(MPI_COMM_WORLD, world_rank % 2, -world_rank, &half);
    MPI_Comm_dup(half, &copy);
    open_round(&first, half, 5);
    open_round(&second, copy, 6);
    /* MPI has ranks call collectives of two communicators in any order, if they do not block. */
    call_all(world_rank / 2 % 2 == 0 ? &first : &second);
    call_all(world_rank / 2 % 2 == 0 ? &second : &first);
    if (free_early) {
        /* libnbc's requests do not keep the communicator; flash's do. */
        MPI_Waitall(4, first.requests, MPI_STATUSES_IGNORE);
        MPI_Waitall(4, second.requests, MPI_STATUSES_IGNORE);
        MPI_Comm_free(&half);
        MPI_Comm_free(&copy);
    }
    end_round(&second);
    end_round(&first);
    if (!free_early) {
        MPI_Comm_free(&half);
        MPI_Comm_free(&copy);
    }
}

static void communicators(void)
{
    two_communicators(false);
}

static void freed(void)
{
    two_communicators(true);
}

/*
 * What Open MPI sends on the communicator while it makes another one is not taken for a set-up's
 * message: one rank makes its call before, the other one behind.
 */
static void beside_intercomm(void)
{
    unsigned char sent[4096], gathered[64 * 4096];
    MPI_Request request;
    MPI_Comm comm, inter;

    MPI_Comm_split(MPI_COMM_WORLD, world_rank < 2 ? 0 : MPI_UNDEFINED, world_rank, &comm);
    if (comm == MPI_COMM_NULL) {
        return;
    }
    fill_pattern(sent, sizeof(sent), world_rank, 11);
    if (world_rank == 0) {
        MPI_Iallgather(sent, sizeof(sent), MPI_BYTE, gathered, sizeof(sent), MPI_BYTE, comm,
                       &request);
    }
    MPI_Intercomm_create(MPI_COMM_SELF, 0, comm, 1 - world_rank, 7, &inter);
    if (world_rank == 1) {
        MPI_Iallgather(sent, sizeof(sent), MPI_BYTE, gathered, sizeof(sent), MPI_BYTE, comm,
                       &request);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int rank = 0; rank < 2; rank++) {
        check(is_pattern(gathered + rank * sizeof(sent), 0, sizeof(sent), rank, 11), "block %d",
              rank);
    }
    MPI_Comm_free(&inter);
    MPI_Comm_free(&comm);
}

/* These may wait for other ranks. */
static void waiting(void)
{
    size_t all = (size_t) world_size * COUNT;
    int *gathered = ints(all), *sent = ints(COUNT), *sums = ints(COUNT);
    MPI_Request request;
    MPI_Comm comm;
    bool good = true;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (int k = 0; k < COUNT; k++) {
        sent[k] = world_rank + k;
    }
    MPI_Allgather_init(sent, COUNT, MPI_INT, gathered, COUNT, MPI_INT, comm, MPI_INFO_NULL,
                       &request);
    for (int round = 0; round < 2; round++) {
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        for (size_t k = 0; k < all; k++) {
            good &= gathered[k] == (int) (k / COUNT + k % COUNT);
            gathered[k] = -1;
        }
    }
    MPI_Request_free(&request);
    check(good, "MPI_Allgather_init");
    MPI_Comm_free(&comm);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Allreduce(sent, sums, COUNT, MPI_INT, MPI_SUM, comm);
    for (int k = 0; k < COUNT; k++) {
        good &= sums[k] == world_size * (world_size - 1) / 2 + world_size * k;
    }
    check(good, "MPI_Allreduce");
    run_round(comm, -1, 7);
    MPI_Comm_free(&comm);
    free(gathered);
    free(sent);
    free(sums);
}

static void *in_thread(void *comm)
{
    run_round(*(MPI_Comm *) comm, -1, 8);
    run_round(*(MPI_Comm *) comm, -1, 9);
    return NULL;
}

static void threads(void)
{
    pthread_t running[THREADS];
    MPI_Comm comms[THREADS];
    int level;

    MPI_Query_thread(&level);
    if (level < MPI_THREAD_MULTIPLE) {
        return;
    }
    for (int k = 0; k < THREADS; k++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[k]);
    }
    for (int k = 0; k < THREADS; k++) {
        pthread_create(&running[k], NULL, in_thread, &comms[k]);
    }
    for (int k = 0; k < THREADS; k++) {
        pthread_join(running[k], NULL);
        MPI_Comm_free(&comms[k]);
    }
}

TEST_PROGRAM(test_setup, MPI_THREAD_SINGLE, {"opens", opens}, {"late", late},
             {"communicators", communicators}, {"freed", freed},
             {"beside_intercomm", beside_intercomm}, {"waiting", waiting}, {"threads", threads},
             {"slow", slow});
TEST_MAIN(test_setup)
