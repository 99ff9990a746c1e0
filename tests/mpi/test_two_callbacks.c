/*
 * test_two_callbacks.c: the calls with two callbacks: an allreduce and an all-to-all that produce
 * and consume.
 *
 * FLASH_TEST_ACTIVE in the environment: the communicators are not flash's.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "aftermath.h"
#include "two_callbacks.h"
#include "mpitest.h"

/* Which callbacks there are, and how they end. */
static two_callbacks_shape_t shape_of(bool reduces, int count, int form)
{
    return (two_callbacks_shape_t){.reduces = reduces,
                                   .count = count,
                                   .row = form % 3,
                                   .unequal = (form & 1) != 0,
                                   .produces = form % 4 != 2,
                                   .consumes = form % 4 != 3,
                                   .pends = (form & 4) != 0};
}

static void all_shapes(bool reduces)
{
    static const int counts[] = {0, 1, 2, 7, 1000, 70001}, pieces[] = {0, 1, 3, 8};
    /* Many ranks on few cores take long: they have a part of the forms each time. */
    int step = world_size > 4 ? 3 : 1;

    for (size_t c = 0; c < LENGTH(counts); c++) {
        for (size_t p = 0; p < LENGTH(pieces); p++) {
            for (int form = (int) (c + p) % step; form < 8; form += step) {
                two_callbacks_shape_t shape = shape_of(reduces, counts[c], form);

                shape.pieces = pieces[p];
                two_callbacks_one(&shape, MPI_COMM_WORLD);
            }
        }
    }
    for (int form = 0; form < 4; form++) {
        two_callbacks_shape_t shape = shape_of(reduces, 3000 * form, form);

        shape.pieces = 5;
        shape.late = true;
        two_callbacks_one(&shape, MPI_COMM_WORLD);
    }
}

static void allreduce(void)
{
    all_shapes(true);
}

static void alltoall(void)
{
    all_shapes(false);
}

/* Communicators of other orders and sizes, one after another: numbers and names are used again. */
static void communicators(void)
{
    for (int turn = 0; turn < 12; turn++) {
        int color = turn % 3 == 2 ? world_rank % 2 : 0;
        int key = turn % 2 == 0 ? -world_rank : (world_rank * 7) % world_size;
        MPI_Comm comm;

        MPI_Comm_split(MPI_COMM_WORLD, color, key, &comm);
        for (int form = 0; form < 4; form++) {
            two_callbacks_shape_t shape = shape_of((turn + form) % 2 == 0, 500 * form + 1, form);

            shape.pieces = 2;
            two_callbacks_one(&shape, comm);
        }
        MPI_Comm_free(&comm);
    }
}

/* Several at a time, of both kinds, beside an ordinary collective; the last is waited for first. */
static void together(void)
{
    enum { RUNS = 8 };
    MPI_Request requests[RUNS + 1];
    two_callbacks_run_t runs[RUNS];
    int own = world_rank + 1, sum = 0;

    for (int k = 0; k < RUNS; k++) {
        two_callbacks_shape_t shape = shape_of(k % 3 == 0, 3001 * k, k);

        shape.pieces = 1 + k % 3;
        two_callbacks_make(&runs[k], &shape, MPI_COMM_WORLD);
        check_class(two_callbacks_start(&runs[k], &requests[k]), MPI_SUCCESS, "a start");
    }
    MPI_Iallreduce(&own, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[RUNS]);
    for (int k = RUNS; k >= 0; k--) {
        check_class(MPI_Wait(&requests[k], MPI_STATUS_IGNORE), MPI_SUCCESS, "one of several");
    }
    check(sum == world_size * (world_size + 1) / 2, "an allreduce beside them: %d", sum);
    for (int k = 0; k < RUNS; k++) {
        two_callbacks_check(&runs[k]);
        two_callbacks_free(&runs[k]);
    }
}

static int blocking_calls(two_callbacks_run_t *run, const MPIX_Flash_hints *hints)
{
    const two_callbacks_shape_t *shape = &run->shape;

    if (shape->reduces) {
        return MPIX_Allreduce_compute(two_callbacks_produce, run, two_callbacks_consume, run, hints,
                                      run->recv, shape->count, MPI_INT64_T, MPI_SUM, run->comm);
    }
    return shape->unequal
               ? MPIX_Alltoallv_compute(run->send, run->sendcounts, run->sdispls, MPI_INT64_T,
                                        run->recv, run->recvcounts, run->rdispls, MPI_INT64_T,
                                        two_callbacks_produce, run, two_callbacks_consume, run,
                                        hints, run->comm)
               : MPIX_Alltoall_compute(run->send, shape->count, MPI_INT64_T, run->recv,
                                       shape->count, MPI_INT64_T, two_callbacks_produce, run,
                                       two_callbacks_consume, run, hints, run->comm);
}

static void blocking(void)
{
    for (int form = 0; form < 4; form++) {
        two_callbacks_shape_t shape = {.reduces = form >= 2,
                                       .count = 5000,
                                       .unequal = form == 1,
                                       .produces = true,
                                       .consumes = true};
        two_callbacks_run_t run;

        two_callbacks_make(&run, &shape, MPI_COMM_WORLD);
        check_class(blocking_calls(&run, NULL), MPI_SUCCESS, "a blocking call");
        two_callbacks_check(&run);
        two_callbacks_free(&run);
    }
}

/* Any call of rank 0's fails: a producer's where others miss something, a consumer's there alone.
 */
static void fails(void)
{
    MPI_Comm comm = make_counted_comm();

    for (int form = 0; form < 32; form++) {
        bool consumer = form % 2 == 1;
        int all = 3 * world_size, call = form / 4 % 4 == 3 ? all : 1 + form / 4 % 4;
        two_callbacks_shape_t shape = {.reduces = form % 4 >= 2,
                                       .count = 3000,
                                       .pieces = 3,
                                       .produces = true,
                                       .consumes = true,
                                       .pends = form >= 16,
                                       .fail_produce = consumer ? 0 : call,
                                       .fail_consume = consumer ? call : 0};
        MPI_Request request;
        two_callbacks_run_t run;
        int class;

        two_callbacks_make(&run, &shape, comm);
        check_class(two_callbacks_start(&run, &request), MPI_SUCCESS, "a start");
        MPI_Error_class(MPI_Wait(&request, MPI_STATUS_IGNORE), &class);
        if (world_rank == 0) {
            check(class == TWO_CALLBACKS_FAILED, "rank 0's callback %d fails with %d", call, class);
        } else if (!consumer && (call < all || shape.reduces)) {
            check(class == MPI_ERR_OTHER, "a producer fails on rank 0, here with %d", class);
        } else if (!consumer && getenv("FLASH_TEST_ACTIVE") != NULL) {
            check(class == MPI_ERR_OTHER, "rank 0 reports no failure, here %d", class);
        } else {
            check(class == MPI_SUCCESS, "a consumer fails on rank 0, here with %d", class);
        }
        two_callbacks_free(&run);
        next_works(comm, "after a callback failed");
    }
    MPI_Comm_free(&comm);
}

TEST_PROGRAM(test_two_callbacks, MPI_THREAD_SINGLE, {"allreduce", allreduce},
             {"alltoall", alltoall}, {"communicators", communicators}, {"together", together},
             {"blocking", blocking}, {"fails", fails});
