/*
 * test_own.c: a callback for the own block: an allgather whose block is computed in pieces and
 * leaves as it is ready, a reduce-scatter whose sums are finished where they are.
 *
 * FLASH_TEST_ACTIVE in the environment: the communicators are not flash's.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "aftermath.h"
#include "mpitest.h"
#include "own_operation.h"

static void all_shapes(bool gather)
{
    static const int counts[] = {0, 1, 2, 7, 1000, 70001}, pieces[] = {0, 1, 3, 8};

    for (size_t c = 0; c < LENGTH(counts); c++) {
        for (size_t p = 0; p < LENGTH(pieces); p++) {
            /* Many ranks on few cores take long: they have a part of the forms each time. */
            for (int form = world_size > 4 ? (int) (c + p) % 5 : 0;
                 form<16; form += world_size> 4 ? 5 : 1) {
                own_one(gather, &(shape_t){.count = counts[c],
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
            own_one(gather, &(shape_t){.count = counts[c],
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

            own_make(&run, &shape);
            if (gather) {
                own_start_allgather(&run, comm, &request);
            } else {
                own_start_reduce_scatter(&run, comm, &request);
            }
            check_class(MPI_Wait(&request, MPI_STATUS_IGNORE), expected, "a callback that fails");
            own_free(&run);
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
    own_make(&run, &shape);
    hints = own_hints(&run, own_produce);
    check_class(MPIX_Iallgather_compute(run.send, 20, three, run.recv, 60, MPI_INT64_T, NULL, NULL,
                                        &hints, comm, &request),
                MPI_SUCCESS, "a start with two types");
    check_class(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_SUCCESS, "two types");
    own_check_allgather(&run);
    MPI_Type_free(&three);
    own_free(&run);
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
    own_make(&run, &shape);
    hints = own_hints(&run, own_produce);
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
    own_free(&run);
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
    own_make(&run, &shape);
    if (world_rank == 0) {
        MPIX_Flash_hints hints = own_hints(&run, own_produce);

        MPIX_Iallgather_compute(send, 1, strided, run.recv, 100, MPI_INT64_T, NULL, NULL, &hints,
                                comm, &request);
    } else {
        own_start_allgather(&run, comm, &request);
    }
    check_class(MPI_Wait(&request, MPI_STATUS_IGNORE),
                world_rank == 0 ? MPI_ERR_TYPE : MPI_ERR_OTHER, "an own block with gaps");
    check(world_rank != 0 || run.own_calls == 0, "called back for an own block with gaps");
    MPI_Type_free(&strided);
    own_free(&run);
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
    check_class(MPIX_Iallgather_compute(&own, 1, MPI_INT64_T, all, 1, MPI_INT64_T, own_consume,
                                        NULL, &hints, comm, &request),
                MPI_ERR_ARG, "hints of a later version");
    hints.size = offsetof(MPIX_Flash_hints, own);
    hints.own = own_finish; /* which an earlier version does not have */
    check_class(MPIX_Iallgather_compute(&own, 1, MPI_INT64_T, all, 1, MPI_INT64_T, NULL, NULL,
                                        &hints, comm, &request),
                MPI_ERR_ARG, "hints of an earlier version");
    hints = (MPIX_Flash_hints) MPIX_FLASH_HINTS_INIT;
    check_class(MPIX_Iallgather_compute(&own, 1, MPI_INT64_T, all, 1, MPI_INT64_T, NULL, NULL,
                                        &hints, comm, &request),
                MPI_ERR_ARG, "an allgather without a callback");
    hints.own = own_finish;
    check_class(MPIX_Ireduce_scatter_block_compute(NULL, NULL, &hints, &own, 1, MPI_INT64_T,
                                                   MPI_SUM, comm, &request),
                MPI_ERR_ARG, "a reduce-scatter without a producer");
    free(all);
    MPI_Comm_free(&comm);
}

TEST_PROGRAM(test_own, MPI_THREAD_SINGLE, {"allgather", allgather},
             {"reduce_scatter", reduce_scatter}, {"fails", fails}, {"types", types},
             {"resized", resized}, {"gaps", gaps}, {"arguments", arguments});
