/*
 * failing_lasting.c: cases of test_faults: UCX fails one rank for good, and its neighbours give
 * each other up.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "failing.h"
#include "faults.h"

enum { LARGE = 4000 }; /* whose messages the receiver acknowledges */

/* Neither of its neighbours is one of MPI_COMM_WORLD's, whose ring goes by the ranks. */
static MPI_Comm make_comm_of_strangers(void)
{
    MPI_Comm comm;

    MPI_Comm_split(MPI_COMM_WORLD, 0, world_rank * 2 % world_size, &comm);
    return comm;
}

static void large_fails(watch_kind_t kind, MPI_Comm comm, const char *what)
{
    failing_call(kind, comm, &(watch_options_t){.count = LARGE}, MPI_ERR_OTHER, what);
}

/* What waits for no acknowledgement may succeed where nothing is missed. */
static void small_fails_or_is_right(watch_kind_t kind, MPI_Comm comm, const char *what)
{
    const watch_options_t options = {.count = COUNT};
    MPI_Request request;
    watch_t watch;
    int error;

    watch_init(&watch, kind, comm, &options);
    error = watch_start(&watch, &request);
    if (error == MPI_SUCCESS) {
        error = MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    check(error != MPI_SUCCESS || watch_result_is_right(&watch), "%s: a wrong result", what);
    failing_keep(&watch);
}

/*
 * From some moment on UCX fails rank 1: all ranks end with an error, then and ever after where
 * it and that neighbour are neighbours. With five ranks there is a ring in which they are not.
 */
static void lasts(const char *function, int status,
                  void (*one)(watch_kind_t kind, MPI_Comm comm, const char *what))
{
    MPI_Comm comm = failing_make_comm(false), strangers = make_comm_of_strangers();

    failing_next_works(comm, "before it fails");
    failing_gives_up = true;
    if (world_rank == 1) {
        fault_arm_lasting(function, 1, status);
    }
    for (int round = 0; round < 4; round++) {
        handler_calls = 0;
        one(round % 2 ? WATCH_ALLGATHER : WATCH_REDUCE_SCATTER, comm, function);
    }
    if (world_rank == 1) {
        check(fault_disarm(function), "%s was not called", function);
    }
    handler_calls = 0;
    one(WATCH_ALLGATHER, comm, "a neighbour that was given up");
    if (world_size == 5) {
        failing_next_works(strangers, "among those who were not given up");
    }
    MPI_Comm_free(&strangers);
    MPI_Comm_free(&comm);
}

void failing_no_receives(void)
{
    lasts("ucp_tag_recv_nbx", FAULT_IO_ERROR, large_fails);
}

void failing_no_receives_small(void)
{
    lasts("ucp_tag_recv_nbx", FAULT_IO_ERROR, small_fails_or_is_right);
}

void failing_no_memory_for_receives(void)
{
    lasts("ucp_tag_recv_nbx", FAULT_NO_MEMORY, large_fails);
}

/* UCX takes a message and then has no memory for it: who has sent it hears of that. */
void failing_poor_receive(void)
{
    const watch_options_t options = {.count = LARGE};
    MPI_Comm comm = failing_make_comm(false);
    MPI_Request request;
    watch_t watch;
    int error;

    failing_next_works(comm, "before it fails");
    failing_gives_up = true;
    if (world_rank == 1) {
        fault_arm("ucp_tag_recv_callback", 1, FAULT_NO_MEMORY);
    }
    watch_init(&watch, WATCH_ALLGATHER, comm, &options);
    error = watch_start(&watch, &request);
    if (error == MPI_SUCCESS) {
        error = MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    check(world_rank != 1 || error != MPI_SUCCESS, "a receive without memory succeeds");
    check(world_rank != 1 || fault_disarm("ucp_tag_recv_callback"), "nothing was received");
    failing_keep(&watch);
    handler_calls = 0;
    for (int round = 0; round < 2; round++) {
        large_fails(WATCH_ALLGATHER, comm, "a neighbour that was given up");
        handler_calls = 0;
    }
    MPI_Comm_free(&comm);
}

void failing_no_sends(void)
{
    lasts("ucp_tag_send", FAULT_IO_ERROR, large_fails);
}

void failing_no_memory_for_sends(void)
{
    lasts("ucp_tag_send", FAULT_NO_MEMORY, large_fails);
}

/* Nor can the neighbour be told at once. */
void failing_told_later(void)
{
    if (world_rank == 1) {
        fault_arm("ucp_am_send_nbx", 1, FAULT_NO_MEMORY);
    }
    lasts("ucp_tag_recv_nbx", FAULT_IO_ERROR, large_fails);
    check(world_rank != 1 || fault_disarm("ucp_am_send_nbx"), "nobody was told");
}

/* Five ranks: the neighbour that is given up has not connected yet, and hears of it all the same.
 */
void failing_not_connected(void)
{
    const int late = 4; /* behind rank 1 in the ring */
    MPI_Comm comm = make_comm_of_strangers();
    double begin;
    int flag;

    MPI_Comm_set_errhandler(comm, counting_handler());
    failing_next_works(MPI_COMM_WORLD, "before it fails");
    failing_gives_up = true;
    MPI_Barrier(MPI_COMM_WORLD);
    if (world_rank == 1) {
        fault_arm_lasting("ucp_tag_send", 1, FAULT_IO_ERROR);
    }
    for (begin = MPI_Wtime(); world_rank == late && MPI_Wtime() < begin + 1;) {
        MPI_Iprobe(MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    }
    failing_one(WATCH_ALLGATHER, comm, MPI_ERR_OTHER, "a neighbour that was not connected");
    check(world_rank != 1 || fault_disarm("ucp_tag_send"), "nothing was sent");
    handler_calls = 0;
    MPI_Comm_free(&comm);
}
