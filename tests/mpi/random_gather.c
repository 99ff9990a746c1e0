/*
 * random_gather.c: random allgathers and all-to-alls.
 *
 * Each rank describes the blocks in its own way: other types with the same signature, other
 * displacements, other order.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "random_ops.h"

/* ------------------------------------------------------------------------ types */

/* Elements without data, 8 bytes apart: nothing may be written. */
static void make_nothing(typed_t *typed)
{
    MPI_Datatype none;

    *typed = (typed_t){.per_unit = 1, .extent = 8};
    MPI_Type_contiguous(0, MPI_INT, &none);
    MPI_Type_create_resized(none, 0, 8, &typed->type);
    MPI_Type_free(&none);
    MPI_Type_commit(&typed->type);
}

/* A unit of one predefined element, for blocks of any length. */
static void make_single(typed_t *typed, int signature)
{
    typed_make(typed, signature, WAY_PREDEFINED);
    typed->per_unit = 1;
}

/* Each rank its own; the extension wants receive types of the same size on all ranks. */
static void draw_ways(operation_t *operation, int signature, uint64_t *all)
{
    uint64_t *own = &operation->own;
    int way = (int) prng_below(own, WAYS);

    if (operation->compute) {
        way = prng_percent(all, 30) ? WAY_PREDEFINED
                                    : WAY_CONTIGUOUS + (int) prng_below(own, WAYS - WAY_CONTIGUOUS);
    }
    typed_make(&operation->recv_type, signature, way);
    typed_make(&operation->send_type, signature, (int) prng_below(own, WAYS));
}

static void draw_types(operation_t *operation, uint64_t *all)
{
    int signature = (int) prng_below(all, SIGNATURES);
    uint32_t kind = prng_below(all, 100);

    if (kind < 3 && !operation->compute) {
        make_nothing(&operation->send_type);
        make_nothing(&operation->recv_type);
    } else if (kind < 40) {
        make_single(&operation->send_type, signature);
        make_single(&operation->recv_type, signature);
    } else {
        draw_ways(operation, signature, all);
    }
}

void free_gather_types(operation_t *operation)
{
    typed_free(&operation->send_type);
    typed_free(&operation->recv_type);
}

/* ----------------------------------------------------------------------- places */

size_t place_blocks(operation_t *operation, int *origin)
{
    uint64_t *own = &operation->own;
    int next = 0, room = prng_percent(own, 60) ? 4 : 1, size = operation->size;
    int order[size];

    for (int k = 0; k < size; k++) {
        int other = (int) prng_below(own, (uint32_t) k + 1);

        order[k] = order[other];
        order[other] = k;
    }
    for (int k = 0; k < size; k++) {
        next += (int) prng_below(own, (uint32_t) room);
        operation->displs[order[k]] = next;
        next += operation->counts[order[k]];
    }
    *origin = prng_percent(own, 25) ? (int) prng_below(own, (uint32_t) next + 1) : 0;
    for (int k = 0; k < size; k++) {
        operation->displs[k] -= *origin;
    }
    return (size_t) next;
}

size_t place_in_a_row(operation_t *operation)
{
    for (int rank = 0; rank < operation->size; rank++) {
        operation->displs[rank] = rank * operation->counts[rank];
    }
    return (size_t) operation->size * (size_t) operation->counts[0];
}

/* An all-to-all of unequal blocks: as many units go from one rank to another as come back. */
static bool has_pairs(const operation_t *operation)
{
    return operation->exchanges && operation->unequal;
}

static int units_with(const operation_t *operation, int other)
{
    return operation
        ->blocks[has_pairs(operation) ? (operation->rank + other) % operation->size : other];
}

/* Of equal blocks, or the only one. */
static int send_count(const operation_t *operation)
{
    return operation->blocks[operation->rank] * operation->send_type.per_unit;
}

/* Where what goes to a rank begins, in elements, and how many these are. */
static int sent_to(const operation_t *operation, int rank, int *count)
{
    int before = 0;

    for (int k = 0; k < rank && operation->exchanges; k++) {
        before += units_with(operation, k) * operation->send_type.per_unit;
    }
    *count = operation->exchanges ? units_with(operation, rank) * operation->send_type.per_unit
                                  : send_count(operation);
    return before;
}

/* Whose pattern a block holds that goes from a rank to another one. */
static int owner_of(const operation_t *operation, int from, int to)
{
    return operation->exchanges ? 64 * from + to : from;
}

static void make_send_image(operation_t *operation)
{
    const typed_t *send = &operation->send_type;
    int blocks = operation->exchanges ? operation->size : 1, count, last;
    int begin = sent_to(operation, blocks - 1, &last);

    make_image(&operation->send, typed_margin(send),
               (size_t) (begin + last) * (size_t) send->extent, typed_margin(send),
               operation->salt + 1);
    for (int k = 0; k < blocks; k++) {
        begin = sent_to(operation, k, &count);
        typed_write(send, operation->send.buffer + (ptrdiff_t) begin * send->extent, (size_t) count,
                    owner_of(operation, operation->rank, k), operation->salt);
    }
    memcpy(operation->send.wanted, operation->send.memory, operation->send.bytes);
}

/* What the send buffer is, and what becomes of the receive buffer. */
static void make_images(operation_t *operation)
{
    const typed_t *recv = &operation->recv_type;
    int rank = operation->rank, origin = 0;
    size_t elements =
        operation->unequal ? place_blocks(operation, &origin) : place_in_a_row(operation);
    size_t before = typed_margin(recv) + (size_t) origin * (size_t) recv->extent;

    make_send_image(operation);
    make_image(&operation->recv, before, (elements - (size_t) origin) * (size_t) recv->extent,
               typed_margin(recv), operation->salt + 2);
    for (int k = 0; k < operation->size; k++) {
        ptrdiff_t place = operation->displs[k] * recv->extent;
        ptrdiff_t wanted = operation->recv.buffer - operation->recv.memory + place;

        typed_write(recv, operation->recv.wanted + wanted, (size_t) operation->counts[k],
                    owner_of(operation, k, rank), operation->salt);
        if (operation->in_place && (k == rank || operation->exchanges)) {
            typed_write(recv, operation->recv.buffer + place, (size_t) operation->counts[k],
                        owner_of(operation, rank, k), operation->salt);
        }
    }
}

static size_t total_bytes(const operation_t *operation, size_t unit)
{
    size_t total = 0;

    for (int rank = 0; rank < operation->size; rank++) {
        total += (size_t) operation->blocks[rank] * unit;
    }
    return total;
}

/*
 * Open MPI 4.1.4 sends wrong bytes from types that have a gap at their end alone, where a message
 * longer than 64 KiB is packed in parts (flash packs a block at once). What it gets stays short.
 */
void shorten_block(operation_t *operation, int block, size_t unit)
{
    enum { SHORT = 4096 };

    if ((size_t) operation->blocks[block] * unit > SHORT) {
        operation->blocks[block] = (int) (SHORT / unit);
    }
}

void shorten_blocks(operation_t *operation, size_t unit)
{
    for (int rank = 0; rank < operation->size; rank++) {
        shorten_block(operation, rank, unit);
    }
}

/* Each block goes its own way; a rank's call counts as the ring's if one that comes or goes does. */
static void draw_pairs(operation_t *operation, size_t unit)
{
    size_t size = (size_t) operation->size;
    bool all_by_ring = takes_ring(operation, size);

    operation->in_place &= all_by_ring; /* see may_be_in_place() in test_alltoallv.c */
    operation->shared = !all_by_ring;
    operation->persistent &= all_by_ring || !options.watch_memory;
    operation->ring = all_by_ring;
    for (int k = 0; k < operation->size && !all_by_ring; k++) {
        int block = (operation->rank + k) % operation->size;
        size_t bytes = (size_t) operation->blocks[block] * unit;

        if (bytes > 0 && takes_ring(operation, size * bytes)) {
            operation->ring |= k != operation->rank;
        } else {
            shorten_block(operation, block, unit);
        }
    }
}

void draw_gather(operation_t *operation, uint64_t *all)
{
    static const char *const names_of_exchanges[2][2] = {{"MPI_Ialltoall", "MPI_Alltoall_init"},
                                                         {"MPI_Ialltoallv", "MPI_Alltoallv_init"}};
    static const char *const names[3][2] = {{"MPI_Iallgather", "MPI_Iallgatherv"},
                                            {"MPIX_Iallgather_compute", "MPIX_Iallgatherv_compute"},
                                            {"MPI_Allgather_init", "MPI_Allgatherv_init"}};
    int form;
    size_t unit;

    draw_types(operation, all);
    unit = typed_unit_bytes(&operation->recv_type);
    draw_blocks(operation, all, options.most / (unit > 0 ? unit : 8));
    if (operation->rooted) {
        draw_with_root(operation, unit);
        return;
    }
    if (has_pairs(operation)) {
        draw_pairs(operation, unit);
    } else {
        operation->ring = takes_ring(operation, total_bytes(operation, unit));
        operation->persistent &= may_persist(operation);
        if (!operation->ring) {
            shorten_blocks(operation, unit);
            operation->recdbl = goes_recdbl(operation, total_bytes(operation, unit));
            operation->ring = operation->recdbl;
        }
    }
    form = operation->persistent ? 2 : operation->compute;
    operation->name = operation->exchanges
                          ? names_of_exchanges[operation->unequal][operation->persistent]
                          : names[form][operation->unequal];
    for (int rank = 0; rank < operation->size; rank++) {
        operation->counts[rank] = units_with(operation, rank) * operation->recv_type.per_unit;
    }
    make_images(operation);
}

/* ------------------------------------------------------------------- the calls */

static bool in_send_buffer(const operation_t *operation, const void *data)
{
    const image_t *send = &operation->send;

    return (uintptr_t) data - (uintptr_t) send->memory < send->bytes;
}

static void check_data(operation_t *operation, const MPIX_Flash_block *block)
{
    const typed_t *typed = &operation->recv_type;
    const unsigned char *place =
        operation->recv.buffer +
        (operation->displs[block->rank] + (ptrdiff_t) block->offset) * typed->extent;
    bool own = !operation->in_place && block->rank == operation->rank &&
               in_send_buffer(operation, block->data);

    if ((block->data != place && !own) ||
        !typed_is(typed, block->data, (size_t) block->offset, (size_t) block->count, block->rank,
                  operation->salt)) {
        fail(operation->sequence, operation->number,
             "%s, rank %d of %d: block %d's elements %lld to %lld %s", operation->name,
             operation->rank, operation->size, block->rank, (long long) block->offset,
             (long long) (block->offset + block->count),
             block->data != place && !own ? "are not in their place" : "are not there yet");
    }
}

static int consume(const MPIX_Flash_block *block, void *arg)
{
    check_piece(arg, block);
    return now_or_later(arg, block, check_data);
}

static int start_compute(operation_t *o, const void *send, int count, MPI_Request *request)
{
    MPI_Datatype from = o->send_type.type, to = o->recv_type.type;

    if (o->blocking) {
        return o->unequal ? MPIX_Allgatherv_compute(send, count, from, o->recv.buffer, o->counts,
                                                    o->displs, to, consume, o, hints_of(o), o->comm)
                          : MPIX_Allgather_compute(send, count, from, o->recv.buffer, o->counts[0],
                                                   to, consume, o, hints_of(o), o->comm);
    }
    return o->unequal
               ? MPIX_Iallgatherv_compute(send, count, from, o->recv.buffer, o->counts, o->displs,
                                          to, consume, o, hints_of(o), o->comm, request)
               : MPIX_Iallgather_compute(send, count, from, o->recv.buffer, o->counts[0], to,
                                         consume, o, hints_of(o), o->comm, request);
}

static int start_pairs(operation_t *o, const void *send, MPI_Request *request)
{
    MPI_Datatype from = o->send_type.type, to = o->recv_type.type;
    int *counts = o->sent_counts, *displs = o->sent_counts + o->size;

    for (int rank = 0; rank < o->size; rank++) {
        displs[rank] = sent_to(o, rank, &counts[rank]);
    }
    return o->persistent ? MPI_Alltoallv_init(send, counts, displs, from, o->recv.buffer, o->counts,
                                              o->displs, to, o->comm, MPI_INFO_NULL, request)
                         : MPI_Ialltoallv(send, counts, displs, from, o->recv.buffer, o->counts,
                                          o->displs, to, o->comm, request);
}

static int start_exchange(operation_t *o, const void *send, int count, MPI_Request *request)
{
    MPI_Datatype from = o->send_type.type, to = o->recv_type.type;

    if (o->unequal) {
        return start_pairs(o, send, request);
    }
    return o->persistent ? MPI_Alltoall_init(send, count, from, o->recv.buffer, o->counts[0], to,
                                             o->comm, MPI_INFO_NULL, request)
                         : MPI_Ialltoall(send, count, from, o->recv.buffer, o->counts[0], to,
                                         o->comm, request);
}

static int init_gather(operation_t *o, const void *send, int count, MPI_Request *request)
{
    MPI_Datatype from = o->send_type.type, to = o->recv_type.type;

    return o->unequal ? MPI_Allgatherv_init(send, count, from, o->recv.buffer, o->counts, o->displs,
                                            to, o->comm, MPI_INFO_NULL, request)
                      : MPI_Allgather_init(send, count, from, o->recv.buffer, o->counts[0], to,
                                           o->comm, MPI_INFO_NULL, request);
}

int start_gather(operation_t *o, MPI_Request *request)
{
    const void *send = o->in_place ? MPI_IN_PLACE : o->send.buffer;
    MPI_Datatype from = o->send_type.type, to = o->recv_type.type;
    int count = send_count(o);

    if (o->compute) {
        return start_compute(o, send, count, request);
    }
    if (o->rooted) {
        return start_with_root(o, request);
    }
    if (o->exchanges) {
        return start_exchange(o, send, count, request);
    }
    if (o->persistent) {
        return init_gather(o, send, count, request);
    }
    return o->unequal ? MPI_Iallgatherv(send, count, from, o->recv.buffer, o->counts, o->displs, to,
                                        o->comm, request)
                      : MPI_Iallgather(send, count, from, o->recv.buffer, o->counts[0], to, o->comm,
                                       request);
}

void check_gather(operation_t *operation)
{
    check_image(operation, &operation->send, "send");
    check_image(operation, &operation->recv, "receive");
}
