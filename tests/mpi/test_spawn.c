/*
 * test_spawn.c: jobs that meet: MPI_Comm_spawn, MPI_Comm_connect. Flash serves communicators within
 * one job, and passes on what spans two; both at the same time, in both jobs.
 *
 * FLASH_TEST_ACTIVE=0 in the environment: flash serves none.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <errno.h>
#include <mpix_flash.h>

#include "mpitest.h"
#include "persistent.h"

enum { CHILDREN = 2, BLOCK = 40000 }; /* large enough for rings, see spawn.sh */

static char *program;
static bool good = true; /* nothing went wrong in this process since it was last asked */

static void expect(bool right, const char *what)
{
    good &= check(right, "%s", what);
}

/* The other job's failures count, too: its exit status does not. */
static void agree(MPI_Comm comm)
{
    int mine = good, all;

    MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, comm);
    check(all, "something is wrong in some process");
    good = true;
}

static int64_t element(int number, int rank, int index)
{
    return 1000000 * (int64_t) number + 1000 * rank + index;
}

static void fill(int64_t *send, int count, int number, int rank)
{
    for (int k = 0; k < count; k++) {
        send[k] = element(number, rank, k);
    }
}

/* Blocks of ranks 0, 1, ... */
static bool is_gathered(const int64_t *recv, int ranks, int number)
{
    for (int k = 0; k < ranks * BLOCK; k++) {
        if (recv[k] != element(number, k / BLOCK, k % BLOCK)) {
            return false;
        }
    }
    return true;
}

static bool is_reduced(const int64_t *recv, int first, int count, int ranks, int number)
{
    for (int k = 0; k < count; k++) {
        if (recv[k] != ranks * element(number, 0, first + k) + 1000 * ranks * (ranks - 1) / 2) {
            return false;
        }
    }
    return true;
}

static int nothing(const MPIX_Flash_block *block, void *arg)
{
    (void) block;
    (void) arg;
    return MPI_SUCCESS;
}

/* All operations that flash takes over, and one of the extension's, on an intra-communicator. */
static void intra(MPI_Comm comm, const char *what)
{
    int rank, size;
    int64_t *send, *recv;
    MPI_Request request;

    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    send = get_memory((size_t) size * BLOCK * sizeof(int64_t));
    recv = get_memory((size_t) size * BLOCK * sizeof(int64_t));
    fill(send, size * BLOCK, 1, rank);
    MPI_Iallgather(send, BLOCK, MPI_INT64_T, recv, BLOCK, MPI_INT64_T, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect(is_gathered(recv, size, 1), what);
    MPI_Ireduce_scatter_block(send, recv, BLOCK, MPI_INT64_T, MPI_SUM, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect(is_reduced(recv, rank * BLOCK, BLOCK, size, 1), what);
    MPI_Allgather_init(send, BLOCK, MPI_INT64_T, recv, BLOCK, MPI_INT64_T, comm, MPI_INFO_NULL,
                       &request);
    for (int round = 2; round < 4; round++) {
        fill(send, BLOCK, round, rank);
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        expect(is_gathered(recv, size, round), what);
    }
    MPI_Request_free(&request);
    fill(send, BLOCK, 4, rank);
    MPIX_Allgather_compute(send, BLOCK, MPI_INT64_T, recv, BLOCK, MPI_INT64_T, nothing, NULL, NULL,
                           comm);
    expect(is_gathered(recv, size, 4), what);
    free(send);
    free(recv);
}

/* The same between two groups. */
static void inter(MPI_Comm comm)
{
    int rank, size, remote;
    int64_t *send, *recv;
    MPI_Request request;

    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    MPI_Comm_remote_size(comm, &remote);
    send = get_memory((size_t) (size * remote) * BLOCK * sizeof(int64_t));
    recv = get_memory((size_t) (size + remote) * BLOCK * sizeof(int64_t));
    fill(send, size * remote * BLOCK, 5, rank);
    MPI_Iallgather(send, BLOCK, MPI_INT64_T, recv, BLOCK, MPI_INT64_T, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect(is_gathered(recv, remote, 5), "MPI_Iallgather between groups");
    /* As many elements in all to each group: size * (remote * BLOCK) = remote * (size * BLOCK). */
    MPI_Ireduce_scatter_block(send, recv, remote * BLOCK / 10, MPI_INT64_T, MPI_SUM, comm,
                              &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect(is_reduced(recv, rank * remote * BLOCK / 10, remote * BLOCK / 10, remote, 5),
           "MPI_Ireduce_scatter_block between groups");
    MPI_Allgather_init(send, BLOCK, MPI_INT64_T, recv, BLOCK, MPI_INT64_T, comm, MPI_INFO_NULL,
                       &request);
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Request_free(&request);
    expect(is_gathered(recv, remote, 5), "MPI_Allgather_init between groups");
    free(send);
    free(recv);
}

static void expect_active(MPI_Comm comm, bool one_job, const char *what)
{
    const char *value = getenv("FLASH_TEST_ACTIVE");
    bool wanted = one_job && (value == NULL || strcmp(value, "0") != 0);
    int active, size;

    MPI_Comm_size(comm, &size);
    MPIX_Flash_active(comm, &active);
    expect(active == (wanted && size > 1), what);
}

/* Both groups of an inter-communicator, of one job or of two, call this; it disconnects them. */
static void meet(MPI_Comm between, bool first, bool one_job)
{
    MPI_Comm merged, half, again;

    inter(between);
    MPI_Intercomm_merge(between, !first, &merged);
    expect_active(merged, one_job, "MPIX_Flash_active of the merged communicator");
    intra(merged, "an operation of the merged communicator");
    intra(MPI_COMM_WORLD, "an operation of one of the jobs that have met");
    MPI_Comm_split(merged, first, 0, &half);
    expect_active(half, true, "MPIX_Flash_active of one job's part");
    intra(half, "an operation of one job's part of the merged communicator");
    MPI_Comm_dup(merged, &again);
    intra(again, "an operation of the merged communicator's duplicate");
    agree(merged);
    MPI_Comm_free(&again);
    MPI_Comm_free(&half);
    MPI_Comm_free(&merged); /* MPI_Comm_disconnect of it never returns in Open MPI 4.1 */
    MPI_Comm_disconnect(&between);
    intra(MPI_COMM_WORLD, "an operation of one of the jobs that have parted");
}

static MPI_Comm spawn(char *role)
{
    char *arguments[] = {role, NULL};
    MPI_Comm between;

    MPI_Comm_spawn(program, arguments, CHILDREN, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &between,
                   MPI_ERRCODES_IGNORE);
    return between;
}

static void spawned(void)
{
    for (int round = 0; round < 2; round++) {
        meet(spawn("child"), true, false);
    }
}

/* Not a case of its own: what `spawned` starts. */
static void child(void)
{
    MPI_Comm parent;

    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL) {
        meet(parent, false, false);
    }
}

/* The two halves of this job meet as if they were strangers. */
static void halves(void)
{
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm half, between;

    if (world_size < 2) {
        return;
    }
    MPI_Comm_split(MPI_COMM_WORLD, world_rank % 2, 0, &half);
    if (world_rank == 0) {
        MPI_Open_port(MPI_INFO_NULL, port);
    }
    MPI_Bcast(port, sizeof(port), MPI_CHAR, 0, MPI_COMM_WORLD);
    if (world_rank % 2 == 0) {
        MPI_Comm_accept(port, MPI_INFO_NULL, 0, half, &between);
    } else {
        MPI_Comm_connect(port, MPI_INFO_NULL, 0, half, &between);
    }
    meet(between, world_rank % 2 == 0, true);
    if (world_rank == 0) {
        MPI_Close_port(port);
    }
    MPI_Comm_free(&half);
}

/* A job that knows this one by the name of a port. */
static void connected(void)
{
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm parents, between;

    if (world_rank == 0) {
        MPI_Open_port(MPI_INFO_NULL, port);
    }
    parents = spawn("caller");
    MPI_Bcast(port, sizeof(port), MPI_CHAR, world_rank == 0 ? MPI_ROOT : MPI_PROC_NULL, parents);
    MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &between);
    meet(between, true, false);
    MPI_Comm_disconnect(&parents);
    if (world_rank == 0) {
        MPI_Close_port(port);
    }
}

static void caller(void)
{
    char port[MPI_MAX_PORT_NAME];
    MPI_Comm parent, between;

    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL) {
        MPI_Bcast(port, sizeof(port), MPI_CHAR, 0, parent);
        MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &between);
        meet(between, false, false);
        MPI_Comm_disconnect(&parent);
    }
}

/* Made by its members alone, in which not all of a communicator take part. */
static void create_group(void)
{
    MPI_Group all, some;
    MPI_Comm comm;
    int ranges[1][3] = {{world_size - 1, 1, -1}};

    if (world_size < 3) {
        return;
    }
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_range_incl(all, 1, ranges, &some);
    for (int round = 0; round < 3 && world_rank > 0; round++) {
        MPI_Comm_create_group(MPI_COMM_WORLD, some, 5 + round, &comm);
        expect_active(comm, true, "MPIX_Flash_active after MPI_Comm_create_group");
        intra(comm, "an operation after MPI_Comm_create_group");
        MPI_Comm_free(&comm);
    }
    MPI_Group_free(&some);
    MPI_Group_free(&all);
}

static void find_program(void)
{
    program = program_invocation_name;
}

TEST_PROGRAM_WITH(test_spawn, MPI_THREAD_SINGLE, find_program, NULL, {"spawned", spawned},
                  {"child", child}, {"halves", halves}, {"connected", connected},
                  {"caller", caller}, {"create_group", create_group});
TEST_MAIN(test_spawn)
