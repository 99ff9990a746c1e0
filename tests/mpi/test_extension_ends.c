/*
 * test_extension_ends.c: requests of <mpix_flash.h> that are freed, or whose communicator is, while
 * they are under way.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "extension.h"

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

TEST_PROGRAM(test_extension_ends, MPI_THREAD_SINGLE, {"free_active", free_active},
             {"free_communicators", free_communicators});
