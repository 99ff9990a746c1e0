/*
 * coll_flash_mirror.c: calls that take no ring, on buffers in the memory of devices.
 *
 * The modules below would touch them with the processor. Such a call goes on with copies in host
 * memory, mirrors, and its result is copied back before its request completes: as other ranks see
 * it, nothing is different.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "coll_flash_operation.h"

#include <stdlib.h>

#include "flash_device.h"
#include "flash_stager.h"
#include "mpix_flash_fallback_operation.h"

/*
 * An allgather receives all blocks, and sends its own; a reduction the other way round. In place,
 * the receive buffer is all that there is.
 */
typedef struct side {
    const void *far; /* where its data begins, if in a device's memory; or NULL */
    MPI_Datatype type;
    ptrdiff_t first, end; /* elements of the buffer */
} side_t;

static bool is_in_place(const mca_coll_flash_arguments_t *a)
{
    return a->sendbuf == MPI_IN_PLACE;
}

static const void *buffer_of_all(const mca_coll_flash_arguments_t *a)
{
    return a->op == NULL || is_in_place(a) ? a->recvbuf : a->sendbuf;
}

static ptrdiff_t block_count(const mca_coll_flash_arguments_t *a, int rank)
{
    return a->recvcounts == NULL ? a->recvcount : a->recvcounts[rank];
}

static side_t find_all(const mca_coll_flash_arguments_t *a, ompi_communicator_t *comm)
{
    int size = ompi_comm_size(comm);
    const void *data = mca_coll_flash_first_data(buffer_of_all(a), a->recvcount, a->recvcounts,
                                                 a->displs, a->recvtype, size);
    side_t side = {.far = flash_device_owns(data) ? data : NULL, .type = a->recvtype};
    ptrdiff_t next = 0;

    for (int rank = 0; rank < size; rank++) {
        ptrdiff_t begin = a->displs == NULL ? next : a->displs[rank];

        next = begin + block_count(a, rank);
        if (next > begin) { /* where an empty one lies means nothing */
            bool none_yet = side.first == side.end;

            side.first = none_yet || begin < side.first ? begin : side.first;
            side.end = none_yet || next > side.end ? next : side.end;
        }
    }
    return side;
}

static side_t find_own(const mca_coll_flash_arguments_t *a, ompi_communicator_t *comm)
{
    bool gathers = a->op == NULL;
    const void *buffer = gathers ? a->sendbuf : a->recvbuf;
    side_t side = {.type = gathers ? a->sendtype : a->recvtype};

    if (!is_in_place(a)) {
        const void *data;

        side.end = gathers ? a->sendcount : block_count(a, ompi_comm_rank(comm));
        data =
            mca_coll_flash_first_data(buffer, (flash_count_t) side.end, NULL, NULL, side.type, 1);
        side.far = flash_device_owns(data) ? data : NULL;
    }
    return side;
}

/*
 * A result is copied back with what lies between its data: that must be nobody's. A predefined
 * type's padding is.
 */
static bool may_copy_back(MPI_Datatype type)
{
    size_t size;
    ptrdiff_t extent;

    ompi_datatype_type_size(type, &size);
    ompi_datatype_type_extent(type, &extent);
    return ompi_datatype_is_predefined(type) ||
           (ompi_datatype_is_contiguous_memory_layout(type, 2) && extent == (ptrdiff_t) size);
}

/* ---------------------------------------------------------------- making them */

/* Of `count` elements: bytes from the first data to the last, which begins *gap behind the address.
 */
static size_t span_of(MPI_Datatype type, ptrdiff_t count, ptrdiff_t *gap)
{
    return (size_t) opal_datatype_span(&type->super, (size_t) count, gap);
}

static size_t room_of(const side_t *side)
{
    ptrdiff_t gap;

    return side->far == NULL ? 0
                             : (span_of(side->type, side->end - side->first, &gap) + 63) / 64 * 64;
}

/* Room for a side, as an address that the call takes for its buffer; *at moves on. */
static char *take_room(const side_t *side, char **at)
{
    ptrdiff_t extent, gap;
    char *room = *at;

    *at += room_of(side);
    ompi_datatype_type_extent(side->type, &extent);
    span_of(side->type, side->end - side->first, &gap);
    return room - side->first * extent - gap;
}

/* Elements of a buffer from the `first` on, to their place in the mirror. */
static int copy_in(const flash_fallback_t *call, char *mirror, const void *buffer,
                   MPI_Datatype type, ptrdiff_t first, ptrdiff_t count, bool own)
{
    ptrdiff_t extent, gap;
    size_t size = span_of(type, count, &gap);

    ompi_datatype_type_extent(type, &extent);
    gap += first * extent;
    return size == 0 || flash_stager_copy(call->stager, own, mirror + gap,
                                          (const char *) buffer + gap, size)
               ? MPI_SUCCESS
               : MPI_ERR_OTHER;
}

static void take_result(flash_fallback_t *call, mca_coll_flash_arguments_t *a, char *mirror)
{
    call->far = a->recvbuf;
    call->output = mirror;
    a->recvbuf = mirror;
}

/* An allgather in place needs its own block there, a reduction everything. */
static int mirror_all(flash_fallback_t *call, mca_coll_flash_arguments_t *a, const side_t *side,
                      char **at)
{
    int rank = ompi_comm_rank(call->comm), rc = MPI_SUCCESS;
    const void *buffer = buffer_of_all(a);
    char *mirror = take_room(side, at);

    if (a->op != NULL) {
        rc = copy_in(call, mirror, buffer, side->type, side->first, side->end - side->first, false);
    } else if (is_in_place(a)) {
        rc = copy_in(call, mirror, buffer, side->type, call->displs[rank], block_count(a, rank),
                     false);
    }
    if (a->op == NULL || is_in_place(a)) {
        take_result(call, a, mirror);
    } else {
        a->sendbuf = mirror;
    }
    return rc;
}

static int mirror_own(flash_fallback_t *call, mca_coll_flash_arguments_t *a, const side_t *side,
                      char **at)
{
    char *mirror = take_room(side, at);
    int rc;

    if (a->op != NULL) {
        take_result(call, a, mirror);
        return MPI_SUCCESS;
    }
    rc = copy_in(call, mirror, a->sendbuf, side->type, 0, side->end, true);
    a->sendbuf = mirror;
    return rc;
}

/* Copies the result to where it belongs: an allgather's blocks, or a reduction's own one. */
static int copy_back(flash_fallback_t *call)
{
    for (uint32_t rank = 0; rank < call->schedule.ring.nranks; rank++) {
        ptrdiff_t at;
        size_t size = span_of(call->datatype, (ptrdiff_t) call->counts[rank], &at);

        at += call->displs[rank] * call->extent;
        if (size > 0 &&
            !flash_stager_copy(call->stager, false, call->far + at, call->output + at, size)) {
            mca_coll_flash_tell_device_failed();
            return MPI_ERR_OTHER;
        }
    }
    return MPI_SUCCESS;
}

/* What copy_back() will need: the caller's arrays may be gone by then. */
static int note_blocks(flash_fallback_t *call, const mca_coll_flash_arguments_t *a)
{
    int rank = ompi_comm_rank(call->comm), size = a->op == NULL ? ompi_comm_size(call->comm) : 1;
    ptrdiff_t next = 0;

    call->counts = malloc((size_t) size * sizeof(*call->counts));
    call->displs = malloc((size_t) size * sizeof(*call->displs));
    if (call->counts == NULL || call->displs == NULL) {
        return MPI_ERR_NO_MEM;
    }
    for (int k = 0; k < size; k++) {
        ptrdiff_t count = block_count(a, a->op == NULL ? k : rank);

        call->displs[k] = a->displs == NULL ? next : a->displs[k];
        call->counts[k] = (size_t) count;
        next += count;
    }
    call->datatype = a->recvtype;
    ompi_datatype_type_extent(a->recvtype, &call->extent);
    /* No callbacks: a reduction's would have been before this. */
    call->schedule =
        (flash_schedule_t){.kind = FLASH_REDUCE_SCATTER, .ring = {.nranks = (uint32_t) size}};
    return MPI_SUCCESS;
}

static int fill(flash_fallback_t *call, mca_coll_flash_arguments_t *a, const side_t *all,
                const side_t *own, const flash_stager_order_t *order)
{
    char *at;
    int rc = mca_coll_flash_open_stager(own->far, all->far, order, &call->stager);

    if (rc == MPI_SUCCESS) {
        rc = note_blocks(call, a);
    }
    if (rc != MPI_SUCCESS) {
        return rc;
    }
    call->contribution = malloc(room_of(all) + room_of(own) + 1);
    if (call->contribution == NULL) {
        return MPI_ERR_NO_MEM;
    }
    at = call->contribution;
    if (all->far != NULL) {
        rc = mirror_all(call, a, all, &at);
    }
    if (rc == MPI_SUCCESS && own->far != NULL) {
        rc = mirror_own(call, a, own, &at);
    }
    if (rc != MPI_SUCCESS) {
        mca_coll_flash_tell_device_failed();
    }
    call->finish = call->far == NULL ? NULL : copy_back;
    return rc;
}

/* Whether the call has a side that a module below, or a board, would touch with the processor. */
static bool find_far(const mca_coll_flash_arguments_t *arguments, ompi_communicator_t *comm,
                     mca_coll_flash_path_t path, side_t *all, side_t *own)
{
    /* Built for such memory, Open MPI still reduces by the processor in its non-blocking calls. */
    if (path == FLASH_PASSED_ON && arguments->op == NULL && flash_compat_takes_devices()) {
        return false;
    }
    *all = find_all(arguments, comm);
    *own = find_own(arguments, comm);
    return all->far != NULL || own->far != NULL;
}

int mca_coll_flash_refuse_far(const mca_coll_flash_arguments_t *arguments,
                              ompi_communicator_t *comm)
{
    side_t all, own;

    return find_far(arguments, comm, FLASH_PASSED_ON, &all, &own)
               ? mca_coll_flash_refuse_device("persistent requests that take no ring "
                                              "(coll_flash_verbose 2 says why) are of a "
                                              "component that cannot reach it; with "
                                              "coll_flash_min_bytes 0 no size is too small")
               : MPI_SUCCESS;
}

int mca_coll_flash_mirror(mca_coll_flash_arguments_t *arguments, ompi_communicator_t *comm,
                          mca_coll_flash_path_t path, const struct flash_stager_order *order,
                          struct flash_fallback **mirrored)
{
    flash_fallback_t *call;
    side_t all, own;
    int rc;

    *mirrored = NULL;
    mca_coll_flash_settle();
    if (!find_far(arguments, comm, path, &all, &own)) {
        return MPI_SUCCESS;
    }
    /* The receive side, which is all of it in place. */
    if ((arguments->op == NULL || is_in_place(arguments) ? all.far : own.far) != NULL &&
        !may_copy_back(arguments->recvtype)) {
        return mca_coll_flash_refuse_gaps();
    }
    call = OBJ_NEW(flash_fallback_t);
    if (call == NULL) {
        return MPI_ERR_NO_MEM;
    }
    call->super.super.req_mpi_object.comm = comm;
    call->comm = comm;
    OBJ_RETAIN(comm);
    rc = fill(call, arguments, &all, &own, order);
    if (rc != MPI_SUCCESS) {
        OBJ_RELEASE(call);
        return rc;
    }
    *mirrored = call;
    return MPI_SUCCESS;
}

int mca_coll_flash_mirror_started(struct flash_fallback *mirrored, int error,
                                  ompi_request_t **request)
{
    if (mirrored == NULL) {
        return error;
    }
    if (error != MPI_SUCCESS) {
        mirrored->contribution = NULL; /* given up: part of the call may be under way */
        OBJ_RELEASE(mirrored);
        return error;
    }
    mirrored->inner[0] = *request;
    flash_fallback_enlist(mirrored, request);
    return MPI_SUCCESS;
}
