/*
 * coll_flash_buffer.c: what a call's buffers hold, and who adds in them.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "calls/coll_flash_calls.h"

#include "device/flash_stager.h"

/* As a kernel needs it; copies need nothing. */
static bool is_aligned(const void *address, MPI_Datatype type)
{
    size_t size;

    ompi_datatype_type_size(type, &size);
    return (uintptr_t) address % size == 0;
}

void mca_coll_flash_add_on_device(const mca_coll_flash_request_t *request, const void *input,
                                  const void *output)
{
    flash_gpu_operator_t operation;
    flash_gpu_type_t type;
    bool on_device = request->kind != FLASH_PAIRWISE_REDUCE_SCATTER &&
                     mca_coll_flash_params.cuda_reduce && request->stager != NULL &&
                     is_aligned(input, request->datatype) &&
                     is_aligned(output, request->datatype) &&
                     mca_coll_flash_kernel_of(request->op, request->datatype, &operation, &type) &&
                     flash_stager_add_by(request->stager, output, operation, type);

    if (request->stager != NULL) {
        FLASH_VERBOSE(2, "coll:flash: sums are made %s",
                      on_device ? "on the device" : "by the host");
    }
}

static ptrdiff_t true_lb_of(MPI_Datatype type)
{
    ptrdiff_t true_lb, true_extent;

    ompi_datatype_get_true_extent(type, &true_lb, &true_extent);
    return true_lb;
}

const void *mca_coll_flash_first_data(const void *recvbuf, flash_count_t recvcount,
                                      flash_counts_t recvcounts, flash_displs_t displs,
                                      MPI_Datatype recvtype, int blocks)
{
    ptrdiff_t extent, displ = 0;
    size_t size;
    int block = 0;

    ompi_datatype_type_size(recvtype, &size);
    ompi_datatype_type_extent(recvtype, &extent);
    while (block < blocks && (recvcounts == NULL ? recvcount : recvcounts[block]) == 0) {
        block++;
    }
    if (block == blocks || size == 0) {
        return NULL;
    }
    if (displs != NULL) {
        displ = displs[block];
    }
    return (const char *) recvbuf + displ * extent + true_lb_of(recvtype);
}

bool mca_coll_flash_is_solid(MPI_Datatype type)
{
    size_t size;
    ptrdiff_t lb, extent, true_lb, true_extent;

    ompi_datatype_type_size(type, &size);
    ompi_datatype_get_extent(type, &lb, &extent);
    ompi_datatype_get_true_extent(type, &true_lb, &true_extent);
    return size > 0 && lb == 0 && true_lb == 0 && extent == (ptrdiff_t) size &&
           ompi_datatype_is_contiguous_memory_layout(type, 2);
}
