/*
 * test_persistent.c: persistent requests of the operations that flash serves: started many times,
 * in any order, completed in every way, of every type. What any implementation of MPI does.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "persistent_operation.h"
#include "persistent_types.h"

/* -------------------------------------------------------------------- the forms */

static void forms(void)
{
    static const int counts[] = {0, 1, 2, 700, 40000};
    operation_t operation;

    for (int kind = 0; kind < KINDS; kind++) {
        for (size_t c = 0; c < LENGTH(counts); c++) {
            for (int in_place = 0; in_place < 2; in_place++) {
                operation_make(&operation, MPI_COMM_WORLD, kind, in_place, counts[c]);
                for (int round = 0; round < 3; round++) {
                    operation_run(&operation, round);
                }
                operation_free(&operation);
            }
        }
    }
}

/* More than tags have numbers for operations on their way. */
static void many_starts(void)
{
    operation_t operations[KINDS];
    int starts = world_size > 2 ? 1000 : 5000;

    for (int kind = 0; kind < KINDS; kind++) {
        operation_make(&operations[kind], MPI_COMM_WORLD, kind, kind % 2, 50);
    }
    for (int round = 0; round < starts; round++) {
        operation_run(&operations[round % KINDS], round);
    }
    for (int kind = 0; kind < KINDS; kind++) {
        operation_free(&operations[kind]);
    }
}

/* ------------------------------------------------------- orders, ways to complete */

enum { MANY = 12 };

static void shuffle(int order[], int count, uint32_t seed)
{
    for (int k = 0; k < count; k++) {
        order[k] = k;
    }
    for (int k = count - 1; k > 0; k--) {
        int other = (int) (mix(seed, (uint32_t) k, 1) % (uint32_t) (k + 1)), kept = order[k];

        order[k] = order[other];
        order[other] = kept;
    }
}

/* In another order on each rank; a request is left inactive, and counts no more. */
static void complete_in_turn(MPI_Request requests[], int count, uint32_t seed, bool test)
{
    int order[MANY], flag = 0;

    shuffle(order, count, seed + (uint32_t) world_rank);
    for (int k = 0; k < count; k++) {
        if (!test) {
            MPI_Wait(&requests[order[k]], MPI_STATUS_IGNORE);
        }
        for (flag = !test; !flag;) {
            MPI_Test(&requests[order[k]], &flag, MPI_STATUS_IGNORE);
        }
    }
}

static void complete_any(MPI_Request requests[], int count)
{
    int index;

    for (int k = 0; k < count; k++) {
        MPI_Waitany(count, requests, &index, MPI_STATUS_IGNORE);
        check(index >= 0 && index < count, "MPI_Waitany returns %d", index);
    }
    MPI_Waitany(count, requests, &index, MPI_STATUS_IGNORE);
    check(index == MPI_UNDEFINED, "MPI_Waitany finds an active request too many");
}

static void complete_some(MPI_Request requests[], int count)
{
    int done, all = 0, indices[MANY];

    do {
        MPI_Waitsome(count, requests, &done, indices, MPI_STATUSES_IGNORE);
        all += done == MPI_UNDEFINED ? 0 : done;
    } while (done != MPI_UNDEFINED);
    check(all == count, "MPI_Waitsome completes %d of %d", all, count);
}

static void complete(MPI_Request requests[], int count, int way)
{
    MPI_Status statuses[MANY];
    int flag = 0;

    switch (way) {
    case 0:
    case 1:
        complete_in_turn(requests, count, 9, way == 1);
        break;
    case 2:
        complete_any(requests, count);
        break;
    case 3:
        complete_some(requests, count);
        break;
    case 4:
        check(MPI_Waitall(count, requests, statuses) == MPI_SUCCESS, "MPI_Waitall fails");
        break;
    default:
        while (!flag) {
            MPI_Testall(count, requests, &flag, statuses);
        }
    }
}

/*
 * All of them at once, in an order of each round that all ranks share, and in later rounds in one
 * of each rank's own, with other traffic.
 */
static void all_orders(MPI_Comm comms[], int kinds)
{
    operation_t operations[MANY];
    MPI_Request requests[MANY], other;
    int order[MANY], sum;

    for (int k = 0; k < MANY; k++) {
        operation_make(&operations[k], comms[k % kinds], k % KINDS, k / KINDS % 2, 10 + 200 * k);
    }
    for (int round = 0; round < 36; round++) {
        shuffle(order, MANY, (uint32_t) (round < 18 ? round : round + 100 * world_rank));
        for (int k = 0; k < MANY; k++) {
            operation_fill(&operations[order[k]], round);
            requests[k] = operations[order[k]].request;
            if (round % 2 == 0) {
                MPI_Start(&requests[k]);
            }
        }
        if (round % 2 == 1) {
            MPI_Startall(MANY, requests);
        }
        MPI_Iallreduce(&round, &sum, 1, MPI_INT, MPI_SUM, comms[0], &other);
        complete(requests, MANY, round / 2 % 6);
        MPI_Wait(&other, MPI_STATUS_IGNORE);
        check(sum == round * operations[0].size, "other traffic is wrong");
        for (int k = 0; k < MANY; k++) {
            operation_verify(&operations[k], round);
        }
    }
    for (int k = 0; k < MANY; k++) {
        operation_free(&operations[k]);
    }
}

static void orders(void)
{
    MPI_Comm comms[4] = {MPI_COMM_WORLD};

    all_orders(comms, 1);
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]);
    MPI_Comm_split(MPI_COMM_WORLD, world_rank % 2, 0, &comms[2]);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -world_rank, &comms[3]);
    all_orders(comms, LENGTH(comms));
    for (size_t k = 1; k < LENGTH(comms); k++) {
        MPI_Comm_free(&comms[k]);
    }
}

/* Non-blocking operations between the starts: one order for both. */
static void mixed(void)
{
    operation_t operations[KINDS];
    MPI_Request requests[2 * KINDS];
    int64_t *recv = get_memory((size_t) world_size * 300 * sizeof(int64_t));

    for (int kind = 0; kind < KINDS; kind++) {
        operation_make(&operations[kind], MPI_COMM_WORLD, kind, false, 300);
    }
    for (int round = 0; round < 20; round++) {
        int64_t send[300];

        send[0] = send[299] = world_rank + round;
        for (int kind = 0; kind < KINDS; kind++) {
            operation_fill(&operations[kind], round);
            requests[kind] = operations[kind].request;
            MPI_Start(&requests[kind]);
            if (kind == 1) {
                MPI_Iallgather(send, 300, MPI_INT64_T, recv, 300, MPI_INT64_T, MPI_COMM_WORLD,
                               &requests[KINDS]);
            }
        }
        MPI_Waitall(KINDS + 1, requests, MPI_STATUSES_IGNORE);
        check(requests[KINDS] == MPI_REQUEST_NULL, "the non-blocking operation's request stays");
        for (int rank = 0; rank < world_size; rank++) {
            check(recv[300 * rank + 299] == rank + round, "the non-blocking operation is wrong");
        }
        for (int kind = 0; kind < KINDS; kind++) {
            operation_verify(&operations[kind], round);
        }
    }
    for (int kind = 0; kind < KINDS; kind++) {
        operation_free(&operations[kind]);
    }
    free(recv);
}

/* ------------------------------------------------------------------------ types */

static void types(void)
{
    for (int signature = 0; signature < SIGNATURES; signature++) {
        for (int units = 1; units < 3000; units = 7 * units + 1) {
            persistent_types_run(signature, units, false, false);
            persistent_types_run(signature, units, true, false);
        }
    }
}

/* --------------------------------------------------------------------- inactive */

static void inactive(void)
{
    operation_t operation;
    MPI_Status status;
    int flag = 0, index;

    for (int kind = 0; kind < KINDS; kind++) {
        operation_make(&operation, MPI_COMM_WORLD, kind, false, 100);
        for (int round = 0; round < 2; round++) {
            MPI_Wait(&operation.request, &status);
            check(status.MPI_SOURCE == MPI_ANY_SOURCE && status.MPI_TAG == MPI_ANY_TAG,
                  "the status of an inactive request is not empty");
            MPI_Test(&operation.request, &flag, &status);
            check(flag, "MPI_Test of an inactive request does not return at once");
            MPI_Testany(1, &operation.request, &index, &flag, &status);
            check(flag && index == MPI_UNDEFINED, "MPI_Testany finds an inactive request");
            operation_run(&operation, round);
        }
        operation_free(&operation);
        operation_make(&operation, MPI_COMM_WORLD, kind, true, 100);
        operation_free(&operation); /* never started */
    }
}

TEST_PROGRAM(test_persistent, MPI_THREAD_SINGLE, {"forms", forms}, {"many_starts", many_starts},
             {"orders", orders}, {"mixed", mixed}, {"types", types}, {"inactive", inactive});
