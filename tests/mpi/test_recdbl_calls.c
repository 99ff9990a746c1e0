/*
 * test_recdbl_calls.c: what is particular to calls by recursive doubling (recdbl.sh).
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <mpix_flash.h>

#include "mpitest.h"

/* ------------------------------------------------------------ types with gaps */

typedef struct pair {
    double value;
    int index;
} pair_t;

typedef struct wide_pair {
    long double value;
    int index;
} wide_pair_t;

/* The first rank's block is all there is. */
static void find_largest(const void *mine, void *most, int count, MPI_Datatype type)
{
    int *counts = get_memory(sizeof(int) * (size_t) world_size);
    MPI_Request request;

    for (int rank = 0; rank < world_size; rank++) {
        counts[rank] = rank == 0 ? count : 0;
    }
    MPI_Ireduce_scatter(mine, most, counts, type, MPI_MAXLOC, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    free(counts);
}

static int value_of(int k)
{
    return (k + world_rank) % world_size;
}

static bool is_largest(int k, double value, int index)
{
    int who = (world_size - 1 - k % world_size + world_size) % world_size;

    return check(value == world_size - 1 && index == who, "element %d is %g of rank %d", k, value,
                 index);
}

/* 64,800 bytes of data: the gaps make the message longer. */
static void gaps(void)
{
    enum { COUNT = 5400 };
    pair_t *mine = get_memory(sizeof(pair_t) * COUNT), *most = get_memory(sizeof(pair_t) * COUNT);

    for (int k = 0; k < COUNT; k++) {
        mine[k] = (pair_t){.value = value_of(k), .index = world_rank};
    }
    find_largest(mine, most, COUNT, MPI_DOUBLE_INT);
    for (int k = 0; k < COUNT && world_rank == 0; k++) {
        if (!is_largest(k, most[k].value, most[k].index)) {
            break;
        }
    }
    free(mine);
    free(most);
}

/* 65,400 bytes, of 104,640: no predefined type has more gaps. */
static void wide_gaps(void)
{
    enum { COUNT = 3270 };
    wide_pair_t *mine = get_memory(sizeof(wide_pair_t) * COUNT);
    wide_pair_t *most = get_memory(sizeof(wide_pair_t) * COUNT);

    for (int k = 0; k < COUNT; k++) {
        mine[k] = (wide_pair_t){.value = value_of(k), .index = world_rank};
    }
    find_largest(mine, most, COUNT, MPI_LONG_DOUBLE_INT);
    for (int k = 0; k < COUNT && world_rank == 0; k++) {
        if (!is_largest(k, (double) most[k].value, most[k].index)) {
            break;
        }
    }
    free(mine);
    free(most);
}

/* ------------------------------------------------------- requests of Open MPI's */

/* They come from where those of the rounds went. */
static void persistent_receives(void)
{
    enum { TIMES = 50, RECEIVES = 8 };
    int *all = get_memory(sizeof(int) * (size_t) world_size);
    int left = (world_rank + world_size - 1) % world_size, right = (world_rank + 1) % world_size;
    int got[RECEIVES];
    MPI_Request receives[RECEIVES], request;

    for (int k = 0; k < RECEIVES; k++) {
        MPI_Recv_init(&got[k], 1, MPI_INT, left, k, MPI_COMM_WORLD, &receives[k]);
    }
    for (int time = 0; time < TIMES; time++) {
        MPI_Iallgather(&time, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        for (int k = 0; k < RECEIVES; k++) {
            int sent = 100 * time + k;

            MPI_Send(&sent, 1, MPI_INT, right, k, MPI_COMM_WORLD);
        }
        MPI_Barrier(MPI_COMM_WORLD); /* they are all there, on most transports */
        MPI_Iallgather(&time, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD, &request);
        for (int k = 0; k < RECEIVES; k++) {
            MPI_Start(&receives[k]);
            MPI_Wait(&receives[k], MPI_STATUS_IGNORE);
            check(got[k] == 100 * time + k, "receive %d brings %d", k, got[k]);
        }
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        check(all[left] == time, "an allgather brings %d", all[left]);
    }
    for (int k = 0; k < RECEIVES; k++) {
        MPI_Request_free(&receives[k]);
    }
    free(all);
}

/* ----------------------------------------------------------------------- 16 bits */

static uint16_t encode(int number) /* small and whole: exact in bfloat16 */
{
    float value = (float) number;
    uint32_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return (uint16_t) (bits >> 16);
}

static int produce(const MPIX_Flash_block *block, void *arg)
{
    uint16_t *data = block->data;

    (void) arg;
    for (MPI_Count k = 0; k < block->count; k++) {
        data[k] = encode((int) (block->displ + block->offset + k) % 7 + world_rank);
    }
    return MPI_SUCCESS;
}

/* Sums of 16 bits are 32 bits long in a pairwise reduce-scatter, and nowhere else. */
static void float16(void)
{
    enum { COUNT = 333 };
    uint16_t sum[COUNT + 1];
    MPIX_Flash_hints hints = MPIX_FLASH_HINTS_INIT;
    MPI_Datatype type;
    MPI_Request request;

    MPIX_Flash_type(MPIX_FLASH_BF16, &type);
    hints.merge = 1;
    sum[COUNT] = 0x5a5a;
    MPIX_Ireduce_scatter_block_compute(produce, NULL, &hints, sum, COUNT, type, MPI_SUM,
                                       MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int k = 0; k < COUNT; k++) {
        int exact = (world_rank * COUNT + k) % 7 * world_size + world_size * (world_size - 1) / 2;

        if (!check(sum[k] == encode(exact), "element %d is %#x, not %d", k, sum[k], exact)) {
            break;
        }
    }
    check(sum[COUNT] == 0x5a5a, "something is written past the end");
}

TEST_PROGRAM(test_recdbl_calls, MPI_THREAD_SINGLE, {"gaps", gaps}, {"wide_gaps", wide_gaps},
             {"persistent_receives", persistent_receives}, {"float16", float16});
