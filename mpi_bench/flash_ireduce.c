/*
 * flash_ireduce.c: MPI_Ireduce, alone and under computation. See coll_main.c.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "coll_operation.h"

static int start(const coll_data_t *data, MPI_Comm comm, MPI_Request *request)
{
    return MPI_Ireduce(data->send, data->recv, data->total, data->type, MPI_SUM, COLL_ROOT, comm,
                       request);
}

static int block(const coll_data_t *data, MPI_Comm comm)
{
    return MPI_Reduce(data->send, data->recv, data->total, data->type, MPI_SUM, COLL_ROOT, comm);
}

coll_operation_t coll_operation = {.program = "flash_ireduce",
                                   .call = "MPI_Ireduce",
                                   .reduces = true,
                                   .everywhere = true,
                                   .rooted = true,
                                   .equal = false,
                                   .start = start,
                                   .block = block};
