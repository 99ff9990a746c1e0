/*
 * test_sizes.c: ranks that disagree about sizes. Every rank's request completes, those that can see
 * it report it, no result is wrong without an error, nothing is written past the end of a block,
 * and the communicator stays usable.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <stdio.h>
#include <string.h>

#include "aftermath.h"
#include "blocking.h"
#include "mpitest.h"
#include "sizes_call.h"

static const char *const kind_names[] = {"allgather",      "allgatherv", "reduce-scatter-block",
                                         "reduce-scatter", "allreduce",  "all-to-all"};
static const char *const form_names[] = {"plain", "persistent", "with callbacks"};

/* ------------------------------------------------------ sizes that disagree */

static void check_outcome(const call_t *call, const char *what, int error)
{
    int class, truncated, somewhere;

    MPI_Error_class(error, &class);
    truncated = class == MPI_ERR_TRUNCATE;
    check(class == MPI_SUCCESS || truncated || class == MPI_ERR_OTHER, "%s: error class %d", what,
          class);
    check(class != MPI_SUCCESS || sizes_are_right(call), "%s: wrong data called right", what);
    check(sizes_guards_are_intact(call), "%s: wrote outside of a block", what);
    MPI_Allreduce(&truncated, &somewhere, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    check(somewhere, "%s: no rank reports MPI_ERR_TRUNCATE", what);
}

static void check_aftermath(MPI_Comm comm)
{
    MPI_Comm fresh;

    MPI_Comm_dup(comm, &fresh);
    next_works(fresh, "after sizes that disagreed, a new communicator");
    next_works(comm, "after sizes that disagreed, the same communicator");
    MPI_Comm_free(&fresh);
}

static void disagree(kind_t kind, form_t form, int count, int odd, bool one)
{
    call_t call = {.kind = kind, .form = form, .comm = make_counted_comm()};
    char what[128];
    int error;

    snprintf(what, sizeof(what), "%s, %s, of %d and %s%d", kind_names[kind], form_names[form],
             count, one ? "once " : "", odd);
    sizes_make(&call, count, odd, one);
    error = sizes_begin(&call);
    check(error == MPI_SUCCESS || calls_block(), "%s: the call returns %d", what, error);
    check_outcome(&call, what, error == MPI_SUCCESS ? sizes_end(&call) : error);
    if (call.request != MPI_REQUEST_NULL) { /* Open MPI frees those that end with an error */
        MPI_Request_free(&call.request);
    }
    sizes_free(&call);
    check_aftermath(call.comm);
    MPI_Comm_free(&call.comm);
}

/* Shorter and longer by an element, by a segment or more, in as many segments or not. */
static void disagree_by(form_t form)
{
    static const int pairs[][2] = {{100, 101},      {100, 99},       {100, 5000},
                                   {5000, 100},     {70000, 70001},  {70000, 200000},
                                   {200000, 70000}, {200000, 131072}};

    kind_t kinds = form == PLAIN && passes_others_on() ? ALLREDUCE : KINDS;

    for (kind_t kind = 0; kind < kinds; kind++) {
        bool unequal = kind == ALLGATHERV || kind == REDUCE_SCATTER;

        for (size_t k = 0; k < LENGTH(pairs); k++) {
            disagree(kind, form, pairs[k][0], pairs[k][1], false);
            if (unequal) {
                disagree(kind, form, pairs[k][0], pairs[k][1], true);
            }
        }
    }
}

static void plain(void)
{
    disagree_by(PLAIN);
}

static void persistent(void)
{
    disagree_by(PERSISTENT);
}

static void compute(void)
{
    disagree_by(COMPUTE);
}

/* ----------------------------------------------------------------- the own block */

/* A send buffer that does not fit this rank's own block. */
static void own_block(void)
{
    for (int odd = 99; odd <= 101; odd += 2) {
        MPI_Comm comm = make_counted_comm();
        int64_t send[101] = {0};
        int length = 100 * world_size;
        int64_t *recv = get_memory((size_t) (length + GUARD) * sizeof(int64_t));
        MPI_Request request = MPI_REQUEST_NULL;
        int error, class;

        for (int k = length; k < length + GUARD; k++) {
            recv[k] = CANARY;
        }
        error = MPI_Iallgather(send, world_rank == 0 ? odd : 100, MPI_INT64_T, recv, 100,
                               MPI_INT64_T, comm, &request);
        if (error == MPI_SUCCESS) {
            error = MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
        MPI_Error_class(error, &class);
        check(class == (world_rank == 0 ? MPI_ERR_TRUNCATE : MPI_ERR_OTHER),
              "rank 0 sends %d for 100: error class %d", odd, class);
        for (int k = length; k < length + GUARD; k++) {
            check(recv[k] == CANARY, "wrote behind the buffer");
        }
        next_works(comm, "after a send buffer of another size");
        MPI_Comm_free(&comm);
        free(recv);
    }
}

/* Of a gather or a scatter with counts: the root alone has two blocks of its own. */
static int call_rooted(bool gathers, int own, int64_t *one, int64_t *all, MPI_Comm comm)
{
    int *counts = get_memory(2 * (size_t) world_size * sizeof(int)), *displs = counts + world_size;
    int error;
    MPI_Request request = MPI_REQUEST_NULL;

    for (int rank = 0; rank < world_size; rank++) {
        counts[rank] = 100;
        displs[rank] = 100 * rank;
    }
    error = gathers ? MPI_Igatherv(one, own, MPI_INT64_T, all, counts, displs, MPI_INT64_T, 0, comm,
                                   &request)
                    : MPI_Iscatterv(all, counts, displs, MPI_INT64_T, one, own, MPI_INT64_T, 0,
                                    comm, &request);
    error = error == MPI_SUCCESS ? MPI_Wait(&request, MPI_STATUS_IGNORE) : error;
    free(counts);
    return error;
}

/* The other ranks may have sent, or received, what is theirs by then. */
static void roots_own_block(void)
{
    for (int turn = 0; turn < 4; turn++) {
        MPI_Comm comm = make_counted_comm();
        int64_t one[101] = {0}, *all = get_memory((size_t) world_size * 100 * sizeof(int64_t));
        int odd = turn % 2 == 0 ? 99 : 101, class;

        one[99] = one[100] = CANARY;
        memset(all, 0, (size_t) world_size * 100 * sizeof(int64_t));
        MPI_Error_class(call_rooted(turn < 2, world_rank == 0 ? odd : 100, one, all, comm), &class);
        check(world_rank == 0 ? class == MPI_ERR_TRUNCATE
                              : class == MPI_SUCCESS || class == MPI_ERR_OTHER,
              "%s of 100, where the root has %d: error class %d", turn < 2 ? "gatherv" : "scatterv",
              odd, class);
        check(one[100] == CANARY && (world_rank != 0 || one[99] == CANARY), "wrote to the block");
        next_works(comm, "after an own block of another size");
        MPI_Comm_free(&comm);
        free(all);
    }
}

/* Another request's error comes first: one whose error is known from the start is still pending. */
static void known_error(void)
{
    MPI_Comm comms[2] = {make_counted_comm(), make_counted_comm()};
    int64_t send[101] = {0}, *recv[2];
    MPI_Request requests[2];
    int index, class;

    for (int k = 0; k < 2; k++) {
        recv[k] = get_memory((size_t) world_size * 100 * sizeof(int64_t));
    }
    for (int k = 0; k < 2; k++) {
        if (world_rank != 0) {
            MPI_Recv(NULL, 0, MPI_INT, 0, 5 + k, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
        MPI_Iallgather(send, world_rank == 0 ? 101 : 100, MPI_INT64_T, recv[1 - k], 100,
                       MPI_INT64_T, comms[1 - k], &requests[1 - k]);
        if (world_rank != 0) {
            MPI_Wait(&requests[1 - k], MPI_STATUS_IGNORE);
        }
    }
    if (world_rank == 0) {
        /* All have been posted here; the others post the second when the first has failed. */
        for (int k = 0; k < 2; k++) {
            for (int rank = 1; rank < world_size; rank++) {
                MPI_Send(NULL, 0, MPI_INT, rank, 5 + k, MPI_COMM_WORLD);
            }
            MPI_Error_class(MPI_Waitany(2, requests, &index, MPI_STATUS_IGNORE), &class);
            check(class == MPI_ERR_TRUNCATE, "known error: class %d", class);
            check(index == 1 - k, "known error: request %d instead of %d", index, 1 - k);
            check(k == 1 || requests[0] != MPI_REQUEST_NULL, "a pending request is freed");
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    handler_calls = 0;
    for (int k = 0; k < 2; k++) {
        MPI_Comm_free(&comms[k]);
        free(recv[k]);
    }
}

TEST_PROGRAM(test_sizes, MPI_THREAD_SINGLE, {"plain", plain}, {"persistent", persistent},
             {"roots_own_block", roots_own_block}, {"compute", compute}, {"own_block", own_block},
             {"known_error", known_error});
