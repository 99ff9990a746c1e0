/*
 * test_large.c: blocks and offsets beyond 2^31 bytes, on two ranks or more.
 *
 * Rank 0 has the long block, the others have short ones behind it. Memory that is not touched takes
 * no room: tests/mpi/large.sh says how much each case does.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <mpix_flash.h>

#include <stdio.h>
#include <sys/mman.h>

#include "mpitest.h"

enum { LONG = (1 << 28) + 1001, SHORT = 1003 }; /* elements of 8 bytes: 2^31 + 8008 bytes */

static int length(int rank)
{
    return rank == 0 ? LONG : SHORT;
}

static int total(void)
{
    return LONG + (world_size - 1) * SHORT;
}

static uint64_t *get_room(size_t elements)
{
    void *room = mmap(NULL, elements * sizeof(uint64_t), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (room == MAP_FAILED) {
        perror("mmap");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return room;
}

static void free_room(uint64_t *room, size_t elements)
{
    munmap(room, elements * sizeof(uint64_t));
}

/* Element `index` of what a rank contributes to block `block`. */
static uint64_t value(int rank, int block, size_t index)
{
    return ((uint64_t) rank << 8 | (uint64_t) block) * 0x9e3779b97f4a7c15u + index * 0x85ebca6bu;
}

/* `stride`: from one element to the next. */
static void fill(uint64_t *to, size_t stride, int rank, int block, size_t first, size_t count)
{
    for (size_t k = 0; k < count; k++) {
        to[k * stride] = value(rank, block, first + k);
    }
}

static bool is_block(const uint64_t *data, size_t stride, int rank, size_t first, size_t count)
{
    for (size_t k = 0; k < count; k++) {
        if (data[k * stride] != value(rank, rank, first + k)) {
            return check(false, "element %zu of block %d is wrong", first + k, rank);
        }
    }
    return true;
}

/* ---------------------------------------------------------------- allgather */

typedef struct gather {
    uint64_t *recv;
    int *counts, *displs; /* displs in elements of `type` */
    size_t stride;
    MPI_Datatype type;
    MPI_Count consumed;
} gather_t;

/* Blocks in a row, every `stride`th element of memory being used. */
static void make_gather(gather_t *gather, size_t stride)
{
    gather->counts = get_memory(sizeof(int) * (size_t) world_size);
    gather->displs = get_memory(sizeof(int) * (size_t) world_size);
    gather->stride = stride;
    gather->consumed = 0;
    for (int rank = 0, next = 0; rank < world_size; rank++) {
        gather->counts[rank] = length(rank);
        gather->displs[rank] = next;
        next += length(rank);
    }
    MPI_Type_create_resized(MPI_UINT64_T, 0, (MPI_Aint) (stride * sizeof(uint64_t)), &gather->type);
    MPI_Type_commit(&gather->type);
    gather->recv = get_room((size_t) total() * stride);
    fill(gather->recv + (size_t) gather->displs[world_rank] * stride, stride, world_rank,
         world_rank, 0, (size_t) length(world_rank));
}

static void check_gather(gather_t *gather)
{
    for (int rank = 0; rank < world_size; rank++) {
        is_block(gather->recv + (size_t) gather->displs[rank] * gather->stride, gather->stride,
                 rank, 0, (size_t) length(rank));
    }
    free_room(gather->recv, (size_t) total() * gather->stride);
    MPI_Type_free(&gather->type);
    free(gather->counts);
    free(gather->displs);
}

static void gather_in_place(size_t stride)
{
    MPI_Request request;
    gather_t gather;

    make_gather(&gather, stride);
    MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, gather.recv, gather.counts, gather.displs,
                    gather.type, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check_gather(&gather);
}

static void allgather(void)
{
    gather_in_place(1);
}

/* The last rank gathers packed, and unpacks. */
static void packed(void)
{
    gather_in_place(world_rank == world_size - 1 ? 2 : 1);
}

static int consume(const MPIX_Flash_block *block, void *arg)
{
    gather_t *gather = arg;

    is_block(block->data, gather->stride, block->rank, (size_t) block->offset,
             (size_t) block->count);
    gather->consumed += block->count;
    return MPI_SUCCESS;
}

static void consumed(void)
{
    MPIX_Flash_hints hints = MPIX_FLASH_HINTS_INIT;
    gather_t gather;

    hints.pieces = 3;
    make_gather(&gather, 1);
    MPIX_Allgatherv_compute(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, gather.recv, gather.counts,
                            gather.displs, gather.type, consume, &gather, &hints, MPI_COMM_WORLD);
    check(gather.consumed == total(), "callbacks for %lld elements", (long long) gather.consumed);
    check_gather(&gather);
}

/* Short blocks that lie 4 GiB apart, from one in the middle on. */
static void offsets(void)
{
    const int apart = 1 << 29, middle = world_size / 2;
    size_t room = (size_t) apart * (size_t) world_size;
    int *counts = get_memory(sizeof(int) * (size_t) world_size);
    int *displs = get_memory(sizeof(int) * (size_t) world_size);
    uint64_t *recv = get_room(room), *origin = recv + (size_t) apart * (size_t) middle;
    uint64_t send[SHORT];
    MPI_Request request;

    for (int rank = 0; rank < world_size; rank++) {
        counts[rank] = SHORT;
        displs[rank] = (rank - middle) * apart;
    }
    fill(send, 1, world_rank, world_rank, 0, SHORT);
    MPI_Iallgatherv(send, SHORT, MPI_UINT64_T, origin, counts, displs, MPI_UINT64_T, MPI_COMM_WORLD,
                    &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int rank = 0; rank < world_size; rank++) {
        is_block(origin + (ptrdiff_t) displs[rank], 1, rank, 0, SHORT);
    }
    free_room(recv, room);
    free(counts);
    free(displs);
}

/* ----------------------------------------------------------- reduce-scatter */

static void check_sums(const uint64_t *recv)
{
    size_t wrong = 0, count = (size_t) length(world_rank);

    for (size_t k = 0; k < count; k++) {
        uint64_t sum = 0;

        for (int rank = 0; rank < world_size; rank++) {
            sum += value(rank, world_rank, k);
        }
        wrong += recv[k] != sum;
    }
    check(wrong == 0, "%zu of %zu sums are wrong", wrong, count);
}

static int *block_lengths(void)
{
    int *counts = get_memory(sizeof(int) * (size_t) world_size);

    for (int rank = 0; rank < world_size; rank++) {
        counts[rank] = length(rank);
    }
    return counts;
}

static void reduce_scatter(void)
{
    uint64_t *send = get_room((size_t) total()), *recv = get_room((size_t) length(world_rank));
    int *counts = block_lengths();
    size_t first = 0;
    MPI_Request request;

    for (int rank = 0; rank < world_size; rank++) {
        fill(send + first, 1, world_rank, rank, 0, (size_t) length(rank));
        first += (size_t) length(rank);
    }
    MPI_Ireduce_scatter(send, recv, counts, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check_sums(recv);
    free_room(send, (size_t) total());
    free_room(recv, (size_t) length(world_rank));
    free(counts);
}

static int produce(const MPIX_Flash_block *block, void *arg)
{
    (void) arg;
    fill(block->data, 1, world_rank, block->rank, (size_t) block->offset, (size_t) block->count);
    return MPI_SUCCESS;
}

static void produced(void)
{
    uint64_t *recv = get_room((size_t) length(world_rank));
    int *counts = block_lengths();
    MPIX_Flash_hints hints = MPIX_FLASH_HINTS_INIT;

    hints.pieces = 64;
    MPIX_Reduce_scatter_compute(produce, NULL, &hints, recv, counts, MPI_UINT64_T, MPI_SUM,
                                MPI_COMM_WORLD);
    check_sums(recv);
    free_room(recv, (size_t) length(world_rank));
    free(counts);
}

TEST_PROGRAM(test_large, MPI_THREAD_SINGLE, {"allgather", allgather}, {"packed", packed},
             {"consumed", consumed}, {"offsets", offsets}, {"reduce_scatter", reduce_scatter},
             {"produced", produced});
TEST_MAIN(test_large)
