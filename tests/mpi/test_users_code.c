/*
 * test_users_code.c: operations of the user's own run in threads of the user's alone, and both they
 * and their types are kept as long as they are needed.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <pthread.h>
#include <unistd.h>

#include <mpix_flash.h>

#include "mpitest.h"
#include "persistent.h"

enum { BLOCK = 40000 }; /* pairs: several segments */

/* The ways to have such an operation called. */
enum { PLAIN_BLOCK, PLAIN, LASTING_BLOCK, LASTING, COMPUTE_BLOCK, COMPUTE, WAYS };
static const char *const names[] = {"Ireduce_scatter_block",         "Ireduce_scatter",
                                    "Reduce_scatter_block_init",     "Reduce_scatter_init",
                                    "Ireduce_scatter_block_compute", "Ireduce_scatter_compute"};

static pthread_t main_thread;
static int calls, calls_elsewhere; /* written by whichever thread calls: one at a time */

/* The greater of each component, as no predefined operation has it. */
static void greater_pairs(void *in, void *inout, int *length, MPI_Datatype *type)
{
    (void) type;
    calls++;
    calls_elsewhere += !pthread_equal(pthread_self(), main_thread);
    for (int k = 0; k < 2 * *length; k++) {
        int a = ((int *) in)[k], *b = &((int *) inout)[k];

        *b = a > *b ? a : *b;
    }
}

static int operand(int rank, int index)
{
    return (index * 7 + rank * 13) % 101;
}

static int produce(const MPIX_Flash_block *block, void *arg)
{
    int first = 2 * (block->rank * BLOCK + (int) block->offset);

    (void) arg;
    for (int k = 0; k < 2 * (int) block->count; k++) {
        ((int *) block->data)[k] = operand(world_rank, first + k);
    }
    return MPI_SUCCESS;
}

static MPI_Request start(int way, const int *operands, int *result, const int counts[],
                         MPI_Datatype pair, MPI_Op op)
{
    MPI_Request request;

    switch (way) {
    case PLAIN_BLOCK:
        MPI_Ireduce_scatter_block(operands, result, BLOCK, pair, op, MPI_COMM_WORLD, &request);
        break;
    case PLAIN:
        MPI_Ireduce_scatter(operands, result, counts, pair, op, MPI_COMM_WORLD, &request);
        break;
    case LASTING_BLOCK:
        MPI_Reduce_scatter_block_init(operands, result, BLOCK, pair, op, MPI_COMM_WORLD,
                                      MPI_INFO_NULL, &request);
        break;
    case LASTING:
        MPI_Reduce_scatter_init(operands, result, counts, pair, op, MPI_COMM_WORLD, MPI_INFO_NULL,
                                &request);
        break;
    case COMPUTE_BLOCK:
        MPIX_Ireduce_scatter_block_compute(produce, NULL, NULL, result, BLOCK, pair, op,
                                           MPI_COMM_WORLD, &request);
        break;
    default:
        MPIX_Ireduce_scatter_compute(produce, NULL, NULL, result, counts, pair, op, MPI_COMM_WORLD,
                                     &request);
    }
    if (way == LASTING_BLOCK || way == LASTING) {
        MPI_Start(&request);
    }
    return request;
}

static void check_result(const int *result, const char *name)
{
    for (int k = 0; k < 2 * BLOCK; k++) {
        int most = 0;

        for (int rank = 0; rank < world_size; rank++) {
            int other = operand(rank, world_rank * BLOCK * 2 + k);

            most = other > most ? other : most;
        }
        if (!check(result[k] == most, "%s: element %d is %d, not %d", name, k, result[k], most)) {
            return;
        }
    }
}

static void run(int way)
{
    int *operands = get_memory((size_t) world_size * BLOCK * 2 * sizeof(int));
    int *result = get_memory(BLOCK * 2 * sizeof(int));
    int *counts = get_memory((size_t) world_size * sizeof(int));
    MPI_Datatype pair;
    MPI_Request request;
    MPI_Op op;

    calls = calls_elsewhere = 0;
    for (int k = 0; k < world_size * BLOCK * 2; k++) {
        operands[k] = operand(world_rank, k);
        counts[k / (BLOCK * 2)] = BLOCK;
    }
    MPI_Op_create(greater_pairs, 1, &op);
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    request = start(way, operands, result, counts, pair, op);
    MPI_Op_free(&op);
    MPI_Type_free(&pair);
    usleep(20000); /* a thread of flash's has all the time to do it wrong */
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check_result(result, names[way]);
    check(calls > 0 || world_size == 1, "%s does not call the operation", names[way]);
    check(calls_elsewhere == 0, "%s: %d of %d calls in a thread of flash's", names[way],
          calls_elsewhere, calls);
    if (request != MPI_REQUEST_NULL) {
        MPI_Request_free(&request);
    }
    free(operands);
    free(result);
    free(counts);
}

static void threads(void)
{
    main_thread = pthread_self();
    for (int way = 0; way < WAYS; way++) {
        /* Open MPI's own do not survive what they use. */
        if (!passes_others_on() || (way != LASTING_BLOCK && way != LASTING)) {
            run(way);
        }
    }
}

TEST_PROGRAM(test_users_code, MPI_THREAD_SINGLE, {"threads", threads});
