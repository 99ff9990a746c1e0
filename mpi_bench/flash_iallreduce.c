/*
 * flash_iallreduce.c: MPI_Iallreduce, alone and under computation. See coll_main.c.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "coll_operation.h"

static int start(const coll_data_t *data, MPI_Comm comm, MPI_Request *request)
{
    return MPI_Iallreduce(data->send, data->recv, data->total, data->type, MPI_SUM, comm, request);
}

static int block(const coll_data_t *data, MPI_Comm comm)
{
    return MPI_Allreduce(data->send, data->recv, data->total, data->type, MPI_SUM, comm);
}

coll_operation_t coll_operation = {.program = "flash_iallreduce",
                                   .call = "MPI_Iallreduce",
                                   .reduces = true,
                                   .everywhere = true,
                                   .equal = false,
                                   .start = start,
                                   .block = block};
