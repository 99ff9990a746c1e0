/*
 * test_merge.c: callbacks that take all ranks' blocks at once: where they do, where they do not,
 * and what they are given.
 *
 * In the environment: OMPI_MCA_coll_flash_algorithm, as mpirun's --mca leaves it;
 * FLASH_TEST_ACTIVE: the communicators are not flash's.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "aftermath.h"
#include "merge_operation.h"
#include "mpitest.h"

static const int counts[] = {0, 1, 5, 1000, 40001};

static void allgather(void)
{
    for (size_t c = 0; c < LENGTH(counts); c++) {
        for (int form = 0; form < 4 * LAYOUTS; form++) {
            merge_one(&(shape_t){.call = ALLGATHER,
                                 .layout = (layout_t) (form / 4),
                                 .count = counts[c],
                                 .in_place = form % 2 == 1,
                                 .owns = form % 4 > 1,
                                 .pends = form % 3 == 1});
        }
    }
}

static void add(void *in, void *inout, int *count, MPI_Datatype *type)
{
    const int64_t *from = in;
    int64_t *to = inout;

    (void) type;
    for (int k = 0; k < *count; k++) {
        to[k] += from[k];
    }
}

static void reduce_scatter(void)
{
    MPI_Op_create(add, 0, &merge_in_order);
    for (size_t c = 0; c < LENGTH(counts); c++) {
        for (int form = 0; form < 8; form++) {
            merge_one(&(shape_t){.call = REDUCE_SCATTER,
                                 .layout = form % 2 == 1 ? UNEQUAL : EQUAL,
                                 .count = counts[c],
                                 .owns = (form & 2) != 0,
                                 .pends = (form & 4) != 0});
        }
        merge_one(&(shape_t){.call = REDUCE_SCATTER, .count = counts[c], .in_order = true});
    }
    MPI_Op_free(&merge_in_order);
}

/* Merged only where no ring serves them. */
static void others(void)
{
    for (size_t c = 0; c < LENGTH(counts); c++) {
        for (call_t call = ALLREDUCE; call < CALLS; call++) {
            merge_one(&(shape_t){.call = call, .count = counts[c]});
            merge_one(&(shape_t){.call = call, .count = counts[c], .pends = true});
        }
    }
}

static void late(void)
{
    for (call_t call = ALLGATHER; call < CALLS; call++) {
        for (size_t c = 1; c < LENGTH(counts); c++) {
            merge_one(&(shape_t){.call = call, .count = counts[c], .late = true});
        }
    }
}

/* Blocks of whole rows, and of broken ones, which no callback is to find in the middle. */
static void rows(void)
{
    for (int row = 2; row <= 7; row++) {
        for (int count = 6; count <= 14; count++) {
            merge_one(&(shape_t){.call = ALLGATHER, .count = count, .row = row});
            merge_one(&(shape_t){.call = REDUCE_SCATTER, .count = count, .row = row});
            merge_one(&(shape_t){.call = ALLGATHER, .count = count, .row = row, .layout = UNEQUAL});
        }
    }
}

/* What rank 0 cannot produce all lack; what it cannot consume is its own affair. */
static void fails(void)
{
    MPI_Comm comm = make_counted_comm();

    for (int form = 0; form < 8; form++) {
        shape_t shape = {.call = form % 2 == 0 ? ALLGATHER : REDUCE_SCATTER,
                         .count = (form & 2) != 0 ? 1000 : 40001,
                         .pends = (form & 4) != 0,
                         .fails = true};
        int elsewhere = shape.call == ALLGATHER ? MPI_SUCCESS : MPI_ERR_OTHER;
        MPI_Request request;
        run_t run;

        merge_make(&run, &shape);
        merge_start(&run, comm, &request);
        check_class(MPI_Wait(&request, MPI_STATUS_IGNORE),
                    world_rank == 0 ? (int) FAILED : elsewhere, "a callback that fails");
        merge_free(&run);
        next_works(comm, "after a callback for all blocks failed");
    }
    MPI_Comm_free(&comm);
}

/* A limit of one communicator's own. */
static void key(void)
{
    MPI_Info info;
    MPI_Comm comm;
    shape_t shape = {.call = ALLGATHER, .count = 1000};

    MPI_Info_create(&info);
    MPI_Info_set(info, "mpix_flash_algorithm", "ring");
    MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &comm);
    for (int merges = 0; merges <= 1; merges++) {
        MPI_Request request;
        run_t run;

        merge_make(&run, &shape);
        run.merged[1] = world_size > 1 && (merges || !merge_is_served(&run));
        merge_start(&run, comm, &request);
        check_class(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_SUCCESS, "with an info key");
        merge_check_calls(&run);
        merge_free(&run);
        MPI_Info_set(info, "mpix_flash_algorithm", "fallback");
        MPI_Comm_set_info(comm, info);
    }
    MPI_Info_free(&info);
    MPI_Comm_free(&comm);
}

/*
 * Elements whose data does not begin at their address, and that lie apart: a callback finds them.
 */
static int read_apart(const MPIX_Flash_block *block, void *arg)
{
    const char *data = block->data;
    int *calls = arg;
    MPI_Aint extent, lower;

    MPI_Type_get_extent(block->datatype, &lower, &extent);
    for (int rank = 0; rank < block->ranks; rank++) {
        int64_t has;

        memcpy(&has, data + rank * extent + sizeof(has), sizeof(has));
        check(has == 77 + block->rank + rank, "rank %d: %ld", block->rank + rank, (long) has);
    }
    ++*calls;
    return MPI_SUCCESS;
}

static void gaps(void)
{
    MPIX_Flash_hints hints = MPIX_FLASH_HINTS_INIT;
    bool served = getenv("FLASH_TEST_ACTIVE") == NULL && world_size > 1;
    bool merges =
        world_size > 1 && (!served || merge_pays(ALLGATHER, (size_t) world_size * sizeof(int64_t)));
    MPI_Aint place = sizeof(int64_t);
    MPI_Datatype at, apart;
    int64_t *all = get_memory((size_t) world_size * 3 * sizeof(*all)), own = 77 + world_rank;
    int calls = 0, one_element = 1;

    MPI_Type_create_hindexed(1, &one_element, &place, MPI_INT64_T, &at);
    MPI_Type_create_resized(at, 0, 3 * sizeof(int64_t), &apart);
    MPI_Type_commit(&apart);
    hints.merge = 1;
    MPIX_Allgather_compute(&own, 1, MPI_INT64_T, all, 1, apart, read_apart, &calls, &hints,
                           MPI_COMM_WORLD);
    check(calls == (merges ? 1 : world_size), "%d callbacks", calls);
    MPI_Type_free(&at);
    MPI_Type_free(&apart);
    free(all);
}

/* Neither yes nor no; and a program that was compiled without it. */
static void arguments(void)
{
    MPI_Comm comm = make_counted_comm();
    shape_t shape = {.call = ALLGATHER, .count = 10};
    MPIX_Flash_hints hints = MPIX_FLASH_HINTS_INIT;
    MPI_Request request;
    run_t run;

    merge_make(&run, &shape);
    hints.merge = 2;
    check_class(merge_start_gather(&run, &hints, comm, &request), MPI_ERR_ARG, "merge is 2");
    hints.merge = -1;
    check_class(merge_start_gather(&run, &hints, comm, &request), MPI_ERR_ARG, "merge is -1");
    hints.merge = 1;
    hints.size = offsetof(MPIX_Flash_hints, merge);
    run.merged[1] = false;
    check_class(merge_start_gather(&run, &hints, comm, &request), MPI_SUCCESS, "earlier hints");
    check_class(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_SUCCESS, "with earlier hints");
    merge_check_calls(&run);
    merge_free(&run);
    MPI_Comm_free(&comm);
}

TEST_PROGRAM(test_merge, MPI_THREAD_SINGLE, {"allgather", allgather},
             {"reduce_scatter", reduce_scatter}, {"others", others}, {"late", late}, {"rows", rows},
             {"fails", fails}, {"key", key}, {"gaps", gaps}, {"arguments", arguments});
