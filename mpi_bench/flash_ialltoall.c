/*
 * flash_ialltoall.c: MPI_Ialltoall, alone and under computation. See coll_main.c.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "coll_operation.h"

static int start(const coll_data_t *data, MPI_Comm comm, MPI_Request *request)
{
    return MPI_Ialltoall(data->send, data->count, data->type, data->recv, data->count, data->type,
                         comm, request);
}

static int block(const coll_data_t *data, MPI_Comm comm)
{
    return MPI_Alltoall(data->send, data->count, data->type, data->recv, data->count, data->type,
                        comm);
}

coll_operation_t coll_operation = {.program = "flash_ialltoall",
                                   .call = "MPI_Ialltoall",
                                   .exchanges = true,
                                   .equal = true,
                                   .start = start,
                                   .block = block};
