/*
 * test_two_callbacks_arguments.c: what the calls with two callbacks take, and what they refuse.
 *
 * FLASH_TEST_ACTIVE in the environment: the communicators are not flash's.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <string.h>

#include <mpix_flash.h>

#include "aftermath.h"
#include "mpitest.h"

static void add_or_scale(void *in, void *inout, int *count, MPI_Datatype *type)
{
    int64_t *a = in, *b = inout;

    (void) type;
    for (int k = 0; k < *count; k++) {
        b[k] += a[k];
    }
}

/* Writes ones, of whatever type has eight bytes. */
static int produce_ones(const MPIX_Flash_block *block, void *arg)
{
    for (MPI_Count k = 0; k < block->count; k++) {
        if (block->datatype == MPI_DOUBLE) {
            ((double *) block->data)[k] = 1.0 / (1 + world_rank + (double) k);
        } else {
            ((int64_t *) block->data)[k] = 1;
        }
    }
    (void) arg;
    return MPI_SUCCESS;
}

static int look(const MPIX_Flash_block *block, void *arg)
{
    *(int *) arg += (int) block->count;
    return MPI_SUCCESS;
}

/* Operations that take the ring and those that do not; floating point has the same bits everywhere.
 */
static void operations(void)
{
    enum { COUNT = 1013 };
    int64_t *sums = get_memory(COUNT * sizeof(*sums));
    double *reals = get_memory(COUNT * sizeof(*reals)), *first = get_memory(COUNT * sizeof(*first));

    for (int commutes = 0; commutes <= 1; commutes++) {
        MPI_Op op;

        MPI_Op_create(add_or_scale, commutes, &op);
        check_class(MPIX_Allreduce_compute(produce_ones, NULL, NULL, NULL, NULL, sums, COUNT,
                                           MPI_INT64_T, op, MPI_COMM_WORLD),
                    MPI_SUCCESS, "a user's operation");
        for (int k = 0; k < COUNT; k++) {
            check(sums[k] == world_size, "a user's operation: element %d", k);
        }
        MPI_Op_free(&op);
    }
    check_class(MPIX_Allreduce_compute(produce_ones, NULL, NULL, NULL, NULL, reals, COUNT,
                                       MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD),
                MPI_SUCCESS, "a sum of reals");
    memcpy(first, reals, COUNT * sizeof(*first));
    MPI_Bcast(first, COUNT, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    check(memcmp(first, reals, COUNT * sizeof(*first)) == 0, "ranks have different bits");
    free(sums);
    free(reals);
    free(first);
}

/* Elements of three numbers. */
static int produce_threes(const MPIX_Flash_block *block, void *type)
{
    for (MPI_Count k = 0; k < 3 * block->count; k++) {
        ((int64_t *) block->data)[k] = block->datatype == (MPI_Datatype) type ? 3 : 0;
    }
    return MPI_SUCCESS;
}

/* Two types of one size, and of whole elements. */
static void types(void)
{
    MPI_Datatype three, other;
    int64_t *send = get_memory((size_t) world_size * 12 * sizeof(*send));
    int64_t *recv = get_memory((size_t) world_size * 12 * sizeof(*recv));
    MPI_Comm comm = make_counted_comm();
    MPI_Request request;
    int seen = 0;

    MPI_Type_contiguous(3, MPI_INT64_T, &three);
    MPI_Type_commit(&three);
    MPI_Type_contiguous(24, MPI_BYTE, &other);
    MPI_Type_commit(&other);
    for (int k = 0; k < world_size * 12; k++) {
        send[k] = world_rank * 1000 + k;
    }
    check_class(
        MPIX_Alltoall_compute(send, 4, three, recv, 4, other, NULL, NULL, look, &seen, NULL, comm),
        MPI_SUCCESS, "two types");
    MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, send, 12, MPI_INT64_T, MPI_COMM_WORLD);
    check(memcmp(send, recv, (size_t) world_size * 12 * sizeof(*send)) == 0 &&
              seen == 4 * world_size,
          "an all-to-all of two types");
    check_class(MPIX_Alltoall_compute(send, 4, three, recv, 4, other, produce_threes, three, NULL,
                                      NULL, NULL, comm),
                MPI_SUCCESS, "two types, produced");
    for (int k = 0; k < world_size * 12; k++) {
        check(recv[k] == 3, "a producer of the send buffer's type: element %d", k);
    }
    check_class(MPIX_Ialltoall_compute(send, 12, MPI_INT64_T, recv, 4, three, NULL, NULL, look,
                                       NULL, NULL, comm, &request),
                MPI_ERR_TYPE, "types of different sizes");
    MPI_Type_free(&three);
    MPI_Type_free(&other);
    MPI_Type_vector(4, 1, 2, MPI_INT64_T, &other);
    MPI_Type_commit(&other);
    check_class(MPIX_Ialltoall_compute(send, 1, other, recv, 1, other, NULL, NULL, look, NULL, NULL,
                                       comm, &request),
                MPI_ERR_TYPE, "types with gaps");
    MPI_Type_free(&other);
    free(send);
    free(recv);
    MPI_Comm_free(&comm);
}

static void arguments(void)
{
    MPI_Comm comm = make_counted_comm();
    MPIX_Flash_hints hints = MPIX_FLASH_HINTS_INIT;
    MPI_Request request;
    int64_t *all = get_memory((size_t) world_size * sizeof(*all));
    int *ones = get_memory((size_t) world_size * sizeof(*ones));

    for (int rank = 0; rank < world_size; rank++) {
        ones[rank] = 1;
    }
    hints.own = look;
    check_class(MPIX_Iallreduce_compute(produce_ones, NULL, NULL, NULL, &hints, all, 1, MPI_INT64_T,
                                        MPI_SUM, comm, &request),
                MPI_ERR_ARG, "an allreduce with `own`");
    check_class(MPIX_Iallreduce_compute(NULL, NULL, look, NULL, NULL, all, 1, MPI_INT64_T, MPI_SUM,
                                        comm, &request),
                MPI_ERR_ARG, "an allreduce that produces nothing");
    check_class(MPIX_Iallreduce_compute(produce_ones, NULL, NULL, NULL, NULL, all, -1, MPI_INT64_T,
                                        MPI_SUM, comm, &request),
                MPI_ERR_COUNT, "an allreduce of a negative count");
    check_class(MPIX_Iallreduce_compute(produce_ones, NULL, NULL, NULL, NULL, all, 1, MPI_INT64_T,
                                        MPI_OP_NULL, comm, &request),
                MPI_ERR_OP, "an allreduce by no operation");
    check_class(MPIX_Ialltoall_compute(all, 1, MPI_INT64_T, all, 1, MPI_INT64_T, NULL, NULL, NULL,
                                       NULL, NULL, comm, &request),
                MPI_ERR_ARG, "an all-to-all without callbacks");
    check_class(MPIX_Ialltoall_compute(all, 1, MPI_INT64_T, all, 1, MPI_INT64_T, produce_ones, NULL,
                                       NULL, NULL, &hints, comm, &request),
                MPI_ERR_ARG, "an all-to-all with `own`");
    check_class(MPIX_Ialltoall_compute(MPI_IN_PLACE, 1, MPI_INT64_T, all, 1, MPI_INT64_T, NULL,
                                       NULL, look, NULL, NULL, comm, &request),
                MPI_ERR_BUFFER, "an all-to-all in place");
    check_class(MPIX_Ialltoallv_compute(all, ones, NULL, MPI_INT64_T, all, ones, ones, MPI_INT64_T,
                                        produce_ones, NULL, NULL, NULL, NULL, comm, &request),
                MPI_ERR_ARG, "an all-to-all without places");
    free(ones);
    free(all);
    MPI_Comm_free(&comm);
}

/* On rank 0 there is no buffer: all hear of it. Allreduces are long enough for Open MPI to halve them. */
static void no_buffer(void)
{
    enum { COUNT = 20000 };
    MPI_Comm comm = make_counted_comm();
    int64_t *all = get_memory((size_t) (COUNT + world_size) * sizeof(*all));
    int seen = 0;

    for (int reduces = 0; reduces <= 1; reduces++) {
        MPI_Request request;
        int wanted = world_rank == 0 ? MPI_ERR_BUFFER : MPI_ERR_OTHER;
        void *recv = world_rank == 0 ? NULL : all;

        check_class(reduces ? MPIX_Iallreduce_compute(produce_ones, NULL, NULL, NULL, NULL, recv,
                                                      COUNT, MPI_INT64_T, MPI_SUM, comm, &request)
                            : MPIX_Ialltoall_compute(all, 1, MPI_INT64_T, recv, 1, MPI_INT64_T,
                                                     NULL, NULL, look, &seen, NULL, comm, &request),
                    MPI_SUCCESS, "a start without a buffer");
        check_class(MPI_Wait(&request, MPI_STATUS_IGNORE), wanted, "an operation without a buffer");
        next_works(comm, "after an operation without a buffer");
    }
    free(all);
    MPI_Comm_free(&comm);
}

static int start_v(const int64_t *send, const int sendcounts[], int64_t *recv,
                   const int recvcounts[], const int displs[], int *seen, MPI_Comm comm,
                   MPI_Request *request)
{
    return MPIX_Ialltoallv_compute(send, sendcounts, displs, MPI_INT64_T, recv, recvcounts, displs,
                                   MPI_INT64_T, NULL, NULL, look, seen, NULL, comm, request);
}

/* Blocks lie before the buffers' addresses; at last rank 0's own does not fit, and all hear of it.
 */
static void places(void)
{
    MPI_Comm comm = make_counted_comm();
    size_t size = (size_t) world_size;
    int64_t *send = get_memory(size * sizeof(*send)), *recv = get_memory(size * sizeof(*recv));
    int *counts = get_memory(size * sizeof(*counts)), *own = get_memory(size * sizeof(*own));
    int *displs = get_memory(size * sizeof(*displs)), seen = 0;
    MPI_Request request;

    for (int rank = 0; rank < world_size; rank++) {
        counts[rank] = own[rank] = 1;
        displs[rank] = rank - world_size;
        send[rank] = 100 * world_rank + rank;
        recv[rank] = -1;
    }
    check_class(start_v(send + size, counts, recv + size, counts, displs, &seen, comm, &request),
                MPI_SUCCESS, "a start with places below 0");
    check_class(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_SUCCESS, "places below 0");
    for (int rank = 0; rank < world_size; rank++) {
        check(recv[rank] == 100 * rank + world_rank, "element of rank %d: %d", rank,
              (int) recv[rank]);
    }
    own[world_rank] = world_rank == 0 ? 0 : 1;
    check_class(start_v(send + size, own, recv + size, counts, displs, &seen, comm, &request),
                MPI_SUCCESS, "a start with an own block that does not fit");
    check_class(MPI_Wait(&request, MPI_STATUS_IGNORE),
                world_rank == 0 ? MPI_ERR_TRUNCATE : MPI_ERR_OTHER,
                "an own block that does not fit");
    next_works(comm, "after an own block that did not fit");
    free(send);
    free(recv);
    free(counts);
    free(own);
    free(displs);
    MPI_Comm_free(&comm);
}

/*
 * Rank 0 has something for each rank and gets nothing, once from a buffer that is not there, once from
 * the one that it names for both; the others' counts are right.
 */
static void one_sided(void)
{
    MPI_Comm comm = make_counted_comm();
    size_t size = (size_t) world_size;
    int64_t *send = get_memory(size * sizeof(*send)), *recv = get_memory(size * sizeof(*recv));
    int *sent = get_memory(size * sizeof(*sent)), *received = get_memory(size * sizeof(*received));
    int *displs = get_memory(size * sizeof(*displs)), seen = 0;
    MPI_Request request;

    for (int rank = 0; rank < world_size; rank++) {
        sent[rank] = world_rank == 0 && rank > 0;
        received[rank] = world_rank > 0 && rank == 0;
        displs[rank] = rank;
        send[rank] = 100 + rank;
    }
    for (int there = 0; there <= 1; there++) {
        int wanted = there || world_size == 1 ? MPI_SUCCESS
                     : world_rank == 0        ? MPI_ERR_BUFFER
                                              : MPI_ERR_OTHER;
        int64_t *from = there ? send : NULL;

        recv[0] = -1;
        check_class(start_v(world_rank == 0 ? from : send, sent, world_rank == 0 ? from : recv,
                            received, displs, &seen, comm, &request),
                    MPI_SUCCESS, "a start of a rank that only sends");
        check_class(MPI_Wait(&request, MPI_STATUS_IGNORE), wanted, "a rank that only sends");
        check(!there || world_rank == 0 || recv[0] == 100 + world_rank, "the element is %d",
              (int) recv[0]);
        next_works(comm, "after a rank that only sends");
    }
    free(send);
    free(recv);
    free(sent);
    free(received);
    free(displs);
    MPI_Comm_free(&comm);
}

TEST_PROGRAM(test_two_callbacks_arguments, MPI_THREAD_SINGLE, {"operations", operations},
             {"types", types}, {"arguments", arguments}, {"no_buffer", no_buffer},
             {"places", places}, {"one_sided", one_sided});
