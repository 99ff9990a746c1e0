/*
 * test_faults.c: UCX or the system fail flash: calls and requests end with an error, and the next
 * operation works, or is refused where neighbours have given each other up.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "failing.h"
#include "faults.h"

/* With three ranks or more, each has another neighbour than in MPI_COMM_WORLD's ring. */
static void connection(void)
{
    MPI_Comm comm = failing_make_comm(true);

    fault_arm("ucp_ep_create", 1, FAULT_UNREACHABLE);
    failing_one(WATCH_ALLGATHER, comm, MPI_ERR_OTHER, "no connection");
    check(fault_disarm("ucp_ep_create"), "no connection was tried");
    failing_next_works(comm, "after a failed connection");
    MPI_Comm_free(&comm);
}

/* One rank is late to connect: its own error tells of it, and the others' that they miss it. */
static void connection_here(void)
{
    MPI_Comm comm = failing_make_comm(true);

    if (world_rank == 1) {
        fault_arm("ucp_ep_create", 1, FAULT_UNREACHABLE);
    }
    failing_one(WATCH_ALLGATHER, comm, MPI_ERR_OTHER, "no connection on one rank");
    check(fault_disarm("ucp_ep_create") == (world_rank == 1), "no connection was tried");
    failing_next_works(comm, "after a connection that failed on one rank");
    MPI_Comm_free(&comm);
}

/* The first send of each rank fails, and its receive cannot be posted at once. */
static void transfers(void)
{
    static const int ends[] = {FAULT_IO_ERROR, FAULT_UNREACHABLE, FAULT_CANCELED};

    for (size_t k = 0; k < LENGTH(ends); k++) {
        MPI_Comm comm = failing_make_comm(false);

        fault_arm("ucp_tag_send", 1, ends[k]);
        fault_arm("ucp_tag_recv_nbx", 1, ends[k]);
        failing_one(WATCH_ALLGATHER, comm, MPI_ERR_OTHER, "failed transfers");
        check(fault_disarm("ucp_tag_send"), "nothing was sent");
        check(fault_disarm("ucp_tag_recv_nbx"), "nothing was received");
        failing_next_works(comm, "after failed transfers");
        MPI_Comm_free(&comm);
    }
}

/* One send of one rank fails, each in turn: the others are told, and none waits for it. */
static void one_transfer(void)
{
    enum { MOST = 20 };
    bool failed = true;

    for (int nth = 1; failed; nth++) {
        MPI_Comm comm = failing_make_comm(false);
        watch_options_t options = {.count = COUNT};
        int outcomes[64], mine, told = 0;
        MPI_Request request;
        watch_t watch;

        watch_init(&watch, nth % 2 ? WATCH_ALLGATHER : WATCH_REDUCE_SCATTER, comm, &options);
        if (world_rank == nth % world_size) {
            fault_arm("ucp_tag_send", nth / world_size + 1, FAULT_IO_ERROR);
        }
        mine = watch_start(&watch, &request);
        mine = mine == MPI_SUCCESS ? MPI_Wait(&request, MPI_STATUS_IGNORE) : mine;
        failed = world_rank == nth % world_size && fault_disarm("ucp_tag_send");
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
        failing_next_works(comm, "after a failed send");
        MPI_Comm_free(&comm);
    }
}

/* One receive of one rank ends with an error though its message came, each in turn. */
static void one_receive(void)
{
    enum { MOST = 20 };
    bool failed = true;

    for (int nth = 1; failed; nth++) {
        int victim = nth % world_size, error;
        MPI_Comm comm = failing_make_comm(false);
        watch_options_t options = {.count = COUNT};
        MPI_Request request;
        watch_t watch;

        watch_init(&watch, nth % 2 ? WATCH_ALLGATHER : WATCH_REDUCE_SCATTER, comm, &options);
        if (world_rank == victim) {
            fault_arm("ucp_tag_recv_callback", nth / world_size + 1, FAULT_IO_ERROR);
        }
        watch_start(&watch, &request);
        error = MPI_Wait(&request, MPI_STATUS_IGNORE);
        failed = world_rank == victim && fault_disarm("ucp_tag_recv_callback");
        if (failed) {
            check_class(error, MPI_ERR_OTHER, "a failed receive");
        }
        MPI_Bcast(&failed, 1, MPI_C_BOOL, victim, MPI_COMM_WORLD);
        check(failed || nth > 1, "no receive to fail");
        check(nth < MOST, "there is no end of it");
        failed &= nth < MOST;
        watch_free(&watch);
        failing_next_works(comm, "after a failed receive");
        MPI_Comm_free(&comm);
    }
}

/* UCX has no memory for a while: the operation comes to its end all the same. */
static void memory_later(void)
{
    for (int nth = 1; nth <= 2; nth++) {
        MPI_Comm comm = failing_make_comm(false);

        fault_arm("ucp_tag_send", nth, FAULT_NO_MEMORY);
        fault_arm("ucp_tag_recv_nbx", nth, FAULT_NO_MEMORY);
        failing_next_works(comm, "UCX has no memory at first");
        check(fault_disarm("ucp_tag_send"), "nothing was sent");
        check(fault_disarm("ucp_tag_recv_nbx"), "nothing was received");
        MPI_Comm_free(&comm);
    }
}

static void works(void)
{
    failing_next_works(MPI_COMM_WORLD, "works");
}

/* The thread that callbacks were to have does not start on one rank; it does with the next call. */
static void callback_thread(void)
{
    const watch_options_t options = {.count = COUNT, .on_callback_thread = true};
    MPI_Comm comm = failing_make_comm(false);
    MPI_Info info;

    failing_next_works(comm, "without the thread");
    MPI_Info_create(&info);
    MPI_Info_set(info, "mpix_flash_callback_thread", "true");
    MPI_Comm_set_info(comm, info);
    MPI_Info_free(&info);
    if (world_rank == 1) {
        fault_arm("pthread_create", 1, 0);
    }
    failing_call(WATCH_ALLGATHER, comm, &options, world_rank == 1 ? MPI_ERR_NO_MEM : MPI_ERR_OTHER,
                 "no thread for callbacks");
    check(fault_disarm("pthread_create") == (world_rank == 1), "no thread was to be started");
    watch_one(WATCH_ALLGATHER, comm, &options, "with the thread");
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

TEST_PROGRAM(test_faults, MPI_THREAD_SINGLE, {"connection", connection},
             {"connection_here", connection_here}, {"transfers", transfers},
             {"one_transfer", one_transfer}, {"one_receive", one_receive},
             {"memory_later", memory_later}, {"no_receives", failing_no_receives},
             {"no_receives_small", failing_no_receives_small},
             {"no_memory_for_receives", failing_no_memory_for_receives},
             {"poor_receive", failing_poor_receive}, {"no_sends", failing_no_sends},
             {"no_memory_for_sends", failing_no_memory_for_sends},
             {"told_later", failing_told_later}, {"not_connected", failing_not_connected},
             {"comm_memory", comm_memory}, {"unreadable_at_first", failing_unreadable_at_first},
             {"unreadable", failing_unreadable}, {"gathers", failing_gathers},
             {"no_memory_for_recdbl", failing_no_memory_for_recdbl},
             {"callback_thread", callback_thread}, {"works", works});
TEST_MAIN(test_faults)
