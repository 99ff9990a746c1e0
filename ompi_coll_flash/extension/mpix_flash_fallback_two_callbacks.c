/*
 * mpix_flash_fallback_two_callbacks.c: allreduces and all-to-alls where flash's rings do not serve
 * the communicator; these reach no device's memory.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "extension/mpix_flash_fallback.h"

#include <stdlib.h>
#include <string.h>

#include "calls/flash_fallback.h"
#include "device/flash_device.h"
#include "device/flash_stager.h"

/* Whether a buffer that is not empty is there, and the processor's. */
static int check_near(const void *buffer, size_t bytes)
{
    if (bytes == 0) {
        return MPI_SUCCESS;
    }
    if (flash_device_owns(buffer)) {
        return mca_coll_flash_refuse_device(
            "where no ring serves the communicator, this call cannot reach it");
    }
    return mca_coll_flash_check_buffer(buffer);
}

/*
 * Where this rank's buffer cannot be written to, the result goes to memory that nobody reads: in
 * place, libnbc would choose another algorithm here than on the other ranks.
 */
static int find_output(flash_fallback_t *fallback, void *recvbuf, size_t count, size_t element)
{
    ptrdiff_t gap;
    size_t bytes = (size_t) opal_datatype_span(&fallback->datatype->super, count, &gap);
    int rc = check_near(recvbuf, count * element);

    fallback->output = recvbuf;
    if (rc != MPI_SUCCESS) {
        flash_fallback_fail(fallback, rc);
        fallback->unread = malloc(bytes);
        fallback->output = (char *) fallback->unread - gap;
    }
    return rc == MPI_SUCCESS || fallback->unread != NULL ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

int flash_fallback_allreduce(const mca_coll_flash_compute_t *compute, void *recvbuf, int count,
                             MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, MPI_Request *request)
{
    flash_fallback_t *fallback =
        flash_fallback_make_without(FLASH_ALLREDUCE, compute, datatype, comm);
    uint32_t size = (uint32_t) ompi_comm_size(comm);
    size_t element;
    int rc;

    if (fallback == NULL) {
        return MPI_ERR_NO_MEM;
    }
    ompi_datatype_type_size(datatype, &element);
    for (uint32_t rank = 0; rank < size; rank++) {
        flash_range_t range = mca_coll_flash_allreduce_block(
            element > 0 ? (size_t) count : 0, fallback->schedule.row, (int) size, (int) rank);

        fallback->counts[rank] = range.count;
        fallback->displs[rank] = (ptrdiff_t) range.offset;
    }
    rc = flash_fallback_allocate_contribution(fallback);
    if (rc == MPI_SUCCESS) {
        rc = find_output(fallback, recvbuf, (size_t) count, element);
    }
    if (rc != MPI_SUCCESS) {
        flash_fallback_drop(fallback);
        return rc;
    }
    flash_fallback_produce_or_miss(fallback);
    fallback->reported = flash_fallback_has_failed(fallback);
    rc = flash_fallback_begin_allreduce(fallback->input, fallback->output, count, datatype, op,
                                        comm, &fallback->inner[0]);
    return flash_fallback_begin_report(fallback, rc, request);
}

/* Of one side's blocks: the first element, and behind the last. */
static void find_ends(const flash_fallback_t *fallback, uint32_t first, ptrdiff_t *begin,
                      ptrdiff_t *end)
{
    *begin = *end = 0;
    for (uint32_t block = first; block < first + fallback->schedule.ring.nranks; block++) {
        ptrdiff_t displ = fallback->displs[block], count = (ptrdiff_t) fallback->counts[block];

        if (count > 0) {
            *begin = displ < *begin ? displ : *begin;
            *end = displ + count > *end ? displ + count : *end;
        }
    }
}

/* The same counts as integers, but for the own block, which need not fit. */
static const int *without_own(const flash_fallback_t *fallback, const int counts[], int copy[])
{
    memcpy(copy, counts, fallback->schedule.ring.nranks * sizeof(*copy));
    copy[fallback->schedule.ring.place] = 0;
    return copy;
}

/* Zeros, as much as goes out and as comes in: for who cannot take part by its own buffers. */
static int stand_in(flash_fallback_t *fallback, mca_coll_flash_alltoall_t *a)
{
    uint32_t ranks = fallback->schedule.ring.nranks;
    ptrdiff_t begins[2], ends[2];
    size_t room;
    int *counts;

    if (a->recvcounts == NULL) {
        a->sendcount = a->recvcount;
        flash_fallback_set_blocks(fallback, ranks, a->sendcount, NULL, NULL);
    }
    find_ends(fallback, 0, &begins[0], &ends[0]);
    find_ends(fallback, ranks, &begins[1], &ends[1]);
    room = (size_t) (ends[0] - begins[0] + ends[1] - begins[1]) * (size_t) fallback->extent;
    fallback->contribution = calloc(1, room + FLASH_APART + 2 * ranks * sizeof(*counts));
    if (fallback->contribution == NULL) {
        return MPI_ERR_NO_MEM;
    }
    counts = fallback->contribution;
    a->recvbuf = (char *) (counts + 2 * ranks) - begins[0] * fallback->extent;
    a->sendbuf = (char *) a->recvbuf + (ends[0] - begins[1]) * fallback->extent + FLASH_APART;
    if (a->recvcounts != NULL) {
        a->recvcounts = without_own(fallback, a->recvcounts, counts);
        a->sendcounts = without_own(fallback, a->sendcounts, counts + ranks);
    }
    return MPI_SUCCESS;
}

/* Without memory: the others wait for what this rank has for them, and for its report. */
static int exchange_at_least(const mca_coll_flash_alltoall_t *a, MPI_Comm comm)
{
    MPI_Request request;
    int rc = flash_fallback_begin_alltoall(a, comm, &request);

    return rc == MPI_SUCCESS ? flash_fallback_wait_and_report(&request, true, comm) : rc;
}

static int check_buffers(const mca_coll_flash_alltoall_t *a, MPI_Comm comm)
{
    int rc = mca_coll_flash_alltoall_fits(a, comm);

    if (rc == MPI_SUCCESS) {
        rc = check_near(a->sendbuf,
                        mca_coll_flash_bytes(a->sendcount, a->sendcounts, a->sendtype, comm));
    }
    return rc != MPI_SUCCESS
               ? rc
               : check_near(a->recvbuf,
                            mca_coll_flash_bytes(a->recvcount, a->recvcounts, a->recvtype, comm));
}

/* Of one address are buffers of which one is empty, and may lie anywhere. */
static void part_buffers(mca_coll_flash_alltoall_t *a, MPI_Comm comm)
{
    static char nowhere;

    if (a->sendbuf != a->recvbuf) {
        return;
    }
    if (mca_coll_flash_bytes(a->recvcount, a->recvcounts, a->recvtype, comm) == 0) {
        a->recvbuf = &nowhere;
    } else if (mca_coll_flash_bytes(a->sendcount, a->sendcounts, a->sendtype, comm) == 0) {
        a->sendbuf = &nowhere;
    }
}

int flash_fallback_alltoall(const mca_coll_flash_compute_t *compute,
                            const mca_coll_flash_alltoall_t *arguments, MPI_Comm comm,
                            MPI_Request *request)
{
    mca_coll_flash_alltoall_t a = *arguments;
    flash_fallback_t *fallback =
        flash_fallback_make_without(FLASH_ALLTOALL, compute, a.recvtype, comm);
    int rc;

    part_buffers(&a, comm);
    if (fallback == NULL) {
        return exchange_at_least(&a, comm);
    }
    fallback->sendtype = a.sendtype;
    flash_fallback_set_blocks(fallback, 0, a.recvcount, a.recvcounts, a.rdispls);
    flash_fallback_set_blocks(fallback, fallback->schedule.ring.nranks, a.sendcount, a.sendcounts,
                              a.sdispls);
    rc = check_buffers(&a, comm);
    flash_fallback_fail(fallback, rc);
    fallback->input = a.sendbuf;
    fallback->output = a.recvbuf;
    if (rc == MPI_SUCCESS && compute->produce != NULL &&
        flash_schedule_pieces(&fallback->schedule, FLASH_PRODUCED) > 0) {
        flash_fallback_produce_there(fallback);
    }
    rc = rc == MPI_SUCCESS ? rc : stand_in(fallback, &a);
    if (rc != MPI_SUCCESS) {
        flash_fallback_drop(fallback);
        return rc;
    }
    fallback->reported = flash_fallback_has_failed(fallback);
    return flash_fallback_begin_report(
        fallback, flash_fallback_begin_alltoall(&a, comm, &fallback->inner[0]), request);
}
