/*
 * test_beside.c: flash's operations while those of Open MPI's other components run on the same
 * communicators, which come and go. What any implementation of MPI does; that the rings serve what
 * they are to serve is counted.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "extension.h"
#include "persistent.h"
#include "pvars.h"

enum { COUNT = 4000, LONG = 40000 };

typedef struct beside {
    MPI_Comm comm;
    int rank, size, salt;
    int64_t *send, *recv, *operands, *sums, *again, *vector;
    MPI_Request requests[3];
} beside_t;

static int64_t element(int rank, int index, int salt)
{
    return (int64_t) rank * 1000003 + index * (int64_t) 7 + salt;
}

static int64_t *elements(int count)
{
    return get_memory((size_t) count * sizeof(int64_t));
}

static void begin(beside_t *b, MPI_Comm comm, int salt)
{
    b->comm = comm;
    b->salt = salt;
    MPI_Comm_rank(comm, &b->rank);
    MPI_Comm_size(comm, &b->size);
    b->send = elements(COUNT);
    b->recv = elements(b->size * COUNT);
    b->again = elements(b->size * COUNT);
    b->operands = elements(b->size * COUNT);
    b->sums = elements(COUNT);
    b->vector = elements(LONG);
    for (int k = 0; k < COUNT; k++) {
        b->send[k] = element(b->rank, k, salt);
    }
    for (int k = 0; k < b->size * COUNT; k++) {
        b->operands[k] = element(b->rank, k, salt);
    }
    MPI_Allgather_init(b->send, COUNT, MPI_INT64_T, b->again, COUNT, MPI_INT64_T, comm,
                       MPI_INFO_NULL, &b->requests[2]);
    MPI_Iallgather(b->send, COUNT, MPI_INT64_T, b->recv, COUNT, MPI_INT64_T, comm, &b->requests[0]);
    MPI_Ireduce_scatter_block(b->operands, b->sums, COUNT, MPI_INT64_T, MPI_SUM, comm,
                              &b->requests[1]);
    MPI_Start(&b->requests[2]);
}

static void end(beside_t *b)
{
    int64_t ranks = (int64_t) b->size * (b->size - 1) / 2;

    MPI_Waitall(3, b->requests, MPI_STATUSES_IGNORE);
    for (int k = 0; k < b->size * COUNT; k++) {
        int64_t right = element(k / COUNT, k % COUNT, b->salt);

        check(b->recv[k] == right && b->again[k] == right, "element %d of an allgather", k);
    }
    for (int k = 0; k < COUNT; k++) {
        int64_t right = ranks * 1000003 + b->size * (int64_t) (7 * (b->rank * COUNT + k) + b->salt);

        check(b->sums[k] == right, "element %d of a reduce-scatter", k);
    }
    MPI_Request_free(&b->requests[2]);
    free(b->send);
    free(b->recv);
    free(b->again);
    free(b->operands);
    free(b->sums);
    free(b->vector);
}

/* The first of these on a communicator is where HAN makes communicators of its own. */
static void blocking(const beside_t *b)
{
    int64_t mine = b->rank, sum = -1, ranks = (int64_t) b->size * (b->size - 1) / 2;
    int root = b->salt % b->size;

    MPI_Barrier(b->comm);
    MPI_Allreduce(&mine, &sum, 1, MPI_INT64_T, MPI_SUM, b->comm);
    check(sum == ranks, "MPI_Allreduce");
    MPI_Reduce(&mine, &sum, 1, MPI_INT64_T, MPI_MAX, root, b->comm);
    check(b->rank != root || sum == b->size - 1, "MPI_Reduce");
    for (int k = 0; k < LONG; k++) {
        b->vector[k] = b->rank == root ? element(root, k, b->salt) : -1;
    }
    MPI_Bcast(b->vector, LONG, MPI_INT64_T, root, b->comm);
    check(b->vector[LONG - 1] == element(root, LONG - 1, b->salt), "MPI_Bcast");
    MPI_Allgather(&mine, 1, MPI_INT64_T, b->vector, 1, MPI_INT64_T, b->comm);
    check(b->vector[b->size - 1] == b->size - 1, "MPI_Allgather");
    MPI_Gather(&mine, 1, MPI_INT64_T, b->vector, 1, MPI_INT64_T, root, b->comm);
    MPI_Scatter(b->vector, 1, MPI_INT64_T, &sum, 1, MPI_INT64_T, root, b->comm);
    check(sum == b->rank, "MPI_Gather or MPI_Scatter");
}

static void non_blocking(const beside_t *b)
{
    int64_t mine = b->rank, largest = -1;
    MPI_Request requests[2];

    for (int k = 0; k < LONG; k++) {
        b->vector[k] = b->rank == 0 ? element(0, k, b->salt) : -1;
    }
    MPI_Ibcast(b->vector, LONG, MPI_INT64_T, 0, b->comm, &requests[0]);
    MPI_Ireduce(&mine, &largest, 1, MPI_INT64_T, MPI_MAX, 0, b->comm, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    check(b->vector[LONG - 1] == element(0, LONG - 1, b->salt), "MPI_Ibcast");
    check(b->rank != 0 || largest == b->size - 1, "MPI_Ireduce");
}

static void all_on(MPI_Comm comm, int salt)
{
    watch_options_t options = {.count = 500, .pieces = 2, .salt = (unsigned) salt};
    beside_t operations;

    begin(&operations, comm, salt);
    blocking(&operations);
    non_blocking(&operations);
    for (int kind = 0; kind < WATCH_KINDS; kind++) {
        watch_one((watch_kind_t) kind, comm, &options, "beside others");
    }
    end(&operations);
}

static void count_rings(void)
{
    MPI_T_pvar_handle rings =
        pvar_of("coll_flash_ring_calls", MPI_T_PVAR_CLASS_COUNTER, MPI_UNSIGNED_LONG_LONG);

    for (int round = 0; round < 4; round++) {
        all_on(MPI_COMM_WORLD, round);
    }
    check(pvar_count(rings) >= 4 * 3, "%llu calls by the ring", pvar_count(rings));
    pvar_free(&rings);
}

static void world(void)
{
    pvars_with(count_rings);
}

/* Of all ranks, of half of them, of those of a node; freed while their operations are under way. */
static void communicators(void)
{
    beside_t operations[3];
    MPI_Comm comms[3];

    for (int round = 0; round < 6; round++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[0]);
        MPI_Comm_split(MPI_COMM_WORLD, world_rank % 2, -world_rank, &comms[1]);
        MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &comms[2]);
        for (int k = 0; k < 3; k++) {
            int size;

            if (round % 2 == 0) {
                MPI_Comm_size(comms[k], &size);
                if (size > 1) {
                    all_on(comms[k], round);
                }
            }
            begin(&operations[k], comms[k], round + k);
        }
        for (int k = 0; k < 3; k++) {
            if (round % 3 == 0) {
                blocking(&operations[k]);
            }
            MPI_Comm_free(&comms[k]);
        }
        for (int k = 2; k >= 0; k--) {
            end(&operations[k]);
        }
    }
}

TEST_PROGRAM(test_beside, MPI_THREAD_SINGLE, {"world", world}, {"communicators", communicators});
