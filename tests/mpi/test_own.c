/*
 * test_own.c: a callback for the own block: an allgather whose block is computed in pieces and
 * leaves as it is ready, a reduce-scatter whose sums are finished where they are.
 *
 * FLASH_TEST_ACTIVE in the environment: the communicators are not flash's.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <string.h>

#include <mpix_flash.h>

#include "aftermath.h"
#include "late.h"
#include "mpitest.h"

/* What is chosen of an operation. */
typedef struct shape {
    int count, pieces, row;
    bool unequal; /* a block of rank r has r elements more, each third has none */
    bool in_place;
    bool pends;    /* pieces are completed before their callback returns */
    bool consumes; /* an allgather's other callback is there */
    bool late;     /* pieces are completed by another thread, the latest first */
    bool some;     /* a reduce-scatter's own callback is there on ranks of odd numbers alone */
    int fail_call; /* of the own callback, from 1 on, on rank 0; 0: none */
} shape_t;

typedef struct run {
    shape_t shape;
    int *counts, *displs;
    int64_t *send, *recv;
    int own_calls, other_calls;
    MPI_Count own_seen; /* elements */
    int64_t salt;       /* of the values: no two runs have the same */
    late_t late;
    bool out_of_turn;
} run_t;

/* An error class that no library returns here. */
enum { FAILED = MPI_ERR_KEYVAL };

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

static int produce_own(const MPIX_Flash_block *block, void *arg)
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

static int consume(const MPIX_Flash_block *block, void *arg)
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
static int finish_own(const MPIX_Flash_block *block, void *arg)
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

static void make(run_t *run, const shape_t *shape)
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

static void release(run_t *run)
{
    free(run->counts);
    free(run->displs);
    free(run->send);
    free(run->recv);
}

static MPIX_Flash_hints hints_of(run_t *run, MPIX_Flash_compute_fn *own)
{
    MPIX_Flash_hints hints = MPIX_FLASH_HINTS_INIT;

    hints.pieces = run->shape.pieces;
    hints.row = run->shape.row;
    hints.own = has_own(run) ? own : NULL;
    hints.own_arg = run;
    return hints;
}

static int start_allgather(run_t *run, MPI_Comm comm, MPI_Request *request)
{
    MPIX_Flash_hints hints = hints_of(run, produce_own);
    MPIX_Flash_compute_fn *other = run->shape.consumes || !has_own(run) ? consume : NULL;
    const void *send = run->shape.in_place ? MPI_IN_PLACE : run->send;
    int own = run->counts[world_rank];

    return run->shape.unequal
               ? MPIX_Iallgatherv_compute(send, own, MPI_INT64_T, run->recv, run->counts,
                                          run->displs, MPI_INT64_T, other, run, &hints, comm,
                                          request)
               : MPIX_Iallgather_compute(send, own, MPI_INT64_T, run->recv, own, MPI_INT64_T, other,
                                         run, &hints, comm, request);
}

static int start_reduce_scatter(run_t *run, MPI_Comm comm, MPI_Request *request)
{
    MPIX_Flash_hints hints = hints_of(run, finish_own);

    return run->shape.unequal
               ? MPIX_Ireduce_scatter_compute(produce, run, &hints, run->recv, run->counts,
                                              MPI_INT64_T, MPI_SUM, comm, request)
               : MPIX_Ireduce_scatter_block_compute(produce, run, &hints, run->recv,
                                                    run->shape.count, MPI_INT64_T, MPI_SUM, comm,
                                                    request);
}

static void check_allgather(const run_t *run)
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

static void one(bool gather, const shape_t *shape)
{
    MPI_Request request;
    run_t run;

    make(&run, shape);
    late_start(&run.late);
    check_class(gather ? start_allgather(&run, MPI_COMM_WORLD, &request)
                       : start_reduce_scatter(&run, MPI_COMM_WORLD, &request),
                MPI_SUCCESS, "a start");
    check_class(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_SUCCESS, "an operation");
    late_stop(&run.late);
    check(!run.out_of_turn, "%s: a callback out of turn, or with other data",
          gather ? "allgather" : "reduce-scatter");
    check(run.own_seen == (has_own(&run) ? run.counts[world_rank] : 0), "%ld of %d elements seen",
          (long) run.own_seen, run.counts[world_rank]);
    if (gather) {
        check_allgather(&run);
    } else {
        check_reduce_scatter(&run);
    }
    release(&run);
}

/* ----------------------------------------------------------------------- cases */

static void all_shapes(bool gather)
{
    static const int counts[] = {0, 1, 2, 7, 1000, 70001}, pieces[] = {0, 1, 3, 8};

    for (size_t c = 0; c < LENGTH(counts); c++) {
        for (size_t p = 0; p < LENGTH(pieces); p++) {
            /* Many ranks on few cores take long: they have a part of the forms each time. */
            for (int form = world_size > 4 ? (int) (c + p) % 5 : 0;
                 form<16; form += world_size> 4 ? 5 : 1) {
                one(gather, &(shape_t){.count = counts[c],
                                       .pieces = pieces[p],
                                       .row = form % 3,
                                       .unequal = (form & 1) != 0,
                                       .in_place = (form & 2) != 0,
                                       .pends = (form & 4) != 0,
                                       .consumes = (form & 8) != 0});
            }
        }
    }
}

/* By another thread, and beside ranks that have no such callback. */
static void others(bool gather)
{
    static const int counts[] = {1, 1000, 70001};

    for (size_t c = 0; c < LENGTH(counts); c++) {
        for (int form = 0; form < 8; form++) {
            one(gather, &(shape_t){.count = counts[c],
                                   .pieces = 5,
                                   .unequal = (form & 1) != 0,
                                   .late = (form & 2) != 0,
                                   .some = (form & 4) != 0,
                                   .consumes = form % 3 == 0});
        }
    }
}

static void allgather(void)
{
    all_shapes(true);
    others(true);
}

static void reduce_scatter(void)
{
    all_shapes(false);
    others(false);
}

/* Rank 0's own callback fails: an allgather's poisons its block for all, a reduction's its own. */
static void fails(void)
{
    MPI_Comm comm = make_counted_comm();

    for (int gather = 0; gather <= 1; gather++) {
        for (int call = 1; call <= 3; call++) {
            shape_t shape = {.count = 3000,
                             .pieces = 3,
                             .consumes = true,
                             .pends = call == 2,
                             .fail_call = call};
            MPI_Request request;
            run_t run;
            int expected = world_rank == 0 ? (int) FAILED : gather ? MPI_ERR_OTHER : MPI_SUCCESS;

            make(&run, &shape);
            if (gather) {
                start_allgather(&run, comm, &request);
            } else {
                start_reduce_scatter(&run, comm, &request);
            }
            check_class(MPI_Wait(&request, MPI_STATUS_IGNORE), expected, "a callback that fails");
            release(&run);
            next_works(comm, "after a callback of the own block failed");
        }
    }
    MPI_Comm_free(&comm);
}

/* An allgather's two types differ; and ranks' receive types, which is their own affair. */
static void types(void)
{
    MPI_Comm comm = make_counted_comm();
    shape_t shape = {.count = 60, .pieces = 4};
    MPI_Datatype three;
    MPI_Request request;
    MPIX_Flash_hints hints;
    run_t run;

    MPI_Type_contiguous(3, MPI_INT64_T, &three);
    MPI_Type_commit(&three);
    make(&run, &shape);
    hints = hints_of(&run, produce_own);
    check_class(MPIX_Iallgather_compute(run.send, 20, three, run.recv, 60, MPI_INT64_T, NULL, NULL,
                                        &hints, comm, &request),
                MPI_SUCCESS, "a start with two types");
    check_class(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_SUCCESS, "two types");
    check_allgather(&run);
    MPI_Type_free(&three);
    release(&run);
    MPI_Comm_free(&comm);
}

/* Where no consumer looks, and blocks overlap in the extents of their type: not for a callback. */
static void resized(void)
{
    MPI_Comm comm = make_counted_comm();
    shape_t shape = {.count = 3};
    MPI_Datatype three, apart;
    MPI_Request request;
    MPIX_Flash_hints hints;
    run_t run;
    int *ones = get_memory((size_t) world_size * sizeof(*ones));

    MPI_Type_contiguous(3, MPI_INT64_T, &three);
    MPI_Type_create_resized(three, 0, sizeof(int64_t), &apart);
    MPI_Type_commit(&apart);
    make(&run, &shape);
    hints = hints_of(&run, produce_own);
    for (int rank = 0; rank < world_size; rank++) {
        ones[rank] = 1;
    }
    check_class(MPIX_Iallgatherv_compute(run.send, 3, MPI_INT64_T, run.recv, ones, run.displs,
                                         apart, NULL, NULL, &hints, comm, &request),
                MPI_SUCCESS, "a start with a resized type");
    check_class(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_ERR_TYPE, "a resized type");
    MPI_Type_free(&three);
    MPI_Type_free(&apart);
    free(ones);
    release(&run);
    next_works(comm, "after a resized type");
    MPI_Comm_free(&comm);
}

/* Rank 0 would send what its callback cannot write. */
static void gaps(void)
{
    MPI_Comm comm = make_counted_comm();
    shape_t shape = {.count = 100};
    MPI_Datatype strided;
    MPI_Request request;
    run_t run;
    int64_t send[200];

    MPI_Type_vector(100, 1, 2, MPI_INT64_T, &strided);
    MPI_Type_commit(&strided);
    make(&run, &shape);
    if (world_rank == 0) {
        MPIX_Flash_hints hints = hints_of(&run, produce_own);

        MPIX_Iallgather_compute(send, 1, strided, run.recv, 100, MPI_INT64_T, NULL, NULL, &hints,
                                comm, &request);
    } else {
        start_allgather(&run, comm, &request);
    }
    check_class(MPI_Wait(&request, MPI_STATUS_IGNORE),
                world_rank == 0 ? MPI_ERR_TYPE : MPI_ERR_OTHER, "an own block with gaps");
    check(world_rank != 0 || run.own_calls == 0, "called back for an own block with gaps");
    MPI_Type_free(&strided);
    release(&run);
    next_works(comm, "after an own block with gaps");
    MPI_Comm_free(&comm);
}

/* Nobody to call at all. */
static void arguments(void)
{
    MPI_Comm comm = make_counted_comm();
    MPIX_Flash_hints hints = MPIX_FLASH_HINTS_INIT;
    MPI_Request request;
    int64_t own = 0, *all = get_memory((size_t) world_size * sizeof(*all));
    const char *active = getenv("FLASH_TEST_ACTIVE");
    int flag = -1;

    MPIX_Flash_active(comm, &flag);
    check(flag == (world_size > 1 && active == NULL), "active is %d", flag);
    hints.size = sizeof(hints) + 1;
    check_class(MPIX_Iallgather_compute(&own, 1, MPI_INT64_T, all, 1, MPI_INT64_T, consume, NULL,
                                        &hints, comm, &request),
                MPI_ERR_ARG, "hints of a later version");
    hints.size = offsetof(MPIX_Flash_hints, own);
    hints.own = finish_own; /* which an earlier version does not have */
    check_class(MPIX_Iallgather_compute(&own, 1, MPI_INT64_T, all, 1, MPI_INT64_T, NULL, NULL,
                                        &hints, comm, &request),
                MPI_ERR_ARG, "hints of an earlier version");
    hints = (MPIX_Flash_hints) MPIX_FLASH_HINTS_INIT;
    check_class(MPIX_Iallgather_compute(&own, 1, MPI_INT64_T, all, 1, MPI_INT64_T, NULL, NULL,
                                        &hints, comm, &request),
                MPI_ERR_ARG, "an allgather without a callback");
    hints.own = finish_own;
    check_class(MPIX_Ireduce_scatter_block_compute(NULL, NULL, &hints, &own, 1, MPI_INT64_T,
                                                   MPI_SUM, comm, &request),
                MPI_ERR_ARG, "a reduce-scatter without a producer");
    free(all);
    MPI_Comm_free(&comm);
}

TEST_PROGRAM(test_own, MPI_THREAD_SINGLE, {"allgather", allgather},
             {"reduce_scatter", reduce_scatter}, {"fails", fails}, {"types", types},
             {"resized", resized}, {"gaps", gaps}, {"arguments", arguments});
