/*
 * flash_ialltoallv.c: MPI_Ialltoallv of equal blocks, alone and under computation. See coll_main.c.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "coll_operation.h"

static int start(const coll_data_t *data, MPI_Comm comm, MPI_Request *request)
{
    return MPI_Ialltoallv(data->send, data->counts, data->displs, data->type, data->recv,
                          data->counts, data->displs, data->type, comm, request);
}

static int block(const coll_data_t *data, MPI_Comm comm)
{
    return MPI_Alltoallv(data->send, data->counts, data->displs, data->type, data->recv,
                         data->counts, data->displs, data->type, comm);
}

coll_operation_t coll_operation = {.program = "flash_ialltoallv",
                                   .call = "MPI_Ialltoallv",
                                   .exchanges = true,
                                   .equal = true,
                                   .start = start,
                                   .block = block};
