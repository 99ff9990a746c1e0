/*
 * flash_iscatterv.c: MPI_Iscatterv of equal blocks, alone and under computation. See coll_main.c.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "coll_operation.h"

static int start(const coll_data_t *data, MPI_Comm comm, MPI_Request *request)
{
    return MPI_Iscatterv(data->send, data->counts, data->displs, data->type, data->recv,
                         data->count, data->type, COLL_ROOT, comm, request);
}

static int block(const coll_data_t *data, MPI_Comm comm)
{
    return MPI_Scatterv(data->send, data->counts, data->displs, data->type, data->recv, data->count,
                        data->type, COLL_ROOT, comm);
}

coll_operation_t coll_operation = {.program = "flash_iscatterv",
                                   .call = "MPI_Iscatterv",
                                   .deals = true,
                                   .equal = true,
                                   .start = start,
                                   .block = block};
