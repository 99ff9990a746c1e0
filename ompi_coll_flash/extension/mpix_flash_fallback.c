/*
 * mpix_flash_fallback.c: see mpix_flash_fallback.h.
 *
 * Collectives of one communicator match in the order in which they are called, so that the plain
 * collective must begin inside the extension's call. What there is to produce is produced before
 * it, inside the call, then; consumers are called when the collective is complete.
 *
 * A rank that fails has nothing to contribute, and the plain collective cannot tell the others: a
 * second, tiny reduction goes along that does. It does so even where this rank has nothing to
 * produce: whether another rank has (`own`, an all-to-all's producer) is that rank's own affair.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "extension/mpix_flash_fallback.h"

#include <stdlib.h>
#include <string.h>

#include "calls/flash_fallback.h"
#include "device/flash_device.h"
#include "device/flash_stager.h"

/* What comes before it: NULL if there is no stream. */
static const flash_stager_order_t *order_of(const mca_coll_flash_compute_t *compute, bool produces,
                                            flash_stager_order_t *order)
{
    *order = (flash_stager_order_t){.stream = compute->stream, .produces = produces};
    return compute->on_stream ? order : NULL;
}

/* Without blocks. */
flash_fallback_t *flash_fallback_make_without(flash_kind_t kind,
                                              const mca_coll_flash_compute_t *compute,
                                              MPI_Datatype datatype, MPI_Comm comm)
{
    flash_fallback_t *fallback = flash_fallback_new(comm);
    size_t size = (size_t) ompi_comm_size(comm);
    size_t blocks = kind == FLASH_ALLTOALL ? 2 * size : size;

    mca_coll_flash_free_deferred();
    if (fallback == NULL) {
        return NULL;
    }
    fallback->compute = *compute;
    fallback->datatype = datatype;
    ompi_datatype_type_extent(datatype, &fallback->extent);
    fallback->counts = malloc(blocks * sizeof(*fallback->counts));
    fallback->displs = malloc(blocks * sizeof(*fallback->displs));
    if (fallback->counts == NULL || fallback->displs == NULL) {
        flash_fallback_drop(fallback);
        return NULL;
    }
    fallback->schedule = (flash_schedule_t){
        .kind = kind,
        .ring = {.nranks = (uint32_t) size, .place = (uint32_t) ompi_comm_rank(comm)},
        .pieces = compute->pieces > 1 ? (uint32_t) compute->pieces : 1,
        .row = compute->row > 1 ? (size_t) compute->row : 1,
        .segment_elements = SIZE_MAX,
        .blocks = {.counts = fallback->counts, .displs = fallback->displs},
        .out = {.counts = fallback->counts + size, .displs = fallback->displs + size}};
    return fallback;
}

/* `first`: the first of the ranks' blocks in the schedule. counts == NULL: equal ones of `count`.
 */
void flash_fallback_set_blocks(flash_fallback_t *fallback, uint32_t first, int count,
                               const int counts[], const int displs[])
{
    ptrdiff_t next = 0;
    size_t element;

    ompi_datatype_type_size(fallback->datatype, &element);
    for (uint32_t rank = 0; rank < fallback->schedule.ring.nranks; rank++) {
        count = counts != NULL ? counts[rank] : count;
        fallback->counts[first + rank] = element > 0 ? (size_t) count : 0;
        fallback->displs[first + rank] = displs != NULL ? displs[rank] : next;
        next += count;
    }
}

static flash_fallback_t *make(flash_kind_t kind, const mca_coll_flash_compute_t *compute, int count,
                              const int counts[], const int displs[], MPI_Datatype datatype,
                              MPI_Comm comm)
{
    flash_fallback_t *fallback = flash_fallback_make_without(kind, compute, datatype, comm);

    if (fallback != NULL) {
        flash_fallback_set_blocks(fallback, 0, count, counts, displs);
    }
    return fallback;
}

/* Bytes for all blocks; where they begin, from the address of element 0 on. */
static size_t contribution_size(const flash_fallback_t *fallback, ptrdiff_t *first)
{
    ptrdiff_t begin = PTRDIFF_MAX, end = PTRDIFF_MIN, gap = 0;
    size_t bytes;

    for (uint32_t rank = 0; rank < fallback->schedule.ring.nranks; rank++) {
        ptrdiff_t displ = fallback->displs[rank], count = (ptrdiff_t) fallback->counts[rank];

        if (count > 0) {
            begin = displ < begin ? displ : begin;
            end = displ + count > end ? displ + count : end;
        }
    }
    *first = 0;
    if (begin > end) {
        return 0;
    }
    bytes = (size_t) opal_datatype_span(&fallback->datatype->super, (size_t) (end - begin), &gap);
    *first = begin * fallback->extent + gap;
    return bytes;
}

/*
 * Room for all blocks, as well aligned as malloc()'s. The data of an element may begin before or
 * behind its address.
 */
int flash_fallback_allocate_contribution(flash_fallback_t *fallback)
{
    const ptrdiff_t align = _Alignof(max_align_t);
    ptrdiff_t first;
    size_t bytes = contribution_size(fallback, &first);
    ptrdiff_t before = (first % align + align) % align; /* to a multiple of `align` below */

    fallback->contribution = calloc(1, (size_t) before + bytes + 1);
    fallback->input = (char *) fallback->contribution + before - first;
    return fallback->contribution == NULL ? MPI_ERR_NO_MEM : MPI_SUCCESS;
}

/* In the order of a stream: what is produced lies on its device, and is fetched when all is done.
 */
static int produce_on_device(flash_fallback_t *fallback)
{
    flash_stager_order_t order;
    char *input = fallback->input;
    ptrdiff_t first;
    size_t bytes = contribution_size(fallback, &first);
    void *on_device;
    int rc = mca_coll_flash_open_stager(NULL, NULL, order_of(&fallback->compute, true, &order),
                                        &fallback->stager);

    if (rc != MPI_SUCCESS || bytes == 0) {
        return rc;
    }
    if (flash_stager_make_pieces(fallback->stager, bytes, &on_device) != FLASH_OK) {
        mca_coll_flash_tell_device_failed();
        return MPI_ERR_OTHER;
    }
    fallback->input = (char *) on_device - first;
    flash_fallback_produce(fallback);
    fallback->input = input;
    if (!flash_stager_fetch_pieces(fallback->stager, input + first, bytes)) {
        mca_coll_flash_tell_device_failed();
        return MPI_ERR_OTHER;
    }
    return MPI_SUCCESS;
}

/* What it cannot produce, it takes part without. */
void flash_fallback_produce_or_miss(flash_fallback_t *fallback)
{
    if (fallback->compute.on_stream) {
        flash_fallback_fail(fallback, produce_on_device(fallback));
    } else {
        flash_fallback_produce(fallback);
    }
}

static int wait_for_stream(flash_fallback_t *fallback)
{
    flash_stager_order_t order;
    int rc = mca_coll_flash_open_stager(NULL, NULL, order_of(&fallback->compute, true, &order),
                                        &fallback->stager);

    if (rc == MPI_SUCCESS && !flash_stager_wait(fallback->stager)) {
        mca_coll_flash_tell_device_failed();
        rc = MPI_ERR_OTHER;
    }
    return rc;
}

/* Where the user's memory is, and maybe in the order of a stream. */
void flash_fallback_produce_there(flash_fallback_t *fallback)
{
    flash_fallback_produce(fallback);
    if (fallback->compute.on_stream) {
        flash_fallback_fail(fallback, wait_for_stream(fallback));
    }
}

/* Into the send buffer, or its place in the receive buffer. */
static void produce_own(flash_fallback_t *fallback, const mca_coll_flash_arguments_t *a)
{
    bool in_place = a->sendbuf == MPI_IN_PLACE;
    uint32_t rank = fallback->schedule.ring.place;
    ptrdiff_t displ = fallback->displs[rank] * fallback->extent;
    size_t own = fallback->counts[rank] * (size_t) fallback->extent, given = own;

    if (fallback->counts[rank] == 0) {
        return;
    }
    if (!mca_coll_flash_may_write_own(a->sendbuf, a->sendtype, a->recvtype)) {
        flash_fallback_fail(fallback, MPI_ERR_TYPE);
        return;
    }
    if (!in_place) {
        ompi_datatype_type_size(a->sendtype, &given);
        given *= (size_t) a->sendcount;
    }
    if (given != own) {
        flash_fallback_fail(fallback, MPI_ERR_TRUNCATE);
        return;
    }
    fallback->input = in_place ? fallback->output + displ : (char *) (uintptr_t) a->sendbuf;
    flash_fallback_produce_there(fallback);
}

/*
 * Before the plain collective, which may know no device's memory. What is not to be had, this rank
 * takes part without, by zeros in memory of the host: the others are told.
 */
static int bounce(flash_fallback_t *fallback, mca_coll_flash_arguments_t *a,
                  struct flash_fallback **bounced)
{
    flash_stager_order_t order;
    int rc =
        mca_coll_flash_bounce(a, fallback->handle.super.super.req_mpi_object.comm, FLASH_FALLBACK,
                              order_of(&fallback->compute, false, &order), bounced);

    flash_fallback_fail(fallback, rc);
    if (rc != MPI_SUCCESS) {
        rc = fallback->contribution == NULL ? flash_fallback_allocate_contribution(fallback)
                                            : MPI_SUCCESS;
        a->sendbuf = MPI_IN_PLACE;
        a->recvbuf = fallback->input;
    }
    fallback->reported = flash_fallback_has_failed(fallback);
    return rc;
}

/*
 * A collective that is under way keeps its buffers: where its report has not begun, they are given
 * up rather than freed.
 */
int flash_fallback_begin_report(flash_fallback_t *fallback, int rc, MPI_Request *request)
{
    if (rc != MPI_SUCCESS) {
        flash_fallback_drop(fallback);
        return rc;
    }
    rc = flash_fallback_begin_allreduce(&fallback->reported, &fallback->worst, 1, MPI_INT, MPI_MAX,
                                        fallback->handle.super.super.req_mpi_object.comm,
                                        &fallback->inner[1]);
    if (rc == MPI_SUCCESS) {
        flash_fallback_enlist(fallback, request);
    }
    return rc;
}

static int begin(flash_fallback_t *fallback, mca_coll_flash_arguments_t *arguments,
                 MPI_Request *request)
{
    struct flash_fallback *bounced;
    int rc = bounce(fallback, arguments, &bounced);

    if (rc != MPI_SUCCESS) {
        flash_fallback_drop(fallback);
        return rc;
    }
    rc = flash_fallback_begin_collective(
        arguments, fallback->handle.super.super.req_mpi_object.comm, &fallback->inner[0]);
    rc = mca_coll_flash_bounce_started(bounced, rc, &fallback->inner[0]);
    return flash_fallback_begin_report(fallback, rc, request);
}

/* Completes a collective that is under way, and tells the others whether this rank failed them. */
int flash_fallback_wait_and_report(MPI_Request *collective, int missing, MPI_Comm comm)
{
    MPI_Request report;
    int worst, rc;

    rc = flash_fallback_begin_allreduce(&missing, &worst, 1, MPI_INT, MPI_MAX, comm, &report);
    if (rc != MPI_SUCCESS) {
        return rc;
    }
    ompi_request_wait(collective, MPI_STATUS_IGNORE);
    ompi_request_wait(&report, MPI_STATUS_IGNORE);
    return MPI_ERR_NO_MEM;
}

/* Without memory: the others wait for this rank's block, and for its report. */
static int gather_at_least(const mca_coll_flash_arguments_t *arguments, bool produces,
                           MPI_Comm comm)
{
    MPI_Request request;
    int rc = flash_fallback_begin_collective(arguments, comm, &request);

    return rc == MPI_SUCCESS ? flash_fallback_wait_and_report(&request, produces, comm) : rc;
}

int flash_fallback_allgather(const void *sendbuf, int sendcount, MPI_Datatype sendtype,
                             void *recvbuf, int recvcount, const int recvcounts[],
                             const int displs[], MPI_Datatype recvtype,
                             const mca_coll_flash_compute_t *compute, MPI_Comm comm,
                             MPI_Request *request)
{
    flash_fallback_t *fallback =
        make(FLASH_ALLGATHER, compute, recvcount, recvcounts, displs, recvtype, comm);
    mca_coll_flash_arguments_t arguments = {.kind = FLASH_ALLGATHER,
                                            .sendbuf = sendbuf,
                                            .sendcount = sendcount,
                                            .sendtype = sendtype,
                                            .recvbuf = recvbuf,
                                            .recvcount = recvcount,
                                            .recvcounts = recvcounts,
                                            .displs = displs,
                                            .recvtype = recvtype};

    if (fallback == NULL) {
        return gather_at_least(&arguments, compute->produce != NULL, comm);
    }
    fallback->output = recvbuf;
    if (compute->produce != NULL) {
        produce_own(fallback, &arguments);
    }
    return begin(fallback, &arguments, request);
}

int flash_fallback_reduce_scatter(const mca_coll_flash_compute_t *compute, void *recvbuf,
                                  int recvcount, const int recvcounts[], MPI_Datatype datatype,
                                  MPI_Op op, MPI_Comm comm, MPI_Request *request)
{
    flash_fallback_t *fallback =
        make(FLASH_REDUCE_SCATTER, compute, recvcount, recvcounts, NULL, datatype, comm);
    mca_coll_flash_arguments_t arguments = {.kind = FLASH_REDUCE_SCATTER,
                                            .recvbuf = recvbuf,
                                            .recvcount = recvcount,
                                            .recvcounts = recvcounts,
                                            .recvtype = datatype,
                                            .op = op};
    int rc;

    if (fallback == NULL) {
        return MPI_ERR_NO_MEM;
    }
    rc = flash_fallback_allocate_contribution(fallback);
    if (rc != MPI_SUCCESS) {
        flash_fallback_drop(fallback);
        return rc;
    }
    flash_fallback_produce_or_miss(fallback);
    fallback->output = recvbuf;
    arguments.sendbuf = fallback->input;
    return begin(fallback, &arguments, request);
}
