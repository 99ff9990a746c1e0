/*
 * test_empty_types.c: elements without data, of an extent all the same: nothing is sent, reduced or
 * written, and each operation completes.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "mpitest.h"
#include "persistent.h"

enum { COUNT = 9, EXTENT = 8 };

enum {
    ALLGATHER,
    ALLGATHERV,
    REDUCE_SCATTER,
    REDUCE_SCATTER_BLOCK,
    ALLREDUCE,
    BCAST,
    REDUCE,
    GATHER,
    SCATTER,
    ALLTOALL,
    ALLTOALLV,
    GATHERV,
    SCATTERV,
    KINDS
};
enum { ROOT = 0 };

/* What all calls get. */
static struct arguments {
    MPI_Datatype none;
    MPI_Op op;
    int *counts, *displs;
    unsigned char *send, *recv;
} use;

static void do_nothing(void *in, void *inout, int *length, MPI_Datatype *type)
{
    (void) in;
    (void) inout;
    (void) length;
    (void) type;
}

static void make_arguments(void)
{
    size_t bytes = (size_t) world_size * COUNT * EXTENT;
    MPI_Datatype nothing;

    MPI_Type_contiguous(0, MPI_INT, &nothing);
    MPI_Type_create_resized(nothing, 0, EXTENT, &use.none);
    MPI_Type_commit(&use.none);
    MPI_Type_free(&nothing);
    MPI_Op_create(do_nothing, 1, &use.op);
    use.counts = get_memory((size_t) world_size * sizeof(int));
    use.displs = get_memory((size_t) world_size * sizeof(int));
    for (int rank = 0; rank < world_size; rank++) {
        use.counts[rank] = COUNT;
        use.displs[rank] = COUNT * rank;
    }
    use.send = get_memory(bytes);
    use.recv = get_memory(bytes);
    fill_pattern(use.send, bytes, world_rank, 1);
    fill_pattern(use.recv, bytes, world_rank, 2);
}

static void check_and_free_arguments(void)
{
    size_t bytes = (size_t) world_size * COUNT * EXTENT;

    check(is_pattern(use.send, 0, bytes, world_rank, 1), "the send buffer has changed");
    check(is_pattern(use.recv, 0, bytes, world_rank, 2), "the receive buffer has changed");
    MPI_Type_free(&use.none);
    MPI_Op_free(&use.op);
    free(use.counts);
    free(use.displs);
    free(use.send);
    free(use.recv);
}

/* In place at the root alone. */
static const void *roots(const void *send)
{
    return world_rank == ROOT ? send : use.send;
}

static void *scattered_to(const void *send)
{
    return world_rank == ROOT && send == MPI_IN_PLACE ? MPI_IN_PLACE : use.recv;
}

static int post(int kind, const void *send, MPI_Request *request)
{
    switch (kind) {
    case ALLGATHER:
        return MPI_Iallgather(send, COUNT, use.none, use.recv, COUNT, use.none, MPI_COMM_WORLD,
                              request);
    case ALLGATHERV:
        return MPI_Iallgatherv(send, COUNT, use.none, use.recv, use.counts, use.displs, use.none,
                               MPI_COMM_WORLD, request);
    case REDUCE_SCATTER:
        return MPI_Ireduce_scatter(send, use.recv, use.counts, use.none, use.op, MPI_COMM_WORLD,
                                   request);
    case REDUCE_SCATTER_BLOCK:
        return MPI_Ireduce_scatter_block(send, use.recv, COUNT, use.none, use.op, MPI_COMM_WORLD,
                                         request);
    case ALLREDUCE:
        return MPI_Iallreduce(send, use.recv, COUNT, use.none, use.op, MPI_COMM_WORLD, request);
    case BCAST:
        return MPI_Ibcast(use.recv, COUNT, use.none, ROOT, MPI_COMM_WORLD, request);
    case REDUCE:
        return MPI_Ireduce(roots(send), use.recv, COUNT, use.none, use.op, ROOT, MPI_COMM_WORLD,
                           request);
    case GATHER:
        return MPI_Igather(roots(send), COUNT, use.none, use.recv, COUNT, use.none, ROOT,
                           MPI_COMM_WORLD, request);
    case SCATTER:
        return MPI_Iscatter(use.send, COUNT, use.none, scattered_to(send), COUNT, use.none, ROOT,
                            MPI_COMM_WORLD, request);
    case GATHERV:
        return MPI_Igatherv(roots(send), COUNT, use.none, use.recv, use.counts, use.displs,
                            use.none, ROOT, MPI_COMM_WORLD, request);
    case SCATTERV:
        return MPI_Iscatterv(use.send, use.counts, use.displs, use.none, scattered_to(send), COUNT,
                             use.none, ROOT, MPI_COMM_WORLD, request);
    case ALLTOALLV:
        return MPI_Ialltoallv(send, use.counts, use.displs, use.none, use.recv, use.counts,
                              use.displs, use.none, MPI_COMM_WORLD, request);
    default:
        return MPI_Ialltoall(send, COUNT, use.none, use.recv, COUNT, use.none, MPI_COMM_WORLD,
                             request);
    }
}

static int make_lasting(int kind, const void *send, MPI_Request *request)
{
    switch (kind) {
    case ALLGATHER:
        return MPI_Allgather_init(send, COUNT, use.none, use.recv, COUNT, use.none, MPI_COMM_WORLD,
                                  MPI_INFO_NULL, request);
    case ALLGATHERV:
        return MPI_Allgatherv_init(send, COUNT, use.none, use.recv, use.counts, use.displs,
                                   use.none, MPI_COMM_WORLD, MPI_INFO_NULL, request);
    case REDUCE_SCATTER:
        return MPI_Reduce_scatter_init(send, use.recv, use.counts, use.none, use.op, MPI_COMM_WORLD,
                                       MPI_INFO_NULL, request);
    case REDUCE_SCATTER_BLOCK:
        return MPI_Reduce_scatter_block_init(send, use.recv, COUNT, use.none, use.op,
                                             MPI_COMM_WORLD, MPI_INFO_NULL, request);
    case ALLREDUCE:
        return MPI_Allreduce_init(send, use.recv, COUNT, use.none, use.op, MPI_COMM_WORLD,
                                  MPI_INFO_NULL, request);
    case BCAST:
        return MPI_Bcast_init(use.recv, COUNT, use.none, ROOT, MPI_COMM_WORLD, MPI_INFO_NULL,
                              request);
    case REDUCE:
        return MPI_Reduce_init(roots(send), use.recv, COUNT, use.none, use.op, ROOT, MPI_COMM_WORLD,
                               MPI_INFO_NULL, request);
    case GATHER:
        return MPI_Gather_init(roots(send), COUNT, use.none, use.recv, COUNT, use.none, ROOT,
                               MPI_COMM_WORLD, MPI_INFO_NULL, request);
    case SCATTER:
        return MPI_Scatter_init(use.send, COUNT, use.none, scattered_to(send), COUNT, use.none,
                                ROOT, MPI_COMM_WORLD, MPI_INFO_NULL, request);
    case GATHERV:
        return MPI_Gatherv_init(roots(send), COUNT, use.none, use.recv, use.counts, use.displs,
                                use.none, ROOT, MPI_COMM_WORLD, MPI_INFO_NULL, request);
    case SCATTERV:
        return MPI_Scatterv_init(use.send, use.counts, use.displs, use.none, scattered_to(send),
                                 COUNT, use.none, ROOT, MPI_COMM_WORLD, MPI_INFO_NULL, request);
    case ALLTOALLV:
        return MPI_Alltoallv_init(send, use.counts, use.displs, use.none, use.recv, use.counts,
                                  use.displs, use.none, MPI_COMM_WORLD, MPI_INFO_NULL, request);
    default:
        return MPI_Alltoall_init(send, COUNT, use.none, use.recv, COUNT, use.none, MPI_COMM_WORLD,
                                 MPI_INFO_NULL, request);
    }
}

static void plain(void)
{
    make_arguments();
    for (int form = 0; form < 2 * KINDS; form++) {
        MPI_Request request;

        check_class(post(form / 2, form % 2 ? MPI_IN_PLACE : use.send, &request), MPI_SUCCESS,
                    "call");
        check_class(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_SUCCESS, "MPI_Wait");
    }
    check_and_free_arguments();
}

static void persistent(void)
{
    make_arguments();
    for (int form = 0; form < 2 * KINDS; form++) {
        MPI_Request request;

        check_class(make_lasting(form / 2, form % 2 ? MPI_IN_PLACE : use.send, &request),
                    MPI_SUCCESS, "call");
        for (int round = 0; round < 3; round++) {
            check_class(MPI_Start(&request), MPI_SUCCESS, "MPI_Start");
            check_class(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_SUCCESS, "MPI_Wait");
        }
        MPI_Request_free(&request);
    }
    check_and_free_arguments();
}

TEST_PROGRAM(test_empty_types, MPI_THREAD_SINGLE, {"plain", plain}, {"persistent", persistent});
