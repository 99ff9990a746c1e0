/*
 * lost_calls.c: see lost_calls.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "lost_calls.h"

#include <stdlib.h>

#include "lost_callbacks.h"
#include "mpitest.h"
#include "persistent.h"

enum { MORE = 8, MORE_COUNT = 100 };

int64_t *lost_send, *lost_recv;
static int *counts, *displs;
int lost_count;
static int count; /* of the forms with equal blocks */
static MPI_Request more[MORE];
static int64_t *more_recv[MORE];

static int gather(MPI_Request *request)
{
    return MPI_Iallgather(lost_send, count, MPI_INT64_T, lost_recv, count, MPI_INT64_T,
                          MPI_COMM_WORLD, request);
}

/* Behind some more, shorter ones, which end before it does: or with it, if somebody is late. */
static int gather_many(MPI_Request *request)
{
    int error = MPI_Waitall(MORE, more, MPI_STATUSES_IGNORE);

    for (int k = 0; k < MORE && error == MPI_SUCCESS; k++) {
        error = MPI_Iallgather(lost_send, MORE_COUNT, MPI_INT64_T, more_recv[k], MORE_COUNT,
                               MPI_INT64_T, MPI_COMM_WORLD, &more[k]);
    }
    return error != MPI_SUCCESS ? error : gather(request);
}

static int gatherv(MPI_Request *request)
{
    return MPI_Iallgatherv(lost_send, lost_count, MPI_INT64_T, lost_recv, counts, displs,
                           MPI_INT64_T, MPI_COMM_WORLD, request);
}

static int reduce(MPI_Request *request)
{
    return MPI_Ireduce_scatter_block(lost_send, lost_recv, count, MPI_INT64_T, MPI_SUM,
                                     MPI_COMM_WORLD, request);
}

static int reducev(MPI_Request *request)
{
    return MPI_Ireduce_scatter(lost_send, lost_recv, counts, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD,
                               request);
}

static int reduce_all(MPI_Request *request)
{
    return MPI_Iallreduce(lost_send, lost_recv, world_size * count, MPI_INT64_T, MPI_SUM,
                          MPI_COMM_WORLD, request);
}

static int exchange(MPI_Request *request)
{
    return MPI_Ialltoall(lost_send, count, MPI_INT64_T, lost_recv, count, MPI_INT64_T,
                         MPI_COMM_WORLD, request);
}

static int exchangev(MPI_Request *request)
{
    return MPI_Ialltoallv(lost_send, counts, displs, MPI_INT64_T, lost_recv, counts, displs,
                          MPI_INT64_T, MPI_COMM_WORLD, request);
}

static int bcast(MPI_Request *request)
{
    if (world_rank == 0) {
        memcpy(lost_recv, lost_send, (size_t) count * sizeof(*lost_recv));
    }
    return MPI_Ibcast(lost_recv, count, MPI_INT64_T, 0, MPI_COMM_WORLD, request);
}

static int reduce_to_root(MPI_Request *request)
{
    return MPI_Ireduce(lost_send, lost_recv, count, MPI_INT64_T, MPI_SUM, 0, MPI_COMM_WORLD,
                       request);
}

static int gather_to_root(MPI_Request *request)
{
    return MPI_Igather(lost_send, count, MPI_INT64_T, lost_recv, count, MPI_INT64_T, 0,
                       MPI_COMM_WORLD, request);
}

/* The root sends what it has to all others: each has a part of it. */
static int scatter(MPI_Request *request)
{
    return MPI_Iscatter(lost_send, count, MPI_INT64_T, lost_recv, count, MPI_INT64_T, 0,
                        MPI_COMM_WORLD, request);
}

static int gatherv_to_root(MPI_Request *request)
{
    return MPI_Igatherv(lost_send, lost_count, MPI_INT64_T, lost_recv, counts, displs, MPI_INT64_T,
                        0, MPI_COMM_WORLD, request);
}

static int scatterv(MPI_Request *request)
{
    return MPI_Iscatterv(lost_send, counts, displs, MPI_INT64_T, lost_recv, lost_count, MPI_INT64_T,
                         0, MPI_COMM_WORLD, request);
}

/* A request that lasts, until it ends with an error: Open MPI frees it then. */
static MPI_Request persistent;

static int start_again(int error, MPI_Request *request)
{
    *request = persistent;
    return error != MPI_SUCCESS ? error : MPI_Start(request);
}

static int gather_init(MPI_Request *request)
{
    int error = MPI_SUCCESS;

    if (persistent == MPI_REQUEST_NULL) {
        error = MPI_Allgather_init(lost_send, lost_count, MPI_INT64_T, lost_recv, lost_count,
                                   MPI_INT64_T, MPI_COMM_WORLD, MPI_INFO_NULL, &persistent);
    }
    return start_again(error, request);
}

static int reduce_init(MPI_Request *request)
{
    int error = MPI_SUCCESS;

    if (persistent == MPI_REQUEST_NULL) {
        error = MPI_Reduce_scatter_block_init(lost_send, lost_recv, lost_count, MPI_INT64_T,
                                              MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &persistent);
    }
    return start_again(error, request);
}

static int reduce_all_init(MPI_Request *request)
{
    int error = MPI_SUCCESS;

    if (persistent == MPI_REQUEST_NULL) {
        error = MPI_Allreduce_init(lost_send, lost_recv, world_size * lost_count, MPI_INT64_T,
                                   MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &persistent);
    }
    return start_again(error, request);
}

static int gatherv_to_root_init(MPI_Request *request)
{
    int error = MPI_SUCCESS;

    if (persistent == MPI_REQUEST_NULL) {
        error = MPI_Gatherv_init(lost_send, lost_count, MPI_INT64_T, lost_recv, counts, displs,
                                 MPI_INT64_T, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &persistent);
    }
    return start_again(error, request);
}

void lost_keep_request(MPI_Request request)
{
    persistent = request;
}

void lost_halve_blocks(void)
{
    count /= 2;
}

static const lost_call_t calls[] = {
    {.name = "gather", .post = gather, .gathers = true},
    {.name = "gather_many", .post = gather_many, .gathers = true},
    {.name = "reduce", .post = reduce},
    {.name = "gatherv", .post = gatherv, .gathers = true},
    {.name = "reducev", .post = reducev},
    {.name = "reduce_all", .post = reduce_all},
    {.name = "reduce_all_init", .post = reduce_all_init, .lasts = true},
    {.name = "exchange", .post = exchange, .gathers = true},
    {.name = "exchangev", .post = exchangev, .gathers = true},
    {.name = "bcast", .post = bcast, .gathers = true, .rooted = true},
    {.name = "reduce_to_root", .post = reduce_to_root, .rooted = true},
    {.name = "gather_to_root", .post = gather_to_root, .gathers = true, .to_root = true},
    {.name = "scatter", .post = scatter, .gathers = true, .rooted = true},
    {.name = "gatherv_to_root", .post = gatherv_to_root, .gathers = true, .to_root = true},
    {.name = "gatherv_to_root_init",
     .post = gatherv_to_root_init,
     .gathers = true,
     .to_root = true,
     .lasts = true},
    {.name = "scatterv", .post = scatterv, .gathers = true, .rooted = true},
    {.name = "gather_init", .post = gather_init, .gathers = true, .lasts = true},
    {.name = "reduce_init", .post = reduce_init, .lasts = true},
    {.name = "gather_compute", .post = lost_gather_compute, .gathers = true},
    {.name = "reduce_compute", .post = lost_reduce_compute},
    {.name = "gather_pending", .post = lost_gather_compute, .gathers = true, .holds = true},
    {.name = "reduce_pending", .post = lost_reduce_compute, .holds = true}};

const lost_call_t *lost_find_call(const char *name)
{
    for (size_t k = 0; k < LENGTH(calls); k++) {
        if (strcmp(calls[k].name, name) == 0) {
            return &calls[k];
        }
    }
    return NULL;
}

bool lost_is_right(const lost_call_t *call)
{
    int64_t sum = (int64_t) world_size * (world_size + 1) / 2;
    bool has_result = call->gathers || world_rank == 0;

    for (int k = 0; k < lost_count && call->rooted && has_result; k++) {
        if (lost_recv[k] != (call->gathers ? 1 : sum)) {
            return false;
        }
    }
    if (call->rooted || (call->to_root && world_rank != 0)) {
        return true;
    }
    for (int k = 0; k < (call->gathers ? world_size * lost_count : lost_count); k++) {
        if (lost_recv[k] != (call->gathers ? k / lost_count + 1 : sum)) {
            return false;
        }
    }
    return true;
}

void lost_make_buffers(void)
{
    const char *text = getenv("FLASH_TEST_COUNT");

    lost_count = count = text == NULL ? 400000 : atoi(text);
    persistent = MPI_REQUEST_NULL;
    lost_send = get_memory((size_t) world_size * lost_count * sizeof(*lost_send));
    lost_recv = get_memory((size_t) world_size * lost_count * sizeof(*lost_recv));
    for (int k = 0; k < MORE; k++) {
        more[k] = MPI_REQUEST_NULL;
        more_recv[k] = get_memory((size_t) world_size * MORE_COUNT * sizeof(*more_recv[k]));
    }
    counts = get_memory((size_t) world_size * sizeof(*counts));
    displs = get_memory((size_t) world_size * sizeof(*displs));
    for (int k = 0; k < world_size * lost_count; k++) {
        lost_send[k] = world_rank + 1;
    }
    for (int rank = 0; rank < world_size; rank++) {
        counts[rank] = lost_count;
        displs[rank] = rank * lost_count;
    }
}

void lost_free_buffers(void)
{
    if (persistent != MPI_REQUEST_NULL) {
        MPI_Request_free(&persistent);
    }
    MPI_Waitall(MORE, more, MPI_STATUSES_IGNORE);
    for (int k = 0; k < MORE; k++) {
        free(more_recv[k]);
    }
    free(lost_send);
    free(lost_recv);
    free(counts);
    free(displs);
}
