/*
 * test_reduce_scatter.c: MPI_Ireduce_scatter and MPI_Ireduce_scatter_block; all operations on all
 * types by their persistent and computing forms, too.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <mpix_flash.h>

#include "persistent.h"
#include "reduction.h"

/* Of each rank's block; counts[world_size] is the sum. */
static int *make_counts(int base, bool unequal)
{
    int *counts = get_memory(sizeof(int) * (size_t) (world_size + 1)), total = 0;

    for (int rank = 0; rank < world_size; rank++) {
        counts[rank] = !unequal ? base : rank % 3 == 1 ? 0 : base + 5 * rank;
        total += counts[rank];
    }
    counts[world_size] = total;
    return counts;
}

static size_t first_of(const int counts[], int rank)
{
    size_t first = 0;

    for (int k = 0; k < rank; k++) {
        first += (size_t) counts[k];
    }
    return first;
}

static unsigned char *make_operands(const reduction_t *reduction, size_t elements)
{
    unsigned char *memory = reduction_memory(reduction, elements);

    for (size_t k = 0; k < elements; k++) {
        reduction->operand(memory + k * reduction->extent, world_rank, k, reduction->op);
    }
    return memory;
}

/* The ways to have a reduce-scatter, each with equal blocks and with unequal ones. */
typedef enum way { PLAIN, PERSISTENT, COMPUTE } way_t;
static const char *const names[][2] = {
    {"Ireduce_scatter", "Ireduce_scatter_block"},
    {"Reduce_scatter_init", "Reduce_scatter_block_init"},
    {"Ireduce_scatter_compute", "Ireduce_scatter_block_compute"}};

typedef struct source {
    const reduction_t *reduction;
    const int *counts;
} source_t;

static int produce(const MPIX_Flash_block *block, void *arg)
{
    const source_t *source = arg;
    const reduction_t *reduction = source->reduction;
    size_t first = first_of(source->counts, block->rank) + (size_t) block->offset;

    for (size_t k = 0; k < (size_t) block->count; k++) {
        reduction->operand((char *) block->data + k * reduction->extent, world_rank, first + k,
                           reduction->op);
    }
    return MPI_SUCCESS;
}

static void start(way_t way, bool block, const void *sendbuf, void *result, source_t *source,
                  MPI_Request *request)
{
    MPI_Datatype type = source->reduction->type;
    MPI_Op op = source->reduction->op;
    const int *counts = source->counts;
    MPI_Comm comm = MPI_COMM_WORLD;

    if (way == COMPUTE && block) {
        MPIX_Ireduce_scatter_block_compute(produce, source, NULL, result, counts[0], type, op, comm,
                                           request);
    } else if (way == COMPUTE) {
        MPIX_Ireduce_scatter_compute(produce, source, NULL, result, counts, type, op, comm,
                                     request);
    } else if (way == PLAIN && block) {
        MPI_Ireduce_scatter_block(sendbuf, result, counts[0], type, op, comm, request);
    } else if (way == PLAIN) {
        MPI_Ireduce_scatter(sendbuf, result, counts, type, op, comm, request);
    } else if (block) {
        MPI_Reduce_scatter_block_init(sendbuf, result, counts[0], type, op, comm, MPI_INFO_NULL,
                                      request);
    } else {
        MPI_Reduce_scatter_init(sendbuf, result, counts, type, op, comm, MPI_INFO_NULL, request);
    }
    if (way == PERSISTENT) {
        MPI_Start(request);
    }
}

static void run(const reduction_t *reduction, const int counts[], way_t way, bool block,
                bool in_place)
{
    size_t total = (size_t) counts[world_size];
    size_t own = (size_t) counts[world_rank];
    unsigned char *operands = make_operands(reduction, total);
    unsigned char *apart = reduction_memory(reduction, own);
    unsigned char *result = in_place ? operands : apart;
    source_t source = {reduction, counts};
    MPI_Request request;

    start(way, block, in_place ? MPI_IN_PLACE : operands, result, &source, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (request != MPI_REQUEST_NULL) {
        MPI_Request_free(&request);
    }
    reduction_check(reduction, result, first_of(counts, world_rank), own, names[way][block]);
    check(reduction_is_intact(reduction, operands, total), "%s of %s wrote behind the operands",
          names[way][block], reduction->name);
    check(reduction_is_intact(reduction, apart, own), "%s of %s wrote behind the result",
          names[way][block], reduction->name);
    free(operands);
    free(apart);
}

static void run_forms(const reduction_t *reduction, int base)
{
    for (int form = 0; form < 6; form++) {
        int *counts = make_counts(base, form >= 4);

        run(reduction, counts, PLAIN, form < 2, form % 2 == 1);
        free(counts);
    }
}

/* ------------------------------------------------------------------ the cases */

/* One operation of each type in all sizes, the others in one of them. */
static void operations(void)
{
    static const int bases[] = {0, 1, 2, 3, 127, 1500};
    size_t count;
    const reduction_t *all = reductions(&count);

    for (size_t k = 0; k < count; k++) {
        bool first = k == 0 || all[k - 1].type != all[k].type;

        for (size_t b = first ? 0 : 4; b < (first ? LENGTH(bases) : 5) && is_turn(k); b++) {
            run_forms(&all[k], bases[b]);
        }
    }
}

/* All operations on all types in the other ways, which need no more than one form of each. */
static void other_ways(void)
{
    int *counts = make_counts(101, false);
    size_t count;
    const reduction_t *all = reductions(&count);

    for (size_t k = 0; k < count; k++) {
        if (is_turn(k)) {
            run(&all[k], counts, PERSISTENT, k % 2 == 0, k % 3 == 0);
            run(&all[k], counts, COMPUTE, k % 2 == 0, false);
        }
    }
    free(counts);
}

/* Several segments, the last one short; fewer where more ranks each make and compare all of it. */
static void big(void)
{
    const int bytes = world_size <= 2 ? 1500000 : 300000;
    size_t count;
    const reduction_t *all = reductions(&count);

    for (size_t k = 0; k < count; k++) {
        if (all[k].op == MPI_SUM && (all[k].type == MPI_DOUBLE || all[k].type == MPI_INT32_T)) {
            run_forms(&all[k], bytes / (int) all[k].extent + 1);
        }
    }
}

/* Rounded sums depend on the order of additions, which is to be the same in each run. */
static void same_bits(void)
{
    enum { BLOCK = 10001, RUNS = 5 };
    size_t total = (size_t) world_size * BLOCK;
    float *operands = get_memory(total * sizeof(float));
    float *results[2] = {get_memory(BLOCK * sizeof(float)), get_memory(BLOCK * sizeof(float))};

    for (size_t k = 0; k < total; k++) {
        operands[k] = (float) mix((uint32_t) world_rank, (uint32_t) k, 1) / 3e5f - 5e3f;
    }
    for (int k = 0; k < RUNS; k++) {
        MPI_Request request;

        MPI_Ireduce_scatter_block(operands, results[k > 0], BLOCK, MPI_FLOAT, MPI_SUM,
                                  MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        check(k == 0 || memcmp(results[0], results[1], BLOCK * sizeof(float)) == 0,
              "run %d gives other bits than the first", k);
    }
    free(operands);
    free(results[0]);
    free(results[1]);
}

/* --------------------------------------------------- the user's own operations */

static void user_operations(void)
{
    static const int bases[] = {1, 7, 5000};

    for (int kind = 0; kind < USER_REDUCTIONS; kind++) {
        reduction_t reduction;

        user_reduction_make(&reduction, kind);
        for (size_t b = 0; b < LENGTH(bases); b++) {
            if (is_turn(b + (size_t) kind)) {
                run_forms(&reduction, bases[b]);
            }
        }
        user_reduction_free(&reduction);
    }
}

/* Each element lies behind its place: nothing in the extent and size of the type tells of it. */
static void add_shifted(void *in, void *inout, int *length, MPI_Datatype *type)
{
    (void) type;
    for (int k = 1; k <= *length; k++) {
        ((int *) inout)[k] += ((int *) in)[k];
    }
}

static void shifted_type(void)
{
    enum { BLOCK = 5000 };
    static const MPI_Aint displ = sizeof(int);
    int *operands = get_memory((size_t) (world_size * BLOCK + 1) * sizeof(int));
    int *result = get_memory((BLOCK + 1) * sizeof(int));
    MPI_Datatype behind, shifted;
    MPI_Request request;
    MPI_Op op;

    MPI_Type_create_hindexed_block(1, 1, &displ, MPI_INT, &behind);
    MPI_Type_create_resized(behind, 0, sizeof(int), &shifted);
    MPI_Type_commit(&shifted);
    MPI_Op_create(add_shifted, 1, &op);
    for (int k = 0; k <= world_size * BLOCK; k++) {
        operands[k] = k + world_rank;
    }
    result[0] = -1;
    MPI_Ireduce_scatter_block(operands, result, BLOCK, shifted, op, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check(result[0] == -1, "what is in front of the first element is written to");
    for (int k = 1; k <= BLOCK; k++) {
        int sum = world_size * (world_rank * BLOCK + k) + world_size * (world_size - 1) / 2;

        if (!check(result[k] == sum, "element %d is %d, not %d", k, result[k], sum)) {
            break;
        }
    }
    MPI_Op_free(&op);
    MPI_Type_free(&shifted);
    MPI_Type_free(&behind);
    free(operands);
    free(result);
}

/* It writes to both arguments, which MPI does not forbid. Two ranks copy the one contribution that comes. */
static void add_to_both(void *in, void *inout, int *length, MPI_Datatype *type)
{
    (void) type;
    for (int k = 0; k < *length; k++) {
        ((int *) in)[k] += ((int *) inout)[k];
        ((int *) inout)[k] = ((int *) in)[k];
    }
}

static void writes_to_both(void)
{
    enum { BLOCK = 5000 };
    int *operands = get_memory((size_t) world_size * BLOCK * sizeof(int));
    int *result = get_memory(BLOCK * sizeof(int));
    MPI_Request request;
    MPI_Op op;

    MPI_Op_create(add_to_both, 1, &op);
    for (int k = 0; k < world_size * BLOCK; k++) {
        operands[k] = k + world_rank;
    }
    MPI_Ireduce_scatter_block(operands, result, BLOCK, MPI_INT, op, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int k = 0; k < BLOCK; k++) {
        int sum = world_size * (world_rank * BLOCK + k) + world_size * (world_size - 1) / 2;

        if (!check(result[k] == sum, "element %d is %d, not %d", k, result[k], sum)) {
            break;
        }
    }
    MPI_Op_free(&op);
    free(operands);
    free(result);
}

TEST_PROGRAM(test_reduce_scatter, MPI_THREAD_SINGLE, {"operations", operations},
             {"other_ways", other_ways}, {"big", big}, {"same_bits", same_bits},
             {"user_operations", user_operations}, {"shifted_type", shifted_type},
             {"writes_to_both", writes_to_both});
