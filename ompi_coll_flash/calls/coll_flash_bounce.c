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

/* A buffer of a call, and the blocks there. In place there is no send buffer. */
typedef struct side {
    const void *buffer;
    MPI_Datatype type;
    int blocks;
    flash_count_t count;   /* of each block, if counts is NULL */
    flash_counts_t counts; /* likewise, or NULL */
    flash_displs_t displs; /* in elements; NULL: one block behind another */
    const void *device;    /* where the first data lie, if in a device's memory; or NULL */
    ptrdiff_t first, end;  /* elements that the blocks lie in */
} side_t;

typedef struct sides {
    side_t sent, received;
} sides_t;

static ptrdiff_t block_count(const side_t *side, int block)
{
    return side->counts == NULL ? side->count : side->counts[block];
}

/* Where a block begins, of equal blocks or of those with displacements. */
static ptrdiff_t block_displ(const side_t *side, int block)
{
    return side->displs == NULL ? (ptrdiff_t) block * side->count : side->displs[block];
}

/* Where all its blocks lie, but empty ones, whose places mean nothing. */
static void find_ends(side_t *side)
{
    const void *data = mca_coll_flash_first_data(side->buffer, side->count, side->counts,
                                                 side->displs, side->type, side->blocks);
    ptrdiff_t next = 0;

    side->device = flash_device_owns(data) ? data : NULL;
    for (int block = 0; block < side->blocks; block++) {
        ptrdiff_t begin = side->displs == NULL ? next : side->displs[block];

        next = begin + block_count(side, block);
        if (next > begin) {
            bool none_yet = side->first == side->end;

            side->first = none_yet || begin < side->first ? begin : side->first;
            side->end = none_yet || next > side->end ? next : side->end;
        }
    }
}

static bool is_in_place(const mca_coll_flash_arguments_t *a)
{
    return a->sendbuf == MPI_IN_PLACE;
}

/* All blocks of the ranks, as the receive side's arguments describe them. */
static side_t all_blocks(const mca_coll_flash_arguments_t *a, const void *buffer, int ranks)
{
    return (side_t){.buffer = buffer,
                    .type = a->recvtype,
                    .blocks = ranks,
                    .count = a->recvcount,
                    .counts = a->recvcounts,
                    .displs = a->displs};
}

/* Blocks for the ranks, as the send side's arguments describe them. */
static side_t sent_blocks(const mca_coll_flash_arguments_t *a, int ranks)
{
    return (side_t){.buffer = a->sendbuf,
                    .type = a->sendtype,
                    .blocks = ranks,
                    .count = a->sendcount,
                    .counts = a->sendcounts,
                    .displs = a->sdispls};
}

static side_t one_block(const void *buffer, flash_count_t count, MPI_Datatype type)
{
    return (side_t){.buffer = buffer, .type = type, .blocks = 1, .count = count};
}

/* In place, a reduce-scatter's receive buffer is that of all contributions. */
static sides_t sides_of(const mca_coll_flash_arguments_t *a, ompi_communicator_t *comm)
{
    int ranks = ompi_comm_size(comm);
    flash_count_t own = a->recvcounts == NULL ? a->recvcount : a->recvcounts[ompi_comm_rank(comm)];
    bool root = ompi_comm_rank(comm) == a->root;
    sides_t sides;

    switch (a->kind) {
    case FLASH_ALLGATHER:
        sides.sent = one_block(a->sendbuf, a->sendcount, a->sendtype);
        sides.received = all_blocks(a, a->recvbuf, ranks);
        break;
    case FLASH_REDUCE_SCATTER:
        sides.sent = all_blocks(a, a->sendbuf, ranks);
        sides.received = is_in_place(a) ? all_blocks(a, a->recvbuf, ranks)
                                        : one_block(a->recvbuf, own, a->recvtype);
        break;
    case FLASH_BCAST: /* the root sends, and all others receive */
        sides.sent = one_block(a->sendbuf, a->sendcount, a->sendtype);
        sides.received = one_block(a->recvbuf, root ? 0 : a->recvcount, a->recvtype);
        break;
    case FLASH_REDUCE: /* the root receives */
        sides.sent = one_block(a->sendbuf, a->recvcount, a->recvtype);
        sides.received = one_block(root ? a->recvbuf : NULL, root ? a->recvcount : 0, a->recvtype);
        break;
    case FLASH_ALLTOALL:
        sides.sent = sent_blocks(a, ranks);
        sides.received = all_blocks(a, a->recvbuf, ranks);
        break;
    case FLASH_GATHER: /* the root receives */
        sides.sent = one_block(a->sendbuf, a->sendcount, a->sendtype);
        sides.received = all_blocks(a, a->recvbuf, root ? ranks : 0);
        break;
    case FLASH_SCATTER: /* the root sends */
        sides.sent = sent_blocks(a, root ? ranks : 0);
        sides.received =
            one_block(a->recvbuf, a->recvbuf == MPI_IN_PLACE ? 0 : a->recvcount, a->recvtype);
        break;
    default:
        sides.sent = one_block(a->sendbuf, a->recvcount, a->recvtype);
        sides.received = one_block(a->recvbuf, a->recvcount, a->recvtype);
    }
    if (is_in_place(a)) {
        sides.sent = one_block(NULL, 0, a->recvtype);
    }
    find_ends(&sides.sent);
    find_ends(&sides.received);
    return sides;
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
static flash_host_bounce_part_t part_of(const side_t *side, const void *host, ptrdiff_t first,
                                        ptrdiff_t count, bool sent)
{
    ptrdiff_t extent, gap;
    size_t size = span_of(side->type, count, &gap);

    ompi_datatype_type_extent(side->type, &extent);
    gap += first * extent;
    return (flash_host_bounce_part_t){.device = (char *) (uintptr_t) side->buffer + gap,
                                      .host = (char *) (uintptr_t) host + gap,
                                      .size = size,
                                      .sent = sent};
}

/* What the call reads in place: an allgather or a gather the own block, all others everything. */
static flash_host_bounce_part_t read_in_place(flash_kind_t kind, const side_t *side,
                                              const void *host, int rank)
{
    return flash_schedule_gathers(kind)
               ? part_of(side, host, block_displ(side, rank), block_count(side, rank), false)
               : part_of(side, host, side->first, side->end - side->first, false);
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

/* What is copied back: of a reduce-scatter in place the own block, which is the first one then. */
static void note_result(flash_host_bounce_t *bounce, const mca_coll_flash_arguments_t *a,
                        const side_t *side, const void *host, int rank)
{
    if (a->kind == FLASH_REDUCE_SCATTER && is_in_place(a)) {
        add_result(bounce, part_of(side, host, 0, block_count(side, rank), false));
        return;
    }
    for (int block = 0; block < side->blocks; block++) {
        add_result(bounce,
                   part_of(side, host, block_displ(side, block), block_count(side, block), false));
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
static int make_bounces(mca_coll_flash_arguments_t *a, int rank, const sides_t *sides,
                        const struct flash_stager *stager, flash_host_bounce_t **made)
{
    const side_t *sent = &sides->sent, *received = &sides->received;
    flash_host_bounce_t *bounce =
        calloc(1, sizeof(*bounce) + (size_t) received->blocks * sizeof(bounce->out[0]));
    char *at;

    if (bounce == NULL) {
        return MPI_ERR_NO_MEM;
    }
    bounce->sent = sent->device;
    bounce->received = received->device;
    at = take_memory(bounce, stager, room_of(sent) + room_of(received));
    if (at == NULL) {
        mca_coll_flash_bounce_free(bounce);
        return MPI_ERR_NO_MEM;
    }
    if (sent->device != NULL) {
        a->sendbuf = take_room(sent, &at);
        bounce->in = part_of(sent, a->sendbuf, sent->first, sent->end - sent->first, true);
    }
    if (received->device != NULL) {
        a->recvbuf = take_room(received, &at);
        if (is_in_place(a)) {
            bounce->in = read_in_place(a->kind, received, a->recvbuf, rank);
        }
        note_result(bounce, a, received, a->recvbuf, rank);
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
                           mca_coll_flash_path_t path, sides_t *sides)
{
    /* Built for such memory, Open MPI still reduces by the processor in its non-blocking calls. */
    if (path == FLASH_FALLBACK && arguments->op == NULL && flash_compat_takes_devices()) {
        return false;
    }
    *sides = sides_of(arguments, comm);
    return sides->sent.device != NULL || sides->received.device != NULL;
}

int mca_coll_flash_bounce_find(mca_coll_flash_arguments_t *arguments, ompi_communicator_t *comm,
                               mca_coll_flash_path_t path, const struct flash_stager_order *order,
                               flash_host_bounce_t **bounce, struct flash_stager **stager)
{
    sides_t sides;
    int rc;

    *bounce = NULL;
    *stager = NULL;
    if (!find_on_device(arguments, comm, path, &sides)) {
        return MPI_SUCCESS;
    }
    if (sides.received.device != NULL && !may_copy_back(arguments->recvtype)) {
        return mca_coll_flash_refuse_gaps();
    }
    rc = mca_coll_flash_open_stager(sides.sent.device, sides.received.device, order, stager);
    if (rc == MPI_SUCCESS) {
        rc = make_bounces(arguments, ompi_comm_rank(comm), &sides, *stager, bounce);
    }
    if (rc != MPI_SUCCESS) {
        flash_stager_close(*stager);
        *stager = NULL;
    }
    return rc;
}
