/*
 * test_device_gather.c: gathers and scatters on buffers in the memory of devices, of the host, and of
 * both: each rank takes its buffers from where it likes.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "device_job.h"
#include "persistent.h"

enum { CANARY = -5 };

static const int counts[] = {1, 1000, 40001};

/* The root has all blocks in the one place, and each rank its own in the other. */
typedef struct call {
    bool gathers; /* or scatters */
    int count, root, turn;
    bool persistent, in_place; /* at the root */
} call_t;

static bool is_root(const call_t *call)
{
    return world_rank == call->root;
}

static bool has_own(const call_t *call)
{
    return !call->in_place || !is_root(call);
}

/* The same on all ranks, or another one on each. */
static place_t place_of(int turn)
{
    return (place_t) ((turn + (turn % 2) * world_rank) % PLACES);
}

static size_t all_count(const call_t *call)
{
    return is_root(call) ? (size_t) (world_size * call->count) : 0;
}

/* The contents of both before and after a round. */
static void fill(const call_t *call, int round, bool after, int64_t *all, int64_t *own)
{
    for (size_t k = 0; k < all_count(call); k++) {
        int rank = (int) k / call->count;
        bool there = after || !call->gathers || (call->in_place && rank == world_rank);

        all[k] = there ? contribution(rank, round, (int) k % call->count) : CANARY;
    }
    for (int k = 0; k < call->count; k++) {
        bool there = has_own(call) && (after || call->gathers);

        own[k] = there ? contribution(world_rank, round, k) : CANARY;
    }
}

/* A persistent request is made when it is MPI_REQUEST_NULL. */
static void start(const call_t *call, void *all, void *own, MPI_Request *request)
{
    void *from = call->gathers ? own : all, *to = call->gathers ? all : own;
    int count = call->count;

    if (!call->persistent) {
        (call->gathers ? MPI_Igather : MPI_Iscatter)(
            from, count, MPI_INT64_T, to, count, MPI_INT64_T, call->root, MPI_COMM_WORLD, request);
        return;
    }
    if (*request == MPI_REQUEST_NULL) {
        (call->gathers ? MPI_Gather_init
                       : MPI_Scatter_init)(from, count, MPI_INT64_T, to, count, MPI_INT64_T,
                                           call->root, MPI_COMM_WORLD, MPI_INFO_NULL, request);
    }
    MPI_Start(request);
}

static void check_content(const call_t *call, const buffer_t *buffer, int64_t *content,
                          const int64_t *wanted, size_t elements, const char *name, int round)
{
    if (elements > 0) {
        buffer_read(buffer, content);
        check(memcmp(content, wanted, elements * sizeof(int64_t)) == 0,
              "%s of %d, root %d, turn %d, round %d%s: %s wrong",
              call->gathers ? "gather" : "scatter", call->count, call->root, call->turn, round,
              call->in_place ? ", in place" : "", name);
    }
}

static void run(const call_t *call)
{
    size_t count = (size_t) call->count, most = (size_t) world_size * count;
    int64_t *all = get_memory(most * sizeof(int64_t)), *own = get_memory(count * sizeof(int64_t));
    int64_t *content = get_memory(most * sizeof(int64_t));
    size_t all_bytes = (is_root(call) ? all_count(call) : 1) * sizeof(int64_t);
    buffer_t all_buffer = buffer_make(place_of(call->turn), all_bytes);
    buffer_t own_buffer = buffer_make(place_of(call->turn / PLACES), count * sizeof(int64_t));
    MPI_Request request = MPI_REQUEST_NULL;

    for (int round = 0; round < (call->persistent ? 2 : 1); round++) {
        fill(call, round, false, all, own);
        if (is_root(call)) {
            buffer_write(&all_buffer, all);
        }
        buffer_write(&own_buffer, own);
        start(call, is_root(call) ? all_buffer.data : NULL,
              has_own(call) ? own_buffer.data : MPI_IN_PLACE, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        fill(call, round, true, all, own);
        check_content(call, &all_buffer, content, all, all_count(call), "all blocks are", round);
        check_content(call, &own_buffer, content, own, count, "the own block is", round);
    }
    if (request != MPI_REQUEST_NULL) {
        MPI_Request_free(&request);
    }
    check(buffer_free(&all_buffer) && buffer_free(&own_buffer), "wrote around a buffer");
    free(all);
    free(own);
    free(content);
}

static void run_all(bool gathers)
{
    for (size_t k = 0; k < LENGTH(counts); k++) {
        int step = !short_tier ? 1 : k + 1 == LENGTH(counts) ? 5 : 3;

        for (int turn = (int) k % step; turn < PLACES * PLACES; turn += step) {
            call_t call = {.gathers = gathers,
                           .count = counts[k],
                           .root = turn % world_size,
                           .turn = turn,
                           .persistent = turn % 4 == 1,
                           .in_place = turn % 3 == 0};

            run(&call);
        }
    }
    nothing_left();
}

static void gather(void)
{
    run_all(true);
}

static void scatter(void)
{
    run_all(false);
}

DEVICE_PROGRAM(test_device_gather, {"gather", gather}, {"scatter", scatter});
