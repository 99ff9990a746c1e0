/*
 * test_faults.c: UCX or the system fail flash: calls and requests end with an error, and the next
 * operation works, or is refused where neighbours have given each other up.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "extension.h"
#include "faults.h"

enum { COUNT = 100 };
enum { LARGE = 4000 }; /* whose messages the receiver acknowledges */

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

/*
 * Where a neighbour is given up that is there, UCX may still write to, and read, the buffers of what failed:
 * they stay until MPI_Finalize (docs/internals/fault-tolerance.md).
 */
static watch_t kept[64];
static int keeps;

static void free_kept(void)
{
    while (keeps > 0) {
        watch_free(&kept[--keeps]);
    }
}

static void keep(const watch_t *watch)
{
    if (keeps == 0) {
        atexit(free_kept);
    }
    if (keeps < (int) (sizeof(kept) / sizeof(kept[0]))) {
        kept[keeps++] = *watch;
    }
}

static bool gives_up; /* from now on: what fails does so for good */

/* An operation that is to end with an error, at once or later. */
static void call_fails(watch_kind_t kind, MPI_Comm comm, const watch_options_t *options, int class,
                       const char *what)
{
    MPI_Request request;
    watch_t watch;
    int error;

    watch_init(&watch, kind, comm, options);
    error = watch_start(&watch, &request);
    if (error == MPI_SUCCESS) {
        error = MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    check_class(error, class, what);
    check(handler_calls == 1, "%s: error handler called %d times", what, handler_calls);
    if (gives_up) {
        keep(&watch);
    } else {
        watch_free(&watch);
    }
}

static void one_fails(watch_kind_t kind, MPI_Comm comm, int class, const char *what)
{
    call_fails(kind, comm, &(watch_options_t){.count = COUNT}, class, what);
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

        fault_arm("ucp_tag_send", 1, ends[k]);
        fault_arm("ucp_tag_recv_nbx", 1, ends[k]);
        one_fails(WATCH_ALLGATHER, comm, MPI_ERR_OTHER, "failed transfers");
        check(fault_disarm("ucp_tag_send"), "nothing was sent");
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
        next_works(comm, "after a failed send");
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
        MPI_Comm comm = make_comm(false);
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
        next_works(comm, "after a failed receive");
        MPI_Comm_free(&comm);
    }
}

/* UCX has no memory for a while: the operation comes to its end all the same. */
static void memory_later(void)
{
    for (int nth = 1; nth <= 2; nth++) {
        MPI_Comm comm = make_comm(false);

        fault_arm("ucp_tag_send", nth, FAULT_NO_MEMORY);
        fault_arm("ucp_tag_recv_nbx", nth, FAULT_NO_MEMORY);
        next_works(comm, "UCX has no memory at first");
        check(fault_disarm("ucp_tag_send"), "nothing was sent");
        check(fault_disarm("ucp_tag_recv_nbx"), "nothing was received");
        MPI_Comm_free(&comm);
    }
}

static void works(void)
{
    next_works(MPI_COMM_WORLD, "works");
}

/* The thread that callbacks were to have does not start on one rank; it does with the next call. */
static void callback_thread(void)
{
    const watch_options_t options = {.count = COUNT, .on_callback_thread = true};
    MPI_Comm comm = make_comm(false);
    MPI_Info info;

    next_works(comm, "without the thread");
    MPI_Info_create(&info);
    MPI_Info_set(info, "mpix_flash_callback_thread", "true");
    MPI_Comm_set_info(comm, info);
    MPI_Info_free(&info);
    if (world_rank == 1) {
        fault_arm("pthread_create", 1, 0);
    }
    call_fails(WATCH_ALLGATHER, comm, &options, world_rank == 1 ? MPI_ERR_NO_MEM : MPI_ERR_OTHER,
               "no thread for callbacks");
    check(fault_disarm("pthread_create") == (world_rank == 1), "no thread was to be started");
    watch_one(WATCH_ALLGATHER, comm, &options, "with the thread");
    MPI_Comm_free(&comm);
}

/* ------------------------------------------------------------------ for ever */

/* Neither of its neighbours is one of MPI_COMM_WORLD's, whose ring goes by the ranks. */
static MPI_Comm make_comm_of_strangers(void)
{
    MPI_Comm comm;

    MPI_Comm_split(MPI_COMM_WORLD, 0, world_rank * 2 % world_size, &comm);
    return comm;
}

static void large_fails(watch_kind_t kind, MPI_Comm comm, const char *what)
{
    call_fails(kind, comm, &(watch_options_t){.count = LARGE}, MPI_ERR_OTHER, what);
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
    keep(&watch);
}

/*
 * From some moment on UCX fails rank 1: all ranks end with an error, then and ever after where
 * it and that neighbour are neighbours. With five ranks there is a ring in which they are not.
 */
static void lasts(const char *function, int status,
                  void (*one)(watch_kind_t kind, MPI_Comm comm, const char *what))
{
    MPI_Comm comm = make_comm(false), strangers = make_comm_of_strangers();

    next_works(comm, "before it fails");
    gives_up = true;
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
        next_works(strangers, "among those who were not given up");
    }
    MPI_Comm_free(&strangers);
    MPI_Comm_free(&comm);
}

static void no_receives(void)
{
    lasts("ucp_tag_recv_nbx", FAULT_IO_ERROR, large_fails);
}

static void no_receives_small(void)
{
    lasts("ucp_tag_recv_nbx", FAULT_IO_ERROR, small_fails_or_is_right);
}

static void no_memory_for_receives(void)
{
    lasts("ucp_tag_recv_nbx", FAULT_NO_MEMORY, large_fails);
}

static void no_sends(void)
{
    lasts("ucp_tag_send", FAULT_IO_ERROR, large_fails);
}

static void no_memory_for_sends(void)
{
    lasts("ucp_tag_send", FAULT_NO_MEMORY, large_fails);
}

/* Nor can the neighbour be told at once. */
static void told_later(void)
{
    if (world_rank == 1) {
        fault_arm("ucp_am_send_nbx", 1, FAULT_NO_MEMORY);
    }
    lasts("ucp_tag_recv_nbx", FAULT_IO_ERROR, large_fails);
    check(world_rank != 1 || fault_disarm("ucp_am_send_nbx"), "nobody was told");
}

/* Five ranks: the neighbour that is given up has not connected yet, and hears of it all the same.
 */
static void not_connected(void)
{
    const int late = 4; /* behind rank 1 in the ring */
    MPI_Comm comm = make_comm_of_strangers();
    double begin;
    int flag;

    MPI_Comm_set_errhandler(comm, counting_handler());
    next_works(MPI_COMM_WORLD, "before it fails");
    gives_up = true;
    MPI_Barrier(MPI_COMM_WORLD);
    if (world_rank == 1) {
        fault_arm_lasting("ucp_tag_send", 1, FAULT_IO_ERROR);
    }
    for (begin = MPI_Wtime(); world_rank == late && MPI_Wtime() < begin + 1;) {
        MPI_Iprobe(MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    }
    one_fails(WATCH_ALLGATHER, comm, MPI_ERR_OTHER, "a neighbour that was not connected");
    check(world_rank != 1 || fault_disarm("ucp_tag_send"), "nothing was sent");
    handler_calls = 0;
    MPI_Comm_free(&comm);
}

/* A plain allgather of so many elements: its error, with the result looked at. */
static int gather_of(MPI_Comm comm, int count, int salt)
{
    int *mine = get_memory(sizeof(int) * (size_t) count);
    int *all = get_memory(sizeof(int) * (size_t) (count * world_size)), error;
    MPI_Request request;

    for (int k = 0; k < count; k++) {
        mine[k] = world_rank * 1000 + k + salt;
    }
    error = MPI_Iallgather(mine, count, MPI_INT, all, count, MPI_INT, comm, &request);
    error = error == MPI_SUCCESS ? MPI_Wait(&request, MPI_STATUS_IGNORE) : error;
    for (int k = 0; k < count * world_size && error == MPI_SUCCESS; k++) {
        check(all[k] == k / count * 1000 + k % count + salt, "element %d is %d", k, all[k]);
    }
    free(mine);
    free(all);
    return error;
}

static int gather(MPI_Comm comm, int salt)
{
    return gather_of(comm, COUNT, salt);
}

/* Of blocks that two ranks read where they are, if they may. */
static void gathers(void)
{
    check_class(gather_of(MPI_COMM_WORLD, 64 << 10, 1), MPI_SUCCESS, "an allgather");
}

/* One rank cannot read another's block where it is, which is shown to it: at each read in turn. */
static void unreadable_at_first(void)
{
    MPI_Comm comm = make_comm(false);

    for (int nth = 1; nth < 2 * world_size; nth++) {
        if (world_rank == nth % world_size) {
            fault_arm("process_vm_readv", nth / 2 + 1, 0);
        }
        check_class(gather(comm, nth), MPI_SUCCESS, "the block is shown");
        check(nth / 2 + 1 >= world_size || world_rank != nth % world_size ||
                  fault_disarm("process_vm_readv"),
              "nothing was read");
        fault_disarm("process_vm_readv");
    }
    check(handler_calls == 0, "an error is told");
    MPI_Comm_free(&comm);
}

/* Some ranks cannot read at all: each in turn, and all. Blocks of one piece, of several, and not of whole ones. */
static void unreadable(void)
{
    static const int counts[] = {1 << 13, 1 << 14, (1 << 14) + 1, 300001};
    MPI_Comm comm = make_comm(false);

    for (int who = 0; who <= world_size; who++) {
        for (size_t k = 0; k < sizeof(counts) / sizeof(counts[0]); k++) {
            bool cannot = who == world_rank || who == world_size;

            if (cannot) {
                fault_arm_lasting("process_vm_readv", 1, 0);
            }
            check_class(gather_of(comm, counts[k], who), MPI_SUCCESS, "blocks are shown");
            check(!cannot || fault_disarm("process_vm_readv"), "nothing was read");
        }
    }
    check(handler_calls == 0, "an error is told");
    check_class(gather(comm, 2), MPI_SUCCESS, "the next operation");
    MPI_Comm_free(&comm);
}

/* A plain reduce-scatter likewise. */
static int reduce_of(MPI_Comm comm, int count, int salt)
{
    int *mine = get_memory(sizeof(int) * (size_t) (count * world_size));
    int *sum = get_memory(sizeof(int) * (size_t) count), error;
    MPI_Request request;

    for (int k = 0; k < count * world_size; k++) {
        mine[k] = world_rank * 1000 + k + salt;
    }
    error = MPI_Ireduce_scatter_block(mine, sum, count, MPI_INT, MPI_SUM, comm, &request);
    error = error == MPI_SUCCESS ? MPI_Wait(&request, MPI_STATUS_IGNORE) : error;
    for (int k = 0; k < count && error == MPI_SUCCESS; k++) {
        int each = world_rank * count + k + salt;

        check(sum[k] == world_size * (world_size - 1) / 2 * 1000 + world_size * each,
              "element %d is %d", k, sum[k]);
    }
    free(mine);
    free(sum);
    return error;
}

/*
 * One rank has no memory for an operation's blocks: it says so, and all others come to their ends. They
 * are `times` as long as those of the operation before, whose memory is too little for them.
 */
static void no_memory_for_blocks(int (*call)(MPI_Comm comm, int count, int salt), int times)
{
    MPI_Comm comm = make_comm(false);
    int error;

    check_class(call(comm, COUNT, 1), MPI_SUCCESS, "an operation before");
    if (world_rank == 1) {
        fault_arm("malloc", 1, 0);
    }
    error = call(comm, times * COUNT, 2);
    check(world_rank != 1 || fault_disarm("malloc"), "nothing was allocated");
    check_class(error, world_rank == 1 ? MPI_ERR_NO_MEM : MPI_ERR_OTHER, "a rank without memory");
    check_class(call(comm, COUNT, 3), MPI_SUCCESS, "the next operation");
    MPI_Comm_free(&comm);
}

static void no_memory_for_recdbl(void)
{
    no_memory_for_blocks(gather_of, 10);
    no_memory_for_blocks(reduce_of, 1000);
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
             {"memory_later", memory_later}, {"no_receives", no_receives},
             {"no_receives_small", no_receives_small},
             {"no_memory_for_receives", no_memory_for_receives}, {"no_sends", no_sends},
             {"no_memory_for_sends", no_memory_for_sends}, {"told_later", told_later},
             {"not_connected", not_connected}, {"comm_memory", comm_memory},
             {"unreadable_at_first", unreadable_at_first}, {"unreadable", unreadable},
             {"gathers", gathers}, {"no_memory_for_recdbl", no_memory_for_recdbl},
             {"callback_thread", callback_thread},
             {"works", works});
TEST_MAIN(test_faults)
