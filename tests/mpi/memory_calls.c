/*
 * memory_calls.c: see memory_calls.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "memory_calls.h"

#include <mpix_flash.h>

#include "persistent.h"

enum {
    KEPT = 4,
    KEPT_BLOCK = 1 << 20
}; /* buffers that flash keeps; elements that need long ones */

static int block, own; /* elements of each rank's, and of this one's where they are unequal */
static int *send, *recv, *counts, *displs;
static int *owns, *blocks; /* of this rank's length, or of `block`, for each rank */
static MPI_Datatype gaps;
static MPI_Op ordered;

static void add(void *in, void *inout, int *length, MPI_Datatype *type)
{
    (void) type;
    for (int k = 0; k < *length; k++) {
        ((int *) inout)[k] += ((int *) in)[k];
    }
}

void memory_calls_begin(int elements)
{
    size_t all = (size_t) world_size * (size_t) elements * 2;

    block = elements;
    send = calloc(all, sizeof(int));
    recv = calloc(all, sizeof(int));
    counts = get_memory((size_t) world_size * sizeof(int));
    displs = get_memory((size_t) world_size * sizeof(int));
    owns = get_memory((size_t) world_size * sizeof(int));
    blocks = get_memory((size_t) world_size * sizeof(int));
    for (int rank = 0; rank < world_size; rank++) {
        counts[rank] = rank % 2 ? 10 : block;
        displs[rank] = rank * block;
    }
    own = counts[world_rank];
    for (int rank = 0; rank < world_size; rank++) {
        owns[rank] = own;
        blocks[rank] = block;
    }
    MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &gaps);
    MPI_Type_commit(&gaps);
    MPI_Op_create(add, 0, &ordered);
}

void memory_calls_end(void)
{
    free(send);
    free(recv);
    free(counts);
    free(displs);
    free(owns);
    free(blocks);
    MPI_Type_free(&gaps);
    MPI_Op_free(&ordered);
}

void memory_calls_use_up_pool(MPI_Comm comm)
{
    int *operands = calloc((size_t) world_size * KEPT_BLOCK, sizeof(int));
    int *results = get_memory((size_t) KEPT * KEPT_BLOCK * sizeof(int));
    MPI_Request requests[KEPT];

    for (int k = 0; k < KEPT; k++) {
        MPI_Ireduce_scatter_block(operands, results + k * KEPT_BLOCK, KEPT_BLOCK, MPI_INT, MPI_SUM,
                                  comm, &requests[k]);
    }
    MPI_Waitall(KEPT, requests, MPI_STATUSES_IGNORE);
    free(operands);
    free(results);
}

/* ------------------------------------------------------------------ MPI's */

static int gather(MPI_Comm comm, MPI_Request *request)
{
    return MPI_Iallgather(send, block, MPI_INT, recv, block, MPI_INT, comm, request);
}

static int gather_into_gaps(MPI_Comm comm, MPI_Request *request)
{
    return MPI_Iallgather(send, block, gaps, recv, block, gaps, comm, request);
}

static int gather_unequal(MPI_Comm comm, MPI_Request *request)
{
    return MPI_Iallgatherv(send, own, MPI_INT, recv, counts, displs, MPI_INT, comm, request);
}

static int gather_unequal_into_gaps(MPI_Comm comm, MPI_Request *request)
{
    return MPI_Iallgatherv(send, own, gaps, recv, counts, displs, gaps, comm, request);
}

static int reduce(MPI_Comm comm, MPI_Request *request)
{
    return MPI_Ireduce_scatter_block(send, recv, block, MPI_INT, MPI_SUM, comm, request);
}

static int reduce_in_place(MPI_Comm comm, MPI_Request *request)
{
    return MPI_Ireduce_scatter_block(MPI_IN_PLACE, recv, block, MPI_INT, MPI_SUM, comm, request);
}

static int reduce_unequal(MPI_Comm comm, MPI_Request *request)
{
    return MPI_Ireduce_scatter(send, recv, counts, MPI_INT, MPI_SUM, comm, request);
}

static int reduce_unequal_in_place(MPI_Comm comm, MPI_Request *request)
{
    return MPI_Ireduce_scatter(MPI_IN_PLACE, recv, counts, MPI_INT, MPI_SUM, comm, request);
}

static int reduce_all(MPI_Comm comm, MPI_Request *request)
{
    return MPI_Iallreduce(send, recv, world_size * block, MPI_INT, MPI_SUM, comm, request);
}

static int reduce_all_in_place(MPI_Comm comm, MPI_Request *request)
{
    return MPI_Iallreduce(MPI_IN_PLACE, recv, world_size * block, MPI_INT, MPI_SUM, comm, request);
}

static int exchange(MPI_Comm comm, MPI_Request *request)
{
    return MPI_Ialltoall(send, block, MPI_INT, recv, block, MPI_INT, comm, request);
}

static int exchange_gaps(MPI_Comm comm, MPI_Request *request)
{
    return MPI_Ialltoall(send, block, gaps, recv, block, gaps, comm, request);
}

static int exchange_in_place(MPI_Comm comm, MPI_Request *request)
{
    return MPI_Ialltoall(MPI_IN_PLACE, 0, MPI_INT, recv, block, MPI_INT, comm, request);
}

static int exchange_unequal(MPI_Comm comm, MPI_Request *request)
{
    return MPI_Ialltoallv(send, owns, displs, MPI_INT, recv, counts, displs, MPI_INT, comm,
                          request);
}

static int exchange_unequal_gaps(MPI_Comm comm, MPI_Request *request)
{
    return MPI_Ialltoallv(send, owns, displs, gaps, recv, counts, displs, gaps, comm, request);
}

static int exchange_unequal_in_place(MPI_Comm comm, MPI_Request *request)
{
    return MPI_Ialltoallv(MPI_IN_PLACE, NULL, NULL, MPI_INT, recv, blocks, displs, MPI_INT, comm,
                          request);
}

/* ----------------------------------------------------------- the extension's */

static int compute(const MPIX_Flash_block *piece, void *arg)
{
    bool produces = arg != NULL;

    if (produces) {
        memset(piece->data, 0, (size_t) piece->count * sizeof(int));
    }
    return MPI_SUCCESS;
}

static int consume(MPI_Comm comm, MPI_Request *request)
{
    return MPIX_Iallgather_compute(send, block, MPI_INT, recv, block, MPI_INT, compute, NULL, NULL,
                                   comm, request);
}

static int consume_gaps(MPI_Comm comm, MPI_Request *request)
{
    *request = MPI_REQUEST_NULL;
    return MPIX_Allgather_compute(send, block, gaps, recv, block, gaps, compute, NULL, NULL, comm);
}

static int consume_unequal(MPI_Comm comm, MPI_Request *request)
{
    return MPIX_Iallgatherv_compute(send, own, MPI_INT, recv, counts, displs, MPI_INT, compute,
                                    NULL, NULL, comm, request);
}

static int consume_unequal_gaps(MPI_Comm comm, MPI_Request *request)
{
    *request = MPI_REQUEST_NULL;
    return MPIX_Allgatherv_compute(send, own, gaps, recv, counts, displs, gaps, compute, NULL, NULL,
                                   comm);
}

static int produce(MPI_Comm comm, MPI_Request *request)
{
    return MPIX_Ireduce_scatter_block_compute(compute, send, NULL, recv, block, MPI_INT, MPI_SUM,
                                              comm, request);
}

static int produce_unequal(MPI_Comm comm, MPI_Request *request)
{
    *request = MPI_REQUEST_NULL;
    return MPIX_Reduce_scatter_compute(compute, send, NULL, recv, counts, MPI_INT, MPI_SUM, comm);
}

static int produce_ordered(MPI_Comm comm, MPI_Request *request)
{
    return MPIX_Ireduce_scatter_block_compute(compute, send, NULL, recv, block, MPI_INT, ordered,
                                              comm, request);
}

static int produce_unequal_ordered(MPI_Comm comm, MPI_Request *request)
{
    *request = MPI_REQUEST_NULL;
    return MPIX_Reduce_scatter_compute(compute, send, NULL, recv, counts, MPI_INT, ordered, comm);
}

/* ---------------------------------------------------------------- persistent */

static int make_gather(MPI_Comm comm, MPI_Request *request)
{
    return MPI_Allgather_init(send, block, gaps, recv, block, gaps, comm, MPI_INFO_NULL, request);
}

static int make_gather_unequal(MPI_Comm comm, MPI_Request *request)
{
    return MPI_Allgatherv_init(send, own, MPI_INT, recv, counts, displs, MPI_INT, comm,
                               MPI_INFO_NULL, request);
}

static int make_reduce(MPI_Comm comm, MPI_Request *request)
{
    return MPI_Reduce_scatter_block_init(send, recv, block, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL,
                                         request);
}

static int make_reduce_unequal(MPI_Comm comm, MPI_Request *request)
{
    return MPI_Reduce_scatter_init(MPI_IN_PLACE, recv, counts, MPI_INT, MPI_SUM, comm,
                                   MPI_INFO_NULL, request);
}

static int make_reduce_all(MPI_Comm comm, MPI_Request *request)
{
    return MPI_Allreduce_init(MPI_IN_PLACE, recv, world_size * block, MPI_INT, MPI_SUM, comm,
                              MPI_INFO_NULL, request);
}

static int make_exchange(MPI_Comm comm, MPI_Request *request)
{
    return MPI_Alltoall_init(send, block, gaps, recv, block, gaps, comm, MPI_INFO_NULL, request);
}

static int make_exchange_unequal(MPI_Comm comm, MPI_Request *request)
{
    return MPI_Alltoallv_init(send, owns, displs, gaps, recv, counts, displs, gaps, comm,
                              MPI_INFO_NULL, request);
}

const memory_call_t memory_plain[MEMORY_PLAIN] = {
    {.name = "Iallgather", .start = gather},
    {.name = "Iallgather into gaps", .start = gather_into_gaps},
    {.name = "Iallgatherv", .start = gather_unequal},
    {.name = "Iallgatherv into gaps", .start = gather_unequal_into_gaps},
    {.name = "Ireduce_scatter_block", .start = reduce, .reduces = true},
    {.name = "Ireduce_scatter_block in place", .start = reduce_in_place, .reduces = true},
    {.name = "Ireduce_scatter", .start = reduce_unequal, .reduces = true},
    {.name = "Ireduce_scatter in place", .start = reduce_unequal_in_place, .reduces = true},
    {.name = "Iallreduce", .start = reduce_all, .reduces = true},
    {.name = "Iallreduce in place", .start = reduce_all_in_place, .reduces = true},
    {.name = "Ialltoall", .start = exchange},
    {.name = "Ialltoall of gaps", .start = exchange_gaps},
    {.name = "Ialltoall in place", .start = exchange_in_place},
    {.name = "Ialltoallv", .start = exchange_unequal},
    {.name = "Ialltoallv of gaps", .start = exchange_unequal_gaps},
    {.name = "Ialltoallv in place", .start = exchange_unequal_in_place},
    {.name = "Iallgather_compute", .start = consume},
    {.name = "Allgather_compute into gaps", .start = consume_gaps},
    {.name = "Iallgatherv_compute", .start = consume_unequal},
    {.name = "Allgatherv_compute into gaps", .start = consume_unequal_gaps},
    {.name = "Ireduce_scatter_block_compute", .start = produce, .reduces = true},
    {.name = "Reduce_scatter_compute", .start = produce_unequal, .reduces = true},
};

const memory_call_t memory_persistent[MEMORY_PERSISTENT] = {
    {.name = "Allgather_init into gaps", .start = make_gather},
    {.name = "Allgatherv_init", .start = make_gather_unequal},
    {.name = "Reduce_scatter_block_init", .start = make_reduce},
    {.name = "Reduce_scatter_init in place", .start = make_reduce_unequal},
    {.name = "Allreduce_init in place", .start = make_reduce_all},
    {.name = "Alltoall_init of gaps", .start = make_exchange},
    {.name = "Alltoallv_init of gaps", .start = make_exchange_unequal},
};

const memory_call_t memory_no_ring[MEMORY_NO_RING] = {
    {.name = "Ireduce_scatter_block_compute in order", .start = produce_ordered},
    {.name = "Reduce_scatter_compute in order", .start = produce_unequal_ordered},
};
