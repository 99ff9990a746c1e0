/*
 * test_buffers.c: ranks that lack a buffer, or have one that the host must not touch. Every rank's
 * operation ends, with an error that tells which rank it was, and the next operation works.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "aftermath.h"
#include "device.h"
#include "extension.h"

enum {
    PLAIN_ALLGATHER,
    PLAIN_REDUCE_SCATTER,
    PLAIN_ALLREDUCE,
    PLAIN_ALLTOALL,
    PLAIN_ALLTOALLV,
    COMPUTE_ALLGATHER,
    COMPUTE_REDUCE_SCATTER,
    CALLS
};
static const char *const call_names[] = {
    "Iallgather",         "Ireduce_scatter_block",        "Iallreduce", "Ialltoall", "Ialltoallv",
    "Iallgather_compute", "Ireduce_scatter_block_compute"};

enum { MOST_RANKS = 16 };

static int ignore(const MPIX_Flash_block *block, void *arg)
{
    (void) arg;
    memset(block->data, 0, (size_t) block->count * sizeof(int64_t));
    return MPI_SUCCESS;
}

static int look(const MPIX_Flash_block *block, void *arg)
{
    (void) block;
    (void) arg;
    return MPI_SUCCESS;
}

static int start(int call, int count, int64_t *send, void *recv, MPI_Comm comm,
                 MPI_Request *request)
{
    static int blocks[MOST_RANKS], places[MOST_RANKS];

    switch (call) {
    case PLAIN_ALLGATHER:
        return MPI_Iallgather(send, count, MPI_INT64_T, recv, count, MPI_INT64_T, comm, request);
    case PLAIN_REDUCE_SCATTER:
        return MPI_Ireduce_scatter_block(send, recv, count, MPI_INT64_T, MPI_SUM, comm, request);
    case PLAIN_ALLREDUCE:
        return MPI_Iallreduce(send, recv, count, MPI_INT64_T, MPI_SUM, comm, request);
    case PLAIN_ALLTOALL:
        return MPI_Ialltoall(send, count, MPI_INT64_T, recv, count, MPI_INT64_T, comm, request);
    case PLAIN_ALLTOALLV:
        for (int rank = 0; rank < world_size; rank++) {
            blocks[rank] = count;
            places[rank] = rank * count;
        }
        return MPI_Ialltoallv(send, blocks, places, MPI_INT64_T, recv, blocks, places, MPI_INT64_T,
                              comm, request);
    case COMPUTE_ALLGATHER:
        return MPIX_Iallgather_compute(send, count, MPI_INT64_T, recv, count, MPI_INT64_T, look,
                                       NULL, NULL, comm, request);
    default:
        return MPIX_Ireduce_scatter_block_compute(ignore, NULL, NULL, recv, count, MPI_INT64_T,
                                                  MPI_SUM, comm, request);
    }
}

static void *no_use; /* what rank 0 passes for a buffer: NULL, or a device's memory */

/* Rank 0 passes that for one of its buffers. */
static void lack_buffer(int call, int count, bool sending)
{
    MPI_Comm comm = make_counted_comm();
    int64_t *send = calloc((size_t) world_size * (size_t) count, sizeof(int64_t));
    int64_t *recv = calloc((size_t) world_size * (size_t) count, sizeof(int64_t));
    bool lacks = world_rank == 0;
    MPI_Request request = MPI_REQUEST_NULL;
    int error, class;

    error = start(call, count, lacks && sending ? no_use : send, lacks && !sending ? no_use : recv,
                  comm, &request);
    if (error == MPI_SUCCESS) {
        error = MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Error_class(error, &class);
    check(class == (lacks ? MPI_ERR_BUFFER : MPI_ERR_OTHER), "%s of %d, no buffer to %s: class %d",
          call_names[call], count, sending ? "send" : "receive", class);
    next_works(comm, "after a buffer that was not there");
    MPI_Comm_free(&comm);
    free(send);
    free(recv);
}

static void no_buffer(void)
{
    static const int counts[] = {10, 70000};

    for (int call = 0; call < CALLS; call++) {
        if ((call == PLAIN_ALLREDUCE || call == PLAIN_ALLTOALL || call == PLAIN_ALLTOALLV) &&
            passes_others_on()) {
            continue;
        }
        for (size_t k = 0; k < LENGTH(counts); k++) {
            lack_buffer(call, counts[k], false);
            if (call != COMPUTE_REDUCE_SCATTER) { /* which has none */
                lack_buffer(call, counts[k], true);
            }
        }
    }
}

/* More of them at a time than flash has memory set aside to tell the others of. */
static void many(void)
{
    enum { COUNT = 10, MANY = 100 };
    static int64_t send[COUNT], recv[MANY][16 * COUNT];
    MPI_Comm comm = make_counted_comm();
    MPI_Request requests[MANY];
    int class, wanted = world_rank == 0 ? MPI_ERR_BUFFER : MPI_ERR_OTHER;

    for (int k = 0; k < MANY; k++) {
        start(PLAIN_ALLGATHER, COUNT, world_rank == 0 ? NULL : send, recv[k], comm, &requests[k]);
    }
    for (int k = 0; k < MANY; k++) {
        MPI_Error_class(MPI_Wait(&requests[k], MPI_STATUS_IGNORE), &class);
        check(class == wanted, "call %d of many: class %d", k, class);
    }
    next_works(comm, "after many buffers that were not there");
    MPI_Comm_free(&comm);
}

/* Memory that the process dies of touching: the driver says that it is a device's. */
static void device_buffer(void)
{
    buffer_t memory;

    device_open();
    memory = buffer_make(IN_DEVICE, (size_t) world_size * 70000 * sizeof(int64_t));
    no_use = memory.data;
    no_buffer();
    no_use = NULL;
    check(buffer_free(&memory), "wrote around a device's memory");
}

/* Managed memory is the host's as well. */
static void managed_buffer(void)
{
    enum { COUNT = 1000 };
    MPI_Comm comm = make_counted_comm();
    int64_t *recv = calloc((size_t) world_size * COUNT, sizeof(*recv)), *send;
    buffer_t memory;
    MPI_Request request;

    device_open();
    memory = buffer_make(IN_MANAGED, COUNT * sizeof(int64_t));
    send = memory.data;
    for (int i = 0; i < COUNT; i++) {
        send[i] = world_rank + i;
    }
    MPI_Iallgather(send, COUNT, MPI_INT64_T, recv, COUNT, MPI_INT64_T, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int i = 0; i < world_size * COUNT; i++) {
        check(recv[i] == i / COUNT + i % COUNT, "element %d is %lld", i, (long long) recv[i]);
    }
    check(handler_calls == 0, "%d errors", handler_calls);
    check(buffer_free(&memory), "wrote around managed memory");
    free(recv);
    MPI_Comm_free(&comm);
}

/* Blocks that are packed on their way, and NULL in their place. */
static void no_strided_buffer(void)
{
    MPI_Comm comm = make_counted_comm();
    int64_t *memory = calloc((size_t) world_size * 200, sizeof(int64_t));
    MPI_Datatype strided;
    MPI_Request request;
    int class;

    MPI_Type_vector(100, 1, 2, MPI_INT64_T, &strided);
    MPI_Type_commit(&strided);
    for (int sending = 0; sending <= 1; sending++) {
        bool lacks = world_rank == 0;

        MPI_Iallgather(lacks && sending ? NULL : memory, 1, strided,
                       lacks && !sending ? NULL : memory, 1, strided, comm, &request);
        MPI_Error_class(MPI_Wait(&request, MPI_STATUS_IGNORE), &class);
        check(class == (lacks ? MPI_ERR_BUFFER : MPI_ERR_OTHER), "strided: class %d", class);
    }
    next_works(comm, "after a strided buffer that was not there");
    MPI_Type_free(&strided);
    MPI_Comm_free(&comm);
    free(memory);
}

/* NULL is a buffer for nothing, and MPI_BOTTOM one with a type that holds addresses. */
static void null_buffer(void)
{
    MPI_Comm comm = make_counted_comm();
    int64_t mine = world_rank, *all = calloc((size_t) world_size, sizeof(int64_t));
    int counts[] = {1}, got = 0;
    MPI_Aint address;
    MPI_Datatype absolute;
    MPI_Request request;

    MPI_Iallgather(NULL, 0, MPI_INT64_T, NULL, 0, MPI_INT64_T, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Ireduce_scatter_block(NULL, NULL, 0, MPI_INT64_T, MPI_SUM, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Iallreduce(NULL, NULL, 0, MPI_INT64_T, MPI_SUM, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Get_address(&mine, &address);
    MPI_Type_create_hindexed(1, counts, &address, MPI_INT64_T, &absolute);
    MPI_Type_commit(&absolute);
    MPI_Iallgather(MPI_BOTTOM, 1, absolute, all, 1, MPI_INT64_T, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int rank = 0; rank < world_size; rank++) {
        got += all[rank] == rank;
    }
    check(got == world_size && handler_calls == 0, "%d of %d elements right, %d errors", got,
          world_size, handler_calls);
    MPI_Type_free(&absolute);
    MPI_Comm_free(&comm);
    free(all);
}

TEST_PROGRAM(test_buffers, MPI_THREAD_SINGLE, {"no_buffer", no_buffer},
             {"no_strided_buffer", no_strided_buffer}, {"null_buffer", null_buffer}, {"many", many},
             {"device_buffer", device_buffer}, {"managed_buffer", managed_buffer});
