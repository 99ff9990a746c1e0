/*
 * coll_flash_bounce_sides.c: the buffers of a call, and where blocks lie in them and in their host
 * bounces.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "calls/coll_flash_bounce_sides.h"

#include <limits.h>

#include "device/flash_device.h"

typedef mca_coll_flash_bounce_side_t side_t;
typedef mca_coll_flash_bounce_sides_t sides_t;

/* Where all its blocks lie, but empty ones, whose places mean nothing. */
static void find_ends(side_t *side)
{
    const void *data = mca_coll_flash_first_data(side->buffer, side->count, side->counts,
                                                 side->displs, side->type, side->blocks);
    ptrdiff_t next = 0;

    side->device = flash_device_owns(data) ? data : NULL;
    for (int block = 0; block < side->blocks; block++) {
        ptrdiff_t begin = side->displs == NULL ? next : side->displs[block];

        next = begin + mca_coll_flash_bounce_side_count(side, block);
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
sides_t mca_coll_flash_bounce_sides_of(const mca_coll_flash_arguments_t *a,
                                       ompi_communicator_t *comm)
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

bool mca_coll_flash_bounce_is_dense(MPI_Datatype type)
{
    size_t size;
    ptrdiff_t extent;

    ompi_datatype_type_size(type, &size);
    ompi_datatype_type_extent(type, &extent);
    return ompi_datatype_is_predefined(type) ||
           (ompi_datatype_is_contiguous_memory_layout(type, 2) && extent == (ptrdiff_t) size);
}

void mca_coll_flash_bounce_side_pack(side_t *side, flash_displ_t *places)
{
    ptrdiff_t elements = 0;

    for (int block = 0; block < side->blocks; block++) {
        elements += mca_coll_flash_bounce_side_count(side, block);
    }
    if (side->device == NULL || elements > (side->end - side->first) / 2 || elements > INT_MAX ||
        !mca_coll_flash_bounce_is_dense(side->type)) {
        return;
    }
    elements = 0;
    for (int block = 0; block < side->blocks; block++) {
        places[block] = (flash_displ_t) elements;
        elements += mca_coll_flash_bounce_side_count(side, block);
    }
    side->places = places;
    side->first = 0;
    side->end = elements;
}
