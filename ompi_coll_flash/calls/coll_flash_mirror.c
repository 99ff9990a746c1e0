/*
 * coll_flash_mirror.c: host bounces for the buffers of a call that does not use the ring: which it needs, and
 * what is to be copied between them.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "calls/coll_flash_mirror.h"

#include <stdlib.h>

#include "device/flash_device.h"
#include "device/flash_stager.h"

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

/* Whether the result goes to a device's memory: the receive side, which is all of it in place. */
static bool receives_far(const mca_coll_flash_arguments_t *a, const side_t *all, const side_t *own)
{
    return (a->op == NULL || is_in_place(a) ? all : own)->far != NULL;
}

static ptrdiff_t block_count(const mca_coll_flash_arguments_t *a, int rank)
{
    return a->recvcounts == NULL ? a->recvcount : a->recvcounts[rank];
}

/* Of an allgather, in elements. */
static ptrdiff_t gathered_displ(const mca_coll_flash_arguments_t *a, int rank)
{
    return a->displs == NULL ? (ptrdiff_t) rank * a->recvcount : a->displs[rank];
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

/* Elements of a buffer from the `first` on, and their place in the bounce. */
static flash_mirror_part_t part_of(const void *buffer, const void *bounce, MPI_Datatype type,
                                   ptrdiff_t first, ptrdiff_t count, bool own)
{
    ptrdiff_t extent, gap;
    size_t size = span_of(type, count, &gap);

    ompi_datatype_type_extent(type, &extent);
    gap += first * extent;
    return (flash_mirror_part_t){.far = (char *) (uintptr_t) buffer + gap,
                                 .near = (char *) (uintptr_t) bounce + gap,
                                 .size = size,
                                 .own = own};
}

/* An allgather in place needs its own block there, a reduction everything. */
static void mirror_all(flash_mirror_t *mirror, mca_coll_flash_arguments_t *a, const side_t *side,
                       int rank, char **at)
{
    const void *buffer = buffer_of_all(a);
    char *bounce = take_room(side, at);

    if (a->op != NULL) {
        mirror->in =
            part_of(buffer, bounce, side->type, side->first, side->end - side->first, false);
    } else if (is_in_place(a)) {
        mirror->in = part_of(buffer, bounce, side->type, gathered_displ(a, rank),
                             block_count(a, rank), false);
    }
    if (a->op == NULL || is_in_place(a)) {
        a->recvbuf = bounce;
    } else {
        a->sendbuf = bounce;
    }
}

static void mirror_own(flash_mirror_t *mirror, mca_coll_flash_arguments_t *a, const side_t *side,
                       char **at)
{
    char *bounce = take_room(side, at);

    if (a->op != NULL) {
        a->recvbuf = bounce;
    } else {
        mirror->in = part_of(a->sendbuf, bounce, side->type, 0, side->end, true);
        a->sendbuf = bounce;
    }
}

/* Blocks that lie one behind another are one part. */
static void add_result(flash_mirror_t *mirror, flash_mirror_part_t part)
{
    flash_mirror_part_t *last = mirror->outs > 0 ? &mirror->out[mirror->outs - 1] : NULL;

    if (part.size == 0) {
        return;
    }
    if (last != NULL && last->far + last->size == part.far) {
        last->size += part.size;
    } else {
        mirror->out[mirror->outs++] = part;
    }
}

/* What is copied back: an allgather's blocks, or a reduction's own one. */
static void note_result(flash_mirror_t *mirror, const mca_coll_flash_arguments_t *a, char *far,
                        ompi_communicator_t *comm)
{
    if (a->op != NULL) {
        add_result(mirror, part_of(far, a->recvbuf, a->recvtype, 0,
                                   block_count(a, ompi_comm_rank(comm)), !is_in_place(a)));
        return;
    }
    for (int rank = 0; rank < ompi_comm_size(comm); rank++) {
        add_result(mirror, part_of(far, a->recvbuf, a->recvtype, gathered_displ(a, rank),
                                   block_count(a, rank), false));
    }
}

/* NULL: there is no memory. */
static char *take_memory(flash_mirror_t *mirror, const struct flash_stager *stager, size_t size)
{
    if (flash_stager_borrow(stager, size, &mirror->pinned)) {
        return mirror->pinned.memory;
    }
    mirror->pageable = malloc(size);
    return mirror->pageable;
}

/* Puts the bounces in the place of the buffers. */
static int make_bounces(mca_coll_flash_arguments_t *a, ompi_communicator_t *comm, const side_t *all,
                        const side_t *own, const struct flash_stager *stager, flash_mirror_t **made)
{
    size_t results = a->op == NULL ? (size_t) ompi_comm_size(comm) : 1;
    flash_mirror_t *mirror = calloc(1, sizeof(*mirror) + results * sizeof(mirror->out[0]));
    char *far = a->recvbuf, *at;

    if (mirror == NULL) {
        return MPI_ERR_NO_MEM;
    }
    mirror->own = own->far;
    mirror->all = all->far;
    at = take_memory(mirror, stager, room_of(all) + room_of(own));
    if (at == NULL) {
        mca_coll_flash_mirror_free(mirror);
        return MPI_ERR_NO_MEM;
    }
    if (all->far != NULL) {
        mirror_all(mirror, a, all, ompi_comm_rank(comm), &at);
    }
    if (own->far != NULL) {
        mirror_own(mirror, a, own, &at);
    }
    if (receives_far(a, all, own)) {
        note_result(mirror, a, far, comm);
    }
    *made = mirror;
    return MPI_SUCCESS;
}

void mca_coll_flash_mirror_free(flash_mirror_t *mirror)
{
    if (mirror != NULL) {
        flash_stager_repay(&mirror->pinned);
        free(mirror->pageable);
        free(mirror);
    }
}

/* Whether the call has a side that a module below, or shared memory, would touch with the processor. */
static bool find_far(const mca_coll_flash_arguments_t *arguments, ompi_communicator_t *comm,
                     mca_coll_flash_path_t path, side_t *all, side_t *own)
{
    /* Built for such memory, Open MPI still reduces by the processor in its non-blocking calls. */
    if (path == FLASH_FALLBACK && arguments->op == NULL && flash_compat_takes_devices()) {
        return false;
    }
    *all = find_all(arguments, comm);
    *own = find_own(arguments, comm);
    return all->far != NULL || own->far != NULL;
}

int mca_coll_flash_mirror_find(mca_coll_flash_arguments_t *arguments, ompi_communicator_t *comm,
                               mca_coll_flash_path_t path, const struct flash_stager_order *order,
                               flash_mirror_t **mirror, struct flash_stager **stager)
{
    side_t all, own;
    int rc;

    *mirror = NULL;
    *stager = NULL;
    if (!find_far(arguments, comm, path, &all, &own)) {
        return MPI_SUCCESS;
    }
    if (receives_far(arguments, &all, &own) && !may_copy_back(arguments->recvtype)) {
        return mca_coll_flash_refuse_gaps();
    }
    rc = mca_coll_flash_open_stager(own.far, all.far, order, stager);
    if (rc == MPI_SUCCESS) {
        rc = make_bounces(arguments, comm, &all, &own, *stager, mirror);
    }
    if (rc != MPI_SUCCESS) {
        flash_stager_close(*stager);
        *stager = NULL;
    }
    return rc;
}
