/*
 * coll_flash_bounce.c: host bounces for the buffers of a call that does not use the ring: which it
 * needs, and what is to be copied between them.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "calls/coll_flash_bounce.h"

#include <stdlib.h>

#include "device/flash_device.h"
#include "device/flash_stager.h"

/*
 * An allgather receives all blocks, and sends its own; a reduction the other way round. In place,
 * the receive buffer is all that there is.
 */
typedef struct side {
    const void *device; /* where its data begins, if in a device's memory; or NULL */
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
static bool receives_on_device(const mca_coll_flash_arguments_t *a, const side_t *all,
                               const side_t *own)
{
    return (a->op == NULL || is_in_place(a) ? all : own)->device != NULL;
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
    side_t side = {.device = flash_device_owns(data) ? data : NULL, .type = a->recvtype};
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
        side.device = flash_device_owns(data) ? data : NULL;
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

    return side->device == NULL
               ? 0
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
static flash_host_bounce_part_t part_of(const void *buffer, const void *host, MPI_Datatype type,
                                        ptrdiff_t first, ptrdiff_t count, bool own)
{
    ptrdiff_t extent, gap;
    size_t size = span_of(type, count, &gap);

    ompi_datatype_type_extent(type, &extent);
    gap += first * extent;
    return (flash_host_bounce_part_t){.device = (char *) (uintptr_t) buffer + gap,
                                      .host = (char *) (uintptr_t) host + gap,
                                      .size = size,
                                      .own = own};
}

/* An allgather in place needs its own block there, a reduction everything. */
static void bounce_all(flash_host_bounce_t *bounce, mca_coll_flash_arguments_t *a,
                       const side_t *side, int rank, char **at)
{
    const void *buffer = buffer_of_all(a);
    char *host = take_room(side, at);

    if (a->op != NULL) {
        bounce->in = part_of(buffer, host, side->type, side->first, side->end - side->first, false);
    } else if (is_in_place(a)) {
        bounce->in =
            part_of(buffer, host, side->type, gathered_displ(a, rank), block_count(a, rank), false);
    }
    if (a->op == NULL || is_in_place(a)) {
        a->recvbuf = host;
    } else {
        a->sendbuf = host;
    }
}

static void bounce_own(flash_host_bounce_t *bounce, mca_coll_flash_arguments_t *a,
                       const side_t *side, char **at)
{
    char *host = take_room(side, at);

    if (a->op != NULL) {
        a->recvbuf = host;
    } else {
        bounce->in = part_of(a->sendbuf, host, side->type, 0, side->end, true);
        a->sendbuf = host;
    }
}

/* Blocks that lie one behind another are one part. */
static void add_result(flash_host_bounce_t *bounce, flash_host_bounce_part_t part)
{
    flash_host_bounce_part_t *last = bounce->outs > 0 ? &bounce->out[bounce->outs - 1] : NULL;

    if (part.size == 0) {
        return;
    }
    if (last != NULL && last->device + last->size == part.device) {
        last->size += part.size;
    } else {
        bounce->out[bounce->outs++] = part;
    }
}

/* What is copied back: an allgather's blocks, or a reduction's own one. */
static void note_result(flash_host_bounce_t *bounce, const mca_coll_flash_arguments_t *a,
                        char *device, ompi_communicator_t *comm)
{
    if (a->op != NULL) {
        add_result(bounce, part_of(device, a->recvbuf, a->recvtype, 0,
                                   block_count(a, ompi_comm_rank(comm)), !is_in_place(a)));
        return;
    }
    for (int rank = 0; rank < ompi_comm_size(comm); rank++) {
        add_result(bounce, part_of(device, a->recvbuf, a->recvtype, gathered_displ(a, rank),
                                   block_count(a, rank), false));
    }
}

/* NULL: there is no memory. */
static char *take_memory(flash_host_bounce_t *bounce, const struct flash_stager *stager,
                         size_t size)
{
    if (flash_stager_borrow(stager, size, &bounce->pinned)) {
        return bounce->pinned.memory;
    }
    bounce->pageable = malloc(size);
    return bounce->pageable;
}

/* Puts the bounces in the place of the buffers. */
static int make_bounces(mca_coll_flash_arguments_t *a, ompi_communicator_t *comm, const side_t *all,
                        const side_t *own, const struct flash_stager *stager,
                        flash_host_bounce_t **made)
{
    size_t results = a->op == NULL ? (size_t) ompi_comm_size(comm) : 1;
    flash_host_bounce_t *bounce = calloc(1, sizeof(*bounce) + results * sizeof(bounce->out[0]));
    char *device = a->recvbuf, *at;

    if (bounce == NULL) {
        return MPI_ERR_NO_MEM;
    }
    bounce->own = own->device;
    bounce->all = all->device;
    at = take_memory(bounce, stager, room_of(all) + room_of(own));
    if (at == NULL) {
        mca_coll_flash_bounce_free(bounce);
        return MPI_ERR_NO_MEM;
    }
    if (all->device != NULL) {
        bounce_all(bounce, a, all, ompi_comm_rank(comm), &at);
    }
    if (own->device != NULL) {
        bounce_own(bounce, a, own, &at);
    }
    if (receives_on_device(a, all, own)) {
        note_result(bounce, a, device, comm);
    }
    *made = bounce;
    return MPI_SUCCESS;
}

void mca_coll_flash_bounce_free(flash_host_bounce_t *bounce)
{
    if (bounce != NULL) {
        flash_stager_repay(&bounce->pinned);
        free(bounce->pageable);
        free(bounce);
    }
}

/*
 * Whether the call has a side that a module below, or shared memory, would touch with the
 * processor.
 */
static bool find_on_device(const mca_coll_flash_arguments_t *arguments, ompi_communicator_t *comm,
                           mca_coll_flash_path_t path, side_t *all, side_t *own)
{
    /* Built for such memory, Open MPI still reduces by the processor in its non-blocking calls. */
    if (path == FLASH_FALLBACK && arguments->op == NULL && flash_compat_takes_devices()) {
        return false;
    }
    *all = find_all(arguments, comm);
    *own = find_own(arguments, comm);
    return all->device != NULL || own->device != NULL;
}

int mca_coll_flash_bounce_find(mca_coll_flash_arguments_t *arguments, ompi_communicator_t *comm,
                               mca_coll_flash_path_t path, const struct flash_stager_order *order,
                               flash_host_bounce_t **bounce, struct flash_stager **stager)
{
    side_t all, own;
    int rc;

    *bounce = NULL;
    *stager = NULL;
    if (!find_on_device(arguments, comm, path, &all, &own)) {
        return MPI_SUCCESS;
    }
    if (receives_on_device(arguments, &all, &own) && !may_copy_back(arguments->recvtype)) {
        return mca_coll_flash_refuse_gaps();
    }
    rc = mca_coll_flash_open_stager(own.device, all.device, order, stager);
    if (rc == MPI_SUCCESS) {
        rc = make_bounces(arguments, comm, &all, &own, *stager, bounce);
    }
    if (rc != MPI_SUCCESS) {
        flash_stager_close(*stager);
        *stager = NULL;
    }
    return rc;
}
