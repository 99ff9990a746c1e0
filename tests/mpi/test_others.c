/*
 * test_others.c: all that flash leaves to other components works under `--mca coll flash`, in a
 * program that knows nothing of flash.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "mpitest.h"

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

static void inter_communicator(void)
{
    int theirs[64], count;
    MPI_Request request;
    MPI_Comm half, inter;

    if (world_size < 2) {
        return;
    }
    MPI_Comm_split(MPI_COMM_WORLD, world_rank % 2, 0, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - world_rank % 2, 7, &inter);
    MPI_Comm_remote_size(inter, &count);
    MPI_Iallgather(&world_rank, 1, MPI_INT, theirs, 1, MPI_INT, inter, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int k = 0; k < count; k++) {
        check(theirs[k] == 2 * k + 1 - world_rank % 2, "MPI_Iallgather between groups");
    }
    MPI_Comm_free(&inter);
    MPI_Comm_free(&half);
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

int main(int argc, char **argv)
{
    static const test_case_t cases[] = {{"blocking", blocking},
                                        {"nonblocking", nonblocking},
                                        {"topologies", topologies},
                                        {"inter_communicator", inter_communicator},
                                        {"own", own}};

    return run_cases(argc, argv, MPI_THREAD_SINGLE, cases, LENGTH(cases));
}
