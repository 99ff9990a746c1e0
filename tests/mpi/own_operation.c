/*
 * own_operation.c: see own_operation.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "own_operation.h"

#include <string.h>

#include "mpitest.h"

static int64_t value(const run_t *run, int rank, int block, MPI_Count index)
{
    return run->salt + rank * INT64_C(1000003) + block * INT64_C(10007) + index;
}

static int64_t sum_of(const run_t *run, int block, MPI_Count index)
{
    int64_t sum = 0;

    for (int rank = 0; rank < world_size; rank++) {
        sum += value(run, rank, block, index);
    }
    return sum;
}

static bool has_own(const run_t *run)
{
    return !run->shape.some || world_rank % 2 == 1;
}

/* As the callbacks that write end. */
static int end(run_t *run, const MPIX_Flash_block *block, int error)
{
    return end_piece(block, error, run->shape.pends, run->shape.late ? &run->late : NULL);
}

static int begin_own(run_t *run, const MPIX_Flash_block *block)
{
    run->out_of_turn |= block->rank != world_rank || block->offset != run->own_seen ||
                        block->piece != run->own_calls || block->count < 1;
    run->own_seen += block->count;
    return ++run->own_calls == run->shape.fail_call && world_rank == 0 ? FAILED : MPI_SUCCESS;
}

int own_produce(const MPIX_Flash_block *block, void *arg)
{
    run_t *run = arg;
    int error = begin_own(run, block);
    int64_t *data = block->data;

    run->out_of_turn |= run->other_calls > 0;
    for (MPI_Count k = 0; k < block->count; k++) {
        data[k] = value(run, world_rank, world_rank, block->offset + k);
    }
    return end(run, block, error);
}

int own_consume(const MPIX_Flash_block *block, void *arg)
{
    run_t *run = arg;
    const int64_t *data = block->data;

    run->other_calls++;
    for (MPI_Count k = 0; k < block->count; k++) {
        if (data[k] != value(run, block->rank, block->rank, block->offset + k)) {
            run->out_of_turn = true;
        }
    }
    return MPI_SUCCESS;
}

static int produce(const MPIX_Flash_block *block, void *arg)
{
    run_t *run = arg;
    int64_t *data = block->data;

    run->other_calls++;
    run->out_of_turn |= run->own_calls > 0;
    for (MPI_Count k = 0; k < block->count; k++) {
        data[k] = value(run, world_rank, block->rank, block->offset + k);
    }
    return end(run, block, MPI_SUCCESS);
}

/* As an epilogue does. */
int own_finish(const MPIX_Flash_block *block, void *arg)
{
    run_t *run = arg;
    int error = begin_own(run, block);
    int64_t *data = block->data;

    for (MPI_Count k = 0; k < block->count; k++) {
        if (data[k] != sum_of(run, world_rank, block->offset + k)) {
            run->out_of_turn = true;
        }
        data[k] = -data[k];
    }
    return end(run, block, error);
}

/* -------------------------------------------------------------------- running */

void own_make(run_t *run, const shape_t *shape)
{
    static int64_t turn;
    int all = 0;

    *run = (run_t){.shape = *shape, .salt = ++turn * INT64_C(1000000007)};
    run->counts = get_memory((size_t) world_size * sizeof(*run->counts));
    run->displs = get_memory((size_t) world_size * sizeof(*run->displs));
    for (int rank = 0; rank < world_size; rank++) {
        run->counts[rank] = !shape->unequal ? shape->count
                            : rank % 3 == 2 ? 0
                                            : shape->count + rank;
        run->displs[rank] = all;
        all += run->counts[rank];
    }
    run->send = get_memory((size_t) (run->counts[world_rank] + 1) * sizeof(*run->send));
    run->recv = get_memory((size_t) (all + 1) * sizeof(*run->recv));
    memset(run->send, 0x5a, (size_t) (run->counts[world_rank] + 1) * sizeof(*run->send));
    memset(run->recv, 0xa5, (size_t) (all + 1) * sizeof(*run->recv));
    for (int k = 0; k < run->counts[world_rank] && !has_own(run); k++) {
        run->send[k] = value(run, world_rank, world_rank, k);
    }
}

void own_free(run_t *run)
{
    free(run->counts);
    free(run->displs);
    free(run->send);
    free(run->recv);
}

MPIX_Flash_hints own_hints(run_t *run, MPIX_Flash_compute_fn *own)
{
    MPIX_Flash_hints hints = MPIX_FLASH_HINTS_INIT;

    hints.pieces = run->shape.pieces;
    hints.row = run->shape.row;
    hints.own = has_own(run) ? own : NULL;
    hints.own_arg = run;
    return hints;
}

int own_start_allgather(run_t *run, MPI_Comm comm, MPI_Request *request)
{
    MPIX_Flash_hints hints = own_hints(run, own_produce);
    MPIX_Flash_compute_fn *other = run->shape.consumes || !has_own(run) ? own_consume : NULL;
    const void *send = run->shape.in_place ? MPI_IN_PLACE : run->send;
    int own = run->counts[world_rank];

    return run->shape.unequal
               ? MPIX_Iallgatherv_compute(send, own, MPI_INT64_T, run->recv, run->counts,
                                          run->displs, MPI_INT64_T, other, run, &hints, comm,
                                          request)
               : MPIX_Iallgather_compute(send, own, MPI_INT64_T, run->recv, own, MPI_INT64_T, other,
                                         run, &hints, comm, request);
}

int own_start_reduce_scatter(run_t *run, MPI_Comm comm, MPI_Request *request)
{
    MPIX_Flash_hints hints = own_hints(run, own_finish);

    return run->shape.unequal
               ? MPIX_Ireduce_scatter_compute(produce, run, &hints, run->recv, run->counts,
                                              MPI_INT64_T, MPI_SUM, comm, request)
               : MPIX_Ireduce_scatter_block_compute(produce, run, &hints, run->recv,
                                                    run->shape.count, MPI_INT64_T, MPI_SUM, comm,
                                                    request);
}

void own_check_allgather(const run_t *run)
{
    for (int rank = 0; rank < world_size; rank++) {
        for (int k = 0; k < run->counts[rank]; k++) {
            if (run->recv[run->displs[rank] + k] != value(run, rank, rank, k)) {
                check(false, "allgather: element %d of block %d", k, rank);
                return;
            }
        }
    }
}

static void check_reduce_scatter(const run_t *run)
{
    for (int k = 0; k < run->counts[world_rank]; k++) {
        if (run->recv[k] != (has_own(run) ? -1 : 1) * sum_of(run, world_rank, k)) {
            check(false, "reduce-scatter: element %d", k);
            return;
        }
    }
}

void own_one(bool gather, const shape_t *shape)
{
    MPI_Request request;
    run_t run;

    own_make(&run, shape);
    late_start(&run.late);
    check_class(gather ? own_start_allgather(&run, MPI_COMM_WORLD, &request)
                       : own_start_reduce_scatter(&run, MPI_COMM_WORLD, &request),
                MPI_SUCCESS, "a start");
    check_class(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_SUCCESS, "an operation");
    late_stop(&run.late);
    check(!run.out_of_turn, "%s: a callback out of turn, or with other data",
          gather ? "allgather" : "reduce-scatter");
    check(run.own_seen == (has_own(&run) ? run.counts[world_rank] : 0), "%ld of %d elements seen",
          (long) run.own_seen, run.counts[world_rank]);
    if (gather) {
        own_check_allgather(&run);
    } else {
        check_reduce_scatter(&run);
    }
    own_free(&run);
}
