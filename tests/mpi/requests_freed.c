/*
 * requests_freed.c: what is freed while requests are under way: themselves, types and operations,
 * communicators; communicators that come and go, and those that are never freed.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "requests.h"

/*
 * Erroneous by MPI 3.1, and an error for Open MPI's own collectives, which serve a lone rank. With
 * flash the data arrives all the same.
 */
void requests_free_active(void)
{
    operation_t operations[8], last;
    MPI_Request request;

    if (world_size == 1) {
        return;
    }
    for (int k = 0; k < 8; k++) {
        requests_post(&operations[k], MPI_COMM_WORLD, k, &request);
        MPI_Request_free(&request);
    }
    for (int k = 0; k < 8; k++) {
        while (!requests_has_arrived(&operations[k])) {
            int flag;

            MPI_Iprobe(MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        }
    }
    /* When this is complete, nobody needs what others send from their buffers any more. */
    requests_post(&last, MPI_COMM_WORLD, 8, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    requests_finish(&last, "behind freed requests");
    for (int k = 0; k < 8; k++) {
        requests_finish(&operations[k], "freed request");
    }
}

static void add_all(void *in, void *inout, int *length, MPI_Datatype *type)
{
    (void) type;
    for (int k = 0; k < *length; k++) {
        ((int *) inout)[k] += ((int *) in)[k];
    }
}

/* Three integers, the last of which is no part of it. */
static MPI_Datatype make_spaced(void)
{
    MPI_Datatype two, type;

    MPI_Type_contiguous(2, MPI_INT, &two);
    MPI_Type_create_resized(two, 0, 3 * sizeof(int), &type);
    MPI_Type_free(&two);
    MPI_Type_commit(&type);
    return type;
}

/* Types and operations that are gone when the data arrives. */
void requests_free_types(void)
{
    int all = world_size * COUNT, ranks = world_size * (world_size - 1) / 2;
    int *send = calloc(3 * COUNT, sizeof(int)), *recv = calloc((size_t) (3 * all), sizeof(int));
    int *operands = calloc((size_t) all, sizeof(int)), *sums = calloc(COUNT, sizeof(int));
    MPI_Datatype type = make_spaced();
    MPI_Request requests[2];
    MPI_Op op;

    for (int k = 0; k < 3 * COUNT; k++) {
        send[k] = world_rank;
    }
    for (int k = 0; k < all; k++) {
        operands[k] = k + 1000 * world_rank;
    }
    MPI_Op_create(add_all, 1, &op);
    MPI_Iallgather(send, COUNT, type, recv, COUNT, type, MPI_COMM_WORLD, &requests[0]);
    MPI_Ireduce_scatter_block(operands, sums, COUNT, MPI_INT, op, MPI_COMM_WORLD, &requests[1]);
    MPI_Type_free(&type);
    MPI_Op_free(&op);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    for (int k = 0; k < 3 * all; k++) {
        if (!check(recv[k] == (k % 3 == 2 ? 0 : k / 3 / COUNT), "element %d is %d", k, recv[k])) {
            break;
        }
    }
    for (int k = 0; k < COUNT; k++) {
        if (!check(sums[k] == world_size * (world_rank * COUNT + k) + 1000 * ranks, "sum %d is %d",
                   k, sums[k])) {
            break;
        }
    }
    free(send);
    free(recv);
    free(operands);
    free(sums);
}

void requests_free_communicators(void)
{
    operation_t operations[2 * 4];
    MPI_Request requests[2 * 4];

    for (int k = 0; k < 4; k++) {
        MPI_Comm comm;

        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        requests_post(&operations[2 * k], comm, 2 * k, &requests[2 * k]);
        requests_post(&operations[2 * k + 1], comm, 2 * k + 1, &requests[2 * k + 1]);
        MPI_Comm_free(&comm);
    }
    requests_wait(requests, 8);
    for (int k = 0; k < 8; k++) {
        requests_finish(&operations[k], "freed communicator");
    }
}

/* Numbers of communicators are used again; more than a generation counter of 8 bits holds. */
void requests_come_and_go(void)
{
    for (int k = 0; k < 300; k++) {
        operation_t operation;
        MPI_Request request;
        MPI_Comm comm;

        if (k % 3 == 0) {
            MPI_Comm_split(MPI_COMM_WORLD, k % 2 ? world_rank / 2 : 0, -world_rank, &comm);
        } else {
            MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        }
        requests_post(&operation, comm, k, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        requests_finish(&operation, "one of many communicators");
        MPI_Comm_free(&comm);
    }
}

/* The user's mistake, which MPI_Finalize has to live with. */
void requests_leak(void)
{
    for (int k = 0; k < 5; k++) {
        operation_t operation;
        MPI_Request request;
        MPI_Comm comm;

        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        requests_post(&operation, comm, k, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        requests_finish(&operation, "communicator that leaks");
    }
}
