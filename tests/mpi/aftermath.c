/*
 * aftermath.c: see aftermath.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "aftermath.h"

#include "extension.h"

MPI_Comm make_counted_comm(void)
{
    MPI_Comm comm;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, counting_handler());
    handler_calls = 0;
    return comm;
}

void next_works(MPI_Comm comm, const char *what)
{
    watch_options_t options = {.count = 50, .salt = 9};

    handler_calls = 0;
    for (int kind = 0; kind < WATCH_KINDS; kind++) {
        watch_one((watch_kind_t) kind, comm, &options, what);
    }
    check(handler_calls == 0, "%s: the next operation fails", what);
}
