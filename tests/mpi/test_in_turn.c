/*
 * test_in_turn.c: MPI_THREAD_SERIALIZED: threads that call MPI one at a time. Each posts operations
 * on a communicator of its own, and completes whoever's it finds complete.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <pthread.h>
#include <sched.h>

#include <mpix_flash.h>

#include "mpitest.h"
#include "persistent.h"

enum { THREADS = 4, ROUNDS = 60, COUNT = 1500 };

/* In turn, on each communicator. */
enum {
    PLAIN_GATHER,
    PLAIN_REDUCE,
    PLAIN_ALLREDUCE,
    COMPUTE_GATHER,
    COMPUTE_REDUCE,
    LASTING_REDUCE,
    KINDS
};

/* A thread and its operation; all but `id` is written by whoever's turn it is. */
typedef struct worker {
    pthread_t id;
    int number, round, kind;
    MPI_Comm comm;
    MPI_Request request, lasting; /* `lasting`: persistent */
    bool under_way;
    int64_t *send, *recv, *lasting_send, *lasting_recv;
} worker_t;

static worker_t workers[THREADS];
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static pthread_t whose_turn; /* under it */
static MPI_Op greater;

static void take_turn(void)
{
    pthread_mutex_lock(&turn);
    whose_turn = pthread_self();
}

static void end_turn(void)
{
    pthread_mutex_unlock(&turn);
    sched_yield();
}

/* The user's code runs where the user calls MPI, and nowhere else. */
static void check_turn(const char *what)
{
    check(pthread_equal(pthread_self(), whose_turn), "%s in a thread whose turn it is not", what);
}

static void take_greater(void *in, void *inout, int *length, MPI_Datatype *type)
{
    (void) type;
    check_turn("operation");
    for (int k = 0; k < *length; k++) {
        int64_t a = ((int64_t *) in)[k], *b = &((int64_t *) inout)[k];

        *b = a > *b ? a : *b;
    }
}

static int64_t element(const worker_t *worker, int rank, int index)
{
    return 1000000 * (int64_t) worker->number + 100 * worker->round + 7 * rank + index;
}

static int produce(const MPIX_Flash_block *block, void *arg)
{
    const worker_t *worker = arg;

    check_turn("producer");
    for (int k = 0; k < (int) block->count; k++) {
        ((int64_t *) block->data)[k] =
            element(worker, world_rank, COUNT * block->rank + (int) block->offset + k);
    }
    return MPI_SUCCESS;
}

static int consume(const MPIX_Flash_block *block, void *arg)
{
    const worker_t *worker = arg;

    check_turn("consumer");
    check(*(int64_t *) block->data == element(worker, block->rank, (int) block->offset),
          "thread %d: block %d is not there yet", worker->number, block->rank);
    return MPI_SUCCESS;
}

static void post(worker_t *worker)
{
    int64_t *send = worker->kind == LASTING_REDUCE ? worker->lasting_send : worker->send;

    for (int k = 0; k < world_size * COUNT; k++) {
        send[k] = element(worker, world_rank, k);
    }
    switch (worker->kind) {
    case PLAIN_GATHER:
        MPI_Iallgather(send, COUNT, MPI_INT64_T, worker->recv, COUNT, MPI_INT64_T, worker->comm,
                       &worker->request);
        break;
    case PLAIN_REDUCE:
        MPI_Ireduce_scatter_block(send, worker->recv, COUNT, MPI_INT64_T, greater, worker->comm,
                                  &worker->request);
        break;
    case PLAIN_ALLREDUCE:
        MPI_Iallreduce(send, worker->recv, world_size * COUNT, MPI_INT64_T, greater, worker->comm,
                       &worker->request);
        break;
    case COMPUTE_GATHER:
        MPIX_Iallgather_compute(send, COUNT, MPI_INT64_T, worker->recv, COUNT, MPI_INT64_T, consume,
                                worker, NULL, worker->comm, &worker->request);
        break;
    case COMPUTE_REDUCE:
        MPIX_Ireduce_scatter_block_compute(produce, worker, NULL, worker->recv, COUNT, MPI_INT64_T,
                                           greater, worker->comm, &worker->request);
        break;
    default:
        worker->request = worker->lasting;
        MPI_Start(&worker->request);
    }
    worker->under_way = true;
}

static void check_result(const worker_t *worker)
{
    bool gathered = worker->kind == PLAIN_GATHER || worker->kind == COMPUTE_GATHER;
    bool all = worker->kind == PLAIN_ALLREDUCE;
    const int64_t *recv = worker->kind == LASTING_REDUCE ? worker->lasting_recv : worker->recv;

    for (int k = 0; k < (gathered || all ? world_size : 1) * COUNT; k++) {
        int first = all ? 0 : world_rank * COUNT;
        int64_t wanted = gathered ? element(worker, k / COUNT, k % COUNT)
                                  : element(worker, world_size - 1, first + k);

        if (!check(recv[k] == wanted, "thread %d, round %d, kind %d: element %d is wrong",
                   worker->number, worker->round, worker->kind, k)) {
            return;
        }
    }
}

/* The thread that makes an operation complete is seldom the one that posted it. */
static void look_around(void)
{
    for (int k = 0; k < THREADS; k++) {
        worker_t *worker = &workers[k];
        int flag = 0;

        if (worker->under_way) {
            MPI_Test(&worker->request, &flag, MPI_STATUS_IGNORE);
        }
        if (flag) {
            if (worker->kind == LASTING_REDUCE) {
                see_request(worker->request);
            }
            check_result(worker);
            worker->under_way = false;
        }
    }
}

static void *thread_main(void *arg)
{
    worker_t *worker = arg;

    for (int round = 0; round < ROUNDS; round++) {
        bool under_way = true;

        take_turn();
        worker->round = round;
        worker->kind = (worker->number + round) % KINDS;
        post(worker);
        end_turn();
        while (under_way) {
            take_turn();
            look_around();
            under_way = worker->under_way;
            end_turn();
        }
    }
    return NULL;
}

static void make_worker(worker_t *worker, int number)
{
    size_t bytes = (size_t) (world_size * COUNT) * sizeof(int64_t);

    *worker = (worker_t){.number = number};
    MPI_Comm_dup(MPI_COMM_WORLD, &worker->comm);
    worker->send = get_memory(bytes);
    worker->recv = get_memory(bytes);
    worker->lasting_send = get_memory(bytes);
    worker->lasting_recv = get_memory(bytes);
    MPI_Reduce_scatter_block_init(worker->lasting_send, worker->lasting_recv, COUNT, MPI_INT64_T,
                                  greater, worker->comm, MPI_INFO_NULL, &worker->lasting);
}

static void free_worker(worker_t *worker)
{
    MPI_Request_free(&worker->lasting);
    MPI_Comm_free(&worker->comm);
    free(worker->send);
    free(worker->recv);
    free(worker->lasting_send);
    free(worker->lasting_recv);
}

static void in_turn(void)
{
    MPI_Op_create(take_greater, 1, &greater);
    for (int k = 0; k < THREADS; k++) {
        make_worker(&workers[k], k);
    }
    for (int k = 0; k < THREADS; k++) {
        check(pthread_create(&workers[k].id, NULL, thread_main, &workers[k]) == 0, "no thread");
    }
    for (int k = 0; k < THREADS; k++) {
        pthread_join(workers[k].id, NULL);
    }
    for (int k = 0; k < THREADS; k++) {
        free_worker(&workers[k]);
    }
    MPI_Op_free(&greater);
}

TEST_PROGRAM(test_in_turn, MPI_THREAD_SERIALIZED, {"in_turn", in_turn});
