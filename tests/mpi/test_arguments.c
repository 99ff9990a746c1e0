/*
 * test_arguments.c: bad arguments to the calls of <mpix_flash.h>: the error class that the header
 * names, returned and handed to the communicator's error handler, and nothing left behind.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "extension.h"

enum { COUNT = 10 };

/* The communicator of the calls, with an error handler of its own, as has MPI_COMM_WORLD. */
static MPI_Comm comm;

/* The arguments of all eight calls, good at first. */
static struct arguments {
    const void *sendbuf;
    void *recvbuf;
    int sendcount, recvcount, *recvcounts, *displs;
    MPI_Datatype sendtype, recvtype;
    MPI_Op op;
    MPIX_Flash_compute_fn *function;
    const MPIX_Flash_hints *hints;
    MPI_Comm comm;
    MPI_Request *request;
} use;

enum {
    ALLGATHER = 1,
    ALLGATHERV = 2,
    REDUCE_SCATTER_BLOCK = 4,
    REDUCE_SCATTER = 8,
    GATHERS = ALLGATHER | ALLGATHERV,
    REDUCES = REDUCE_SCATTER_BLOCK | REDUCE_SCATTER,
    ALL = GATHERS | REDUCES
};

static int callbacks;
static int64_t send[COUNT], *recv;
static int *counts, *displs;
static MPI_Request request;

static int count_callback(const MPIX_Flash_block *block, void *arg)
{
    (void) block;
    (void) arg;
    callbacks++;
    return MPI_SUCCESS;
}

static void reset_arguments(void)
{
    for (int rank = 0; rank < world_size; rank++) {
        counts[rank] = COUNT;
        displs[rank] = COUNT * rank;
    }
    request = MPI_REQUEST_NULL;
    use = (struct arguments){.sendbuf = send,
                             .recvbuf = recv,
                             .sendcount = COUNT,
                             .recvcount = COUNT,
                             .recvcounts = counts,
                             .displs = displs,
                             .sendtype = MPI_INT64_T,
                             .recvtype = MPI_INT64_T,
                             .op = MPI_SUM,
                             .function = count_callback,
                             .comm = comm,
                             .request = &request};
}

static int call_one(int call, bool blocking)
{
    switch (call) {
    case ALLGATHER:
        return blocking
                   ? MPIX_Allgather_compute(use.sendbuf, use.sendcount, use.sendtype, use.recvbuf,
                                            use.recvcount, use.recvtype, use.function, NULL,
                                            use.hints, use.comm)
                   : MPIX_Iallgather_compute(use.sendbuf, use.sendcount, use.sendtype, use.recvbuf,
                                             use.recvcount, use.recvtype, use.function, NULL,
                                             use.hints, use.comm, use.request);
    case ALLGATHERV:
        return blocking
                   ? MPIX_Allgatherv_compute(use.sendbuf, use.sendcount, use.sendtype, use.recvbuf,
                                             use.recvcounts, use.displs, use.recvtype, use.function,
                                             NULL, use.hints, use.comm)
                   : MPIX_Iallgatherv_compute(use.sendbuf, use.sendcount, use.sendtype, use.recvbuf,
                                              use.recvcounts, use.displs, use.recvtype,
                                              use.function, NULL, use.hints, use.comm, use.request);
    case REDUCE_SCATTER_BLOCK:
        return blocking
                   ? MPIX_Reduce_scatter_block_compute(use.function, NULL, use.hints, use.recvbuf,
                                                       use.recvcount, use.recvtype, use.op,
                                                       use.comm)
                   : MPIX_Ireduce_scatter_block_compute(use.function, NULL, use.hints, use.recvbuf,
                                                        use.recvcount, use.recvtype, use.op,
                                                        use.comm, use.request);
    default:
        return blocking
                   ? MPIX_Reduce_scatter_compute(use.function, NULL, use.hints, use.recvbuf,
                                                 use.recvcounts, use.recvtype, use.op, use.comm)
                   : MPIX_Ireduce_scatter_compute(use.function, NULL, use.hints, use.recvbuf,
                                                  use.recvcounts, use.recvtype, use.op, use.comm,
                                                  use.request);
    }
}

static void expect_error(int error, int class, MPI_Comm handler_of, const char *what)
{
    check_class(error, class, what);
    check(handler_calls == 1, "%s: the error handler was called %d times", what, handler_calls);
    check(handler_calls == 0 || handler_error == error, "%s: the handler got error %d, not %d",
          what, handler_error, error);
    check(handler_calls == 0 || handler_comm == handler_of,
          "%s: another communicator's error handler was called", what);
    handler_calls = 0;
}

/* With `use` spoiled: the calls in `which` fail. */
static void expect(int which, int class, const char *what)
{
    MPI_Comm handler_of = use.comm == MPI_COMM_NULL ? MPI_COMM_WORLD : use.comm;

    callbacks = 0;
    for (int call = ALLGATHER; call <= REDUCE_SCATTER; call *= 2) {
        for (int blocking = 0; blocking < 2 && (call & which); blocking++) {
            if (blocking && use.request == NULL) {
                continue;
            }
            expect_error(call_one(call, blocking), class, handler_of, what);
        }
    }
    check(callbacks == 0, "%s: the callback was called", what);
    check(request == MPI_REQUEST_NULL, "%s: a request was made", what);
    reset_arguments();
}

/* Nothing that failed has left anything behind. */
static void good_calls_work(void)
{
    watch_options_t options = {.count = COUNT};

    for (int kind = 0; kind < WATCH_KINDS; kind++) {
        options.unequal = !options.unequal;
        watch_one((watch_kind_t) kind, comm, &options, "after the errors");
    }
    check(handler_calls == 0, "a good call has called the error handler");
    handler_calls = 0;
}

/* ------------------------------------------------------------------ the cases */

static void pointers(void)
{
    use.function = NULL;
    expect(ALL, MPI_ERR_ARG, "no function");
    use.request = NULL;
    expect(ALL, MPI_ERR_ARG, "no request");
    use.recvcounts = NULL;
    expect(ALLGATHERV | REDUCE_SCATTER, MPI_ERR_ARG, "no recvcounts");
    use.displs = NULL;
    expect(ALLGATHERV, MPI_ERR_ARG, "no displs");
    use.recvbuf = MPI_IN_PLACE;
    expect(ALL, MPI_ERR_BUFFER, "MPI_IN_PLACE for recvbuf");
    good_calls_work();
}

static void hints(void)
{
    MPIX_Flash_hints bad = MPIX_FLASH_HINTS_INIT;

    use.hints = &bad;
    bad.pieces = -1;
    expect(ALL, MPI_ERR_ARG, "negative pieces");
    use.hints = &bad;
    bad.pieces = 1;
    bad.row = -1;
    expect(ALL, MPI_ERR_ARG, "negative row");
    use.hints = &bad;
    bad.row = 0;
    bad.size = 0;
    expect(ALL, MPI_ERR_ARG, "hints of size 0");
    use.hints = &bad;
    bad.size = sizeof(bad) - 1;
    expect(ALL, MPI_ERR_ARG, "hints of an odd size");
    good_calls_work();
}

static void negative_counts(void)
{
    use.sendcount = -1;
    expect(GATHERS, MPI_ERR_COUNT, "negative sendcount");
    use.recvcount = -1;
    expect(ALLGATHER | REDUCE_SCATTER_BLOCK, MPI_ERR_COUNT, "negative recvcount");
    counts[world_size - 1] = -1;
    expect(ALLGATHERV | REDUCE_SCATTER, MPI_ERR_COUNT, "negative entry of recvcounts");
    good_calls_work();
}

static void bad_type(MPI_Datatype type, const char *what)
{
    use.recvtype = type;
    expect(ALL, MPI_ERR_TYPE, what);
    use.sendtype = type;
    expect(GATHERS, MPI_ERR_TYPE, what);
}

static void types(void)
{
    MPI_Datatype type;

    bad_type(MPI_DATATYPE_NULL, "MPI_DATATYPE_NULL");
    MPI_Type_contiguous(2, MPI_INT, &type);
    bad_type(type, "type not committed");
    MPI_Type_free(&type);
    good_calls_work();
}

static void operations(void)
{
    MPI_Datatype type;

    use.op = MPI_OP_NULL;
    expect(REDUCES, MPI_ERR_OP, "MPI_OP_NULL");
    use.op = MPI_BAND;
    use.recvtype = MPI_DOUBLE;
    expect(REDUCES, MPI_ERR_OP, "MPI_BAND of MPI_DOUBLE");
    use.op = MPI_MAXLOC;
    expect(REDUCES, MPI_ERR_OP, "MPI_MAXLOC of MPI_INT64_T");
    MPI_Type_contiguous(2, MPI_INT, &type);
    MPI_Type_commit(&type);
    use.recvtype = type;
    expect(REDUCES, MPI_ERR_OP, "MPI_SUM of a type of the user's");
    MPI_Type_free(&type);
    good_calls_work();
}

static void communicators(void)
{
    MPI_Comm freed, local, inter;
    int flag;

    use.comm = MPI_COMM_NULL;
    expect(ALL, MPI_ERR_COMM, "MPI_COMM_NULL");
    MPI_Comm_dup(comm, &freed);
    MPI_Comm_free(&freed);
    use.comm = freed;
    expect(ALL, MPI_ERR_COMM, "freed communicator");
    expect_error(MPIX_Flash_active(MPI_COMM_NULL, &flag), MPI_ERR_COMM, MPI_COMM_WORLD,
                 "active: MPI_COMM_NULL");
    expect_error(MPIX_Flash_active(comm, NULL), MPI_ERR_ARG, comm, "active: no flag");
    if (world_size > 1) {
        MPI_Comm_split(MPI_COMM_WORLD, world_rank % 2, 0, &local);
        MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, 1 - world_rank % 2, 1, &inter);
        MPI_Comm_set_errhandler(inter, counting_handler());
        use.comm = inter;
        expect(ALL, MPI_ERR_COMM, "inter-communicator");
        expect_error(MPIX_Flash_active(inter, &flag), MPI_ERR_COMM, inter,
                     "active: inter-communicator");
        MPI_Comm_free(&inter);
        MPI_Comm_free(&local);
    }
    good_calls_work();
}

static void explanations(void)
{
    enum { RANKS = 4, SIZE = 1024 };
    char text[SIZE];

    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    check_class(MPIX_Flash_explain("allgather", 1 << 20, RANKS, 0, text, SIZE), MPI_SUCCESS,
                "explain");
    check(strstr(text, "<- chosen") != NULL && strlen(text) < 512, "explain says: %s", text);
    check_class(MPIX_Flash_explain("reduce_scatter", 0, RANKS, 1, text, SIZE), MPI_SUCCESS,
                "explain: no bytes");
    check_class(MPIX_Flash_explain("gatherv", 1, RANKS, 0, text, SIZE), MPI_ERR_ARG,
                "explain: no such call");
    check_class(MPIX_Flash_explain(NULL, 1, RANKS, 0, text, SIZE), MPI_ERR_ARG, "explain: no call");
    check_class(MPIX_Flash_explain("allgather", -1, RANKS, 0, text, SIZE), MPI_ERR_ARG,
                "explain: less than no bytes");
    check_class(MPIX_Flash_explain("allgather", 1, 1, 0, text, SIZE), MPI_ERR_ARG,
                "explain: one rank");
    check_class(MPIX_Flash_explain("allgather", 1, RANKS, 0, NULL, SIZE), MPI_ERR_ARG,
                "explain: no text");
    check_class(MPIX_Flash_explain("allgather", 1, RANKS, 0, text, 0), MPI_ERR_ARG,
                "explain: no room");
    check_class(MPIX_Flash_explain("allgather", 1, RANKS, 0, text, 10), MPI_ERR_TRUNCATE,
                "explain: too little room");
    check(strlen(text) == 9, "explain: a text cut off has %zu characters", strlen(text));
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

/* Each case with the handlers and the arguments in place. */
static void with_handlers(void (*run)(void))
{
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, counting_handler());
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, counting_handler());
    counts = get_memory(sizeof(int) * (size_t) world_size);
    displs = get_memory(sizeof(int) * (size_t) world_size);
    recv = get_memory(sizeof(int64_t) * COUNT * (size_t) world_size);
    handler_calls = 0;
    reset_arguments();
    run();
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Comm_free(&comm);
    free(counts);
    free(displs);
    free(recv);
}

#define CASE(name)               \
    static void run_##name(void) \
    {                            \
        with_handlers(name);     \
    }

CASE(pointers)
CASE(hints)
CASE(negative_counts)
CASE(types)
CASE(operations)
CASE(communicators)

TEST_PROGRAM(test_arguments, MPI_THREAD_SINGLE, {"pointers", run_pointers}, {"hints", run_hints},
             {"counts", run_negative_counts}, {"types", run_types}, {"operations", run_operations},
             {"communicators", run_communicators}, {"explanations", explanations});
