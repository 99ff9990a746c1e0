/*
 * test_same_bits.c: rounded sums by each way of a reduce-scatter, for same_bits.sh to compare with
 * another run's: the first rank prints a checksum for each way and rank.
 *
 * FLASH_TEST_LATE in the environment: that rank is late, with its calls and in its callbacks.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <stdio.h>
#include <unistd.h>

#include <mpix_flash.h>

#include "mpitest.h"
#include "persistent.h"

enum { BLOCK = 30001, ROUNDS = 3 };

enum { PLAIN_BLOCK, PLAIN, LASTING, COMPUTE_BLOCK, COMPUTE, WAYS };

static void be_late(void)
{
    const char *late = getenv("FLASH_TEST_LATE");

    if (late != NULL && atoi(late) == world_rank) {
        usleep(3000);
    }
}

static float operand(int rank, int index)
{
    return (float) mix((uint32_t) rank, (uint32_t) index, 1) / 3e5f - 5e3f;
}

/* Of equal blocks, or of unequal ones. */
static int count_of(int rank, bool unequal)
{
    return unequal ? BLOCK - 1000 * rank : BLOCK;
}

static int first_of(int rank, bool unequal)
{
    int first = 0;

    for (int k = 0; k < rank; k++) {
        first += count_of(k, unequal);
    }
    return first;
}

static int produce(const MPIX_Flash_block *block, void *arg)
{
    int first = first_of(block->rank, *(bool *) arg) + (int) block->offset;

    be_late();
    for (int k = 0; k < (int) block->count; k++) {
        ((float *) block->data)[k] = operand(world_rank, first + k);
    }
    return MPI_SUCCESS;
}

static MPI_Request start(int way, const float *operands, float *result, const int counts[],
                         bool *unequal)
{
    MPIX_Flash_hints hints = MPIX_FLASH_HINTS_INIT;
    MPI_Request request;

    hints.pieces = 3;
    switch (way) {
    case PLAIN_BLOCK:
        MPI_Ireduce_scatter_block(operands, result, BLOCK, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD,
                                  &request);
        break;
    case PLAIN:
        MPI_Ireduce_scatter(operands, result, counts, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &request);
        break;
    case LASTING:
        MPI_Reduce_scatter_init(operands, result, counts, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD,
                                MPI_INFO_NULL, &request);
        MPI_Start(&request);
        break;
    case COMPUTE_BLOCK:
        MPIX_Ireduce_scatter_block_compute(produce, unequal, &hints, result, BLOCK, MPI_FLOAT,
                                           MPI_SUM, MPI_COMM_WORLD, &request);
        break;
    default:
        MPIX_Ireduce_scatter_compute(produce, unequal, &hints, result, counts, MPI_FLOAT, MPI_SUM,
                                     MPI_COMM_WORLD, &request);
    }
    return request;
}

static uint64_t checksum(const void *data, size_t bytes)
{
    const unsigned char *byte = data;
    uint64_t sum = 0;

    for (size_t k = 0; k < bytes; k++) {
        sum = (sum ^ byte[k]) * 0x9e3779b97f4a7c15u;
        sum ^= sum >> 29;
    }
    return sum;
}

static void tell(int way, int round, uint64_t own)
{
    uint64_t *sums = get_memory((size_t) world_size * sizeof(uint64_t));

    MPI_Gather(&own, 1, MPI_UINT64_T, sums, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    for (int rank = 0; rank < world_size && world_rank == 0; rank++) {
        printf("sums of way %d, round %d, rank %d: %016llx\n", way, round, rank,
               (unsigned long long) sums[rank]);
    }
    free(sums);
}

static void run(int way, int round)
{
    bool unequal = way == PLAIN || way == LASTING || way == COMPUTE;
    int total = first_of(world_size, unequal), own = count_of(world_rank, unequal);
    float *operands = get_memory((size_t) total * sizeof(float));
    float *result = get_memory((size_t) own * sizeof(float));
    int *counts = get_memory((size_t) world_size * sizeof(int));
    MPI_Request request;

    for (int k = 0; k < total; k++) {
        operands[k] = operand(world_rank, k);
    }
    for (int rank = 0; rank < world_size; rank++) {
        counts[rank] = count_of(rank, unequal);
    }
    be_late();
    request = start(way, operands, result, counts, &unequal);
    be_late();
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    tell(way, round, checksum(result, (size_t) own * sizeof(float)));
    if (request != MPI_REQUEST_NULL) {
        MPI_Request_free(&request);
    }
    free(operands);
    free(result);
    free(counts);
}

/* With sums that were the same in any order, nothing would be shown. */
static void check_operands(void)
{
    int different = 0;

    for (int k = 0; k < BLOCK; k++) {
        float up = 0, down = 0;

        for (int rank = 0; rank < world_size; rank++) {
            up += operand(rank, k);
            down += operand(world_size - 1 - rank, k);
        }
        different += memcmp(&up, &down, sizeof(float)) != 0;
    }
    check(different > BLOCK / 100 || world_size < 3, "the order matters to %d sums", different);
}

static void sums(void)
{
    check_operands();
    for (int round = 0; round < ROUNDS; round++) {
        for (int way = 0; way < WAYS; way++) {
            run(way, round);
        }
    }
}

TEST_PROGRAM(test_same_bits, MPI_THREAD_SINGLE, {"sums", sums});
