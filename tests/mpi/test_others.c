/*
 * test_others.c: all that flash leaves to other components works under `--mca coll flash`, in a
 * program that knows nothing of flash.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "mpitest.h"
#include "persistent.h"

static int right, left, sum_of_ranks;

static void neighbours(void)
{
    right = (world_rank + 1) % world_size;
    left = (world_rank + world_size - 1) % world_size;
    sum_of_ranks = world_size * (world_size - 1) / 2;
}

static void blocking(void)
{
    int *all = get_memory(sizeof(int) * (size_t) world_size), value = world_rank, result = -1;
    int *ones = get_memory(sizeof(int) * (size_t) world_size);

    neighbours();
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Allreduce(&value, &result, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    check(result == sum_of_ranks, "MPI_Allreduce");
    MPI_Allgather(&value, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD);
    for (int rank = 0; rank < world_size; rank++) {
        check(all[rank] == rank, "MPI_Allgather");
        all[rank] = 100 * world_rank + rank;
        ones[rank] = 1;
    }
    MPI_Alltoall(MPI_IN_PLACE, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD);
    check(all[right] == 100 * right + world_rank, "MPI_Alltoall");
    MPI_Reduce_scatter(all, &result, ones, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    check(result == 100 * world_rank * world_size + sum_of_ranks, "MPI_Reduce_scatter");
    MPI_Reduce_scatter_block(ones, &result, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    check(result == world_size, "MPI_Reduce_scatter_block");
    MPI_Gather(&value, 1, MPI_INT, all, 1, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Scatter(all, 1, MPI_INT, &result, 1, MPI_INT, 0, MPI_COMM_WORLD);
    check(result == world_rank, "MPI_Gather or MPI_Scatter");
    MPI_Bcast(&value, 1, MPI_INT, world_size - 1, MPI_COMM_WORLD);
    check(value == world_size - 1, "MPI_Bcast");
    MPI_Scan(&world_rank, &result, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    check(result == world_rank * (world_rank + 1) / 2, "MPI_Scan");
    free(all);
    free(ones);
}

static void nonblocking(void)
{
    int value = world_rank, reduced = -1, scanned = -1, sent = world_size;
    MPI_Request requests[5];
    MPI_Comm copy;

    neighbours();
    MPI_Ibarrier(MPI_COMM_WORLD, &requests[0]);
    MPI_Iallreduce(&value, &reduced, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[1]);
    MPI_Ibcast(&sent, 1, MPI_INT, 0, MPI_COMM_WORLD, &requests[2]);
    MPI_Iscan(&value, &scanned, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD, &requests[3]);
    MPI_Comm_idup(MPI_COMM_WORLD, &copy, &requests[4]);
    MPI_Waitall(5, requests, MPI_STATUSES_IGNORE);
    check(reduced == sum_of_ranks && scanned == world_rank && sent == world_size, "wrong result");
    MPI_Allreduce(&value, &reduced, 1, MPI_INT, MPI_MAX, copy);
    check(reduced == world_size - 1, "a communicator made by MPI_Comm_idup");
    MPI_Comm_free(&copy);
}

static void topologies(void)
{
    int from[2] = {-1, -1}, to[2] = {10 * world_rank, 10 * world_rank + 1}, one = 1;
    MPI_Comm ring, graph;

    neighbours();
    MPI_Cart_create(MPI_COMM_WORLD, 1, &world_size, &one, 0, &ring);
    MPI_Neighbor_alltoall(to, 1, MPI_INT, from, 1, MPI_INT, ring);
    /* With two ranks both neighbours are the same, and either message may be meant. */
    check(world_size <= 2 || (from[0] == 10 * left + 1 && from[1] == 10 * right),
          "MPI_Neighbor_alltoall: %d %d", from[0], from[1]);
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &left, &one, 1, &right, &one, MPI_INFO_NULL,
                                   0, &graph);
    MPI_Neighbor_allgather(&world_rank, 1, MPI_INT, from, 1, MPI_INT, graph);
    check(from[0] == left, "MPI_Neighbor_allgather");
    MPI_Comm_free(&graph);
    MPI_Comm_free(&ring);
}

/* The two kinds of each operation between groups: `theirs` ranks there, `ours` here. */
typedef struct groups {
    MPI_Comm comm;
    int rank, ours, theirs;
    int *send, *recv, *counts, *displs;
} groups_t;

static int sent(int color, int rank, int index)
{
    return 10000 * color + 100 * rank + index;
}

static void gather_between(const groups_t *g, bool persistent)
{
    int other = 1 - world_rank % 2;
    MPI_Request request;

    for (int rank = 0; rank < g->theirs; rank++) {
        g->counts[rank] = rank + 1; /* as many as that rank sends */
        g->displs[rank] = 8 * (g->theirs - 1 - rank);
    }
    if (persistent) {
        MPI_Allgatherv_init(g->send, g->rank + 1, MPI_INT, g->recv, g->counts, g->displs, MPI_INT,
                            g->comm, MPI_INFO_NULL, &request);
        MPI_Start(&request);
    } else {
        MPI_Iallgatherv(g->send, g->rank + 1, MPI_INT, g->recv, g->counts, g->displs, MPI_INT,
                        g->comm, &request);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int rank = 0; rank < g->theirs; rank++) {
        for (int k = 0; k <= rank; k++) {
            check(g->recv[g->displs[rank] + k] == sent(other, rank, k),
                  "MPI_(I)allgatherv(_init) between groups: element %d of rank %d", k, rank);
        }
    }
    if (persistent) {
        MPI_Request_free(&request);
    }
}

/* Each group's operands are reduced, and scattered in the other: as many elements in both. */
static void reduce_between(const groups_t *g, bool persistent)
{
    int other = 1 - world_rank % 2, first = 0;
    MPI_Request request;

    for (int rank = 0; rank < g->ours; rank++) { /* unequal from two ranks on */
        bool last = rank == g->ours - 1;

        g->counts[rank] = g->ours > 1 ? g->theirs + (rank == 0) - last : g->theirs;
        first += rank < g->rank ? g->counts[rank] : 0;
    }
    if (persistent) {
        MPI_Reduce_scatter_init(g->send, g->recv, g->counts, MPI_INT, MPI_SUM, g->comm,
                                MPI_INFO_NULL, &request);
        MPI_Start(&request);
    } else {
        MPI_Ireduce_scatter(g->send, g->recv, g->counts, MPI_INT, MPI_SUM, g->comm, &request);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int k = 0; k < g->counts[g->rank]; k++) {
        int wanted = g->theirs * sent(other, 0, first + k) + 50 * g->theirs * (g->theirs - 1);

        check(g->recv[k] == wanted, "MPI_(I)reduce_scatter(_init) between groups: element %d is %d",
              k, g->recv[k]);
    }
    if (persistent) {
        MPI_Request_free(&request);
    }
}

static void inter_communicator(void)
{
    int local[64], remote[512], counts[64], displs[64];
    groups_t g = {.send = local, .recv = remote, .counts = counts, .displs = displs};
    MPI_Request request;
    MPI_Comm half;

    if (world_size < 2) {
        return;
    }
    MPI_Comm_split(MPI_COMM_WORLD, world_rank % 2, 0, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - world_rank % 2, 7, &g.comm);
    MPI_Comm_rank(g.comm, &g.rank);
    MPI_Comm_size(g.comm, &g.ours);
    MPI_Comm_remote_size(g.comm, &g.theirs);
    for (int k = 0; k < 64; k++) {
        local[k] = sent(world_rank % 2, g.rank, k);
    }
    MPI_Iallgather(local, 1, MPI_INT, remote, 1, MPI_INT, g.comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int k = 0; k < g.theirs; k++) {
        check(remote[k] == sent(1 - world_rank % 2, k, 0), "MPI_Iallgather between groups");
    }
    for (int persistent = 0; persistent < 2; persistent++) {
        gather_between(&g, persistent);
        reduce_between(&g, persistent);
    }
    MPI_Comm_free(&g.comm);
    MPI_Comm_free(&half);
}

/* All four operations of a rank with itself, from another buffer and in place. */
static void alone(void)
{
    for (int form = 0; form < 8; form++) {
        int send[3] = {form, 20, 30}, recv[5] = {-1, form, 20, 30, -1}, three = 3, zero = 0;
        const void *from = form % 2 ? MPI_IN_PLACE : send;
        MPI_Request request;

        if (form % 2 == 0) {
            memset(&recv[1], 0, sizeof(send));
        }
        switch (form / 2) {
        case 0:
            MPI_Iallgather(from, 3, MPI_INT, &recv[1], 3, MPI_INT, MPI_COMM_SELF, &request);
            break;
        case 1:
            MPI_Iallgatherv(from, 3, MPI_INT, &recv[1], &three, &zero, MPI_INT, MPI_COMM_SELF,
                            &request);
            break;
        case 2:
            MPI_Ireduce_scatter(from, &recv[1], &three, MPI_INT, MPI_SUM, MPI_COMM_SELF, &request);
            break;
        default:
            MPI_Ireduce_scatter_block(from, &recv[1], 3, MPI_INT, MPI_SUM, MPI_COMM_SELF, &request);
        }
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        check(memcmp(&recv[1], send, sizeof(send)) == 0 && recv[0] == -1 && recv[4] == -1,
              "form %d on MPI_COMM_SELF", form);
    }
}

/* Flash's own, large enough for its rings by default. */
static void own(void)
{
    enum { BLOCK = 512 * 1024 };
    unsigned char *send = get_memory(BLOCK), *recv = get_memory((size_t) world_size * BLOCK);
    MPI_Request request;

    fill_pattern(send, BLOCK, world_rank, 1);
    MPI_Iallgather(send, BLOCK, MPI_BYTE, recv, BLOCK, MPI_BYTE, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int rank = 0; rank < world_size; rank++) {
        check(is_pattern(recv + (size_t) rank * BLOCK, 0, BLOCK, rank, 1), "block %d", rank);
    }
    free(send);
    free(recv);
}

TEST_PROGRAM(test_others, MPI_THREAD_SINGLE, {"blocking", blocking}, {"nonblocking", nonblocking},
             {"topologies", topologies}, {"inter_communicator", inter_communicator},
             {"alone", alone}, {"own", own});
TEST_MAIN(test_others)
