/*
 * test_cancel.c: MPI_Cancel of a collective operation is refused (MPI 3.1, section 5.12), and the
 * operation completes as if nothing had been asked.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "extension.h"
#include "persistent_operation.h"

enum { COUNT = 4000 };

/* Asked of an operation that is under way; MPI has the error go to MPI_COMM_WORLD's handler. */
static void expect_refusal(MPI_Request *request, const char *what)
{
    MPI_Request before = *request;

    handler_calls = 0;
    check_class(MPI_Cancel(request), MPI_ERR_REQUEST, what);
    check(handler_calls == 1 && handler_comm == MPI_COMM_WORLD,
          "%s: MPI_COMM_WORLD's error handler was called %d times", what, handler_calls);
    check(*request == before, "%s: MPI_Cancel takes the request", what);
}

/* Waits, and finds it neither cancelled nor failed. */
static void expect_end(MPI_Request *request, const char *what)
{
    MPI_Status status;
    int cancelled = -1;

    check_class(MPI_Wait(request, &status), MPI_SUCCESS, what);
    MPI_Test_cancelled(&status, &cancelled);
    check(cancelled == 0, "%s counts as cancelled", what);
}

/* Of the four plain operations, one by one. */
static void post(int kind, const int64_t *send, int64_t *recv, const int counts[],
                 const int displs[], MPI_Request *request)
{
    switch (kind) {
    case ALLGATHER:
        MPI_Iallgather(send, COUNT, MPI_INT64_T, recv, COUNT, MPI_INT64_T, MPI_COMM_WORLD, request);
        break;
    case ALLGATHERV:
        MPI_Iallgatherv(send, COUNT, MPI_INT64_T, recv, counts, displs, MPI_INT64_T, MPI_COMM_WORLD,
                        request);
        break;
    case REDUCE_SCATTER:
        MPI_Ireduce_scatter(send, recv, counts, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD, request);
        break;
    default:
        MPI_Ireduce_scatter_block(send, recv, COUNT, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD, request);
    }
}

/* A lone rank's are Open MPI's own, which hands out a request that was complete before. */
static void plain(void)
{
    size_t total = (size_t) world_size * COUNT;
    int64_t *send = get_memory(total * sizeof(int64_t)),
            *recv = get_memory(total * sizeof(int64_t));
    int *counts = get_memory((size_t) world_size * sizeof(int));
    int *displs = get_memory((size_t) world_size * sizeof(int));

    for (int rank = 0; rank < world_size; rank++) {
        counts[rank] = COUNT;
        displs[rank] = rank * COUNT;
    }
    for (size_t k = 0; k < total; k++) {
        send[k] = (int64_t) k % COUNT + 1;
    }
    for (int kind = 0; kind < KINDS && world_size > 1; kind++) {
        bool gathers = kind == ALLGATHER || kind == ALLGATHERV;
        MPI_Request request;

        memset(recv, 0, total * sizeof(int64_t));
        post(kind, send, recv, counts, displs, &request);
        expect_refusal(&request, "plain");
        expect_end(&request, "plain");
        for (int k = 0; k < (gathers ? world_size : 1) * COUNT; k++) {
            if (!check(recv[k] == (gathers ? 1 : world_size) * (k % COUNT + 1),
                       "kind %d: element %d is wrong", kind, k)) {
                break;
            }
        }
    }
    free(send);
    free(recv);
    free(counts);
    free(displs);
}

/* Each time it is started. */
static void persistent(void)
{
    operation_t operation;

    for (int kind = 0; kind < KINDS; kind++) {
        operation_make(&operation, MPI_COMM_WORLD, kind, false, COUNT);
        for (int round = 0; round < 2; round++) {
            operation_fill(&operation, round);
            MPI_Start(&operation.request);
            expect_refusal(&operation.request, "persistent");
            expect_end(&operation.request, "persistent");
            operation_verify(&operation, round);
        }
        operation_free(&operation);
    }
}

/* All callbacks are made. */
static void extension(void)
{
    for (int kind = 0; kind < WATCH_KINDS; kind++) {
        for (int unequal = 0; unequal < 2; unequal++) {
            watch_options_t options = {.count = COUNT, .pieces = 3, .unequal = unequal};
            MPI_Request request;
            watch_t watch;

            watch_init(&watch, (watch_kind_t) kind, MPI_COMM_WORLD, &options);
            watch_start(&watch, &request);
            expect_refusal(&request, "extension");
            expect_end(&request, "extension");
            watch_check(&watch, "extension");
            watch_free(&watch);
        }
    }
}

static void with_handler(void (*run)(void))
{
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, counting_handler());
    run();
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

static void run_plain(void)
{
    with_handler(plain);
}

static void run_persistent(void)
{
    with_handler(persistent);
}

static void run_extension(void)
{
    with_handler(extension);
}

TEST_PROGRAM(test_cancel, MPI_THREAD_SINGLE, {"plain", run_plain}, {"persistent", run_persistent},
             {"extension", run_extension});
