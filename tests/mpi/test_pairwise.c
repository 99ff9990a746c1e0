/*
 * test_pairwise.c: reduce-scatters by the pairwise schedule: the bits that a ring gives, beside
 * rings and all-to-alls of the same communicator.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <mpix_flash.h>

#include "aftermath.h"
#include "mpitest.h"

static void set_algorithm(MPI_Comm comm, const char *algorithm)
{
    MPI_Info info;

    MPI_Info_create(&info);
    MPI_Info_set(info, "mpix_flash_algorithm", (char *) algorithm);
    check_class(MPI_Comm_set_info(comm, info), MPI_SUCCESS, "MPI_Comm_set_info");
    MPI_Info_free(&info);
}

/* Of any sign and many sizes, so that sums depend on the order. */
static float number(int rank, size_t index)
{
    uint32_t x = mix((uint32_t) rank, (uint32_t) index, 3);
    float size = (float) (1 + x % 1000) / (float) (1 + (x >> 10) % 70000);

    return (x >> 31) != 0 ? -size : size;
}

static float *make_input(size_t count)
{
    float *input = get_memory((count + 1) * sizeof(*input));

    for (size_t k = 0; k < count; k++) {
        input[k] = number(world_rank, k);
    }
    return input;
}

static void reduce_scatter(MPI_Comm comm, const float *input, float *output, const int *counts,
                           MPI_Op op)
{
    MPI_Request request;

    check_class(MPI_Ireduce_scatter(input, output, counts, MPI_FLOAT, op, comm, &request),
                MPI_SUCCESS, "MPI_Ireduce_scatter");
    check_class(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_SUCCESS, "a reduce-scatter");
}

/* ------------------------------------------------------------------- same bits */

static int count_of(int shape, int rank)
{
    switch (shape) {
    case 0:
        return 1;
    case 1:
        return rank % 3 == 1 ? 0 : 17 + rank;
    case 2:
        return rank == 0 ? 300001 : 0;
    default:
        return 70001;
    }
}

static void same_bits(void)
{
    MPI_Comm comm = make_counted_comm();
    int *counts = get_memory((size_t) world_size * sizeof(*counts));

    for (int shape = 0; shape < 4; shape++) {
        size_t all = 0, mine = (size_t) count_of(shape, world_rank);
        float *input, *ring = get_memory((mine + 1) * sizeof(*ring));
        float *pairwise = get_memory((mine + 1) * sizeof(*pairwise));

        for (int rank = 0; rank < world_size; rank++) {
            counts[rank] = count_of(shape, rank);
            all += (size_t) counts[rank];
        }
        input = make_input(all);
        set_algorithm(comm, "ring");
        reduce_scatter(comm, input, ring, counts, MPI_SUM);
        set_algorithm(comm, "pairwise");
        reduce_scatter(comm, input, pairwise, counts, MPI_SUM);
        check(memcmp(ring, pairwise, mine * sizeof(*ring)) == 0, "shape %d: other bits", shape);
        for (size_t k = 0; k < all; k++) {
            check(input[k] == number(world_rank, k), "shape %d: the input changed", shape);
        }
        free(input);
        free(ring);
        free(pairwise);
    }
    free(counts);
    MPI_Comm_free(&comm);
}

/* ------------------------------------------------------------------ side by side */

enum { AT_A_TIME = 9, BLOCK = 20011 };

static int produce(const MPIX_Flash_block *block, void *arg)
{
    int *data = block->data, turn = *(int *) arg;

    for (MPI_Count k = 0; k < block->count; k++) {
        data[k] = (world_rank + 1) * (turn + 1) + block->rank;
    }
    return MPI_SUCCESS;
}

/* An all-to-all has one callback at least. */
static int look(const MPIX_Flash_block *block, void *seen)
{
    *(MPI_Count *) seen += block->count;
    return MPI_SUCCESS;
}

static int sum_for(int rank, int turn)
{
    return world_size * (world_size + 1) / 2 * (turn + 1) + world_size * rank;
}

/* Rings, pairwise ones and all-to-alls at a time, each begun before the one before it has ended. */
static void together(void)
{
    MPI_Comm comm = make_counted_comm();
    MPI_Request requests[AT_A_TIME];
    MPI_Count seen = 0;
    size_t blocks = (size_t) world_size * BLOCK;
    int turns[AT_A_TIME], *output[AT_A_TIME], *input = get_memory(blocks * sizeof(*input));

    for (int rank = 0; rank < world_size; rank++) {
        for (int k = 0; k < BLOCK; k++) {
            input[rank * BLOCK + k] = world_rank + 7 * rank;
        }
    }
    for (int turn = 0; turn < AT_A_TIME; turn++) {
        turns[turn] = turn;
        output[turn] = get_memory(blocks * sizeof(*input));
        set_algorithm(comm, turn % 3 == 0 ? "ring" : "pairwise");
        if (turn % 3 == 2) {
            MPIX_Ialltoall_compute(input, BLOCK, MPI_INT, output[turn], BLOCK, MPI_INT, NULL, NULL,
                                   look, &seen, NULL, comm, &requests[turn]);
        } else {
            MPIX_Ireduce_scatter_block_compute(produce, &turns[turn], NULL, output[turn], BLOCK,
                                               MPI_INT, MPI_SUM, comm, &requests[turn]);
        }
    }
    for (int turn = 0; turn < AT_A_TIME; turn++) { /* others wait for callbacks of the earlier */
        check_class(MPI_Wait(&requests[turn], MPI_STATUS_IGNORE), MPI_SUCCESS, "one of many");
    }
    check(seen == AT_A_TIME / 3 * (MPI_Count) blocks, "all-to-alls: %lld elements",
          (long long) seen);
    for (int turn = 0; turn < AT_A_TIME; turn++) {
        for (int k = 0; k < (turn % 3 == 2 ? (int) blocks : BLOCK); k++) {
            int right = turn % 3 == 2 ? k / BLOCK + 7 * world_rank : sum_for(world_rank, turn);

            if (!check(output[turn][k] == right, "turn %d, element %d: %d, not %d", turn, k,
                       output[turn][k], right)) {
                break;
            }
        }
        free(output[turn]);
    }
    free(input);
    next_works(comm, "after many at a time");
    MPI_Comm_free(&comm);
}

/* For a script that reads what is told. */
static void told(void)
{
    MPI_Comm comm = make_counted_comm();
    int *counts = get_memory((size_t) world_size * sizeof(*counts));
    float *input = make_input((size_t) world_size), output;

    for (int rank = 0; rank < world_size; rank++) {
        counts[rank] = 1;
    }
    set_algorithm(comm, "pairwise");
    reduce_scatter(comm, input, &output, counts, MPI_SUM);
    set_algorithm(comm, "straight"); /* there is no such one: what held holds */
    reduce_scatter(comm, input, &output, counts, MPI_SUM);
    set_algorithm(comm, "ring");
    reduce_scatter(comm, input, &output, counts, MPI_SUM);
    free(counts);
    free(input);
    MPI_Comm_free(&comm);
}

TEST_PROGRAM(test_pairwise, MPI_THREAD_SINGLE, {"same_bits", same_bits}, {"together", together},
             {"told", told});
