/*
 * test_requests.c: flash's requests among others: many at once, completed in every way and order,
 * freed early, on communicators that come and go.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <mpix_flash.h>

#include "requests.h"
#include "settings.h"

/* MANY operations over `kinds` communicators, in turn, with other traffic between. */
static void all_ways(MPI_Comm comms[], int kinds, const char *what)
{
    operation_t operations[MANY];
    MPI_Request requests[MANY];
    int token, sum, right = (world_rank + 1) % world_size;
    int left = (world_rank + world_size - 1) % world_size;

    for (size_t way = 0; way < LENGTH(requests_ways); way++) {
        for (int k = 0; k < MANY; k++) {
            requests_post(&operations[k], comms[k % kinds], k + (int) way, &requests[k]);
            if (k % 20 == 10) {
                MPI_Sendrecv(&k, 1, MPI_INT, right, k, &token, 1, MPI_INT, left, k, MPI_COMM_WORLD,
                             MPI_STATUS_IGNORE);
                MPI_Allreduce(&token, &sum, 1, MPI_INT, MPI_SUM, comms[0]);
                check(token == k && sum % k == 0, "%s: other traffic is wrong", what);
            }
        }
        requests_ways[way](requests, MANY);
        for (int k = 0; k < MANY; k++) {
            check(requests[k] == MPI_REQUEST_NULL, "%s: way %zu leaves a request", what, way);
            requests_finish(&operations[k], what);
        }
    }
}

static void one_communicator(void)
{
    MPI_Comm comms[] = {MPI_COMM_WORLD};

    all_ways(comms, 1, "one communicator");
}

static int is_active(MPI_Comm comm)
{
    int flag = -1;

    MPIX_Flash_active(comm, &flag);
    return flag;
}

static void many_communicators(void)
{
    MPI_Comm comms[6] = {MPI_COMM_WORLD};
    MPI_Request request;

    MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]);
    MPI_Comm_split(MPI_COMM_WORLD, world_rank % 2, 0, &comms[2]);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -world_rank, &comms[3]);
    MPI_Comm_split(MPI_COMM_WORLD, world_rank / 2, -world_rank, &comms[4]);
    MPI_Comm_idup(comms[3], &comms[5], &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    settings_inherit(comms[5]);
    check(is_active(comms[5]) == is_active(MPI_COMM_WORLD), "MPI_Comm_idup makes no ring");
    all_ways(comms, LENGTH(comms), "many communicators");
    for (size_t k = 1; k < LENGTH(comms); k++) {
        MPI_Comm_free(&comms[k]);
    }
}

/*
 * The application reduces, too, while flash's progress thread combines: below MPI_THREAD_MULTIPLE
 * Open MPI counts references to operations and types without atomics, and one thread must do so.
 */
static void reduce_meanwhile(void)
{
    enum { BLOCK = 50000 };
    int64_t *send = calloc((size_t) world_size * BLOCK, sizeof(int64_t));
    int64_t *recv = get_memory(BLOCK * sizeof(int64_t)), in = 1, sum = 0, steps = 0;

    for (int round = 0; round < 40; round++) {
        MPI_Request request;
        int flag = 0;

        MPI_Ireduce_scatter_block(send, recv, BLOCK, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD,
                                  &request);
        while (!flag) {
            for (int k = 0; k < 1000; k++, steps++) {
                MPI_Reduce_local(&in, &sum, 1, MPI_INT64_T, MPI_SUM);
            }
            MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
        }
    }
    check(sum == steps && recv[BLOCK - 1] == 0, "wrong sums");
    free(send);
    free(recv);
}

/*
 * While a long operation is under way, more start, one by one, than tags have numbers for: the one
 * that would take its number is not complete before it is.
 */
static void outlasted(void)
{
    enum { LONG = 1 << 20, NUMBERS = 8192 };
    size_t length = (size_t) world_size * LONG;
    int64_t *send = get_memory(LONG * sizeof(int64_t));
    int64_t *recv = get_memory(length * sizeof(int64_t)), *all = get_memory(length);
    MPI_Request request, other;
    int complete;

    for (size_t k = 0; k < LONG; k++) {
        send[k] = (int64_t) LONG * world_rank + (int64_t) k;
    }
    MPI_Iallgather(send, LONG, MPI_INT64_T, recv, LONG, MPI_INT64_T, MPI_COMM_WORLD, &request);
    for (int k = 0; k < NUMBERS; k++) {
        MPI_Iallgather(send + k, 1, MPI_INT64_T, all, 1, MPI_INT64_T, MPI_COMM_WORLD, &other);
        MPI_Wait(&other, MPI_STATUS_IGNORE);
        for (int rank = 0; rank < world_size; rank++) {
            check(all[rank] == (int64_t) LONG * rank + k, "short one %d is wrong", k);
        }
    }
    MPI_Request_get_status(request, &complete, MPI_STATUS_IGNORE);
    check(complete || world_size == 1, "two operations have the same number");
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (size_t k = 0; k < length; k++) {
        if (recv[k] != (int64_t) k) {
            check(false, "the long one is wrong at element %zu", k);
            break;
        }
    }
    free(send);
    free(recv);
    free(all);
}

/* More calls than tags have numbers for are pending at a time: each returns at once. */
static void many_pending(void)
{
    enum { NUMBERS = 8192 };
    int calls =
        (world_size <= 2 ? 2 : 1) * NUMBERS + 50; /* two wait for a number at a time, or one */
    size_t each = (size_t) world_size;
    int64_t *send = get_memory((size_t) calls * sizeof(int64_t));
    int64_t *recv = get_memory((size_t) calls * each * sizeof(int64_t));
    MPI_Request *requests = get_memory((size_t) calls * sizeof(MPI_Request));
    int wrong = 0;

    if (world_rank != 0) { /* nobody else starts any before the first rank has started all */
        MPI_Recv(NULL, 0, MPI_INT, world_rank - 1, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    for (int k = 0; k < calls; k++) {
        send[k] = (int64_t) calls * world_rank + k;
        MPI_Iallgather(&send[k], 1, MPI_INT64_T, recv + (size_t) k * each, 1, MPI_INT64_T,
                       MPI_COMM_WORLD, &requests[k]);
    }
    if (world_rank + 1 < world_size) {
        MPI_Send(NULL, 0, MPI_INT, world_rank + 1, 7, MPI_COMM_WORLD);
    }
    MPI_Waitall(calls, requests, MPI_STATUSES_IGNORE);
    for (int k = 0; k < calls; k++) {
        for (int rank = 0; rank < world_size; rank++) {
            wrong += recv[(size_t) k * each + (size_t) rank] != (int64_t) calls * rank + k;
        }
    }
    check(wrong == 0, "%d elements are wrong", wrong);
    free(send);
    free(recv);
    free(requests);
}

TEST_PROGRAM(test_requests, MPI_THREAD_SINGLE, {"one_communicator", one_communicator},
             {"many_communicators", many_communicators}, {"free_active", requests_free_active},
             {"free_types", requests_free_types},
             {"free_communicators", requests_free_communicators},
             {"come_and_go", requests_come_and_go}, {"reduce_meanwhile", reduce_meanwhile},
             {"outlasted", outlasted}, {"many_pending", many_pending}, {"leak", requests_leak});
