/*
 * flash_iallgather.c: MPI_Iallgather, alone and under computation. See coll_main.c.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "coll_operation.h"

static int start(const coll_data_t *data, MPI_Comm comm, MPI_Request *request)
{
    return MPI_Iallgather(data->send, data->count, data->type, data->recv, data->count, data->type,
                          comm, request);
}

static int block(const coll_data_t *data, MPI_Comm comm)
{
    return MPI_Allgather(data->send, data->count, data->type, data->recv, data->count, data->type,
                         comm);
}

coll_operation_t coll_operation = {.program = "flash_iallgather",
                                   .call = "MPI_Iallgather",
                                   .reduces = false,
                                   .equal = true,
                                   .start = start,
                                   .block = block};
