/*
 * flash_iallgatherv.c: MPI_Iallgatherv, alone and under computation. See coll_main.c.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "coll_operation.h"

static int start(const coll_data_t *data, MPI_Comm comm, MPI_Request *request)
{
    return MPI_Iallgatherv(data->send, data->count, data->type, data->recv, data->counts,
                           data->displs, data->type, comm, request);
}

static int block(const coll_data_t *data, MPI_Comm comm)
{
    return MPI_Allgatherv(data->send, data->count, data->type, data->recv, data->counts,
                          data->displs, data->type, comm);
}

coll_operation_t coll_operation = {.program = "flash_iallgatherv",
                                   .call = "MPI_Iallgatherv",
                                   .reduces = false,
                                   .equal = true,
                                   .start = start,
                                   .block = block};
