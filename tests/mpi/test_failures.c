/*
 * test_failures.c: operations that fail on some rank: callbacks that return errors, and ranks that
 * disagree about sizes or lack a buffer. Every rank's request completes, no result is wrong without
 * an error, and the next operation works.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "extension.h"

enum { GUARD = 64, CANARY = 0x5a };

/* A duplicate of MPI_COMM_WORLD whose errors are counted. Those of MPI_COMM_WORLD are fatal. */
static MPI_Comm make_comm(void)
{
    MPI_Comm comm;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, counting_handler());
    handler_calls = 0;
    return comm;
}

static void next_works(MPI_Comm comm, const char *what)
{
    watch_options_t options = {.count = 50, .salt = 9};

    for (int kind = 0; kind < WATCH_KINDS; kind++) {
        watch_one((watch_kind_t) kind, comm, &options, what);
    }
}

/* --------------------------------------------------------- failing callbacks */

static void check_failed_rank(const watch_t *watch, int error)
{
    check(error == watch->options.fail_error, "call %d failed with %d, the request with %d",
          watch->options.fail_call, watch->options.fail_error, error);
    check(handler_calls == 1 && handler_error == error && handler_comm == watch->comm,
          "the communicator's error handler was called %d times", handler_calls);
    check(watch->calls == watch->options.fail_call, "%d calls after call %d failed", watch->calls,
          watch->options.fail_call);
}

static void check_other_rank(const watch_t *watch, int error)
{
    if (error == MPI_SUCCESS) {
        watch_check(watch, "another rank's callback failed");
        check(handler_calls == 0, "error handler called without an error");
        return;
    }
    check(watch->kind == WATCH_REDUCE_SCATTER, "allgather: another rank's error came here");
    check_class(error, MPI_ERR_OTHER, "another rank's callback failed");
    check(handler_calls == 1 && handler_comm == watch->comm,
          "the communicator's error handler was called %d times", handler_calls);
}

/* The callback number `call` of rank `failing` returns `code`; returns whether there is one. */
static bool fail_at(MPI_Comm comm, watch_kind_t kind, watch_options_t options, int failing,
                    int call, int code)
{
    MPI_Request request;
    watch_t watch;
    int error, there_is;

    watch_init(&watch, kind, comm, &options);
    if (watch.rank == failing) {
        watch.options.fail_call = call;
        watch.options.fail_error = code;
    }
    there_is = call <= watch_expected_calls(&watch);
    handler_calls = 0;
    error = watch_start(&watch, &request);
    /* The fallback's producers run inside the call. */
    check(error == MPI_SUCCESS, "the call returns %d", error);
    error = MPI_Wait(&request, MPI_STATUS_IGNORE);
    check(watch_guards_are_intact(&watch), "wrote outside");
    if (watch.rank == failing && there_is) {
        check_failed_rank(&watch, error);
    } else {
        check_other_rank(&watch, error);
    }
    watch_free(&watch);
    return there_is;
}

static void fail_everywhere(watch_kind_t kind, const watch_options_t *options)
{
    MPI_Comm comm = make_comm();
    int code, failing = 0;

    MPI_Add_error_code(MPI_ERR_OTHER, &code);
    for (int call = 1; fail_at(comm, kind, *options, failing, call, code); call++) {
        fail_at(comm, kind, *options, (failing + 1) % world_size, call, MPI_ERR_OTHER);
        failing = (failing + 1) % world_size;
        handler_calls = 0;
        next_works(comm, "after a failed callback");
        check(handler_calls == 0, "the next operation fails");
    }
    MPI_Comm_free(&comm);
}

static void consume(void)
{
    watch_options_t options = {.count = 999, .pieces = 2};

    fail_everywhere(WATCH_ALLGATHER, &options);
    options.unequal = true;
    fail_everywhere(WATCH_ALLGATHER, &options);
}

static void produce(void)
{
    watch_options_t options = {.count = 999, .pieces = 2};

    fail_everywhere(WATCH_REDUCE_SCATTER, &options);
    options.unequal = true;
    fail_everywhere(WATCH_REDUCE_SCATTER, &options);
}

/* Several segments to a piece: some of them have left when the next callback fails. */
static void big(void)
{
    watch_options_t options = {.count = 187501, .pieces = 2};
    MPI_Comm comm = make_comm();

    for (int kind = 0; kind < WATCH_KINDS; kind++) {
        for (int call = 1; call <= 3; call++) {
            fail_at(comm, (watch_kind_t) kind, options, call % world_size, call, MPI_ERR_OTHER);
        }
    }
    handler_calls = 0;
    next_works(comm, "after failed callbacks");
    MPI_Comm_free(&comm);
}

/* ------------------------------------------------------ sizes that disagree */

enum { PLAIN_ALLGATHER, PLAIN_REDUCE_SCATTER, COMPUTE_ALLGATHER, COMPUTE_REDUCE_SCATTER, CALLS };
static const char *const call_names[] = {"Iallgather", "Ireduce_scatter_block",
                                         "Iallgather_compute", "Ireduce_scatter_block_compute"};

static int ignore(const MPIX_Flash_block *block, void *arg)
{
    (void) arg;
    memset(block->data, 0, (size_t) block->count * sizeof(int64_t));
    return MPI_SUCCESS;
}

static int look(const MPIX_Flash_block *block, void *arg)
{
    (void) block;
    (void) arg;
    return MPI_SUCCESS;
}

static int start(int call, int count, int64_t *send, void *recv, MPI_Comm comm,
                 MPI_Request *request)
{
    switch (call) {
    case PLAIN_ALLGATHER:
        return MPI_Iallgather(send, count, MPI_INT64_T, recv, count, MPI_INT64_T, comm, request);
    case PLAIN_REDUCE_SCATTER:
        return MPI_Ireduce_scatter_block(send, recv, count, MPI_INT64_T, MPI_SUM, comm, request);
    case COMPUTE_ALLGATHER:
        return MPIX_Iallgather_compute(send, count, MPI_INT64_T, recv, count, MPI_INT64_T, look,
                                       NULL, NULL, comm, request);
    default:
        return MPIX_Ireduce_scatter_block_compute(ignore, NULL, NULL, recv, count, MPI_INT64_T,
                                                  MPI_SUM, comm, request);
    }
}

static bool is_canary(const unsigned char *memory, size_t bytes)
{
    unsigned wrong = 0;

    for (size_t k = 0; k < bytes; k++) {
        wrong |= memory[k] ^ CANARY;
    }
    return wrong == 0;
}

/* Rank 0 passes `odd`, the others `count`. */
static void disagree(int call, int count, int odd)
{
    MPI_Comm comm = make_comm();
    int mine = world_rank == 0 ? odd : count, error, class, truncated, somewhere;
    size_t blocks = call == PLAIN_ALLGATHER || call == COMPUTE_ALLGATHER ? (size_t) world_size : 1;
    size_t bytes = blocks * (size_t) mine * sizeof(int64_t);
    int64_t *send = calloc((size_t) world_size * (size_t) mine + 1, sizeof(int64_t));
    unsigned char *recv = get_memory(bytes + 2 * GUARD);
    MPI_Request request = MPI_REQUEST_NULL;

    memset(recv, CANARY, bytes + 2 * GUARD);
    error = start(call, mine, send, recv + GUARD, comm, &request);
    if (error == MPI_SUCCESS) {
        error = MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Error_class(error, &class);
    truncated = class == MPI_ERR_TRUNCATE;
    check(class == MPI_SUCCESS || truncated || class == MPI_ERR_OTHER,
          "%s of %d and %d: error class %d", call_names[call], count, odd, class);
    check(is_canary(recv, GUARD) && is_canary(recv + GUARD + bytes, GUARD),
          "%s of %d and %d wrote outside of the buffer", call_names[call], count, odd);
    MPI_Allreduce(&truncated, &somewhere, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    check(somewhere, "%s of %d and %d: no rank reports MPI_ERR_TRUNCATE", call_names[call], count,
          odd);
    free(send);
    free(recv);
    {
        MPI_Comm fresh;

        MPI_Comm_dup(comm, &fresh);
        handler_calls = 0;
        next_works(fresh, "after sizes that disagreed, a new communicator");
        next_works(comm, "after sizes that disagreed, the same communicator");
        check(handler_calls == 0, "the next operation fails");
        MPI_Comm_free(&fresh);
    }
    MPI_Comm_free(&comm);
}

/* Shorter and longer by an element, by a segment or more, in as many segments or not. */
static void sizes(void)
{
    static const int pairs[][2] = {{100, 101},      {100, 99},       {100, 5000},
                                   {5000, 100},     {70000, 70001},  {70000, 200000},
                                   {200000, 70000}, {200000, 131072}};

    for (int call = 0; call < CALLS; call++) {
        for (size_t k = 0; k < LENGTH(pairs); k++) {
            disagree(call, pairs[k][0], pairs[k][1]);
        }
    }
}

/* A send buffer that does not fit this rank's own block. */
static void own_block(void)
{
    for (int odd = 99; odd <= 101; odd += 2) {
        MPI_Comm comm = make_comm();
        int64_t send[101] = {0};
        unsigned char *recv = get_memory((size_t) world_size * 800 + GUARD);
        MPI_Request request = MPI_REQUEST_NULL;
        int error, class;

        memset(recv, CANARY, (size_t) world_size * 800 + GUARD);
        error = MPI_Iallgather(send, world_rank == 0 ? odd : 100, MPI_INT64_T, recv, 100,
                               MPI_INT64_T, comm, &request);
        if (error == MPI_SUCCESS) {
            error = MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
        MPI_Error_class(error, &class);
        check(class == (world_rank == 0 ? MPI_ERR_TRUNCATE : MPI_ERR_OTHER),
              "rank 0 sends %d for 100: error class %d", odd, class);
        check(is_canary(recv + (size_t) world_size * 800, GUARD), "wrote behind the buffer");
        handler_calls = 0;
        next_works(comm, "after a send buffer of another size");
        MPI_Comm_free(&comm);
        free(recv);
    }
}

/* Another request's error comes first: one whose error is known from the start is still pending. */
static void known_error(void)
{
    MPI_Comm comms[2] = {make_comm(), make_comm()};
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

/* ------------------------------------------------------- buffers that are not there */

/* Rank 0 passes NULL for one of its buffers. */
static void lack_buffer(int call, int count, bool sending)
{
    MPI_Comm comm = make_comm();
    int64_t *send = calloc((size_t) world_size * (size_t) count, sizeof(int64_t));
    int64_t *recv = calloc((size_t) world_size * (size_t) count, sizeof(int64_t));
    bool lacks = world_rank == 0;
    MPI_Request request = MPI_REQUEST_NULL;
    int error, class;

    error = start(call, count, lacks && sending ? NULL : send, lacks && !sending ? NULL : recv,
                  comm, &request);
    if (error == MPI_SUCCESS) {
        error = MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Error_class(error, &class);
    check(class == (lacks ? MPI_ERR_BUFFER : MPI_ERR_OTHER), "%s of %d, no buffer to %s: class %d",
          call_names[call], count, sending ? "send" : "receive", class);
    handler_calls = 0;
    next_works(comm, "after a buffer that was not there");
    MPI_Comm_free(&comm);
    free(send);
    free(recv);
}

static void no_buffer(void)
{
    static const int counts[] = {10, 70000};

    for (int call = 0; call < CALLS; call++) {
        for (size_t k = 0; k < LENGTH(counts); k++) {
            lack_buffer(call, counts[k], false);
            if (call != COMPUTE_REDUCE_SCATTER) { /* which has none */
                lack_buffer(call, counts[k], true);
            }
        }
    }
}

/* Blocks that are packed on their way, and NULL in their place. */
static void no_strided_buffer(void)
{
    MPI_Comm comm = make_comm();
    int64_t *memory = calloc((size_t) world_size * 200, sizeof(int64_t));
    MPI_Datatype strided;
    MPI_Request request;
    int class;

    MPI_Type_vector(100, 1, 2, MPI_INT64_T, &strided);
    MPI_Type_commit(&strided);
    for (int sending = 0; sending <= 1; sending++) {
        bool lacks = world_rank == 0;

        MPI_Iallgather(lacks && sending ? NULL : memory, 1, strided,
                       lacks && !sending ? NULL : memory, 1, strided, comm, &request);
        MPI_Error_class(MPI_Wait(&request, MPI_STATUS_IGNORE), &class);
        check(class == (lacks ? MPI_ERR_BUFFER : MPI_ERR_OTHER), "strided: class %d", class);
    }
    handler_calls = 0;
    next_works(comm, "after a strided buffer that was not there");
    MPI_Type_free(&strided);
    MPI_Comm_free(&comm);
    free(memory);
}

/* NULL is a buffer for nothing, and MPI_BOTTOM one with a type that holds addresses. */
static void null_buffer(void)
{
    MPI_Comm comm = make_comm();
    int64_t mine = world_rank, *all = calloc((size_t) world_size, sizeof(int64_t));
    int counts[] = {1}, got = 0;
    MPI_Aint address;
    MPI_Datatype absolute;
    MPI_Request request;

    MPI_Iallgather(NULL, 0, MPI_INT64_T, NULL, 0, MPI_INT64_T, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Ireduce_scatter_block(NULL, NULL, 0, MPI_INT64_T, MPI_SUM, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Get_address(&mine, &address);
    MPI_Type_create_hindexed(1, counts, &address, MPI_INT64_T, &absolute);
    MPI_Type_commit(&absolute);
    MPI_Iallgather(MPI_BOTTOM, 1, absolute, all, 1, MPI_INT64_T, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int rank = 0; rank < world_size; rank++) {
        got += all[rank] == rank;
    }
    check(got == world_size && handler_calls == 0, "%d of %d elements right, %d errors", got,
          world_size, handler_calls);
    MPI_Type_free(&absolute);
    MPI_Comm_free(&comm);
    free(all);
}

/*
 * An operation that fails on every rank, on a communicator that is freed before or after its end:
 * the numbers of communicators come back, and so does what belongs to them.
 */
static void freed_communicators(void)
{
    enum { ROUNDS = 600, MANY = 50, RANKS = 64 };
    static int64_t send[101], recv[RANKS * 100]; /* for requests that are freed at once, too */

    for (int round = 0; round < ROUNDS; round++) {
        MPI_Comm comm = make_comm();
        int handle = (int) MPI_Comm_c2f(comm);
        MPI_Request request;

        check(handle < MANY, "round %d: communicator number %d", round, handle);
        if (handle >= MANY) {
            break;
        }
        MPI_Iallgather(send, world_rank == 0 ? 101 : 100, MPI_INT64_T, recv, 100, MPI_INT64_T, comm,
                       &request);
        if (round % 2 == 0) {
            MPI_Comm_free(&comm);
        }
        if (round % 3 == 0) {
            MPI_Request_free(&request);
        } else {
            check(MPI_Wait(&request, MPI_STATUS_IGNORE) != MPI_SUCCESS, "round %d works", round);
            check(handler_calls == 1, "round %d: %d calls of the handler", round, handler_calls);
        }
        if (round % 2 != 0) {
            MPI_Comm_free(&comm);
        }
    }
    handler_calls = 0;
}

int main(int argc, char **argv)
{
    static const test_case_t cases[] = {{"consume", consume},
                                        {"produce", produce},
                                        {"big", big},
                                        {"sizes", sizes},
                                        {"own_block", own_block},
                                        {"known_error", known_error},
                                        {"no_buffer", no_buffer},
                                        {"no_strided_buffer", no_strided_buffer},
                                        {"null_buffer", null_buffer},
                                        {"freed_communicators", freed_communicators}};

    return run_cases(argc, argv, MPI_THREAD_SINGLE, cases, LENGTH(cases));
}
