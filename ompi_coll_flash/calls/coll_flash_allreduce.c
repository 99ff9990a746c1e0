/*
 * coll_flash_allreduce.c: an allreduce's arguments to a ring's: a reduce-scatter whose sums go on
 * around the ring once more.
 *
 * The vector is cut into as many blocks as there are ranks, of whole rows, and each stands for the
 * rank of its number.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "calls/coll_flash_calls.h"

flash_range_t mca_coll_flash_allreduce_block(size_t count, size_t row, int ranks, int rank)
{
    /* A vector is cut into blocks as a block is into pieces. */
    flash_schedule_t vector = {.ring = {.nranks = 2},
                               .pieces = (uint32_t) ranks,
                               .row = row,
                               .segment_elements = SIZE_MAX,
                               .blocks = {.count = count}};
    flash_split_t split = flash_schedule_split(&vector, 0);

    return (uint32_t) rank < split.pieces ? flash_split_piece(&split, (uint32_t) rank)
                                          : (flash_range_t){.offset = count, .count = 0};
}

static int cut(mca_coll_flash_request_t *request, size_t count, flash_blocks_t *blocks)
{
    int size = ompi_comm_size(request->module->comm);
    size_t row = request->compute.row > 1 ? (size_t) request->compute.row : 1;

    if (mca_coll_flash_request_blocks(request, 1, blocks) != MPI_SUCCESS) {
        return MPI_ERR_NO_MEM;
    }
    for (int rank = 0; rank < size; rank++) {
        flash_range_t range = mca_coll_flash_allreduce_block(count, row, size, rank);

        request->counts[rank] = range.count;
        request->displs[rank] = (ptrdiff_t) range.offset;
    }
    return MPI_SUCCESS;
}

static int place(mca_coll_flash_request_t *request, void *recvbuf, size_t count,
                 flash_op_params_t *params)
{
    bool on_device = count > 0 && mca_coll_flash_is_on_device(recvbuf);
    bool produces = count > 0 && request->compute.on_stream;
    int rc = cut(request, count, &params->schedule.blocks);

    params->output = recvbuf;
    if (rc == MPI_SUCCESS && count > 0) {
        rc = mca_coll_flash_check_buffer(recvbuf);
    }
    if (rc == MPI_SUCCESS) {
        rc = mca_coll_flash_stage(request, NULL, on_device ? recvbuf : NULL, produces, false);
    }
    if (rc == MPI_SUCCESS) {
        mca_coll_flash_add_on_device(request, NULL, on_device ? recvbuf : NULL);
    }
    return rc;
}

int mca_coll_flash_start_allreduce(mca_coll_flash_module_t *module, mca_coll_flash_ticket_t ticket,
                                   void *recvbuf, flash_count_t count, MPI_Datatype datatype,
                                   MPI_Op op, const mca_coll_flash_compute_t *compute,
                                   ompi_request_t **request)
{
    mca_coll_flash_request_t *made = mca_coll_flash_request_new(module, ticket, FLASH_ALLREDUCE);
    flash_op_params_t params = {.input = NULL};
    int rc;

    if (made == NULL) {
        return MPI_ERR_NO_MEM;
    }
    made->compute = *compute;
    mca_coll_flash_reduce_by(made, datatype, op, &params);
    rc = place(made, recvbuf, params.element == 0 ? 0 : (size_t) count, &params);
    if (rc != MPI_SUCCESS) {
        return mca_coll_flash_request_refuse(made, rc, request);
    }
    return mca_coll_flash_request_start(made, &params, request);
}
