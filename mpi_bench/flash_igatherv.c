/*
 * flash_igatherv.c: MPI_Igatherv of equal blocks, alone and under computation. See coll_main.c.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "coll_operation.h"

static int start(const coll_data_t *data, MPI_Comm comm, MPI_Request *request)
{
    return MPI_Igatherv(data->send, data->count, data->type, data->recv, data->counts, data->displs,
                        data->type, COLL_ROOT, comm, request);
}

static int block(const coll_data_t *data, MPI_Comm comm)
{
    return MPI_Gatherv(data->send, data->count, data->type, data->recv, data->counts, data->displs,
                       data->type, COLL_ROOT, comm);
}

coll_operation_t coll_operation = {.program = "flash_igatherv",
                                   .call = "MPI_Igatherv",
                                   .collects = true,
                                   .equal = true,
                                   .start = start,
                                   .block = block};
