/*
 * test_blocks.c: both collectives with blocks from 64 KiB to 4 MiB, several at a time: whatever
 * brings them, flash or what is there without it, all of them are right.
 *
 * FLASH_TEST_LONGEST in the environment: no block has more bytes.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "mpitest.h"

enum { TOGETHER = 3 };

static int64_t value(int rank, int block, int index, int salt)
{
    return rank * INT64_C(1000003) + block * INT64_C(10007) + salt * INT64_C(101) + index;
}

/* The longest are for few ranks, which all have the blocks of all. */
static int longest(void)
{
    const char *text = getenv("FLASH_TEST_LONGEST");

    return text != NULL ? atoi(text) : world_size <= 4 ? 4 << 20 : 256 << 10;
}

static void gather(int count)
{
    int64_t *mine[TOGETHER], *all[TOGETHER];
    MPI_Request requests[TOGETHER];
    int wrong = 0;

    for (int k = 0; k < TOGETHER; k++) {
        mine[k] = get_memory((size_t) count * sizeof(int64_t));
        all[k] = get_memory((size_t) world_size * (size_t) count * sizeof(int64_t));
        for (int index = 0; index < count; index++) {
            mine[k][index] = value(world_rank, 0, index, k);
        }
        MPI_Iallgather(mine[k], count, MPI_INT64_T, all[k], count, MPI_INT64_T, MPI_COMM_WORLD,
                       &requests[k]);
    }
    MPI_Waitall(TOGETHER, requests, MPI_STATUSES_IGNORE);
    for (int k = 0; k < TOGETHER; k++) {
        for (int rank = 0; rank < world_size; rank++) {
            for (int index = 0; index < count; index++) {
                wrong += all[k][(size_t) rank * (size_t) count + (size_t) index] !=
                         value(rank, 0, index, k);
            }
        }
        free(mine[k]);
        free(all[k]);
    }
    check(wrong == 0, "allgathers of %d elements: %d are wrong", count, wrong);
}

static void reduce(int count)
{
    int64_t *operands[TOGETHER], *sums[TOGETHER];
    MPI_Request requests[TOGETHER];
    int wrong = 0;

    for (int k = 0; k < TOGETHER; k++) {
        operands[k] = get_memory((size_t) world_size * (size_t) count * sizeof(int64_t));
        sums[k] = get_memory((size_t) count * sizeof(int64_t));
        for (int at = 0; at < world_size * count; at++) {
            operands[k][at] = value(world_rank, at / count, at % count, k);
        }
        MPI_Ireduce_scatter_block(operands[k], sums[k], count, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD,
                                  &requests[k]);
    }
    MPI_Waitall(TOGETHER, requests, MPI_STATUSES_IGNORE);
    for (int k = 0; k < TOGETHER; k++) {
        for (int index = 0; index < count; index++) {
            int64_t sum = 0;

            for (int rank = 0; rank < world_size; rank++) {
                sum += value(rank, world_rank, index, k);
            }
            wrong += sums[k][index] != sum;
        }
        free(operands[k]);
        free(sums[k]);
    }
    check(wrong == 0, "reduce-scatters of %d elements: %d are wrong", count, wrong);
}

static void each_size(void (*call)(int count))
{
    for (int bytes = 64 << 10; bytes <= longest(); bytes *= 4) {
        call(bytes / (int) sizeof(int64_t));
    }
}

static void gathers(void)
{
    each_size(gather);
}

static void reductions_of_blocks(void)
{
    each_size(reduce);
}

TEST_PROGRAM(test_blocks, MPI_THREAD_SINGLE, {"gathers", gathers},
             {"reductions", reductions_of_blocks});
