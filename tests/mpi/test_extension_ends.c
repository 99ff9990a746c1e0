/*
 * test_extension_ends.c: requests of <mpix_flash.h> that are freed, or whose communicator is, while
 * they are under way; calls that fail in the collective that they fall back to.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "extension.h"

#include <sys/resource.h>
#include <unistd.h>

#include <stdio.h>

/*
 * Freed while under way: the callbacks are made, and the data arrives, all the same. Whoever calls
 * MPI next makes them.
 */
static void free_active(void)
{
    watch_options_t options = {.count = 5000, .pieces = 3};
    watch_t watches[2 * WATCH_KINDS];

    for (int k = 0; k < 2 * WATCH_KINDS; k++) {
        MPI_Request request;

        options.salt = (unsigned) k;
        options.unequal = k >= WATCH_KINDS;
        watch_init(&watches[k], (watch_kind_t) (k % WATCH_KINDS), MPI_COMM_WORLD, &options);
        watch_start(&watches[k], &request);
        MPI_Request_free(&request);
        check(request == MPI_REQUEST_NULL, "MPI_Request_free leaves a request");
    }
    for (int k = 0; k < 2 * WATCH_KINDS; k++) {
        while (watches[k].calls < watch_expected_calls(&watches[k]) ||
               !watch_result_is_right(&watches[k])) {
            int flag;

            MPI_Iprobe(MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        }
    }
    /* Nobody needs what others send from their buffers any more. */
    watch_one(WATCH_ALLGATHER, MPI_COMM_WORLD, &options, "behind freed requests");
    MPI_Barrier(MPI_COMM_WORLD);
    for (int k = 0; k < 2 * WATCH_KINDS; k++) {
        watch_check(&watches[k], "freed request");
        watch_free(&watches[k]);
    }
}

/* The communicators' handles are gone while both kinds are under way. */
static void free_communicators(void)
{
    watch_options_t options = {.count = 5000, .pieces = 3};
    watch_t watches[WATCH_KINDS];
    MPI_Request requests[WATCH_KINDS];

    for (int kind = 0; kind < WATCH_KINDS; kind++) {
        MPI_Comm comm;

        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        watch_init(&watches[kind], (watch_kind_t) kind, comm, &options);
        watch_start(&watches[kind], &requests[kind]);
        MPI_Comm_free(&comm);
    }
    for (int kind = WATCH_KINDS - 1; kind >= 0; kind--) {
        MPI_Wait(&requests[kind], MPI_STATUS_IGNORE);
        watch_check(&watches[kind], "freed communicator");
        watch_free(&watches[kind]);
    }
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
enum { LARGE = 5 << 20 }; /* elements: memory for so many is mapped, and returned at once */

static struct rlimit limit;

static void add_in_order(void *in, void *inout, int *length, MPI_Datatype *type)
{
    (void) type;
    for (int k = 0; k < *length; k++) {
        ((int *) inout)[k] += ((int *) in)[k];
    }
}

/* From now on no memory can be mapped: what comes behind the producer has none. */
static int produce_and_use_up(const MPIX_Flash_block *block, void *arg)
{
    struct rlimit none = {0, limit.rlim_max};

    (void) arg;
    memset(block->data, 0, (size_t) block->count * sizeof(int));
    setrlimit(RLIMIT_AS, &none);
    return MPI_SUCCESS;
}

static size_t mapped_bytes(void)
{
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");

    check(file != NULL && fscanf(file, "%lu", &pages) == 1, "/proc/self/statm");
    if (file != NULL) {
        fclose(file);
    }
    return pages * (size_t) sysconf(_SC_PAGESIZE);
}

static void fail_in_collective(int kind, int *recv, const int counts[], MPI_Op op, MPI_Comm comm)
{
    static const char *const names[] = {"Ireduce_scatter_block_compute", "Ireduce_scatter_compute",
                                        "Iallreduce_compute"};
    MPI_Request request = MPI_REQUEST_NULL;
    size_t before = mapped_bytes(), after;
    int error;

    handler_calls = 0;
    getrlimit(RLIMIT_AS, &limit);
    switch (kind) {
    case 0:
        error = MPIX_Ireduce_scatter_block_compute(produce_and_use_up, NULL, NULL, recv, LARGE,
                                                   MPI_INT, op, comm, &request);
        break;
    case 1:
        error = MPIX_Ireduce_scatter_compute(produce_and_use_up, NULL, NULL, recv, counts, MPI_INT,
                                             op, comm, &request);
        break;
    default:
        error = MPIX_Iallreduce_compute(produce_and_use_up, NULL, NULL, NULL, NULL, recv,
                                        world_size * LARGE, MPI_INT, op, comm, &request);
    }
    setrlimit(RLIMIT_AS, &limit);
    after = mapped_bytes();
    check(error != MPI_SUCCESS, "%s begins without memory", names[kind]);
    check(handler_calls == 1 && handler_error == error && handler_comm == comm,
          "%s: error handler called %d times, with %d instead of %d", names[kind], handler_calls,
          handler_error, error);
    check(after < before + LARGE * sizeof(int), "%s: %zu bytes before, %zu after", names[kind],
          before, after);
}

/* The error handler is called once, and what has been allocated is freed. */
static void plain_collective_fails(void)
{
    int *recv = get_memory((size_t) world_size * LARGE * sizeof(int));
    int *counts = get_memory((size_t) world_size * sizeof(int));
    watch_options_t options = {.count = 5000};
    MPI_Comm comm;
    MPI_Op op;

    if (world_size == 1) { /* a copy, without memory of its own */
        free(recv);
        free(counts);
        return;
    }
    for (int rank = 0; rank < world_size; rank++) {
        counts[rank] = LARGE;
    }
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, counting_handler());
    MPI_Op_create(add_in_order, 0, &op); /* not for rings */
    for (int kind = 0; kind < 3; kind++) {
        fail_in_collective(kind, recv, counts, op, comm);
    }
    handler_calls = 0;
    watch_one(WATCH_ALLGATHER, comm, &options, "behind calls that failed");
    check(handler_calls == 0, "the next operation fails");
    MPI_Op_free(&op);
    MPI_Comm_free(&comm);
    free(recv);
    free(counts);
}
#else
static void plain_collective_fails(void)
{
} /* sanitizers need memory of their own */
#endif

TEST_PROGRAM(test_extension_ends, MPI_THREAD_SINGLE, {"free_active", free_active},
             {"free_communicators", free_communicators},
             {"plain_collective_fails", plain_collective_fails});
