/*
 * test_no_memory.c: each allocation of each call fails in turn, on all ranks or on one: the call or
 * its request ends with an error, on the other ranks, too; all memory is returned; and the next
 * operation works.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "extension.h"
#include "faults.h"
#include "memory_calls.h"
#include "persistent.h"

enum { COUNT = 100, LONG = 500 * COUNT }; /* UCX sends long messages another way */

static MPI_Comm make_comm(void)
{
    MPI_Comm comm;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, counting_handler());
    return comm;
}

/*
 * What a communicator has for all-to-alls is made with the first one; where there is no memory for
 * that, the job ends.
 */
static void exchange(MPI_Comm comm)
{
    int sent[64], received[64] = {0};
    MPI_Request request;

    for (int rank = 0; rank < world_size; rank++) {
        sent[rank] = 100 * world_rank + rank;
    }
    MPI_Ialltoall(sent, 1, MPI_INT, received, 1, MPI_INT, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int rank = 0; rank < world_size; rank++) {
        check(received[rank] == 100 * rank + world_rank, "from rank %d: %d", rank, received[rank]);
    }
}

static void next_works(MPI_Comm comm)
{
    watch_options_t options = {.count = COUNT, .salt = 3};

    handler_calls = 0;
    for (int kind = 0; kind < WATCH_KINDS; kind++) {
        watch_one((watch_kind_t) kind, comm, &options, "after allocations that failed");
    }
    exchange(comm);
    check(handler_calls == 0, "the next operation fails");
}

/* A call, and what came of it. Its nth allocation fails; 0: none does. */
typedef int run_fn(const memory_call_t *call, MPI_Comm comm, int nth, bool *failed);

static int run_call(const memory_call_t *call, MPI_Comm comm, int nth, bool *failed)
{
    MPI_Request request = MPI_REQUEST_NULL;
    int error;

    fault_arm("malloc", nth, 0);
    error = call->start(comm, &request);
    *failed = fault_disarm("malloc");
    return error == MPI_SUCCESS ? MPI_Wait(&request, MPI_STATUS_IGNORE) : error;
}

/* One that is not there on all ranks is not started: the others would wait for it. */
static int run_persistent(const memory_call_t *call, MPI_Comm comm, int nth, bool *failed)
{
    MPI_Request request = MPI_REQUEST_NULL;
    bool made, all_made;
    int error;

    fault_arm("malloc", nth, 0);
    error = call->start(comm, &request);
    made = error == MPI_SUCCESS;
    MPI_Allreduce(&made, &all_made, 1, MPI_C_BOOL, MPI_LAND, MPI_COMM_WORLD);
    if (all_made) {
        MPI_Start(&request);
    }
    *failed = fault_disarm("malloc");
    if (all_made) {
        error = MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    if (request != MPI_REQUEST_NULL) { /* Open MPI frees one that failed */
        MPI_Request_free(&request);
    }
    return made && !all_made ? MPI_ERR_OTHER : error;
}

static int ignore(const MPIX_Flash_block *block, void *arg)
{
    (void) block, (void) arg;
    return MPI_SUCCESS;
}

/* Blocks that flash holds, but for a request that failed: that one lasts until the next call. */
static size_t allocations(void)
{
    int one = 1, all;

    MPIX_Allgather_compute(&one, 1, MPI_INT, &all, 1, MPI_INT, ignore, NULL, NULL, MPI_COMM_SELF);
    return fault_allocations();
}

/*
 * On one rank or on all; the last round is the one in which no allocation is left. Where the call
 * has been made before, what flash keeps for the next one is there, and it keeps no more.
 */
static void fail_each(run_fn *run, const memory_call_t *call, MPI_Comm comm, bool on_one,
                      bool again)
{
    bool failed = true;

    for (int nth = 1; failed; nth++) {
        int victim = nth % world_size, error;
        bool mine = !on_one || world_rank == victim;
        size_t before = allocations(), after;

        error = run(call, comm, mine ? nth : 0, &failed);
        after = allocations();
        if (on_one) {
            MPI_Bcast(&failed, 1, MPI_C_BOOL, victim, MPI_COMM_WORLD);
        }
        check(failed || nth > 1, "%s: no allocation to fail", call->name);
        check_class(error,
                    !failed ? MPI_SUCCESS
                    : mine  ? MPI_ERR_NO_MEM
                            : MPI_ERR_OTHER,
                    call->name);
        check(!again || after == before, "%s, allocation %d: %zu blocks before, %zu after",
              call->name, nth, before, after);
    }
}

static void fail_in_each(run_fn *run, const memory_call_t calls[], size_t count, bool on_one)
{
    static const int blocks[] = {COUNT, LONG};
    MPI_Comm comm = make_comm();

    next_works(comm); /* what is allocated once */
    memory_calls_use_up_pool(comm);
    for (size_t k = 0; k < LENGTH(blocks); k++) {
        memory_calls_begin(blocks[k]);
        for (size_t call = 0; call < count; call++) {
            for (int time = 0; time < 2; time++) {
                fail_each(run, &calls[call], comm, on_one, time > 0);
            }
        }
        memory_calls_end();
    }
    next_works(comm);
    MPI_Comm_free(&comm);
}

static void on_all(void)
{
    fail_in_each(run_call, memory_plain, MEMORY_PLAIN, false);
    fail_in_each(run_persistent, memory_persistent, MEMORY_PERSISTENT, false);
    fail_in_each(run_call, memory_no_ring, MEMORY_NO_RING, false);
}

static void on_one(void)
{
    fail_in_each(run_call, memory_plain, MEMORY_PLAIN, true);
    fail_in_each(run_persistent, memory_persistent, MEMORY_PERSISTENT, true);
}

/*
 * With short segments more of them are under way than ever before: what stands for them in the
 * transport is allocated, too, and kept. On all ranks: one that starts has enough for the next
 * time.
 */
static void segments(void)
{
    MPI_Comm comm = make_comm();

    next_works(comm);
    memory_calls_begin(LONG);
    for (int time = 0; time < 2; time++) {
        fail_each(run_call, &memory_plain[0], comm, false, time > 0);
    }
    memory_calls_end();
    next_works(comm);
    MPI_Comm_free(&comm);
}

/* ---------------------------------------- calls that are shared with the fallback */

static int *many_sent, *many_received, lengths[64], places[64];

static int start_long(MPI_Comm comm, MPI_Request *request)
{
    return MPI_Ialltoallv(many_sent, lengths, places, MPI_INT, many_received, lengths, places,
                          MPI_INT, comm, request);
}

static int make_long(MPI_Comm comm, MPI_Request *request)
{
    return MPI_Alltoallv_init(many_sent, lengths, places, MPI_INT, many_received, lengths, places,
                              MPI_INT, comm, MPI_INFO_NULL, request);
}

/*
 * By costs that leave short blocks to Open MPI's call: where flash has no memory for what stands for
 * both parts, that call's tags stay in step, and the next one gives the right result.
 */
static void shared(void)
{
    static const memory_call_t call = {.name = "Ialltoallv, shared", .start = start_long},
                               lasting = {.name = "Alltoallv_init, shared", .start = make_long};
    MPI_Comm comm = make_comm();
    bool failed;

    many_sent = calloc((size_t) world_size * LONG, sizeof(int));
    many_received = calloc((size_t) world_size * LONG, sizeof(int));
    for (int rank = 0; rank < world_size; rank++) {
        lengths[rank] = LONG;
        places[rank] = rank * LONG;
    }
    run_call(&call, comm, 0, &failed); /* see exchange() */
    for (int time = 0; time < 2; time++) {
        fail_each(run_call, &call, comm, true, time > 0);
        exchange(comm);
        fail_each(run_call, &call, comm, false, time > 0);
        exchange(comm);
    }
    fail_each(run_persistent, &lasting, comm, true, false);
    exchange(comm);
    MPI_Comm_free(&comm);
    free(many_sent);
    free(many_received);
}

/* Where flash is not used. */
static void fallback(void)
{
    fail_in_each(run_call, memory_fallback, MEMORY_FALLBACK, false);
    fail_in_each(run_call, memory_no_ring, MEMORY_NO_RING, false);
}

/* Scratch memory is not kept for ever, so that the above had some to fail. */
static void scratch(void)
{
    MPI_Comm comm = make_comm();

    exchange(comm);
    memory_calls_begin(COUNT);
    memory_calls_use_up_pool(comm);
    for (int round = 0; round < 2; round++) {
        for (size_t call = 0; call < MEMORY_PLAIN; call++) {
            bool reduces = memory_plain[call].reduces;
            bool none;
            int error;

            fault_arm("posix_memalign", 1, 0);
            error = run_call(&memory_plain[call], comm, 0, &none);
            check(fault_disarm("posix_memalign") == reduces, "%s: scratch",
                  memory_plain[call].name);
            check_class(error, reduces ? MPI_ERR_NO_MEM : MPI_SUCCESS, memory_plain[call].name);
        }
    }
    memory_calls_end();
    MPI_Comm_free(&comm);
}

/* ------------------------------------------------------------- calls with a root */

static int *vector, *sums; /* of twice as many elements as there are, for a type with gaps */
static MPI_Datatype gaps;

typedef enum rooted { BCAST, REDUCE, SCATTERV, GATHERV, ROOTED } rooted_t;
static const char *const rooted_names[] = {"Ibcast", "Ireduce", "Iscatterv", "Igatherv"};

/* Whether the root gets something; else, all others do. */
static bool is_to_root(rooted_t kind)
{
    return kind == REDUCE || kind == GATHERV;
}

static int start_rooted(rooted_t kind, int root, int count, MPI_Comm comm, MPI_Request *request)
{
    for (int rank = 0; rank < world_size; rank++) {
        lengths[rank] = count / world_size;
        places[rank] = rank * lengths[rank];
    }
    switch (kind) {
    case BCAST:
        return MPI_Ibcast(vector, count, gaps, root, comm, request);
    case REDUCE:
        return MPI_Ireduce(vector, sums, count, MPI_INT, MPI_SUM, root, comm, request);
    case SCATTERV:
        return MPI_Iscatterv(vector, lengths, places, gaps, sums, lengths[0], MPI_INT, root, comm,
                             request);
    default:
        return MPI_Igatherv(sums, lengths[0], MPI_INT, vector, lengths, places, gaps, root, comm,
                            request);
    }
}

static int run_rooted(rooted_t kind, int root, int count, MPI_Comm comm, int nth, bool *failed)
{
    MPI_Request request = MPI_REQUEST_NULL;
    int error;

    fault_arm("malloc", nth, 0);
    error = start_rooted(kind, root, count, comm, &request);
    *failed = fault_disarm("malloc");
    return error == MPI_SUCCESS ? MPI_Wait(&request, MPI_STATUS_IGNORE) : error;
}

/* Of a broadcast or a scatter the root has no memory, and all others hear of it; of a reduce or a gather,
   the rank beside the root has none: the root hears of it, and others may. */
static void check_rooted(rooted_t kind, int victim, int root, int error)
{
    const char *name = rooted_names[kind];
    int class;

    MPI_Error_class(error, &class);
    if (world_rank == victim) {
        check(class == MPI_ERR_NO_MEM, "%s: class %d on the rank without memory", name, class);
    } else if (!is_to_root(kind) || world_rank == root) {
        check(class == MPI_ERR_OTHER, "%s: class %d", name, class);
    } else {
        check(class == MPI_SUCCESS || class == MPI_ERR_OTHER, "%s: class %d", name, class);
    }
}

static void fail_each_rooted(rooted_t kind, int count, MPI_Comm comm)
{
    bool failed = true;

    for (int nth = 1; failed; nth++) {
        int victim = nth % world_size, root = is_to_root(kind) ? (victim + 1) % world_size : victim;
        int error = run_rooted(kind, root, count, comm, world_rank == victim ? nth : 0, &failed);

        MPI_Bcast(&failed, 1, MPI_C_BOOL, victim, MPI_COMM_WORLD);
        check(failed || nth > 1, "%s: no allocation to fail", rooted_names[kind]);
        if (failed) {
            check_rooted(kind, victim, root, error);
        } else {
            check_class(error, MPI_SUCCESS, rooted_names[kind]);
        }
    }
}

static void rooted(void)
{
    MPI_Comm comm = make_comm();

    vector = calloc(2 * LONG, sizeof(int));
    sums = calloc(LONG, sizeof(int));
    MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &gaps);
    MPI_Type_commit(&gaps);
    next_works(comm);
    memory_calls_use_up_pool(comm);
    for (rooted_t kind = BCAST; kind < ROOTED; kind++) {
        fail_each_rooted(kind, COUNT, comm);
        fail_each_rooted(kind, LONG, comm);
    }
    next_works(comm);
    MPI_Type_free(&gaps);
    MPI_Comm_free(&comm);
    free(vector);
    free(sums);
}

TEST_PROGRAM(test_no_memory, MPI_THREAD_SINGLE, {"on_all", on_all}, {"on_one", on_one},
             {"segments", segments}, {"fallback", fallback}, {"scratch", scratch},
             {"rooted", rooted}, {"shared", shared});
TEST_MAIN(test_no_memory)
