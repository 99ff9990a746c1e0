/*
 * test_device_chain.c: broadcasts and reduces on buffers in the memory of devices, of the host, and
 * of both: each rank takes its buffers from where it likes.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "device_job.h"
#include "persistent.h"

enum { CANARY = -5 };

static const int counts[] = {1, 1000, 70001};

typedef struct call {
    int count, root, turn;
    bool persistent, in_place;
} call_t;

static bool is_root(const call_t *call)
{
    return world_rank == call->root;
}

/* The same on all ranks, or another one on each. */
static place_t place_of(int turn)
{
    return (place_t) ((turn + (turn % 2) * world_rank) % PLACES);
}

static size_t bytes_of(const call_t *call)
{
    return (size_t) call->count * sizeof(int64_t);
}

/* A persistent request is made when it is MPI_REQUEST_NULL. */
static void complete(const call_t *call, MPI_Request *request)
{
    if (call->persistent) {
        MPI_Start(request);
    }
    MPI_Wait(request, MPI_STATUS_IGNORE);
}

/* ---------------------------------------------------------------- broadcasts */

static void start_bcast(const call_t *call, void *buffer, MPI_Request *request)
{
    if (!call->persistent) {
        MPI_Ibcast(buffer, call->count, MPI_INT64_T, call->root, MPI_COMM_WORLD, request);
    } else if (*request == MPI_REQUEST_NULL) {
        MPI_Bcast_init(buffer, call->count, MPI_INT64_T, call->root, MPI_COMM_WORLD, MPI_INFO_NULL,
                       request);
    }
}

static void run_bcast(const call_t *call)
{
    int64_t *content = get_memory(bytes_of(call)), *wanted = get_memory(bytes_of(call));
    buffer_t buffer = buffer_make(place_of(call->turn), bytes_of(call));
    MPI_Request request = MPI_REQUEST_NULL;

    for (int round = 0; round < (call->persistent ? 2 : 1); round++) {
        for (int k = 0; k < call->count; k++) {
            wanted[k] = contribution(call->root, round, k);
            content[k] = is_root(call) ? wanted[k] : CANARY;
        }
        buffer_write(&buffer, content);
        start_bcast(call, buffer.data, &request);
        complete(call, &request);
        buffer_read(&buffer, content);
        check(memcmp(content, wanted, bytes_of(call)) == 0,
              "broadcast of %d, root %d, turn %d, round %d: wrong", call->count, call->root,
              call->turn, round);
    }
    if (request != MPI_REQUEST_NULL) {
        MPI_Request_free(&request);
    }
    check(buffer_free(&buffer), "wrote around a buffer that is broadcast");
    free(content);
    free(wanted);
}

/* ------------------------------------------------------------------- reduces */

static void start_reduce(const call_t *call, const void *send, void *recv, MPI_Request *request)
{
    if (!call->persistent) {
        MPI_Ireduce(send, recv, call->count, MPI_INT64_T, MPI_SUM, call->root, MPI_COMM_WORLD,
                    request);
    } else if (*request == MPI_REQUEST_NULL) {
        MPI_Reduce_init(send, recv, call->count, MPI_INT64_T, MPI_SUM, call->root, MPI_COMM_WORLD,
                        MPI_INFO_NULL, request);
    }
}

static int64_t result_at(const call_t *call, int k, int round)
{
    int64_t sum = 0;

    for (int rank = 0; rank < world_size && is_root(call); rank++) {
        sum += contribution(rank, round, k);
    }
    return is_root(call) ? sum : CANARY;
}

static void check_sums(const call_t *call, const int64_t *got, int round)
{
    for (int k = 0; k < call->count; k++) {
        if (!check(got[k] == result_at(call, k, round),
                   "reduce of %d, root %d, turn %d, round %d%s: element %d is wrong", call->count,
                   call->root, call->turn, round, call->in_place ? ", in place" : "", k)) {
            return;
        }
    }
}

/* The result's memory of other ranks stays as it is, or is not there. */
static void run_reduce(const call_t *call)
{
    int64_t *content = get_memory(bytes_of(call)), *canaries = get_memory(bytes_of(call));
    bool in_place = call->in_place && is_root(call), null = !is_root(call) && call->turn % 3 == 0;
    buffer_t from = buffer_make(place_of(call->turn), bytes_of(call));
    buffer_t to = buffer_make(place_of(call->turn / PLACES), bytes_of(call));
    void *recv = in_place ? from.data : null ? NULL : to.data;
    MPI_Request request = MPI_REQUEST_NULL;

    for (int round = 0; round < (call->persistent ? 2 : 1); round++) {
        for (int k = 0; k < call->count; k++) {
            content[k] = contribution(world_rank, round, k);
            canaries[k] = CANARY;
        }
        buffer_write(&from, content);
        buffer_write(&to, canaries);
        start_reduce(call, in_place ? MPI_IN_PLACE : from.data, recv, &request);
        complete(call, &request);
        buffer_read(in_place ? &from : &to, content);
        check_sums(call, content, round);
    }
    if (request != MPI_REQUEST_NULL) {
        MPI_Request_free(&request);
    }
    check(buffer_free(&from) && buffer_free(&to), "wrote around a buffer of a reduce");
    free(content);
    free(canaries);
}

/* -------------------------------------------------------------------- the cases */

static void bcast(void)
{
    for (size_t k = 0; k < LENGTH(counts); k++) {
        for (int turn = 0; turn < 2 * PLACES; turn++) {
            call_t call = {.count = counts[k],
                           .root = turn % world_size,
                           .turn = turn,
                           .persistent = turn >= PLACES};

            run_bcast(&call);
        }
    }
    nothing_left();
}

static void reduce(void)
{
    for (size_t k = 0; k < LENGTH(counts); k++) {
        int step = !short_tier ? 1 : k + 1 == LENGTH(counts) ? 5 : 3;

        for (int turn = (int) k % step; turn < PLACES * PLACES; turn += step) {
            call_t call = {.count = counts[k],
                           .root = turn % world_size,
                           .turn = turn,
                           .persistent = turn % 4 == 1,
                           .in_place = turn % 2 == 0};

            run_reduce(&call);
        }
    }
    nothing_left();
}

DEVICE_PROGRAM(test_device_chain, {"bcast", bcast}, {"reduce", reduce});
