/*
 * test_failures.c: operations that fail on some rank: callbacks that return errors. Every rank's
 * operation ends, no result is wrong without an error, and the next operation works.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "aftermath.h"
#include "extension.h"

/* --------------------------------------------------------- failing callbacks */

/* Which callback fails: number `call` on rank `rank`. */
typedef struct failure {
    int rank, call, code;
    bool blocking; /* in a blocking call */
} failure_t;

static void check_handler(const watch_t *watch, int error)
{
    check(handler_calls == 1 && handler_error == error && handler_comm == watch->comm,
          "the communicator's error handler was called %d times", handler_calls);
}

static void check_failed_rank(const watch_t *watch, int error)
{
    check(error == watch->options.fail_error, "call %d failed with %d, the operation with %d",
          watch->options.fail_call, watch->options.fail_error, error);
    check(watch->calls == watch->options.fail_call, "%d calls after call %d failed", watch->calls,
          watch->options.fail_call);
    check_handler(watch, error);
}

/*
 * Whether this rank's result lacks what the failed callback was to produce, or what would have come
 * after it. `produced`: the blocks that were done by then. The plain collective, where flash does
 * not serve, adds up all or nothing.
 */
static bool is_hit(const watch_t *watch, turns_t produced)
{
    int active;

    MPIX_Flash_active(watch->comm, &active);
    return watch->kind == WATCH_REDUCE_SCATTER &&
           (!active || (watch->counts[watch->rank] > 0 && (produced >> watch->rank & 1) == 0));
}

static void check_other_rank(const watch_t *watch, turns_t produced, int error)
{
    if (is_hit(watch, produced)) {
        check_class(error, MPI_ERR_OTHER, "another rank's callback failed");
        check_handler(watch, error);
        return;
    }
    check_class(error, MPI_SUCCESS, "another rank's callback failed, for others");
    check(handler_calls == 0, "error handler called without an error");
    watch_check(watch, "another rank's callback failed");
}

/* The call, or the wait for it, returns what its callback did. */
static int run_watch(watch_t *watch, bool blocking)
{
    MPI_Request request;
    int error;

    handler_calls = 0;
    if (blocking) {
        return watch_blocking(watch);
    }
    error = watch_start(watch, &request);
    check(error == MPI_SUCCESS, "the call returns %d", error);
    return MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* Returns whether there is such a callback. */
static bool fail_at(MPI_Comm comm, watch_kind_t kind, watch_options_t options, failure_t failure)
{
    watch_t watch;
    turns_t produced;
    bool there_is;
    int error;

    watch_init(&watch, kind, comm, &options);
    if (watch.rank == failure.rank) {
        watch.options.fail_call = failure.call;
        watch.options.fail_error = failure.code;
    }
    there_is = failure.call <= watch_expected_calls(&watch);
    error = run_watch(&watch, failure.blocking);
    check(watch_guards_are_intact(&watch), "wrote outside");
    produced = watch.done;
    MPI_Bcast(&produced, 1, MPI_UINT64_T, failure.rank, MPI_COMM_WORLD);
    if (watch.rank == failure.rank && there_is) {
        check_failed_rank(&watch, error);
    } else if (there_is) {
        check_other_rank(&watch, produced, error);
    }
    watch_free(&watch);
    return there_is;
}

/* Any callback on any rank. */
static void fail_everywhere(watch_kind_t kind, const watch_options_t *options)
{
    MPI_Comm comm = make_counted_comm();
    bool there_is = true;
    int user_code;

    MPI_Add_error_code(MPI_ERR_OTHER, &user_code);
    for (int call = 1; there_is; call++) {
        for (int rank = 0; rank < world_size; rank++) {
            failure_t failure = {.rank = rank, .call = call, .code = user_code};

            there_is = fail_at(comm, kind, *options, failure);
            failure.code = MPI_ERR_OTHER;
            failure.blocking = true;
            fail_at(comm, kind, *options, failure);
            next_works(comm, "after a failed callback");
        }
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
    MPI_Comm comm = make_counted_comm();

    for (int kind = 0; kind < WATCH_KINDS; kind++) {
        for (int call = 1; call <= 3; call++) {
            fail_at(comm, (watch_kind_t) kind, options,
                    (failure_t){call % world_size, call, MPI_ERR_OTHER, call == 2});
        }
    }
    next_works(comm, "after failed callbacks");
    MPI_Comm_free(&comm);
}

/*
 * An operation that fails on every rank, on a communicator that is freed before or after its end:
 * the numbers of communicators come back, and so does what belongs to them.
 */
static void freed_communicators(void)
{
    enum { MANY = 50, RANKS = 64 };
    static int64_t send[101], recv[RANKS * 100]; /* for requests that are freed at once, too */

    int rounds = short_tier ? 4 * MANY : 12 * MANY;

    for (int round = 0; round < rounds; round++) {
        MPI_Comm comm = make_counted_comm();
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

TEST_PROGRAM(test_failures, MPI_THREAD_SINGLE, {"consume", consume}, {"produce", produce},
             {"big", big}, {"freed_communicators", freed_communicators});
