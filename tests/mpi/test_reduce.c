/*
 * test_reduce.c: MPI_Ireduce and its persistent form: each root, operations, types, lengths, in
 * place, and ranks that lack their buffer.
 *
 * Ranks that are not the root pass NULL for the result, or memory that must stay as it is.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "chain.h"
#include "persistent.h"
#include "reduction.h"

/* The ways to have a reduce, each with MPI_IN_PLACE and without. */
typedef enum way { PLAIN, PERSISTENT, WAYS } way_t;
static const char *const names[] = {"Ireduce", "Reduce_init"};

typedef struct call {
    const reduction_t *reduction;
    int count, root;
    way_t way;
    bool in_place; /* at the root */
    bool null;     /* the others pass NULL for the result */
} call_t;

static bool is_root(const call_t *call)
{
    return world_rank == call->root;
}

/* Other ones in each start of a persistent request. */
static void contribute(const call_t *call, unsigned char *memory, int round)
{
    const reduction_t *reduction = call->reduction;

    for (size_t k = 0; k < (size_t) call->count; k++) {
        reduction->operand(memory + k * reduction->extent, world_rank, k + (size_t) round,
                           reduction->op);
    }
}

static void start(const call_t *call, const void *send, void *recv, MPI_Request *request)
{
    MPI_Datatype type = call->reduction->type;
    MPI_Op op = call->reduction->op;

    if (call->way == PLAIN) {
        MPI_Ireduce(send, recv, call->count, type, op, call->root, MPI_COMM_WORLD, request);
        return;
    }
    if (*request == MPI_REQUEST_NULL) {
        MPI_Reduce_init(send, recv, call->count, type, op, call->root, MPI_COMM_WORLD,
                        MPI_INFO_NULL, request);
    }
    MPI_Start(request);
}

static void run(const call_t *call)
{
    const reduction_t *reduction = call->reduction;
    size_t count = (size_t) call->count, bytes = count * reduction->extent;
    unsigned char *operands = reduction_memory(reduction, count);
    unsigned char *apart = reduction_memory(reduction, count);
    bool in_place = call->in_place && is_root(call);
    unsigned char *result = in_place ? operands : apart;
    MPI_Request request = MPI_REQUEST_NULL;

    fill_pattern(apart, bytes, world_rank, 5);
    for (int round = 0; round < (call->way == PERSISTENT ? 2 : 1); round++) {
        contribute(call, operands, round);
        start(call, in_place ? MPI_IN_PLACE : operands,
              is_root(call) || !call->null ? result : NULL, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        if (is_root(call)) {
            reduction_check(reduction, result, (size_t) round, count, names[call->way]);
        }
    }
    if (request != MPI_REQUEST_NULL) {
        MPI_Request_free(&request);
    }
    check(is_root(call) || is_pattern(apart, 0, bytes, world_rank, 5),
          "%s of %s to root %d wrote to another rank's result", names[call->way], reduction->name,
          call->root);
    check(reduction_is_intact(reduction, operands, count), "%s of %s wrote behind the operands",
          names[call->way], reduction->name);
    check(reduction_is_intact(reduction, apart, count), "%s of %s wrote behind the result",
          names[call->way], reduction->name);
    free(operands);
    free(apart);
}

static void run_forms(const reduction_t *reduction, int count, int root)
{
    run(&(call_t){.reduction = reduction, .count = count, .root = root, .null = root % 2 == 0});
    run(&(call_t){.reduction = reduction, .count = count, .root = root, .in_place = true});
}

/* ------------------------------------------------------------------ the cases */

static const int lengths[] = {0, 1, 2, 3, 7, 127, 4001};

/* All roots, of one type. */
static void roots(void)
{
    size_t count;
    const reduction_t *all = reductions(&count);

    for (int root = 0; root < world_size; root++) {
        for (size_t k = 0; k < LENGTH(lengths); k++) {
            if (is_turn(k + (size_t) root)) {
                run_forms(&all[(k + (size_t) root) % count], lengths[k], root);
            }
        }
    }
}

/* One operation of each type in all lengths; the others in one. */
static void operations(void)
{
    size_t count;
    const reduction_t *all = reductions(&count);

    for (size_t k = 0; k < count; k++) {
        bool first = k == 0 || all[k - 1].type != all[k].type;

        for (size_t c = first ? 0 : 5; c < (first ? LENGTH(lengths) : 6) && is_turn(k); c++) {
            run_forms(&all[k], lengths[c], (int) (k + c) % world_size);
        }
    }
}

/* All operations on all types by persistent requests. */
static void persistent(void)
{
    size_t count;
    const reduction_t *all = reductions(&count);

    for (size_t k = 0; k < count; k++) {
        if (is_turn(k)) {
            run(&(call_t){.reduction = &all[k],
                          .count = k % 5 == 4 ? 1 : 101,
                          .root = (int) k % world_size,
                          .way = PERSISTENT,
                          .in_place = k % 3 == 0,
                          .null = k % 2 == 0});
        }
    }
    run(&(call_t){.reduction = &all[0], .count = 0, .way = PERSISTENT});
}

/* Several segments, the last one short. */
static void big(void)
{
    const int bytes = world_size <= 2 ? 3000000 : 1100000;
    size_t count;
    const reduction_t *all = reductions(&count);

    for (size_t k = 0; k < count; k++) {
        if (all[k].op == MPI_SUM && (all[k].type == MPI_DOUBLE || all[k].type == MPI_INT32_T)) {
            run_forms(&all[k], bytes / (int) all[k].extent + 1, (int) k % world_size);
        }
    }
}

/* Some of them do not commute, and one is of a type with gaps: these fall back. */
static void user_operations(void)
{
    static const int counts[] = {1, 7, 5000};

    for (int kind = 0; kind < USER_REDUCTIONS; kind++) {
        reduction_t reduction;

        user_reduction_make(&reduction, kind);
        for (size_t c = 0; c < LENGTH(counts); c++) {
            call_t call = {
                .reduction = &reduction, .count = counts[c], .root = (int) c % world_size};

            if (is_turn(c + (size_t) kind)) {
                call.in_place = kind == USER_MODULO && c % 2 == 0;
                run(&call);
                call.way = PERSISTENT;
                run(&call);
            }
        }
        user_reduction_free(&reduction);
    }
}

/* The same bits each time, in place, too. */
static void same_bits(void)
{
    enum { COUNT = 90001, RUNS = 4 };
    float *operands = get_memory(COUNT * sizeof(float)), *first = get_memory(COUNT * sizeof(float));
    float *result = get_memory(COUNT * sizeof(float));
    int root = world_size / 2;

    for (int run = 0; run < RUNS; run++) {
        bool in_place = run % 2 == 1 && world_rank == root;
        MPI_Request request;

        for (uint32_t k = 0; k < COUNT; k++) {
            operands[k] = (float) mix((uint32_t) world_rank, k, 1) / 3e5f - 5e3f;
        }
        memcpy(result, operands, COUNT * sizeof(float));
        MPI_Ireduce(in_place ? MPI_IN_PLACE : operands, result, COUNT, MPI_FLOAT, MPI_SUM, root,
                    MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        if (run == 0) {
            memcpy(first, result, COUNT * sizeof(float));
        }
        check(memcmp(first, result, COUNT * sizeof(float)) == 0,
              "run %d%s gives other bits than the first", run, in_place ? ", in place," : "");
    }
    free(operands);
    free(first);
    free(result);
}

/* ------------------------------------------------------------ a rank refuses */

enum { MOST = 70000 };
static int64_t mine[MOST], sums[MOST];

static int start_lacking(int root, int count, bool lacks, MPI_Comm comm, MPI_Request *request)
{
    for (int k = 0; k < count; k++) {
        mine[k] = world_rank + k;
        sums[k] = -1;
    }
    return MPI_Ireduce(lacks ? NULL : mine, sums, count, MPI_INT64_T, MPI_SUM, root, comm, request);
}

static bool is_right(int root, int count)
{
    for (int k = 0; k < count; k++) {
        int64_t sum = (int64_t) world_size * k + (int64_t) world_size * (world_size - 1) / 2;

        if (sums[k] != (world_rank == root ? sum : -1)) {
            return false;
        }
    }
    return true;
}

/* The root lacks the sum, unless it is the one; ranks on the way may hear of it. */
static void no_buffer(void)
{
    static const int counts[] = {10, MOST};

    for (size_t k = 0; k < LENGTH(counts); k++) {
        chain_refuse("Ireduce", counts[k], start_lacking, is_right, world_size * (world_size - 1),
                     true);
    }
}

TEST_PROGRAM(test_reduce, MPI_THREAD_SINGLE, {"roots", roots}, {"operations", operations},
             {"persistent", persistent}, {"big", big}, {"user_operations", user_operations},
             {"same_bits", same_bits}, {"no_buffer", no_buffer});
