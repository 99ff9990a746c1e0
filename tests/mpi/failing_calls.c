/*
 * failing_calls.c: operations that are to fail, and those after them.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "failing.h"

MPI_Comm failing_make_comm(bool reversed)
{
    MPI_Comm comm;

    MPI_Comm_split(MPI_COMM_WORLD, 0, reversed ? -world_rank : world_rank, &comm);
    MPI_Comm_set_errhandler(comm, counting_handler());
    handler_calls = 0;
    return comm;
}

void failing_next_works(MPI_Comm comm, const char *what)
{
    watch_options_t options = {.count = COUNT, .salt = 3};

    handler_calls = 0;
    for (int kind = 0; kind < WATCH_KINDS; kind++) {
        watch_one((watch_kind_t) kind, comm, &options, what);
    }
    check(handler_calls == 0, "%s: the next operation fails", what);
}

bool failing_gives_up;

/*
 * Where a neighbour is given up that is there, UCX may still write to, and read, the buffers of
 * what failed: they stay until MPI_Finalize (docs/internals/fault-tolerance.md).
 */
static watch_t kept[64];
static int keeps;

static void free_kept(void)
{
    while (keeps > 0) {
        watch_free(&kept[--keeps]);
    }
}

void failing_keep(const watch_t *watch)
{
    if (keeps == 0) {
        atexit(free_kept);
    }
    if (keeps < (int) (sizeof(kept) / sizeof(kept[0]))) {
        kept[keeps++] = *watch;
    }
}

void failing_call(watch_kind_t kind, MPI_Comm comm, const watch_options_t *options, int class,
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
    if (failing_gives_up) {
        failing_keep(&watch);
    } else {
        watch_free(&watch);
    }
}

void failing_one(watch_kind_t kind, MPI_Comm comm, int class, const char *what)
{
    failing_call(kind, comm, &(watch_options_t){.count = COUNT}, class, what);
}
