/*
 * coll_flash_bounce.c: host bounces for the buffers of a call that does not use the ring: which it
 * needs, and what is to be copied between them.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "calls/coll_flash_bounce.h"

#include <stdlib.h>

#include "calls/coll_flash_bounce_sides.h"
#include "device/flash_stager.h"

typedef mca_coll_flash_bounce_side_t side_t;
typedef mca_coll_flash_bounce_sides_t sides_t;

static bool is_in_place(const mca_coll_flash_arguments_t *a)
{
    return a->sendbuf == MPI_IN_PLACE;
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
                                        ptrdiff_t place, ptrdiff_t count, bool sent)
{
    ptrdiff_t extent, gap;
    size_t size = span_of(side->type, count, &gap);

    ompi_datatype_type_extent(side->type, &extent);
    return (flash_host_bounce_part_t){.device =
                                          (char *) (uintptr_t) side->buffer + gap + first * extent,
                                      .host = (char *) (uintptr_t) host + gap + place * extent,
                                      .size = size,
                                      .sent = sent};
}

static flash_host_bounce_part_t block_of(const side_t *side, const void *host, int block, bool sent)
{
    return part_of(side, host, mca_coll_flash_bounce_side_displ(side, block),
                   mca_coll_flash_bounce_side_place(side, block),
                   mca_coll_flash_bounce_side_count(side, block), sent);
}

static flash_host_bounce_part_t all_of(const side_t *side, const void *host, bool sent)
{
    return part_of(side, host, side->first, side->first, side->end - side->first, sent);
}

/* Whether the copy that brings a part can bring that many bytes more, which lie behind it. */
static bool can_grow(flash_host_bounce_part_t *part, size_t more)
{
    if (part->reach == 0) {
        part->reach = flash_stager_reach(part->device);
    }
    return part->size + more <= part->reach;
}

/* Blocks of one allocation that lie one behind another, there and in the bounce, are one part. */
static void add(flash_host_bounce_part_t *parts, size_t *count, flash_host_bounce_part_t part)
{
    flash_host_bounce_part_t *last = *count > 0 ? &parts[*count - 1] : NULL;

    if (part.size == 0) {
        return;
    }
    if (last != NULL && last->device + last->size == part.device &&
        last->host + last->size == part.host && can_grow(last, part.size)) {
        last->size += part.size;
    } else {
        parts[(*count)++] = part;
    }
}

/* What the call reads: not what lies between blocks with displacements, which may be nobody's memory. */
static void note_sent(flash_host_bounce_t *bounce, const side_t *side, const void *host)
{
    if (side->displs == NULL) {
        add(bounce->in, &bounce->ins, all_of(side, host, true));
        return;
    }
    for (int block = 0; block < side->blocks; block++) {
        add(bounce->in, &bounce->ins, block_of(side, host, block, true));
    }
}

/* What the call reads in place: an allgather or a gather the own block, all others everything, but not what lies between
   blocks with displacements. */
static void note_in_place(flash_host_bounce_t *bounce, flash_kind_t kind, const side_t *side,
                          const void *host, int rank)
{
    if (flash_schedule_gathers(kind)) {
        add(bounce->in, &bounce->ins, block_of(side, host, rank, false));
        return;
    }
    if (side->displs == NULL) {
        add(bounce->in, &bounce->ins, all_of(side, host, false));
        return;
    }
    for (int block = 0; block < side->blocks; block++) {
        add(bounce->in, &bounce->ins, block_of(side, host, block, false));
    }
}

/* What is copied back: of a reduce-scatter in place the own block, which is the first one then. */
static void note_result(flash_host_bounce_t *bounce, const mca_coll_flash_arguments_t *a,
                        const side_t *side, const void *host, int rank)
{
    if (a->kind == FLASH_REDUCE_SCATTER && is_in_place(a)) {
        add(bounce->out, &bounce->outs,
            part_of(side, host, 0, 0, mca_coll_flash_bounce_side_count(side, rank), false));
        return;
    }
    for (int block = 0; block < side->blocks; block++) {
        add(bounce->out, &bounce->outs, block_of(side, host, block, false));
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

/* With room for the parts of both sides. NULL: there is no memory. */
static flash_host_bounce_t *new_bounce(const sides_t *sides, bool packs)
{
    size_t outs = (size_t) sides->received.blocks, ins = (size_t) sides->sent.blocks + outs + 1;
    flash_host_bounce_t *bounce =
        calloc(1, sizeof(*bounce) + (ins + outs) * sizeof(bounce->parts[0]));

    if (bounce == NULL) {
        return NULL;
    }
    bounce->in = bounce->parts;
    bounce->out = bounce->parts + ins;
    bounce->sent = sides->sent.device;
    bounce->received = sides->received.device;
    bounce->displaced = sides->sent.displs != NULL || sides->received.displs != NULL;
    if (packs) {
        bounce->places = malloc((ins + outs) * sizeof(bounce->places[0]));
        if (bounce->places == NULL) {
            free(bounce);
            return NULL;
        }
    }
    return bounce;
}

/* Puts the bounces in the place of the buffers. */
static void place(mca_coll_flash_arguments_t *a, int rank, const sides_t *sides, char *at,
                  flash_host_bounce_t *bounce)
{
    const side_t *sent = &sides->sent, *received = &sides->received;

    if (sent->device != NULL) {
        a->sendbuf = take_room(sent, &at);
        a->sdispls = sent->places == NULL ? a->sdispls : sent->places;
        note_sent(bounce, sent, a->sendbuf);
    }
    if (received->device != NULL) {
        a->recvbuf = take_room(received, &at);
        if (a->recvbuf == a->sendbuf) {
            a->recvbuf = (char *) a->recvbuf + FLASH_APART;
        }
        a->displs = received->places == NULL ? a->displs : received->places;
        if (is_in_place(a)) {
            note_in_place(bounce, a->kind, received, a->recvbuf, rank);
        }
        note_result(bounce, a, received, a->recvbuf, rank);
    }
}

static int make_bounces(mca_coll_flash_arguments_t *a, int rank, sides_t *sides,
                        const struct flash_stager *stager, flash_host_bounce_t **made)
{
    bool all_in_place = is_in_place(a) && a->kind == FLASH_ALLTOALL; /* read as they lie */
    bool packs = a->unequal && !all_in_place;
    flash_host_bounce_t *bounce = new_bounce(sides, packs);
    char *at;

    if (bounce == NULL) {
        return MPI_ERR_NO_MEM;
    }
    if (packs) {
        mca_coll_flash_bounce_side_pack(&sides->sent, bounce->places);
        mca_coll_flash_bounce_side_pack(&sides->received, bounce->places + sides->sent.blocks);
    }
    at = take_memory(bounce, stager,
                     room_of(&sides->sent) + room_of(&sides->received) + FLASH_APART);
    if (at == NULL) {
        mca_coll_flash_bounce_free(bounce);
        return MPI_ERR_NO_MEM;
    }
    place(a, rank, sides, at, bounce);
    *made = bounce;
    return MPI_SUCCESS;
}

void mca_coll_flash_bounce_free(flash_host_bounce_t *bounce)
{
    if (bounce != NULL) {
        flash_stager_repay(&bounce->pinned);
        free(bounce->pageable);
        free(bounce->places);
        free(bounce);
    }
}

int mca_coll_flash_bounce_cover(const flash_host_bounce_t *bounce,
                                const struct flash_stager *stager)
{
    bool covers = true;

    if (!bounce->displaced) {
        return MPI_SUCCESS; /* all parts lie where the first data do */
    }
    for (size_t k = 0; k < bounce->ins && covers; k++) {
        covers = flash_stager_covers(stager, bounce->in[k].sent, bounce->in[k].device);
    }
    for (size_t k = 0; k < bounce->outs && covers; k++) {
        covers = flash_stager_covers(stager, bounce->out[k].sent, bounce->out[k].device);
    }
    if (!covers) {
        mca_coll_flash_tell_device_failed();
    }
    return covers ? MPI_SUCCESS : MPI_ERR_OTHER;
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
    *sides = mca_coll_flash_bounce_sides_of(arguments, comm);
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
    if (sides.received.device != NULL && !mca_coll_flash_bounce_is_dense(arguments->recvtype)) {
        /* It would be copied back with what lies between its data. */
        return mca_coll_flash_refuse_gaps();
    }
    rc = mca_coll_flash_open_stager(sides.sent.device, sides.received.device, order, stager);
    if (rc == MPI_SUCCESS) {
        rc = make_bounces(arguments, ompi_comm_rank(comm), &sides, *stager, bounce);
    }
    if (rc == MPI_SUCCESS) {
        rc = mca_coll_flash_bounce_cover(*bounce, *stager);
    }
    if (rc != MPI_SUCCESS) {
        mca_coll_flash_bounce_free(*bounce);
        *bounce = NULL;
        flash_stager_close(*stager);
        *stager = NULL;
    }
    return rc;
}
