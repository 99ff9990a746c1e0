/*
 * test_allreduce.c: MPI_Iallreduce; all operations on all types by its persistent form, too.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <mpix_flash.h>

#include "persistent.h"
#include "pvars.h"
#include "reduction.h"

/* The ways to have an allreduce, each with MPI_IN_PLACE and without. */
typedef enum way { PLAIN, PERSISTENT, WAYS } way_t;
static const char *const names[] = {"Iallreduce", "Allreduce_init"};

/* Other ones in each start of a persistent request. */
static void contribute(const reduction_t *reduction, unsigned char *memory, int count, int round)
{
    for (size_t k = 0; k < (size_t) count; k++) {
        reduction->operand(memory + k * reduction->extent, world_rank, k + (size_t) round,
                           reduction->op);
    }
}

static void start(way_t way, const void *send, void *recv, int count, const reduction_t *reduction,
                  MPI_Request *request)
{
    MPI_Comm comm = MPI_COMM_WORLD;

    if (way == PLAIN) {
        MPI_Iallreduce(send, recv, count, reduction->type, reduction->op, comm, request);
        return;
    }
    if (*request == MPI_REQUEST_NULL) {
        MPI_Allreduce_init(send, recv, count, reduction->type, reduction->op, comm, MPI_INFO_NULL,
                           request);
    }
    MPI_Start(request);
}

static void run(const reduction_t *reduction, int count, way_t way, bool in_place)
{
    unsigned char *operands = reduction_memory(reduction, (size_t) count);
    unsigned char *apart = reduction_memory(reduction, (size_t) count);
    unsigned char *result = in_place ? operands : apart;
    MPI_Request request = MPI_REQUEST_NULL;

    for (int round = 0; round < (way == PERSISTENT ? 2 : 1); round++) {
        contribute(reduction, operands, count, round);
        start(way, in_place ? MPI_IN_PLACE : operands, result, count, reduction, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        reduction_check(reduction, result, (size_t) round, (size_t) count, names[way]);
    }
    if (request != MPI_REQUEST_NULL) {
        MPI_Request_free(&request);
    }
    check(reduction_is_intact(reduction, operands, (size_t) count),
          "%s of %s wrote behind the operands", names[way], reduction->name);
    check(reduction_is_intact(reduction, apart, (size_t) count), "%s of %s wrote behind the result",
          names[way], reduction->name);
    free(operands);
    free(apart);
}

static void run_forms(const reduction_t *reduction, int count)
{
    run(reduction, count, PLAIN, false);
    run(reduction, count, PLAIN, true);
}

/* ------------------------------------------------------------------ the cases */

/* One operation of each type in all lengths, some below the number of ranks; the others in one. */
static void operations(void)
{
    static const int counts[] = {0, 1, 2, 3, 7, 127, 4001};
    size_t count;
    const reduction_t *all = reductions(&count);

    for (size_t k = 0; k < count; k++) {
        bool first = k == 0 || all[k - 1].type != all[k].type;

        for (size_t c = first ? 0 : 5; c < (first ? LENGTH(counts) : 6) && is_turn(k); c++) {
            run_forms(&all[k], counts[c]);
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
            run(&all[k], k % 5 == 4 ? 1 : 101 * world_size, PERSISTENT, k % 3 == 0);
        }
    }
    run(&all[0], 0, PERSISTENT, false);
}

/* Several segments, the last one short. */
static void big(void)
{
    const int bytes = world_size <= 2 ? 3000000 : 900000;
    size_t count;
    const reduction_t *all = reductions(&count);

    for (size_t k = 0; k < count; k++) {
        if (all[k].op == MPI_SUM && (all[k].type == MPI_DOUBLE || all[k].type == MPI_INT32_T)) {
            run_forms(&all[k], bytes / (int) all[k].extent + 1);
        }
    }
}

/* All ranks get the same bits, and each time, in place, too. */
static void same_bits(void)
{
    enum { COUNT = 20001, RUNS = 4 };
    float *operands = get_memory(COUNT * sizeof(float)), *first = get_memory(COUNT * sizeof(float));
    float *result = get_memory(COUNT * sizeof(float));

    for (int run = 0; run < RUNS; run++) {
        bool in_place = run % 2 == 1;
        MPI_Request request;

        for (uint32_t k = 0; k < COUNT; k++) {
            operands[k] = (float) mix((uint32_t) world_rank, k, 1) / 3e5f - 5e3f;
        }
        memcpy(result, operands, COUNT * sizeof(float));
        MPI_Iallreduce(in_place ? MPI_IN_PLACE : operands, result, COUNT, MPI_FLOAT, MPI_SUM,
                       MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        if (run == 0) {
            memcpy(first, result, COUNT * sizeof(float));
            MPI_Bcast(first, COUNT, MPI_FLOAT, 0, MPI_COMM_WORLD);
        }
        check(memcmp(first, result, COUNT * sizeof(float)) == 0,
              "run %d%s gives other bits than rank 0 had in the first", run,
              in_place ? ", in place," : "");
    }
    free(operands);
    free(first);
    free(result);
}

/* Some of them do not commute, and one is of a type with gaps: these fall back. */
static void user_operations(void)
{
    static const int counts[] = {1, 7, 5000};

    for (int kind = 0; kind < USER_REDUCTIONS; kind++) {
        reduction_t reduction;

        user_reduction_make(&reduction, kind);
        for (size_t c = 0; c < LENGTH(counts); c++) {
            if (is_turn(c + (size_t) kind)) {
                run_forms(&reduction, counts[c]);
                run(&reduction, counts[c], PERSISTENT, c % 2 == 0);
            }
        }
        user_reduction_free(&reduction);
    }
}

/* Freed as soon as the call has begun. */
static void handles_gone(void)
{
    enum { COUNT = 30000 };
    reduction_t reduction;
    unsigned char *operands, *result;
    MPI_Request request;
    MPI_Comm comm;

    user_reduction_make(&reduction, 0);
    operands = reduction_memory(&reduction, COUNT);
    result = reduction_memory(&reduction, COUNT);
    contribute(&reduction, operands, COUNT, 0);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Iallreduce(operands, result, COUNT, reduction.type, reduction.op, comm, &request);
    MPI_Comm_free(&comm);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    reduction_check(&reduction, result, 0, COUNT, "on a communicator that is freed");
    user_reduction_free(&reduction);
    free(operands);
    free(result);
}

/* ------------------------------------------------- calls that Open MPI makes itself */

/*
 * While MPI_Comm_idup is under way, in which Open MPI reduces a number now and then: other calls on
 * the same communicator, more on one rank before these than on others.
 */
static void beside_idup(void)
{
    enum { ROUNDS = 20, COUNT = 3000 };
    int64_t operands[COUNT], results[2][COUNT];
    MPI_Comm comm, made;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (int k = 0; k < COUNT; k++) {
        operands[k] = world_rank + k;
    }
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Request requests[3];
        int flag;

        MPI_Comm_idup(comm, &made, &requests[0]);
        for (int k = 0; k < 10 * (world_rank % 3); k++) {
            MPI_Test(&requests[0], &flag, MPI_STATUS_IGNORE);
        }
        MPI_Iallreduce(operands, results[0], COUNT, MPI_INT64_T, MPI_SUM, comm, &requests[1]);
        MPI_Iallreduce(operands, results[1], COUNT, MPI_INT64_T, MPI_MAX, comm, &requests[2]);
        MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
        for (int k = 0; k < COUNT; k++) {
            int64_t sum = (int64_t) world_size * k + world_size * (world_size - 1) / 2;

            if (!check(results[0][k] == sum && results[1][k] == world_size - 1 + k,
                       "round %d: element %d is wrong", round, k)) {
                break;
            }
        }
        MPI_Comm_free(&made);
    }
    MPI_Comm_free(&comm);
}

static void duplicate_and_reduce(void)
{
    static const char *const names_of[] = {"coll_flash_ring_calls", "coll_flash_fallback_calls"};
    MPI_T_pvar_handle counters[LENGTH(names_of)];
    MPI_Comm comm;
    MPI_Request request;
    int mine = world_rank, most = -1;

    for (size_t k = 0; k < LENGTH(names_of); k++) {
        counters[k] = pvar_of(names_of[k], MPI_T_PVAR_CLASS_COUNTER, MPI_UNSIGNED_LONG_LONG);
    }
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_free(&comm);
    MPI_Iallreduce(&mine, &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check(most == world_size - 1, "the largest rank is %d", most);
    for (size_t k = 0; k < LENGTH(names_of); k++) {
        check(pvar_count(counters[k]) == 0, "%s has counted Open MPI's own calls", names_of[k]);
        pvar_free(&counters[k]);
    }
}

/* They are nobody's calls: not counted, whatever serves the user's. */
static void uncounted(void)
{
    pvars_with(duplicate_and_reduce);
}

TEST_PROGRAM(test_allreduce, MPI_THREAD_SINGLE, {"operations", operations},
             {"persistent", persistent}, {"big", big}, {"same_bits", same_bits},
             {"user_operations", user_operations}, {"handles_gone", handles_gone},
             {"beside_idup", beside_idup}, {"uncounted", uncounted});
