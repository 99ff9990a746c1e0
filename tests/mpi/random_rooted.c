/*
 * random_rooted.c: random broadcasts, gathers and scatters.
 *
 * Each rank describes its blocks in its own way, and passes nothing that could be used for what is
 * significant at the root alone.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "random_ops.h"

static bool is_root(const operation_t *operation)
{
    return operation->rank == operation->root;
}

/* ------------------------------------------------------------------- broadcasts */

/* A broadcast's block, which the root has, and all ranks have in the end. */
static void make_block_image(operation_t *operation)
{
    const typed_t *recv = &operation->recv_type;
    image_t *image = &operation->recv;
    size_t count = (size_t) operation->counts[0];
    ptrdiff_t place;

    make_image(image, typed_margin(recv), count * (size_t) recv->extent, typed_margin(recv),
               operation->salt + 2);
    place = image->buffer - image->memory;
    typed_write(recv, image->wanted + place, count, operation->root, operation->salt);
    if (operation->rank == operation->root) {
        typed_write(recv, image->buffer, count, operation->root, operation->salt);
    }
}

/* Open MPI and flash see nothing of a broadcast without data; of an int's, see coll_flash_bcast.c. */
static void draw_bcast(operation_t *operation, size_t unit)
{
    static const char *const names[] = {"MPI_Ibcast", "MPI_Bcast_init"};
    size_t bytes = (size_t) operation->blocks[0] * unit;

    operation->in_place = false;
    operation->persistent &= bytes > 0;
    operation->ring = takes_ring(operation, bytes);
    operation->persistent &= may_persist(operation);
    if (!operation->ring) {
        shorten_blocks(operation, unit);
        bytes = (size_t) operation->blocks[0] * unit;
    }
    operation->name = names[operation->persistent];
    operation->unseen = !operation->persistent && (bytes == 0 || bytes == sizeof(int));
    operation->ring &= !operation->unseen;
    operation->counts[0] = operation->blocks[0] * operation->recv_type.per_unit;
    make_block_image(operation);
}

static int start_bcast(operation_t *o, MPI_Request *request)
{
    void *buffer = o->recv.buffer;
    MPI_Datatype type = o->recv_type.type;

    return o->persistent ? MPI_Bcast_init(buffer, o->counts[0], type, o->root, o->comm,
                                          MPI_INFO_NULL, request)
                         : MPI_Ibcast(buffer, o->counts[0], type, o->root, o->comm, request);
}

/* -------------------------------------------------------- gathers and scatters */

/* Whose pattern a rank's block holds: a scatter's differ from all that the ranks have of their own. */
static int owner_of(const operation_t *operation, int rank)
{
    return operation->deals ? 64 * operation->root + rank : rank;
}

/* The root has all blocks, on the side that it receives or sends; each rank has its own. */
static const typed_t *all_type(const operation_t *operation)
{
    return operation->collects ? &operation->recv_type : &operation->send_type;
}

static const typed_t *own_type(const operation_t *operation)
{
    return operation->collects ? &operation->send_type : &operation->recv_type;
}

static int own_count(const operation_t *operation)
{
    return operation->blocks[operation->rank] * own_type(operation)->per_unit;
}

/* A rank's block at a place of an image: what it must hold in the end, and what it holds at first. */
static void write_block(operation_t *operation, image_t *image, const typed_t *typed, int at,
                        int count, int rank, bool holds)
{
    ptrdiff_t place = (ptrdiff_t) at * typed->extent;

    typed_write(typed, image->wanted + (image->buffer - image->memory) + place, (size_t) count,
                owner_of(operation, rank), operation->salt);
    if (holds) {
        typed_write(typed, image->buffer + place, (size_t) count, owner_of(operation, rank),
                    operation->salt);
    }
}

static void make_all_blocks(operation_t *operation, image_t *all)
{
    const typed_t *typed = all_type(operation);
    int origin = 0;
    size_t elements =
        operation->unequal ? place_blocks(operation, &origin) : place_in_a_row(operation);

    elements = is_root(operation) ? elements : 0;
    origin = is_root(operation) ? origin : 0;
    make_image(all, typed_margin(typed) + (size_t) origin * (size_t) typed->extent,
               (elements - (size_t) origin) * (size_t) typed->extent, typed_margin(typed),
               operation->salt + 1);
    for (int rank = 0; rank < operation->size && is_root(operation); rank++) {
        bool in_place = operation->in_place && rank == operation->rank;

        write_block(operation, all, typed, operation->displs[rank], operation->counts[rank], rank,
                    !operation->collects || in_place);
    }
}

static void make_own_block(operation_t *operation, image_t *own)
{
    const typed_t *typed = own_type(operation);

    make_image(own, typed_margin(typed), (size_t) own_count(operation) * (size_t) typed->extent,
               typed_margin(typed), operation->salt + 2);
    if (!operation->in_place) {
        write_block(operation, own, typed, 0, own_count(operation), operation->rank,
                    operation->collects);
    }
}

/* Each block goes its own way; a rank's call counts as the ring's if one that comes or goes does. */
static void draw_ways(operation_t *operation, size_t unit)
{
    size_t size = (size_t) operation->size;
    bool all_by_ring = takes_ring(operation, size);

    operation->shared = !all_by_ring;
    operation->persistent &= all_by_ring || !options.watch_memory;
    operation->ring = all_by_ring;
    for (int rank = 0; rank < operation->size && !all_by_ring; rank++) {
        size_t bytes = (size_t) operation->blocks[rank] * unit;
        bool mine = is_root(operation) || rank == operation->rank;

        if (bytes > 0 && takes_ring(operation, size * bytes)) {
            operation->ring |= mine && rank != operation->root;
        } else {
            shorten_block(operation, rank, unit);
        }
    }
}

/* In place at the root alone. */
static void draw_blocks_of_root(operation_t *operation, size_t unit)
{
    static const char *const names[2][2][2] = {
        {{"MPI_Iscatter", "MPI_Scatter_init"}, {"MPI_Igather", "MPI_Gather_init"}},
        {{"MPI_Iscatterv", "MPI_Scatterv_init"}, {"MPI_Igatherv", "MPI_Gatherv_init"}}};
    size_t block = (size_t) operation->blocks[0] * unit;

    operation->in_place &= is_root(operation);
    if (operation->unequal) {
        draw_ways(operation, unit);
    } else {
        operation->ring = takes_ring(operation, (size_t) operation->size * block);
        operation->persistent &= may_persist(operation);
        if (!operation->ring) {
            shorten_blocks(operation, unit);
        }
    }
    operation->name = names[operation->unequal][operation->collects][operation->persistent];
    for (int rank = 0; rank < operation->size; rank++) {
        operation->counts[rank] = operation->blocks[rank] * all_type(operation)->per_unit;
    }
    make_all_blocks(operation, operation->collects ? &operation->recv : &operation->send);
    make_own_block(operation, operation->collects ? &operation->send : &operation->recv);
}

/* What MPI reads of a call; of the rest, nothing that could be used. */
typedef struct arguments {
    void *all, *one;
    const int *counts, *displs; /* of all blocks, or */
    int each;                   /* of each one */
    int count;
    MPI_Datatype all_type, one_type;
} arguments_t;

static arguments_t arguments_of(operation_t *o)
{
    bool root = is_root(o);
    image_t *all = o->collects ? &o->recv : &o->send, *own = o->collects ? &o->send : &o->recv;

    return (arguments_t){.all = root ? all->buffer : NULL,
                         .one = o->in_place ? MPI_IN_PLACE : own->buffer,
                         .counts = root ? o->counts : NULL,
                         .displs = root ? o->displs : NULL,
                         .each = root ? o->counts[0] : -1,
                         .count = o->in_place ? -1 : own_count(o),
                         .all_type = root ? all_type(o)->type : MPI_DATATYPE_NULL,
                         .one_type = o->in_place ? MPI_DATATYPE_NULL : own_type(o)->type};
}

static int start_blocks_of_root(operation_t *o, MPI_Request *request)
{
    const arguments_t a = arguments_of(o);

    if (o->collects) {
        return o->persistent ? MPI_Gather_init(a.one, a.count, a.one_type, a.all, a.each,
                                               a.all_type, o->root, o->comm, MPI_INFO_NULL, request)
                             : MPI_Igather(a.one, a.count, a.one_type, a.all, a.each, a.all_type,
                                           o->root, o->comm, request);
    }
    return o->persistent ? MPI_Scatter_init(a.all, a.each, a.all_type, a.one, a.count, a.one_type,
                                            o->root, o->comm, MPI_INFO_NULL, request)
                         : MPI_Iscatter(a.all, a.each, a.all_type, a.one, a.count, a.one_type,
                                        o->root, o->comm, request);
}

static int start_unequal_of_root(operation_t *o, MPI_Request *request)
{
    const arguments_t a = arguments_of(o);

    if (o->collects) {
        return o->persistent
                   ? MPI_Gatherv_init(a.one, a.count, a.one_type, a.all, a.counts, a.displs,
                                      a.all_type, o->root, o->comm, MPI_INFO_NULL, request)
                   : MPI_Igatherv(a.one, a.count, a.one_type, a.all, a.counts, a.displs, a.all_type,
                                  o->root, o->comm, request);
    }
    return o->persistent ? MPI_Scatterv_init(a.all, a.counts, a.displs, a.all_type, a.one, a.count,
                                             a.one_type, o->root, o->comm, MPI_INFO_NULL, request)
                         : MPI_Iscatterv(a.all, a.counts, a.displs, a.all_type, a.one, a.count,
                                         a.one_type, o->root, o->comm, request);
}

/* -------------------------------------------------------------------------- both */

void draw_with_root(operation_t *operation, size_t unit)
{
    (operation->collects || operation->deals ? draw_blocks_of_root : draw_bcast)(operation, unit);
}

int start_with_root(operation_t *operation, MPI_Request *request)
{
    if (!operation->collects && !operation->deals) {
        return start_bcast(operation, request);
    }
    return (operation->unequal ? start_unequal_of_root : start_blocks_of_root)(operation, request);
}
