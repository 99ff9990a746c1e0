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

static void make_side(operation_t *operation, image_t *image, const typed_t *typed, int blocks,
                      unsigned salt)
{
    size_t count = (size_t) (operation->blocks[0] * typed->per_unit);

    make_image(image, typed_margin(typed), (size_t) blocks * count * (size_t) typed->extent,
               typed_margin(typed), salt);
}

/* A rank's block at a place of an image: what it must hold in the end, and what it holds at first. */
static void write_block(operation_t *operation, image_t *image, const typed_t *typed, int at,
                        int rank, bool holds)
{
    size_t count = (size_t) (operation->blocks[0] * typed->per_unit);
    ptrdiff_t place = (ptrdiff_t) ((size_t) at * count) * typed->extent;

    typed_write(typed, image->wanted + (image->buffer - image->memory) + place, count,
                owner_of(operation, rank), operation->salt);
    if (holds) {
        typed_write(typed, image->buffer + place, count, owner_of(operation, rank),
                    operation->salt);
    }
}

/* The root has all blocks, on the side that it receives or sends; each rank has its own. */
static void make_sides(operation_t *operation)
{
    bool collects = operation->collects;
    image_t *all = collects ? &operation->recv : &operation->send;
    image_t *own = collects ? &operation->send : &operation->recv;
    const typed_t *all_type = collects ? &operation->recv_type : &operation->send_type;
    const typed_t *own_type = collects ? &operation->send_type : &operation->recv_type;

    make_side(operation, all, all_type, is_root(operation) ? operation->size : 0,
              operation->salt + 1);
    make_side(operation, own, own_type, 1, operation->salt + 2);
    for (int rank = 0; rank < operation->size && is_root(operation); rank++) {
        bool in_place = operation->in_place && rank == operation->rank;

        write_block(operation, all, all_type, rank, rank, !collects || in_place);
    }
    if (!operation->in_place) {
        write_block(operation, own, own_type, 0, operation->rank, collects);
    }
}

/* In place at the root alone. */
static void draw_blocks_of_root(operation_t *operation, size_t unit)
{
    static const char *const names[2][2] = {{"MPI_Iscatter", "MPI_Scatter_init"},
                                            {"MPI_Igather", "MPI_Gather_init"}};
    size_t block = (size_t) operation->blocks[0] * unit;

    operation->in_place &= is_root(operation);
    operation->ring = takes_ring(operation, (size_t) operation->size * block);
    operation->persistent &= may_persist(operation);
    if (!operation->ring) {
        shorten_blocks(operation, unit);
    }
    operation->name = names[operation->collects][operation->persistent];
    for (int rank = 0; rank < operation->size; rank++) {
        operation->counts[rank] = operation->blocks[0] * operation->recv_type.per_unit;
    }
    make_sides(operation);
}

/* The arguments of one side. */
typedef struct side {
    void *buffer;
    int count;
    MPI_Datatype type;
} side_t;

/* `significant`: else MPI reads nothing of it. */
static side_t side_of(const operation_t *operation, const image_t *image, const typed_t *typed,
                      bool significant)
{
    return significant
               ? (side_t){image->buffer, operation->blocks[0] * typed->per_unit, typed->type}
               : (side_t){NULL, -1, MPI_DATATYPE_NULL};
}

static int start_blocks_of_root(operation_t *o, MPI_Request *request)
{
    side_t from = side_of(o, &o->send, &o->send_type, o->collects ? !o->in_place : is_root(o));
    side_t to = side_of(o, &o->recv, &o->recv_type, o->collects ? is_root(o) : !o->in_place);

    if (o->in_place) {
        (o->collects ? &from : &to)->buffer = MPI_IN_PLACE;
    }
    if (o->persistent) {
        return (o->collects ? MPI_Gather_init : MPI_Scatter_init)(
            from.buffer, from.count, from.type, to.buffer, to.count, to.type, o->root, o->comm,
            MPI_INFO_NULL, request);
    }
    return (o->collects ? MPI_Igather : MPI_Iscatter)(from.buffer, from.count, from.type, to.buffer,
                                                      to.count, to.type, o->root, o->comm, request);
}

/* -------------------------------------------------------------------------- both */

void draw_with_root(operation_t *operation, size_t unit)
{
    (operation->collects || operation->deals ? draw_blocks_of_root : draw_bcast)(operation, unit);
}

int start_with_root(operation_t *operation, MPI_Request *request)
{
    return operation->collects || operation->deals ? start_blocks_of_root(operation, request)
                                                   : start_bcast(operation, request);
}
