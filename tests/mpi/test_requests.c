/*
 * test_requests.c: flash's requests among others: many at once, completed in every way and order,
 * freed early, on communicators that come and go.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <mpix_flash.h>

#include "mpitest.h"
#include "settings.h"

enum { MANY = 60, COUNT = 400 };

/* An allgather or a reduce-scatter of int64_t. The number tells operations apart. */
typedef struct operation {
    MPI_Comm comm;
    int number, rank, size;
    int64_t *send, *recv;
} operation_t;

static bool is_gather(const operation_t *operation)
{
    return operation->number % 2 == 0;
}

static void post(operation_t *operation, MPI_Comm comm, int number, MPI_Request *request)
{
    size_t blocks, elements;

    operation->comm = comm;
    operation->number = number;
    MPI_Comm_rank(comm, &operation->rank);
    MPI_Comm_size(comm, &operation->size);
    blocks = (size_t) operation->size;
    elements = blocks * COUNT;
    operation->send = get_memory(elements * sizeof(int64_t));
    operation->recv = get_memory(elements * sizeof(int64_t));
    for (size_t k = 0; k < elements; k++) {
        operation->send[k] = 1000 * number + 7 * operation->rank + (int64_t) k;
        operation->recv[k] = -1;
    }
    if (is_gather(operation)) {
        MPI_Iallgather(operation->send, COUNT, MPI_INT64_T, operation->recv, COUNT, MPI_INT64_T,
                       comm, request);
    } else {
        MPI_Ireduce_scatter_block(operation->send, operation->recv, COUNT, MPI_INT64_T, MPI_SUM,
                                  comm, request);
    }
}

/* What element k of the result is. */
static int64_t wanted(const operation_t *operation, int k)
{
    int size = operation->size;

    if (is_gather(operation)) {
        return 1000 * operation->number + 7 * (k / COUNT) + k % COUNT;
    }
    return (int64_t) size * (1000 * operation->number + operation->rank * COUNT + k) +
           7 * size * (size - 1) / 2;
}

/* Whatever was read too early is read again. */
LOOKS_AHEAD static bool has_arrived(const operation_t *operation)
{
    int count = is_gather(operation) ? operation->size * COUNT : COUNT;

    for (int k = 0; k < count; k++) {
        if (((volatile int64_t *) operation->recv)[k] != wanted(operation, k)) {
            return false;
        }
    }
    return true;
}

static void finish(operation_t *operation, const char *what)
{
    check(has_arrived(operation), "%s: operation %d is wrong", what, operation->number);
    free(operation->send);
    free(operation->recv);
}

/* Another order on each rank. */
static void shuffle(int order[], int count, uint32_t seed)
{
    for (int k = 0; k < count; k++) {
        order[k] = k;
    }
    for (int k = count - 1; k > 0; k--) {
        int other = (int) (mix((uint32_t) world_rank, (uint32_t) k, seed) % (uint32_t) (k + 1));
        int kept = order[k];

        order[k] = order[other];
        order[other] = kept;
    }
}

/* ----------------------------------------------------- completing in every way */

static void complete_wait(MPI_Request requests[], int count)
{
    int order[MANY];

    shuffle(order, count, 1);
    for (int k = 0; k < count; k++) {
        MPI_Wait(&requests[order[k]], MPI_STATUS_IGNORE);
    }
}

static void complete_test(MPI_Request requests[], int count)
{
    int left = count, flag;

    for (uint32_t step = 0; left > 0; step++) {
        int which = (int) (mix((uint32_t) world_rank, step, 2) % (uint32_t) count);

        if (requests[which] != MPI_REQUEST_NULL) {
            MPI_Test(&requests[which], &flag, MPI_STATUS_IGNORE);
            left -= flag;
        }
    }
}

static void complete_any(MPI_Request requests[], int count)
{
    int index;

    for (int k = 0; k < count; k++) {
        MPI_Waitany(count, requests, &index, MPI_STATUS_IGNORE);
        check(index >= 0 && index < count, "MPI_Waitany returns %d", index);
    }
    MPI_Waitany(count, requests, &index, MPI_STATUS_IGNORE);
    check(index == MPI_UNDEFINED, "MPI_Waitany finds a request too many");
}

static void complete_some(MPI_Request requests[], int count)
{
    int done, indices[MANY], all = 0;

    do {
        MPI_Waitsome(count, requests, &done, indices, MPI_STATUSES_IGNORE);
        all += done == MPI_UNDEFINED ? 0 : done;
    } while (done != MPI_UNDEFINED);
    check(all == count, "MPI_Waitsome completes %d of %d", all, count);
}

static void complete_all(MPI_Request requests[], int count)
{
    MPI_Status statuses[MANY];

    check(MPI_Waitall(count, requests, statuses) == MPI_SUCCESS, "MPI_Waitall fails");
}

static void complete_testall(MPI_Request requests[], int count)
{
    int flag = 0;

    while (!flag) {
        MPI_Testall(count, requests, &flag, MPI_STATUSES_IGNORE);
    }
}

typedef void complete_fn(MPI_Request requests[], int count);
static complete_fn *const ways[] = {complete_wait, complete_test, complete_any,
                                    complete_some, complete_all,  complete_testall};

/* MANY operations over `kinds` communicators, in turn, with other traffic between. */
static void all_ways(MPI_Comm comms[], int kinds, const char *what)
{
    operation_t operations[MANY];
    MPI_Request requests[MANY];
    int token, sum, right = (world_rank + 1) % world_size;
    int left = (world_rank + world_size - 1) % world_size;

    for (size_t way = 0; way < LENGTH(ways); way++) {
        for (int k = 0; k < MANY; k++) {
            post(&operations[k], comms[k % kinds], k + (int) way, &requests[k]);
            if (k % 20 == 10) {
                MPI_Sendrecv(&k, 1, MPI_INT, right, k, &token, 1, MPI_INT, left, k, MPI_COMM_WORLD,
                             MPI_STATUS_IGNORE);
                MPI_Allreduce(&token, &sum, 1, MPI_INT, MPI_SUM, comms[0]);
                check(token == k && sum % k == 0, "%s: other traffic is wrong", what);
            }
        }
        ways[way](requests, MANY);
        for (int k = 0; k < MANY; k++) {
            check(requests[k] == MPI_REQUEST_NULL, "%s: way %zu leaves a request", what, way);
            finish(&operations[k], what);
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

/* --------------------------------------------------------------- freed early */

/*
 * Erroneous by MPI 3.1, and an error for Open MPI's own collectives, which serve a lone rank. With
 * flash the data arrives all the same.
 */
static void free_active(void)
{
    operation_t operations[8], last;
    MPI_Request request;

    if (world_size == 1) {
        return;
    }
    for (int k = 0; k < 8; k++) {
        post(&operations[k], MPI_COMM_WORLD, k, &request);
        MPI_Request_free(&request);
    }
    for (int k = 0; k < 8; k++) {
        while (!has_arrived(&operations[k])) {
            int flag;

            MPI_Iprobe(MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        }
    }
    /* When this is complete, nobody needs what others send from their buffers any more. */
    post(&last, MPI_COMM_WORLD, 8, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    finish(&last, "behind freed requests");
    for (int k = 0; k < 8; k++) {
        finish(&operations[k], "freed request");
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
static void free_types(void)
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

static void free_communicators(void)
{
    operation_t operations[2 * 4];
    MPI_Request requests[2 * 4];

    for (int k = 0; k < 4; k++) {
        MPI_Comm comm;

        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        post(&operations[2 * k], comm, 2 * k, &requests[2 * k]);
        post(&operations[2 * k + 1], comm, 2 * k + 1, &requests[2 * k + 1]);
        MPI_Comm_free(&comm);
    }
    complete_wait(requests, 8);
    for (int k = 0; k < 8; k++) {
        finish(&operations[k], "freed communicator");
    }
}

/* Numbers of communicators are used again; more than a generation counter of 8 bits holds. */
static void communicators_come_and_go(void)
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
        post(&operation, comm, k, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        finish(&operation, "one of many communicators");
        MPI_Comm_free(&comm);
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

/* The user's mistake, which MPI_Finalize has to live with. */
static void leak_communicators(void)
{
    for (int k = 0; k < 5; k++) {
        operation_t operation;
        MPI_Request request;
        MPI_Comm comm;

        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        post(&operation, comm, k, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        finish(&operation, "communicator that leaks");
    }
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
             {"many_communicators", many_communicators}, {"free_active", free_active},
             {"free_types", free_types}, {"free_communicators", free_communicators},
             {"come_and_go", communicators_come_and_go}, {"reduce_meanwhile", reduce_meanwhile},
             {"outlasted", outlasted}, {"many_pending", many_pending},
             {"leak", leak_communicators});
