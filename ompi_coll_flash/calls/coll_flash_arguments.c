/*
 * coll_flash_arguments.c: the arguments of a call: which algorithm and which schedule serve it, and
 * keeping them.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "calls/coll_flash_kept.h"
#include "calls/coll_flash_packed.h"

size_t mca_coll_flash_bytes(flash_count_t count, flash_counts_t counts, MPI_Datatype type,
                            ompi_communicator_t *comm)
{
    size_t size, elements = 0;
    int nranks = ompi_comm_size(comm);

    ompi_datatype_type_size(type, &size);
    if (counts == NULL) {
        return (size_t) nranks * (size_t) count * size;
    }
    for (int rank = 0; rank < nranks; rank++) {
        elements += (size_t) counts[rank];
    }
    return elements * size;
}

#include <stdlib.h>
#include <string.h>

mca_coll_flash_reason_t mca_coll_flash_reduce_reason(MPI_Datatype datatype, MPI_Op op)
{
    if (!ompi_op_is_commute(op)) {
        return FLASH_NOT_COMMUTATIVE;
    }
    if (op == MPI_REPLACE || op == MPI_NO_OP) {
        return FLASH_NOT_OF_REDUCTIONS;
    }
    if (ompi_op_is_intrinsic(op)) {
        return ompi_datatype_is_predefined(datatype) ? FLASH_NO_REASON : FLASH_NOT_PREDEFINED;
    }
    return mca_coll_flash_is_solid(datatype) ? FLASH_NO_REASON : FLASH_TYPE_WITH_GAPS;
}

flash_kind_t mca_coll_flash_reduce_scatter_kind(const mca_coll_flash_module_t *module,
                                                const mca_coll_flash_settings_t *settings)
{
    bool fits = mca_coll_flash_may_exchange(module->comm);

    if (settings->algorithm != FLASH_PAIRWISE) {
        return FLASH_REDUCE_SCATTER;
    }
    FLASH_VERBOSE(2, "coll:flash: %s",
                  fits ? "pairwise, in place of the ring"
                       : "by the ring: too many ranks to be pairwise");
    return fits ? FLASH_PAIRWISE_REDUCE_SCATTER : FLASH_REDUCE_SCATTER;
}

static void take_steps(const flash_ring_t *ring, const mca_coll_flash_arguments_t *a,
                       flash_steps_t *taken)
{
    mca_coll_flash_layout_t sent = mca_coll_flash_sent_layout(a);
    mca_coll_flash_layout_t received = mca_coll_flash_received_layout(a);

    for (uint32_t distance = 1; distance < ring->nranks; distance++) {
        int right = (int) flash_ring_rank(ring, distance);
        int left = (int) flash_ring_rank(ring, ring->nranks - distance);

        if (mca_coll_flash_bytes_of_block(&sent, right) > 0) {
            flash_steps_add(taken, flash_schedule_exchange_step(distance, true));
        }
        if (mca_coll_flash_bytes_of_block(&received, left) > 0) {
            flash_steps_add(taken, flash_schedule_exchange_step(distance, false));
        }
    }
}

/* The root's of a gather or a scatter. */
static void take_roots_steps(const flash_ring_t *ring, const mca_coll_flash_arguments_t *a,
                             flash_steps_t *taken)
{
    mca_coll_flash_layout_t blocks = mca_coll_flash_roots_layout(a);

    for (uint32_t distance = 1; distance < ring->nranks; distance++) {
        int rank = (int) flash_ring_rank(ring, distance);

        if (mca_coll_flash_bytes_of_block(&blocks, rank) > 0) {
            flash_steps_add(taken, flash_schedule_roots_step(a->kind, ring->nranks, distance));
        }
    }
}

/* The step of another rank. */
static void take_step(const mca_coll_flash_arguments_t *a, flash_steps_t *taken)
{
    mca_coll_flash_layout_t blocks = mca_coll_flash_roots_layout(a);

    if (mca_coll_flash_block_bytes(&blocks) > 0) {
        flash_steps_add(taken, 0);
    }
}

flash_part_t mca_coll_flash_part_of(const mca_coll_flash_module_t *module,
                                    const mca_coll_flash_arguments_t *arguments,
                                    flash_steps_t *taken)
{
    flash_part_t part = {.from_root = 0};

    if (flash_schedule_has_root(arguments->kind)) {
        part.from_root = flash_ring_distance(&module->ring, (uint32_t) arguments->root);
    }
    if (!arguments->unequal) {
        return part;
    }
    /* Both ends of a step know the bytes that travel in it: a block's type signature is theirs alike. */
    *taken = (flash_steps_t){.bits = {0}};
    part.taken = taken;
    if (arguments->kind == FLASH_ALLTOALL) {
        take_steps(&module->ring, arguments, taken);
    } else if (part.from_root == 0) {
        take_roots_steps(&module->ring, arguments, taken);
    } else {
        take_step(arguments, taken);
    }
    return part;
}

/* Bytes that an algorithm with elements of its own must not cut; 0: it has none of that kind. */
static size_t element_of(const mca_coll_flash_arguments_t *a)
{
    ptrdiff_t extent;

    switch (a->kind) {
    case FLASH_ALLGATHER:
        return 1;
    case FLASH_REDUCE_SCATTER:
        ompi_datatype_type_extent(a->recvtype, &extent);
        return (size_t) extent;
    default:
        return 0;
    }
}

/* Of a gather or a scatter whose blocks differ: all blocks at the root, elsewhere its own one. */
static size_t bytes_of_roots(const mca_coll_flash_arguments_t *a, ompi_communicator_t *comm)
{
    mca_coll_flash_layout_t blocks = mca_coll_flash_roots_layout(a);

    return blocks.counts == NULL ? mca_coll_flash_block_bytes(&blocks)
                                 : mca_coll_flash_bytes(0, blocks.counts, blocks.type, comm);
}

static size_t bytes_of(const mca_coll_flash_arguments_t *a, ompi_communicator_t *comm)
{
    size_t size;

    if (a->unequal && flash_schedule_has_root(a->kind)) {
        return bytes_of_roots(a, comm);
    }
    if (a->kind == FLASH_ALLREDUCE || flash_schedule_chains(a->kind)) {
        ompi_datatype_type_size(a->recvtype, &size);
        return size * (size_t) a->recvcount;
    }
    return mca_coll_flash_bytes(a->recvcount, a->recvcounts, a->recvtype, comm);
}

mca_coll_flash_call_t mca_coll_flash_call_of(const char *name, const mca_coll_flash_arguments_t *a,
                                             ompi_communicator_t *comm)
{
    return (mca_coll_flash_call_t){
        .name = name,
        .kind = a->kind,
        .blocking = a->blocking,
        .bytes = bytes_of(a, comm),
        .element = element_of(a),
        .reason =
            a->op == NULL ? FLASH_NO_REASON : mca_coll_flash_reduce_reason(a->recvtype, a->op)};
}

mca_coll_flash_path_t mca_coll_flash_path_of(const char *name, const mca_coll_flash_arguments_t *a,
                                             mca_coll_flash_module_t *module,
                                             mca_coll_flash_setup_state_t *state)
{
    mca_coll_flash_call_t call = mca_coll_flash_call_of(name, a, module->comm);

    return mca_coll_flash_choose_path(&call, module, state);
}

mca_coll_flash_path_t mca_coll_flash_blocking_path_of(const char *name,
                                                      const mca_coll_flash_arguments_t *a,
                                                      mca_coll_flash_module_t *module,
                                                      const mca_coll_flash_settings_t *settings)
{
    mca_coll_flash_call_t call = mca_coll_flash_call_of(name, a, module->comm);

    return mca_coll_flash_choose_blocking_path(&call, module, settings);
}

mca_coll_flash_path_t mca_coll_flash_persistent_path_of(const char *name,
                                                        const mca_coll_flash_arguments_t *a,
                                                        mca_coll_flash_module_t *module,
                                                        mca_coll_flash_reason_t reason)
{
    mca_coll_flash_call_t call = mca_coll_flash_call_of(name, a, module->comm);

    call.element = 0; /* those algorithms match operations by their order */
    call.reason = reason != FLASH_NO_REASON ? reason : call.reason;
    return mca_coll_flash_choose_path(&call, module, NULL);
}

static void retain_op(MPI_Op op)
{
    if (op != NULL && !ompi_op_is_intrinsic(op)) {
        OBJ_RETAIN(op);
    }
}

static void release_op(MPI_Op op)
{
    if (op != NULL && !ompi_op_is_intrinsic(op)) {
        OBJ_RELEASE(op);
    }
}

static void retain_type(MPI_Datatype type)
{
    if (type != NULL && !ompi_datatype_is_predefined(type)) {
        OBJ_RETAIN(type);
    }
}

static void release_type(MPI_Datatype type)
{
    if (type != NULL && !ompi_datatype_is_predefined(type)) {
        OBJ_RELEASE(type);
    }
}

void mca_coll_flash_arguments_retain(const mca_coll_flash_arguments_t *arguments)
{
    retain_type(arguments->sendtype);
    retain_type(arguments->recvtype);
    retain_op(arguments->op);
}

void mca_coll_flash_arguments_release(const mca_coll_flash_arguments_t *arguments)
{
    release_type(arguments->sendtype);
    release_type(arguments->recvtype);
    release_op(arguments->op);
}

int mca_coll_flash_arguments_copy(mca_coll_flash_arguments_t *a, int ranks, flash_count_t **copies)
{
    const int **const arrays[] = {&a->recvcounts, &a->displs, &a->sendcounts, &a->sdispls};
    enum { ARRAYS = sizeof(arrays) / sizeof(arrays[0]) };
    size_t size = (size_t) ranks;

    if (a->recvcounts == NULL && a->sendcounts == NULL) {
        return MPI_SUCCESS;
    }
    *copies = malloc(ARRAYS * size * sizeof(**copies));
    if (*copies == NULL) {
        return MPI_ERR_NO_MEM;
    }
    for (size_t k = 0; k < ARRAYS; k++) {
        if (*arrays[k] != NULL) {
            memcpy(*copies + k * size, *arrays[k], size * sizeof(**arrays[k]));
            *arrays[k] = *copies + k * size;
        }
    }
    return MPI_SUCCESS;
}
