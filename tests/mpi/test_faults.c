/*
 * test_faults.c: UCX, the system or memory fail flash, on all ranks alike: calls and requests end
 * with an error, and the next operation works.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "extension.h"
#include "faults.h"

enum { COUNT = 100 };

/* Duplicates MPI_COMM_WORLD, or reverses its ring; errors are counted. */
static MPI_Comm make_comm(bool reversed)
{
    MPI_Comm comm;

    MPI_Comm_split(MPI_COMM_WORLD, 0, reversed ? -world_rank : world_rank, &comm);
    MPI_Comm_set_errhandler(comm, counting_handler());
    handler_calls = 0;
    return comm;
}

static void next_works(MPI_Comm comm, const char *what)
{
    watch_options_t options = {.count = COUNT, .salt = 3};

    handler_calls = 0;
    for (int kind = 0; kind < WATCH_KINDS; kind++) {
        watch_one((watch_kind_t) kind, comm, &options, what);
    }
    check(handler_calls == 0, "%s: the next operation fails", what);
}

/* An operation that is to end with an error, at once or later. */
static void one_fails(watch_kind_t kind, MPI_Comm comm, int class, const char *what)
{
    watch_options_t options = {.count = COUNT};
    MPI_Request request;
    watch_t watch;
    int error;

    watch_init(&watch, kind, comm, &options);
    error = watch_start(&watch, &request);
    if (error == MPI_SUCCESS) {
        error = MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    check_class(error, class, what);
    check(handler_calls == 1, "%s: error handler called %d times", what, handler_calls);
    watch_free(&watch);
}

/* With three ranks or more, each has another neighbour than in MPI_COMM_WORLD's ring. */
static void connection(void)
{
    MPI_Comm comm = make_comm(true);

    fault_arm("ucp_ep_create", 1, FAULT_UNREACHABLE);
    one_fails(WATCH_ALLGATHER, comm, MPI_ERR_OTHER, "no connection");
    check(fault_disarm("ucp_ep_create"), "no connection was tried");
    next_works(comm, "after a failed connection");
    MPI_Comm_free(&comm);
}

/* One rank is late to connect: its own error tells of it, and the others' that they miss it. */
static void connection_here(void)
{
    MPI_Comm comm = make_comm(true);

    if (world_rank == 1) {
        fault_arm("ucp_ep_create", 1, FAULT_UNREACHABLE);
    }
    one_fails(WATCH_ALLGATHER, comm, MPI_ERR_OTHER, "no connection on one rank");
    check(fault_disarm("ucp_ep_create") == (world_rank == 1), "no connection was tried");
    next_works(comm, "after a connection that failed on one rank");
    MPI_Comm_free(&comm);
}

/* The first send of each rank fails, and its receive cannot be posted at once. */
static void transfers(void)
{
    static const int ends[] = {FAULT_IO_ERROR, FAULT_UNREACHABLE, FAULT_CANCELED};

    for (size_t k = 0; k < LENGTH(ends); k++) {
        MPI_Comm comm = make_comm(false);

        fault_arm("ucp_tag_send_sync_nbx", 1, ends[k]);
        fault_arm("ucp_tag_recv_nbx", 1, ends[k]);
        one_fails(WATCH_ALLGATHER, comm, MPI_ERR_OTHER, "failed transfers");
        check(fault_disarm("ucp_tag_send_sync_nbx"), "nothing was sent");
        check(fault_disarm("ucp_tag_recv_nbx"), "nothing was received");
        next_works(comm, "after failed transfers");
        MPI_Comm_free(&comm);
    }
}

/* One send of one rank fails, each in turn: the others are told, and none waits for it. */
static void one_transfer(void)
{
    enum { MOST = 20 };
    bool failed = true;

    for (int nth = 1; failed; nth++) {
        MPI_Comm comm = make_comm(false);
        watch_options_t options = {.count = COUNT};
        int outcomes[64], mine, told = 0;
        MPI_Request request;
        watch_t watch;

        watch_init(&watch, nth % 2 ? WATCH_ALLGATHER : WATCH_REDUCE_SCATTER, comm, &options);
        if (world_rank == nth % world_size) {
            fault_arm("ucp_tag_send_sync_nbx", nth / world_size + 1, FAULT_IO_ERROR);
        }
        mine = watch_start(&watch, &request);
        mine = mine == MPI_SUCCESS ? MPI_Wait(&request, MPI_STATUS_IGNORE) : mine;
        failed = world_rank == nth % world_size && fault_disarm("ucp_tag_send_sync_nbx");
        check(!failed || mine != MPI_SUCCESS, "send %d fails, and its rank says success", nth);
        MPI_Bcast(&failed, 1, MPI_C_BOOL, nth % world_size, MPI_COMM_WORLD);
        MPI_Allgather(&mine, 1, MPI_INT, outcomes, 1, MPI_INT, MPI_COMM_WORLD);
        for (int rank = 0; rank < world_size; rank++) {
            told += outcomes[rank] != MPI_SUCCESS && rank != nth % world_size;
        }
        check(!failed || told > 0, "send %d fails, and nobody else is told", nth);
        check(nth < MOST, "there is no end of it");
        failed &= nth < MOST;
        watch_free(&watch);
        next_works(comm, "after a failed send");
        MPI_Comm_free(&comm);
    }
}

/* UCX has no memory for a while: the operation comes to its end all the same. */
static void memory_later(void)
{
    for (int nth = 1; nth <= 2; nth++) {
        MPI_Comm comm = make_comm(false);

        fault_arm("ucp_tag_send_sync_nbx", nth, FAULT_NO_MEMORY);
        fault_arm("ucp_tag_recv_nbx", nth, FAULT_NO_MEMORY);
        next_works(comm, "UCX has no memory at first");
        check(fault_disarm("ucp_tag_send_sync_nbx"), "nothing was sent");
        check(fault_disarm("ucp_tag_recv_nbx"), "nothing was received");
        MPI_Comm_free(&comm);
    }
}

static void works(void)
{
    next_works(MPI_COMM_WORLD, "works");
}

/* ------------------------------------------------------------------ memory */

static int block = COUNT; /* elements of each rank's */

static int start_gather(void *send, void *recv, MPI_Comm comm, MPI_Request *request)
{
    return MPI_Iallgather(send, block, MPI_INT, recv, block, MPI_INT, comm, request);
}

static int start_gather_into_gaps(void *send, void *recv, MPI_Comm comm, MPI_Request *request)
{
    MPI_Datatype type;
    int error;

    MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &type);
    MPI_Type_commit(&type);
    error = MPI_Iallgather(send, block, type, recv, block, type, comm, request);
    MPI_Type_free(&type);
    return error;
}

static int start_reduce(void *send, void *recv, MPI_Comm comm, MPI_Request *request)
{
    return MPI_Ireduce_scatter_block(send, recv, block, MPI_INT, MPI_SUM, comm, request);
}

static int start_reduce_in_place(void *send, void *recv, MPI_Comm comm, MPI_Request *request)
{
    (void) send;
    return MPI_Ireduce_scatter_block(MPI_IN_PLACE, recv, block, MPI_INT, MPI_SUM, comm, request);
}

static int start_unequal(void *send, void *recv, MPI_Comm comm, MPI_Request *request)
{
    static int counts[64], displs[64];

    for (int rank = 0; rank < world_size; rank++) {
        counts[rank] = rank % 2 ? 10 : block;
        displs[rank] = rank * block;
    }
    return MPI_Iallgatherv(send, counts[world_rank], MPI_INT, recv, counts, displs, MPI_INT, comm,
                           request);
}

typedef int start_fn(void *send, void *recv, MPI_Comm comm, MPI_Request *request);

/* Each allocation of the call fails once; the last round is the one that has none left. */
static void fail_each_allocation(start_fn *start, MPI_Comm comm, const char *what)
{
    int *send = calloc((size_t) world_size * (size_t) block * 2, sizeof(int));
    int *recv = calloc((size_t) world_size * (size_t) block * 2, sizeof(int));
    bool failed = true;

    for (int nth = 1; failed; nth++) {
        MPI_Request request = MPI_REQUEST_NULL;
        int error;

        fault_arm("malloc", nth, 0);
        error = start(send, recv, comm, &request);
        failed = fault_disarm("malloc");
        error = error == MPI_SUCCESS ? MPI_Wait(&request, MPI_STATUS_IGNORE) : error;
        check(failed || nth > 1, "%s: no allocation to fail", what);
        check_class(error, failed ? MPI_ERR_NO_MEM : MPI_SUCCESS, what);
    }
    free(send);
    free(recv);
}

/* Likewise on one rank alone: the others end with an error, too, instead of waiting for it. */
static void fail_each_allocation_here(start_fn *start, MPI_Comm comm, const char *what)
{
    int *send = calloc((size_t) world_size * (size_t) block * 2, sizeof(int));
    int *recv = calloc((size_t) world_size * (size_t) block * 2, sizeof(int));
    bool failed = true;

    for (int nth = 1; failed; nth++) {
        int victim = nth % world_size, error;
        MPI_Request request = MPI_REQUEST_NULL;

        if (world_rank == victim) {
            fault_arm("malloc", nth, 0);
        }
        error = start(send, recv, comm, &request);
        failed = world_rank == victim && fault_disarm("malloc");
        error = error == MPI_SUCCESS ? MPI_Wait(&request, MPI_STATUS_IGNORE) : error;
        MPI_Bcast(&failed, 1, MPI_C_BOOL, victim, MPI_COMM_WORLD);
        check(failed || nth > 1, "%s: no allocation to fail", what);
        check_class(error,
                    !failed                ? MPI_SUCCESS
                    : world_rank == victim ? MPI_ERR_NO_MEM
                                           : MPI_ERR_OTHER,
                    what);
    }
    free(send);
    free(recv);
}

typedef void fail_fn(start_fn *start, MPI_Comm comm, const char *what);

static void fail_in_each_call(fail_fn *fail, MPI_Comm comm)
{
    static const struct {
        start_fn *start;
        const char *what;
    } calls[] = {{start_gather, "allgather without memory"},
                 {start_gather_into_gaps, "allgather into gaps without memory"},
                 {start_unequal, "allgatherv without memory"},
                 {start_reduce, "reduce-scatter without memory"},
                 {start_reduce_in_place, "reduce-scatter in place without memory"}};

    for (size_t k = 0; k < LENGTH(calls); k++) {
        fail(calls[k].start, comm, calls[k].what);
    }
    next_works(comm, "after allocations that failed");
}

static void memory_here(void)
{
    static const int blocks[] = {COUNT, 2000 * COUNT}; /* UCX sends long messages another way */
    MPI_Comm comm = make_comm(false);

    works();
    for (size_t k = 0; k < LENGTH(blocks); k++) {
        block = blocks[k];
        fail_in_each_call(fail_each_allocation_here, comm);
    }
    block = COUNT;
    MPI_Comm_free(&comm);
}

static void memory(void)
{
    MPI_Comm comm = make_comm(false);

    works(); /* what is allocated once */
    fail_in_each_call(fail_each_allocation, comm);
    MPI_Comm_free(&comm);
}

/* On one rank: there is no error that all ranks would hear of, so that the job ends. */
static void comm_memory(void)
{
    MPI_Comm comm;

    if (world_rank == 1) {
        fault_arm("malloc", 1, 0);
    }
    MPI_Comm_dup(MPI_COMM_WORLD, &comm); /* whoever comes back from this ends with 0 */
}

int main(int argc, char **argv)
{
    static const test_case_t cases[] = {{"connection", connection},
                                        {"connection_here", connection_here},
                                        {"transfers", transfers},
                                        {"one_transfer", one_transfer},
                                        {"memory_later", memory_later},
                                        {"memory", memory},
                                        {"memory_here", memory_here},
                                        {"comm_memory", comm_memory},
                                        {"works", works}};

    return run_cases(argc, argv, MPI_THREAD_SINGLE, cases, LENGTH(cases));
}
