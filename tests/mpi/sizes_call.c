/*
 * sizes_call.c: see sizes_call.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "sizes_call.h"

#include <mpix_flash.h>

#include "mpitest.h"
#include "persistent.h"

/* ------------------------------------------------------------------- the calls */

static bool gathers(const call_t *call)
{
    return call->kind == ALLGATHER || call->kind == ALLGATHERV;
}

/* Whether what arrives is a block of each rank. */
static bool has_blocks(const call_t *call)
{
    return gathers(call) || call->kind == ALLTOALL;
}

/* What a rank contributes to an element of a block, which for an allgather is its own. */
static int64_t contribution(int rank, int block, int element)
{
    return 1000003 * (int64_t) rank + 1009 * (int64_t) block + element;
}

static int produce(const MPIX_Flash_block *block, void *arg)
{
    const call_t *call = arg;
    bool vector = call->kind == ALLREDUCE; /* all of it is block 0 */
    int first = (int) (block->offset + (vector ? block->displ : 0));
    int64_t *data = block->data;

    for (int k = 0; k < (int) block->count; k++) {
        data[k] = contribution(world_rank, vector ? 0 : block->rank, first + k);
    }
    return MPI_SUCCESS;
}

static int consume(const MPIX_Flash_block *block, void *arg)
{
    (void) block;
    (void) arg;
    return MPI_SUCCESS;
}

static int make_plain(call_t *c, int64_t *recv, int own)
{
    switch (c->kind) {
    case ALLGATHER:
        return MPI_Iallgather(c->send, own, MPI_INT64_T, recv, own, MPI_INT64_T, c->comm,
                              &c->request);
    case ALLGATHERV:
        return MPI_Iallgatherv(c->send, own, MPI_INT64_T, recv, c->counts, c->displs, MPI_INT64_T,
                               c->comm, &c->request);
    case REDUCE_SCATTER_BLOCK:
        return MPI_Ireduce_scatter_block(c->send, recv, own, MPI_INT64_T, MPI_SUM, c->comm,
                                         &c->request);
    case REDUCE_SCATTER:
        return MPI_Ireduce_scatter(c->send, recv, c->counts, MPI_INT64_T, MPI_SUM, c->comm,
                                   &c->request);
    case ALLREDUCE:
        return MPI_Iallreduce(c->send, recv, own, MPI_INT64_T, MPI_SUM, c->comm, &c->request);
    default:
        return MPI_Ialltoall(c->send, own, MPI_INT64_T, recv, own, MPI_INT64_T, c->comm,
                             &c->request);
    }
}

static int make_persistent(call_t *c, int64_t *recv, int own)
{
    switch (c->kind) {
    case ALLGATHER:
        return MPI_Allgather_init(c->send, own, MPI_INT64_T, recv, own, MPI_INT64_T, c->comm,
                                  MPI_INFO_NULL, &c->request);
    case ALLGATHERV:
        return MPI_Allgatherv_init(c->send, own, MPI_INT64_T, recv, c->counts, c->displs,
                                   MPI_INT64_T, c->comm, MPI_INFO_NULL, &c->request);
    case REDUCE_SCATTER_BLOCK:
        return MPI_Reduce_scatter_block_init(c->send, recv, own, MPI_INT64_T, MPI_SUM, c->comm,
                                             MPI_INFO_NULL, &c->request);
    case REDUCE_SCATTER:
        return MPI_Reduce_scatter_init(c->send, recv, c->counts, MPI_INT64_T, MPI_SUM, c->comm,
                                       MPI_INFO_NULL, &c->request);
    case ALLREDUCE:
        return MPI_Allreduce_init(c->send, recv, own, MPI_INT64_T, MPI_SUM, c->comm, MPI_INFO_NULL,
                                  &c->request);
    default:
        return MPI_Alltoall_init(c->send, own, MPI_INT64_T, recv, own, MPI_INT64_T, c->comm,
                                 MPI_INFO_NULL, &c->request);
    }
}

static int make_compute(call_t *c, int64_t *recv, int own)
{
    switch (c->kind) {
    case ALLGATHER:
        return MPIX_Iallgather_compute(c->send, own, MPI_INT64_T, recv, own, MPI_INT64_T, consume,
                                       NULL, NULL, c->comm, &c->request);
    case ALLGATHERV:
        return MPIX_Iallgatherv_compute(c->send, own, MPI_INT64_T, recv, c->counts, c->displs,
                                        MPI_INT64_T, consume, NULL, NULL, c->comm, &c->request);
    case REDUCE_SCATTER_BLOCK:
        return MPIX_Ireduce_scatter_block_compute(produce, c, NULL, recv, own, MPI_INT64_T, MPI_SUM,
                                                  c->comm, &c->request);
    case REDUCE_SCATTER:
        return MPIX_Ireduce_scatter_compute(produce, c, NULL, recv, c->counts, MPI_INT64_T, MPI_SUM,
                                            c->comm, &c->request);
    case ALLTOALL:
        return MPIX_Ialltoall_compute(c->send, own, MPI_INT64_T, recv, own, MPI_INT64_T, NULL, NULL,
                                      consume, NULL, NULL, c->comm, &c->request);
    default:
        return MPIX_Iallreduce_compute(produce, c, NULL, NULL, NULL, recv, own, MPI_INT64_T,
                                       MPI_SUM, c->comm, &c->request);
    }
}

/* ----------------------------------------------------------------- the buffers */

static void place_blocks(call_t *call)
{
    int gap = call->kind == ALLGATHERV ? GUARD : 0, next = 0;

    for (int block = 0; block < world_size; block++) {
        call->displs[block] = next;
        next += call->counts[block] + gap;
    }
    call->length = GUARD + (has_blocks(call) ? next : call->counts[world_rank]) + GUARD;
}

static void fill_send(call_t *call)
{
    if (gathers(call)) {
        for (int k = 0; k < call->counts[world_rank]; k++) {
            call->send[k] = contribution(world_rank, world_rank, k);
        }
        return;
    }
    for (int block = 0; block < world_size; block++) {
        for (int k = 0; k < call->counts[block]; k++) {
            call->send[call->displs[block] + k] = contribution(world_rank, block, k);
        }
    }
}

static void fill_recv(call_t *call)
{
    for (int k = 0; k < call->length; k++) {
        call->recv[k] = CANARY;
    }
}

void sizes_make(call_t *call, int count, int odd, bool one)
{
    size_t elements = 0;

    call->request = MPI_REQUEST_NULL;
    call->counts = get_memory((size_t) world_size * sizeof(int));
    call->displs = get_memory((size_t) world_size * sizeof(int));
    for (int block = 0; block < world_size; block++) {
        call->counts[block] = world_rank == 0 && (!one || block == 1) ? odd : count;
        elements += (size_t) call->counts[block];
    }
    place_blocks(call);
    call->send = get_memory(elements * sizeof(int64_t));
    call->recv = get_memory((size_t) call->length * sizeof(int64_t));
    fill_send(call);
    fill_recv(call);
}

void sizes_free(call_t *call)
{
    free(call->counts);
    free(call->displs);
    free(call->send);
    free(call->recv);
}

/* Whether a block of the receive buffer is right. */
static bool block_is_right(const call_t *call, int block, const int64_t *data)
{
    for (int k = 0; k < call->counts[block]; k++) {
        int64_t wanted = gathers(call)      ? contribution(block, block, k)
                         : has_blocks(call) ? contribution(block, world_rank, k)
                                            : 0;

        for (int rank = 0; !has_blocks(call) && rank < world_size; rank++) {
            wanted += contribution(rank, block, k);
        }
        if (data[k] != wanted) {
            return false;
        }
    }
    return true;
}

bool sizes_are_right(const call_t *call)
{
    if (!has_blocks(call)) {
        return block_is_right(call, call->kind == ALLREDUCE ? 0 : world_rank, call->recv + GUARD);
    }
    for (int block = 0; block < world_size; block++) {
        if (!block_is_right(call, block, call->recv + GUARD + call->displs[block])) {
            return false;
        }
    }
    return true;
}

/* From the end of one block to the beginning of the next. */
bool sizes_guards_are_intact(const call_t *call)
{
    int next = 0, first = has_blocks(call) ? 0 : world_rank;
    int last = has_blocks(call) ? world_size - 1 : world_rank;
    bool intact = true;

    for (int block = first; block <= last; block++) {
        int begin = GUARD + (has_blocks(call) ? call->displs[block] : 0);

        while (next < begin) {
            intact &= call->recv[next++] == CANARY;
        }
        next += call->counts[block];
    }
    while (next < call->length) {
        intact &= call->recv[next++] == CANARY;
    }
    return intact;
}

/* ---------------------------------------------------------------- the requests */

int sizes_begin(call_t *call)
{
    static int (*const makers[])(call_t *, int64_t *, int) = {make_plain, make_persistent,
                                                              make_compute};

    return makers[call->form](call, call->recv + GUARD, call->counts[world_rank]);
}

int sizes_end(call_t *call)
{
    if (call->form == PERSISTENT) {
        MPI_Start(&call->request);
    }
    return MPI_Wait(&call->request, MPI_STATUS_IGNORE);
}
