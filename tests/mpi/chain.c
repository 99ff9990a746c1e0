/*
 * chain.c: see chain.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "chain.h"

#include "aftermath.h"

/* Whether another rank's lack has come to this one. */
static bool run(const char *name, int root, int lacking, int count, chain_start_fn *start,
                chain_right_fn *right, MPI_Comm comm)
{
    bool lacks = world_rank == lacking;
    MPI_Request request = MPI_REQUEST_NULL;
    int error = start(root, count, lacks, comm, &request), class;

    if (error == MPI_SUCCESS) {
        error = MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Error_class(error, &class);
    if (lacks) {
        check(class == MPI_ERR_BUFFER, "%s to root %d, without a buffer: class %d", name, root,
              class);
        return false;
    }
    check(class == MPI_ERR_OTHER || class == MPI_SUCCESS,
          "%s to root %d, rank %d lacks its buffer: class %d", name, root, lacking, class);
    check(class != MPI_SUCCESS || right(root, count),
          "%s to root %d, rank %d lacks its buffer: no error, and a wrong result", name, root,
          lacking);
    return class == MPI_ERR_OTHER;
}

void chain_refuse(const char *name, int count, chain_start_fn *start, chain_right_fn *right,
                  int misses, bool may)
{
    MPI_Comm comm = make_counted_comm();
    int failed = 0, all;

    for (int root = 0; root < world_size; root++) {
        for (int lacking = 0; lacking < world_size; lacking++) {
            failed += run(name, root, lacking, count, start, right, comm);
        }
    }
    MPI_Allreduce(&failed, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    check(all == misses || (may && all > misses), "%s of %d: %d calls fail on other ranks, not %d",
          name, count, all, misses);
    next_works(comm, "after a buffer that was not there");
    MPI_Comm_free(&comm);
}
