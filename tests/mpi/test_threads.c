/*
 * test_threads.c: MPI_THREAD_MULTIPLE: threads that use flash at the same time, each on a
 * communicator of its own.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <pthread.h>

#include <mpix_flash.h>

#include "mpitest.h"
#include "persistent.h"

enum { THREADS = 4, ROUNDS = 30, COUNT = 2000, BURST = 6 };

/* Of what comes again and again: the short tier has a third. */
static int many_rounds(int rounds)
{
    return short_tier ? rounds / 3 : rounds;
}

typedef struct thread {
    pthread_t id;
    MPI_Comm comm;
    int number;
    int calls; /* of callbacks, of this thread's latest operation; they never overlap */
} thread_t;

static int produce(const MPIX_Flash_block *block, void *arg)
{
    thread_t *thread = arg;

    for (int k = 0; k < (int) block->count; k++) {
        ((int64_t *) block->data)[k] = thread->number + block->offset + k;
    }
    thread->calls++;
    return MPI_SUCCESS;
}

static int consume(const MPIX_Flash_block *block, void *arg)
{
    thread_t *thread = arg;

    check(is_pattern(block->data, (size_t) block->offset, (size_t) block->count, block->rank,
                     (unsigned) thread->number),
          "thread %d: block %d is wrong", thread->number, block->rank);
    thread->calls++;
    return MPI_SUCCESS;
}

static void gather(thread_t *thread, unsigned char *send, unsigned char *recv)
{
    MPI_Request requests[2];
    unsigned char *twice = get_memory((size_t) world_size * COUNT);

    thread->calls = 0;
    fill_pattern(send, COUNT, world_rank, (unsigned) thread->number);
    MPIX_Iallgather_compute(send, COUNT, MPI_BYTE, recv, COUNT, MPI_BYTE, consume, thread, NULL,
                            thread->comm, &requests[0]);
    MPI_Iallgather(send, COUNT, MPI_BYTE, twice, COUNT, MPI_BYTE, thread->comm, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    check(thread->calls == world_size, "thread %d: %d callbacks", thread->number, thread->calls);
    for (int rank = 0; rank < world_size; rank++) {
        check(is_pattern(twice + (size_t) rank * COUNT, 0, COUNT, rank, (unsigned) thread->number),
              "thread %d: rank %d's block is wrong", thread->number, rank);
    }
    free(twice);
}

static void reduce(thread_t *thread, int64_t *recv)
{
    MPI_Request request;
    int flag = 0;

    thread->calls = 0;
    MPIX_Ireduce_scatter_block_compute(produce, thread, NULL, recv, COUNT, MPI_INT64_T, MPI_SUM,
                                       thread->comm, &request);
    while (!flag) {
        MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
    }
    check(thread->calls == world_size, "thread %d: %d callbacks", thread->number, thread->calls);
    for (int k = 0; k < COUNT; k++) {
        if (!check(recv[k] == (int64_t) world_size * (thread->number + k),
                   "thread %d: element %d is %lld", thread->number, k, (long long) recv[k])) {
            break;
        }
    }
}

static void reduce_all(const thread_t *thread, int64_t *sums)
{
    int64_t *mine = get_memory(COUNT * sizeof(int64_t));
    MPI_Request request;

    for (int k = 0; k < COUNT; k++) {
        mine[k] = thread->number + k;
    }
    MPI_Iallreduce(mine, sums, COUNT, MPI_INT64_T, MPI_SUM, thread->comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int k = 0; k < COUNT; k++) {
        if (!check(sums[k] == world_size * mine[k], "thread %d: sum %d is %lld", thread->number, k,
                   (long long) sums[k])) {
            break;
        }
    }
    free(mine);
}

static void *thread_main(void *arg)
{
    thread_t *thread = arg;
    unsigned char *send = get_memory(COUNT), *recv = get_memory((size_t) world_size * COUNT);
    int64_t *sums = get_memory(COUNT * sizeof(int64_t));

    for (int round = 0; round < ROUNDS; round++) {
        gather(thread, send, recv);
        reduce(thread, sums);
        reduce_all(thread, sums);
    }
    free(send);
    free(recv);
    free(sums);
    return NULL;
}

/* Each one longer than the one before: in another order they would not fit each other. */
static void *burst_main(void *arg)
{
    thread_t *thread = arg;
    unsigned char *send = get_memory(BURST * COUNT), *recv[BURST];
    MPI_Request requests[BURST];

    for (int k = 0; k < BURST; k++) {
        recv[k] = get_memory((size_t) world_size * COUNT);
    }
    for (int round = 0; round < many_rounds(10 * ROUNDS); round++) {
        for (int k = 0; k < BURST; k++) {
            int count = COUNT - BURST + k;

            fill_pattern(send + k * COUNT, (size_t) count, world_rank, (unsigned) (round + k));
            MPI_Iallgather(send + k * COUNT, count, MPI_BYTE, recv[k], count, MPI_BYTE,
                           thread->comm, &requests[k]);
        }
        MPI_Waitall(BURST, requests, MPI_STATUSES_IGNORE);
        for (int k = 0; k < BURST * world_size; k++) {
            int rank = k / BURST, call = k % BURST, count = COUNT - BURST + call;

            check(is_pattern(recv[call] + (size_t) rank * (size_t) count, 0, (size_t) count, rank,
                             (unsigned) (round + call)),
                  "thread %d, call %d: rank %d's block is wrong", thread->number, call, rank);
        }
    }
    for (int k = 0; k < BURST; k++) {
        free(recv[k]);
    }
    free(send);
    return NULL;
}

/* Another thread than the one that posted completes the operation. */
static void *wait_main(void *arg)
{
    MPI_Wait(arg, MPI_STATUS_IGNORE);
    return NULL;
}

static void other_waits(void)
{
    thread_t thread = {.comm = MPI_COMM_WORLD, .number = 5};
    int64_t *sums = get_memory(COUNT * sizeof(int64_t));

    for (int round = 0; round < ROUNDS; round++) {
        MPI_Request request;
        pthread_t waiter;

        thread.calls = 0;
        MPIX_Ireduce_scatter_block_compute(produce, &thread, NULL, sums, COUNT, MPI_INT64_T,
                                           MPI_SUM, MPI_COMM_WORLD, &request);
        pthread_create(&waiter, NULL, wait_main, &request);
        pthread_join(waiter, NULL);
        check(thread.calls == world_size, "%d callbacks", thread.calls);
        check(sums[COUNT - 1] == (int64_t) world_size * (5 + COUNT - 1), "the sum is wrong");
    }
    free(sums);
}

/* Each thread starts its request again as soon as it is complete, which any thread may find. */
static void *restart_main(void *arg)
{
    thread_t *thread = arg;
    int64_t *send = get_memory((size_t) world_size * 10 * sizeof(int64_t)), recv[10];
    MPI_Request request;

    MPI_Reduce_scatter_block_init(send, recv, 10, MPI_INT64_T, MPI_SUM, thread->comm, MPI_INFO_NULL,
                                  &request);
    for (int round = 0; round < many_rounds(20 * ROUNDS); round++) {
        for (int k = 0; k < world_size * 10; k++) {
            send[k] = 1000 * thread->number + round + k;
        }
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        see_request(request);
        for (int k = 0; k < 10; k++) {
            int64_t one = 1000 * thread->number + round + 10 * world_rank + k;

            check(recv[k] == world_size * one, "thread %d, round %d: wrong sum", thread->number,
                  round);
        }
    }
    MPI_Request_free(&request);
    free(send);
    return NULL;
}

static void in_threads(void *(*function)(void *thread))
{
    thread_t threads[THREADS];

    for (int k = 0; k < THREADS; k++) {
        threads[k].number = k;
        MPI_Comm_dup(MPI_COMM_WORLD, &threads[k].comm);
    }
    for (int k = 0; k < THREADS; k++) {
        check(pthread_create(&threads[k].id, NULL, function, &threads[k]) == 0, "no thread");
    }
    for (int k = 0; k < THREADS; k++) {
        pthread_join(threads[k].id, NULL);
        MPI_Comm_free(&threads[k].comm);
    }
}

static void several(void)
{
    in_threads(thread_main);
}

static void bursts(void)
{
    in_threads(burst_main);
}

static void persistent(void)
{
    in_threads(restart_main);
}

TEST_PROGRAM(test_threads, MPI_THREAD_MULTIPLE, {"several", several}, {"bursts", bursts},
             {"other_waits", other_waits}, {"persistent", persistent});
