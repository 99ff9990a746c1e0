/*
 * random_reduce.c: random reduce-scatters, allreduces and reduces.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "random_ops.h"

enum { GUARD = 64 };

/* Index of an element in the stream of operands that this operation takes its own from. */
static size_t index_of(const operation_t *operation, size_t element)
{
    return operation->salt + element;
}

/* In the contributions, where blocks lie in the order of the ranks. */
static size_t first_element(const operation_t *operation, int block)
{
    size_t first = 0;

    for (int rank = 0; rank < block; rank++) {
        first += (size_t) operation->blocks[rank];
    }
    return first;
}

/* The elements of the result on this rank: from which on, and how many. */
static size_t first_of_result(const operation_t *operation)
{
    return operation->everywhere || operation->rooted ? 0
                                                      : first_element(operation, operation->rank);
}

static size_t count_of_result(const operation_t *operation)
{
    if (operation->rooted && operation->rank != operation->root) {
        return 0;
    }
    return operation->everywhere || operation->rooted ? first_element(operation, operation->size)
                                                      : (size_t) operation->blocks[operation->rank];
}

/* Writes this rank's contribution to the elements from `first` on. */
static void contribute(const operation_t *operation, unsigned char *to, size_t first, size_t count)
{
    const reduction_t *reduction = &operation->reduction;

    for (size_t k = 0; k < count; k++) {
        reduction->operand(to + k * reduction->extent, operation->rank,
                           index_of(operation, first + k), reduction->op);
    }
}

static void make_images(operation_t *operation)
{
    size_t extent = operation->reduction.extent;
    size_t elements = first_element(operation, operation->size);
    size_t room = operation->in_place ? elements : count_of_result(operation);

    make_image(&operation->recv, GUARD, room * extent, GUARD, operation->salt + 1);
    if (operation->in_place) {
        contribute(operation, operation->recv.buffer, 0, elements);
    } else if (!operation->compute) {
        make_image(&operation->send, GUARD, elements * extent, GUARD, operation->salt + 2);
        contribute(operation, operation->send.buffer, 0, elements);
        memcpy(operation->send.wanted, operation->send.memory, operation->send.bytes);
    }
}

static void draw_reduction(operation_t *operation, uint64_t *all)
{
    size_t count;
    const reduction_t *predefined = reductions(&count);
    int user = prng_percent(all, 20) ? (int) prng_below(all, USER_REDUCTIONS) : -1;

    if (user >= 0) {
        user_reduction_make(&operation->reduction, user);
        return;
    }
    operation->free_early = false; /* nothing to free */
    operation->reduction = predefined[prng_below(all, (uint32_t) count)];
}

static bool is_predefined(const operation_t *operation)
{
    size_t count;
    const reduction_t *predefined = reductions(&count);

    for (size_t k = 0; k < count; k++) {
        if (predefined[k].operand == operation->reduction.operand) {
            return true;
        }
    }
    return false;
}

/* Those of the user's own that are have no gaps in their type. */
static bool is_commutative(const operation_t *operation)
{
    int commutes;

    MPI_Op_commutative(operation->reduction.op, &commutes);
    return commutes;
}

void free_reduce_types(operation_t *operation)
{
    if (!is_predefined(operation)) {
        user_reduction_free(&operation->reduction);
    }
}

/* As Open MPI's own, see coll_flash_allreduce.c. */
static bool is_unseen(const operation_t *operation)
{
    const reduction_t *reduction = &operation->reduction;
    bool vector = operation->everywhere || operation->rooted;

    return vector && !operation->persistent && first_element(operation, operation->size) == 1 &&
           reduction->type == MPI_INT && (reduction->op == MPI_MAX || reduction->op == MPI_MIN);
}

/* Of a reduce: at the root; of Open MPI's own, what is usual. */
static bool may_be_in_place(const operation_t *operation)
{
    bool usual = is_commutative(operation) && !operation->persistent;

    return operation->rank == operation->root && (operation->ring || usual);
}

void draw_reduce(operation_t *operation, uint64_t *all)
{
    static const char *const names_everywhere[] = {"MPI_Iallreduce", "MPI_Allreduce_init"};
    static const char *const names_rooted[] = {"MPI_Ireduce", "MPI_Reduce_init"};
    static const char *const names[3][2] = {
        {"MPI_Ireduce_scatter_block", "MPI_Ireduce_scatter"},
        {"MPIX_Ireduce_scatter_block_compute", "MPIX_Ireduce_scatter_compute"},
        {"MPI_Reduce_scatter_block_init", "MPI_Reduce_scatter_init"}};
    int form;
    size_t extent, total;
    int bytes;

    operation->in_place &= !operation->compute;
    draw_reduction(operation, all);
    extent = operation->reduction.extent;
    draw_blocks(operation, all, options.most / extent);
    memcpy(operation->counts, operation->blocks, (size_t) operation->size * sizeof(int));
    MPI_Type_size(operation->reduction.type, &bytes);
    total = first_element(operation, operation->size) * (size_t) bytes;
    operation->persistent &= !operation->rooted || total > 0; /* as Open MPI lets it be seen */
    operation->ring = is_commutative(operation) && takes_ring(operation, total);
    operation->persistent &= may_persist(operation);
    operation->recdbl =
        !operation->ring && is_commutative(operation) && goes_recdbl(operation, total);
    operation->ring |= operation->recdbl;
    operation->pairwise =
        !operation->ring && is_commutative(operation) && goes_pairwise(operation, total);
    operation->ring |= operation->pairwise;
    form = operation->persistent ? 2 : operation->compute;
    operation->name = operation->everywhere ? names_everywhere[operation->persistent]
                      : operation->rooted   ? names_rooted[operation->persistent]
                                            : names[form][operation->unequal];
    operation->in_place &= !operation->rooted || may_be_in_place(operation);
    operation->unseen = is_unseen(operation);
    operation->ring &= !operation->unseen;
    make_images(operation);
}

/* ------------------------------------------------------------------- the calls */

static void make_data(operation_t *operation, const MPIX_Flash_block *block)
{
    contribute(operation, block->data,
               first_element(operation, block->rank) + (size_t) block->offset,
               (size_t) block->count);
}

static int produce(const MPIX_Flash_block *block, void *arg)
{
    operation_t *operation = arg;
    bool aligned = !operation->ring || block->pieces > 1 || (uintptr_t) block->data % 64 == 0;

    check_piece(operation, block);
    if (!aligned) {
        fail(operation->sequence, operation->number, "%s: memory not aligned", operation->name);
    }
    return now_or_later(operation, block, make_data);
}

static int start_compute(operation_t *o, MPI_Request *request)
{
    MPI_Datatype type = o->reduction.type;
    MPI_Op op = o->reduction.op;

    if (o->blocking) {
        return o->unequal
                   ? MPIX_Reduce_scatter_compute(produce, o, hints_of(o), o->recv.buffer, o->counts,
                                                 type, op, o->comm)
                   : MPIX_Reduce_scatter_block_compute(produce, o, hints_of(o), o->recv.buffer,
                                                       o->counts[0], type, op, o->comm);
    }
    return o->unequal
               ? MPIX_Ireduce_scatter_compute(produce, o, hints_of(o), o->recv.buffer, o->counts,
                                              type, op, o->comm, request)
               : MPIX_Ireduce_scatter_block_compute(produce, o, hints_of(o), o->recv.buffer,
                                                    o->counts[0], type, op, o->comm, request);
}

static int start_everywhere(operation_t *o, const void *send, MPI_Request *request)
{
    int count = (int) count_of_result(o);
    MPI_Datatype type = o->reduction.type;
    MPI_Op op = o->reduction.op;

    return o->persistent ? MPI_Allreduce_init(send, o->recv.buffer, count, type, op, o->comm,
                                              MPI_INFO_NULL, request)
                         : MPI_Iallreduce(send, o->recv.buffer, count, type, op, o->comm, request);
}

static int start_rooted(operation_t *o, const void *send, MPI_Request *request)
{
    int count = (int) first_element(o, o->size);
    MPI_Datatype type = o->reduction.type;
    MPI_Op op = o->reduction.op;

    return o->persistent
               ? MPI_Reduce_init(send, o->recv.buffer, count, type, op, o->root, o->comm,
                                 MPI_INFO_NULL, request)
               : MPI_Ireduce(send, o->recv.buffer, count, type, op, o->root, o->comm, request);
}

static int init_reduce(operation_t *o, const void *send, MPI_Request *request)
{
    MPI_Datatype type = o->reduction.type;
    MPI_Op op = o->reduction.op;

    return o->unequal ? MPI_Reduce_scatter_init(send, o->recv.buffer, o->counts, type, op, o->comm,
                                                MPI_INFO_NULL, request)
                      : MPI_Reduce_scatter_block_init(send, o->recv.buffer, o->counts[0], type, op,
                                                      o->comm, MPI_INFO_NULL, request);
}

int start_reduce(operation_t *o, MPI_Request *request)
{
    const void *send = o->in_place ? MPI_IN_PLACE : o->send.buffer;
    MPI_Datatype type = o->reduction.type;
    MPI_Op op = o->reduction.op;

    if (o->compute) {
        return start_compute(o, request);
    }
    if (o->everywhere) {
        return start_everywhere(o, send, request);
    }
    if (o->rooted) {
        return start_rooted(o, send, request);
    }
    if (o->persistent) {
        return init_reduce(o, send, request);
    }
    return o->unequal
               ? MPI_Ireduce_scatter(send, o->recv.buffer, o->counts, type, op, o->comm, request)
               : MPI_Ireduce_scatter_block(send, o->recv.buffer, o->counts[0], type, op, o->comm,
                                           request);
}

/* ------------------------------------------------------------------- the results */

/* What lies between the data of an element counts as right, as do the operands behind the result
   of a call in place. */
void check_reduce(operation_t *operation)
{
    const reduction_t *reduction = &operation->reduction;
    size_t first = first_of_result(operation);
    size_t count = count_of_result(operation);
    size_t room = operation->in_place ? first_element(operation, operation->size) : count;
    ptrdiff_t start = operation->recv.buffer - operation->recv.memory;
    _Alignas(16) unsigned char wanted[REDUCTION_MOST_BYTES] = {0};

    for (size_t k = 0; k < count; k++) {
        reduction->result(wanted, operation->size, index_of(operation, first + k), reduction->op);
        if (!reduction->equal(wanted, operation->recv.buffer + k * reduction->extent)) {
            fail(operation->sequence, operation->number,
                 "%s, %s of %s, rank %d of %d: element %zu of %zu is wrong", operation->name,
                 reduction->op_name, reduction->name, operation->rank, operation->size, k, count);
        }
    }
    memcpy(operation->recv.wanted + start, operation->recv.buffer, room * reduction->extent);
    check_image(operation, &operation->send, "send");
    check_image(operation, &operation->recv, "receive");
}
