/*
 * two_callbacks.c: see two_callbacks.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "two_callbacks.h"

#include <string.h>

#include "mpitest.h"

/* What a rank contributes to an element: to the vector's, or to a block of another rank's. */
static int64_t value(const two_callbacks_run_t *run, int from, int to, MPI_Count index)
{
    return run->salt + from * INT64_C(1000003) + (run->shape.reduces ? 0 : to * INT64_C(10007)) +
           index;
}

static int64_t result(const two_callbacks_run_t *run, int from, MPI_Count index)
{
    int64_t sum = 0;

    if (!run->shape.reduces) {
        return value(run, from, run->rank, index);
    }
    for (int rank = 0; rank < run->size; rank++) {
        sum += value(run, rank, 0, index);
    }
    return sum;
}

/*
 * Whether there are that rank's results from `index` on: each element's is as much more than the
 * one before it.
 */
static bool are_results(const two_callbacks_run_t *run, int from, MPI_Count index,
                        const int64_t *data, MPI_Count count)
{
    int64_t first = result(run, from, index), step = run->shape.reduces ? run->size : 1;
    bool right = true;

    for (MPI_Count k = 0; k < count; k++) {
        right &= data[k] == first + step * k;
    }
    return right;
}

/* ------------------------------------------------------------------ callbacks */

static int end(two_callbacks_run_t *run, const MPIX_Flash_block *block, bool fails)
{
    return end_piece(block, fails && world_rank == 0 ? (int) TWO_CALLBACKS_FAILED : MPI_SUCCESS,
                     run->shape.pends, run->shape.late ? &run->late : NULL);
}

/* Notes the elements of a piece, each of which is to come once. */
static void note(two_callbacks_run_t *run, unsigned char *seen, size_t first,
                 const MPIX_Flash_block *block)
{
    bool again = false;

    seen += first + (size_t) block->offset;
    for (MPI_Count k = 0; k < block->count; k++) {
        again |= seen[k]++ > 0;
    }
    run->wrong |= again || block->count < 1 || block->piece < 0 || block->piece >= block->pieces ||
                  block->datatype != MPI_INT64_T || block->on_stream != 0;
}

/* The own block is the last. */
int two_callbacks_produce(const MPIX_Flash_block *block, void *arg)
{
    two_callbacks_run_t *run = arg;
    int64_t *data = block->data;
    MPI_Count base = run->shape.reduces ? block->displ + block->offset : block->offset;
    int64_t first = value(run, run->rank, block->rank, base);

    run->wrong |= run->consume_calls > 0 || (run->own_produced && block->rank != run->rank);
    run->own_produced |= block->rank == run->rank;
    run->wrong |=
        !run->shape.reduces && (block->displ != run->sdispls[block->rank] ||
                                data != run->send + run->sdispls[block->rank] + block->offset);
    note(run, run->produced, (size_t) block->displ, block);
    for (MPI_Count k = 0; k < block->count; k++) {
        data[k] = first + k;
    }
    return end(run, block, ++run->produce_calls == run->shape.fail_produce);
}

/* The own block is the first. */
int two_callbacks_consume(const MPIX_Flash_block *block, void *arg)
{
    two_callbacks_run_t *run = arg;
    const int64_t *data = block->data;
    MPI_Count base = run->shape.reduces ? block->displ + block->offset : block->offset;
    size_t own = run->shape.reduces ? 1 : (size_t) run->recvcounts[run->rank];
    bool in_send = !run->shape.reduces && block->rank == run->rank &&
                   data == run->send + run->sdispls[run->rank] + block->offset;

    run->wrong |= block->rank != run->rank && own > 0 && !run->own_consumed && !run->shape.reduces;
    run->own_consumed |= block->rank == run->rank;
    run->wrong |= !in_send && data != run->recv + block->displ + block->offset;
    note(run, run->consumed, (size_t) block->displ, block);
    run->wrong |= !are_results(run, block->rank, base, data, block->count);
    return end(run, block, ++run->consume_calls == run->shape.fail_consume);
}

/* -------------------------------------------------------------------- running */

/* What a rank sends to another. */
static int count_between(const two_callbacks_shape_t *shape, int from, int to)
{
    return !shape->unequal            ? shape->count
           : (2 * from + to) % 3 == 2 ? 0
                                      : shape->count + (from + 3 * to) % 5;
}

static void make_blocks(two_callbacks_run_t *run)
{
    int out = 0, in = 0;

    run->sendcounts = get_memory((size_t) run->size * sizeof(*run->sendcounts));
    run->recvcounts = get_memory((size_t) run->size * sizeof(*run->recvcounts));
    run->sdispls = get_memory((size_t) run->size * sizeof(*run->sdispls));
    run->rdispls = get_memory((size_t) run->size * sizeof(*run->rdispls));
    for (int rank = 0; rank < run->size; rank++) {
        run->sendcounts[rank] = count_between(&run->shape, run->rank, rank);
        run->recvcounts[rank] = count_between(&run->shape, rank, run->rank);
        run->sdispls[rank] = out;
        run->rdispls[rank] = in;
        out += run->sendcounts[rank];
        in += run->recvcounts[rank];
    }
    run->to_produce = run->shape.reduces ? (size_t) run->shape.count : (size_t) out;
    run->to_consume = run->shape.reduces ? (size_t) run->shape.count : (size_t) in;
}

void two_callbacks_make(two_callbacks_run_t *run, const two_callbacks_shape_t *shape, MPI_Comm comm)
{
    static int64_t turn;

    *run =
        (two_callbacks_run_t){.shape = *shape, .comm = comm, .salt = ++turn * INT64_C(1000000007)};
    MPI_Comm_rank(comm, &run->rank);
    MPI_Comm_size(comm, &run->size);
    make_blocks(run);
    run->send = get_memory((run->to_produce + 1) * sizeof(*run->send));
    run->recv = get_memory((run->to_consume + 1) * sizeof(*run->recv));
    run->produced = get_memory(run->to_produce + 1);
    run->consumed = get_memory(run->to_consume + 1);
    memset(run->send, 0x5a, (run->to_produce + 1) * sizeof(*run->send));
    memset(run->recv, 0xa5, (run->to_consume + 1) * sizeof(*run->recv));
    memset(run->produced, 0, run->to_produce + 1);
    memset(run->consumed, 0, run->to_consume + 1);
    for (int rank = 0; rank < run->size && !shape->reduces && !shape->produces; rank++) {
        for (int k = 0; k < run->sendcounts[rank]; k++) {
            run->send[run->sdispls[rank] + k] = value(run, run->rank, rank, k);
        }
    }
}

void two_callbacks_free(two_callbacks_run_t *run)
{
    free(run->sendcounts);
    free(run->recvcounts);
    free(run->sdispls);
    free(run->rdispls);
    free(run->send);
    free(run->recv);
    free(run->produced);
    free(run->consumed);
}

int two_callbacks_start(two_callbacks_run_t *run, MPI_Request *request)
{
    const two_callbacks_shape_t *shape = &run->shape;
    MPIX_Flash_compute_fn *make_it =
        shape->produces || shape->reduces ? two_callbacks_produce : NULL;
    MPIX_Flash_compute_fn *use_it = shape->consumes ? two_callbacks_consume : NULL;
    MPIX_Flash_hints hints = MPIX_FLASH_HINTS_INIT;

    hints.pieces = shape->pieces;
    hints.row = shape->row;
    if (shape->reduces) {
        return MPIX_Iallreduce_compute(make_it, run, use_it, run, &hints, run->recv, shape->count,
                                       MPI_INT64_T, MPI_SUM, run->comm, request);
    }
    return shape->unequal
               ? MPIX_Ialltoallv_compute(run->send, run->sendcounts, run->sdispls, MPI_INT64_T,
                                         run->recv, run->recvcounts, run->rdispls, MPI_INT64_T,
                                         make_it, run, use_it, run, &hints, run->comm, request)
               : MPIX_Ialltoall_compute(run->send, shape->count, MPI_INT64_T, run->recv,
                                        shape->count, MPI_INT64_T, make_it, run, use_it, run,
                                        &hints, run->comm, request);
}

static bool all_seen_once(const unsigned char *seen, size_t count)
{
    for (size_t k = 0; k < count; k++) {
        if (seen[k] != 1) {
            return false;
        }
    }
    return true;
}

static void check_vector(const two_callbacks_run_t *run)
{
    if (are_results(run, 0, 0, run->recv, run->shape.count)) {
        return;
    }
    for (int k = 0; k < run->shape.count; k++) {
        if (run->recv[k] != result(run, 0, k)) {
            check(false, "allreduce: element %d of %d", k, run->shape.count);
            return;
        }
    }
}

static void check_blocks(const two_callbacks_run_t *run)
{
    for (int rank = 0; rank < run->size; rank++) {
        const int64_t *data = run->recv + run->rdispls[rank];
        bool right = are_results(run, rank, 0, data, run->recvcounts[rank]);

        for (int k = 0; !right && k < run->recvcounts[rank]; k++) {
            if (data[k] != result(run, rank, k)) {
                check(false, "all-to-all: element %d from rank %d", k, rank);
                return;
            }
        }
    }
}

void two_callbacks_check(const two_callbacks_run_t *run)
{
    const two_callbacks_shape_t *shape = &run->shape;
    const char *name = shape->reduces ? "allreduce" : "all-to-all";

    check(!run->wrong, "%s of %d: a callback out of turn, or with other data", name, shape->count);
    if (shape->reduces) {
        check_vector(run);
    } else {
        check_blocks(run);
    }
    check((!shape->produces && !shape->reduces) || all_seen_once(run->produced, run->to_produce),
          "%s of %d: not all was produced", name, shape->count);
    check(!shape->consumes || all_seen_once(run->consumed, run->to_consume),
          "%s of %d: not all was consumed", name, shape->count);
    check(run->recv[run->to_consume] == INT64_C(-0x5a5a5a5a5a5a5a5b), "%s: wrote too much", name);
}

void two_callbacks_one(const two_callbacks_shape_t *shape, MPI_Comm comm)
{
    MPI_Request request;
    two_callbacks_run_t run;

    two_callbacks_make(&run, shape, comm);
    if (shape->late) {
        late_start(&run.late);
    }
    check_class(two_callbacks_start(&run, &request), MPI_SUCCESS, "a start");
    check_class(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_SUCCESS, "an operation");
    if (shape->late) {
        late_stop(&run.late);
    }
    two_callbacks_check(&run);
    two_callbacks_free(&run);
}
