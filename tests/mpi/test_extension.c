/*
 * test_extension.c: the calls of <mpix_flash.h>, with flash's rings or without.
 *
 * FLASH_TEST_ACTIVE=0 in the environment: the communicators are not flash's.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "extension_operands.h"

bool extension_is_active(void)
{
    const char *value = getenv("FLASH_TEST_ACTIVE");

    return world_size > 1 && (value == NULL || strcmp(value, "0") != 0);
}

static void active(void)
{
    int flag = -1;

    MPIX_Flash_active(MPI_COMM_WORLD, &flag);
    check(flag == extension_is_active(), "MPI_COMM_WORLD: active is %d", flag);
    flag = -1;
    MPIX_Flash_active(MPI_COMM_SELF, &flag);
    check(flag == 0, "MPI_COMM_SELF: active is %d", flag);
}

/* All that a caller can combine, at one size of the blocks. */
static void forms(int count, const char *what)
{
    static const int pieces[] = {0, 1, 2, 3, 7}, rows[] = {0, 1, 4, 5};

    for (int kind = 0; kind < WATCH_KINDS; kind++) {
        for (size_t p = 0; p < LENGTH(pieces); p++) {
            for (size_t r = 0; r < LENGTH(rows); r++) {
                for (int form = 0; form < 4; form++) {
                    watch_options_t options = {.count = count,
                                               .unequal = form % 2 == 1,
                                               .in_place = form >= 2,
                                               .pieces = pieces[p],
                                               .row = rows[r]};

                    if (kind == WATCH_ALLGATHER || !options.in_place) {
                        watch_one((watch_kind_t) kind, MPI_COMM_WORLD, &options, what);
                    }
                }
            }
        }
    }
}

static void small(void)
{
    for (int count = 0; count < 4; count++) {
        forms(count, "small");
    }
}

static void medium(void)
{
    forms(1001, "medium");
}

/* 1.5 MB a block: pieces of several segments. */
static void big(void)
{
    for (int kind = 0; kind < WATCH_KINDS; kind++) {
        for (int pieces = 1; pieces <= 3; pieces += 2) {
            watch_options_t options = {
                .count = 187501, .pieces = pieces, .row = 64, .unequal = pieces == 3};

            watch_one((watch_kind_t) kind, MPI_COMM_WORLD, &options, "big");
        }
    }
}

static void blocking(void)
{
    for (int kind = 0; kind < WATCH_KINDS; kind++) {
        for (int form = 0; form < 4; form++) {
            watch_options_t options = {.count = 300,
                                       .unequal = form % 2 == 1,
                                       .in_place = form >= 2 && kind == WATCH_ALLGATHER,
                                       .pieces = form};
            watch_t watch;

            watch_init(&watch, (watch_kind_t) kind, MPI_COMM_WORLD, &options);
            check(watch_blocking(&watch) == MPI_SUCCESS, "blocking form fails");
            watch_check(&watch, "blocking");
            watch_free(&watch);
        }
    }
}

/* The memory of whole blocks to produce, whatever their length. */
static void alignment(void)
{
    bool misaligned = false;

    for (int count = 1; count < 20; count++) {
        watch_options_t options = {.count = count};
        MPI_Request request;
        watch_t watch;

        watch_init(&watch, WATCH_REDUCE_SCATTER, MPI_COMM_WORLD, &options);
        watch_start(&watch, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        misaligned |= watch.misaligned;
        watch_free(&watch);
    }
    check(!misaligned || !extension_is_active(),
          "a whole block to produce is not aligned to 64 bytes");
}

/* A communicator that has but one rank, where others have more. */
static void alone(void)
{
    watch_options_t options = {.count = 100, .pieces = 3};
    MPI_Comm comm;
    int flag = -1;

    MPI_Comm_split(MPI_COMM_WORLD, world_rank, 0, &comm);
    MPIX_Flash_active(comm, &flag);
    check(flag == 0, "one rank: active is %d", flag);
    for (int kind = 0; kind < WATCH_KINDS; kind++) {
        for (int form = 0; form < 4; form++) {
            options.unequal = form % 2 == 1;
            options.in_place = form >= 2;
            watch_one((watch_kind_t) kind, comm, &options, "one rank");
        }
    }
    MPI_Comm_free(&comm);
}

/* Two communicators that split the ranks, with the ranks in reverse. */
static void halves(void)
{
    watch_options_t options = {.count = 777, .pieces = 2};
    MPI_Comm comm;

    MPI_Comm_split(MPI_COMM_WORLD, world_rank % 2, -world_rank, &comm);
    for (int kind = 0; kind < WATCH_KINDS; kind++) {
        watch_one((watch_kind_t) kind, comm, &options, "half of the ranks");
    }
    MPI_Comm_free(&comm);
}

static void two_in_flight(void)
{
    watch_options_t options = {.count = 5000, .pieces = 3};
    watch_t watches[4];
    MPI_Request requests[4];
    MPI_Comm comm;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (int reverse = 0; reverse < 2; reverse++) {
        for (int k = 0; k < 4; k++) {
            options.salt = (unsigned) k;
            options.unequal = k == 3;
            watch_init(&watches[k], (watch_kind_t) (k % 2), k < 2 ? MPI_COMM_WORLD : comm,
                       &options);
            watch_start(&watches[k], &requests[k]);
        }
        for (int k = 0; k < 4; k++) {
            int which = reverse ? 3 - k : k;

            MPI_Wait(&requests[which], MPI_STATUS_IGNORE);
            watch_check(&watches[which], "several in flight");
            watch_free(&watches[which]);
        }
    }
    MPI_Comm_free(&comm);
}

/* ------------------------------------------------- callbacks that call MPI */

static void send_around(void *arg, int call)
{
    MPI_Comm comm = *(MPI_Comm *) arg;
    int right = (world_rank + 1) % world_size, left = (world_rank + world_size - 1) % world_size;
    int mine = 100 * world_rank + call, theirs = -1;

    MPI_Sendrecv(&mine, 1, MPI_INT, right, call, &theirs, 1, MPI_INT, left, call, comm,
                 MPI_STATUS_IGNORE);
    check(theirs == 100 * left + call, "call %d: the left neighbour sent %d", call, theirs);
}

static void reduce_all(void *arg, int call)
{
    int mine = call, sum = -1;

    MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, *(MPI_Comm *) arg);
    check(sum == call * world_size, "call %d: the sum is %d", call, sum);
}

/* One callback posts an allgather of each kind; the next one waits for them. */
typedef struct nested {
    MPI_Comm comm;
    MPI_Request request;
    int mine, *all;
} nested_t;

static void gather_all(void *arg, int call)
{
    nested_t *nested = arg;

    MPI_Wait(&nested->request, MPI_STATUS_IGNORE);
    for (int rank = 0; rank < world_size && call > 1; rank++) {
        check(nested->all[rank] == 10 * rank + call - 1, "call %d: rank %d sent %d", call, rank,
              nested->all[rank]);
    }
    nested->mine = 10 * world_rank + call;
    MPI_Iallgather(&nested->mine, 1, MPI_INT, nested->all, 1, MPI_INT, nested->comm,
                   &nested->request);
}

static void calls_inside(void)
{
    watch_options_t options = {.count = 3000, .pieces = 2};
    MPI_Comm comm;
    nested_t nested = {.request = MPI_REQUEST_NULL,
                       .all = get_memory(sizeof(int) * (size_t) world_size)};

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_dup(MPI_COMM_WORLD, &nested.comm);
    for (int kind = 0; kind < WATCH_KINDS; kind++) {
        options.hook_arg = &comm;
        options.hook = send_around;
        watch_one((watch_kind_t) kind, MPI_COMM_WORLD, &options, "point-to-point inside");
        options.hook = reduce_all;
        watch_one((watch_kind_t) kind, MPI_COMM_WORLD, &options, "allreduce inside");
        options.hook_arg = &nested;
        options.hook = gather_all;
        watch_one((watch_kind_t) kind, MPI_COMM_WORLD, &options, "allgather inside");
        MPI_Wait(&nested.request, MPI_STATUS_IGNORE);
    }
    MPI_Comm_free(&comm);
    MPI_Comm_free(&nested.comm);
    free(nested.all);
}

/* At each level of MPI_Init_thread: see MPIX_Flash_compute_fn of what waits. */
static void gather_by_tests(void *arg, int call)
{
    nested_t *nested = arg;
    MPI_Request request;
    int flag = 0;

    nested->mine = 10 * world_rank + call;
    MPI_Iallgather(&nested->mine, 1, MPI_INT, nested->all, 1, MPI_INT, nested->comm, &request);
    while (!flag) {
        MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
    }
    for (int rank = 0; rank < world_size; rank++) {
        check(nested->all[rank] == 10 * rank + call, "call %d: rank %d sent %d", call, rank,
              nested->all[rank]);
    }
}

static void tests_inside(void)
{
    nested_t nested = {.all = get_memory(sizeof(int) * (size_t) world_size)};
    watch_options_t options = {
        .count = 3000, .pieces = 2, .hook = gather_by_tests, .hook_arg = &nested};

    MPI_Comm_dup(MPI_COMM_WORLD, &nested.comm);
    for (int kind = 0; kind < WATCH_KINDS; kind++) {
        watch_one((watch_kind_t) kind, MPI_COMM_WORLD, &options, "MPI_Test inside");
    }
    MPI_Comm_free(&nested.comm);
    free(nested.all);
}

/* A callback that starts an operation with callbacks: they run later, not inside. */
typedef struct started {
    watch_t watch;
    MPI_Request request;
} started_t;

static void start_another(void *arg, int call)
{
    started_t *started = arg;
    int flag;

    if (call == 1) {
        watch_start(&started->watch, &started->request);
    }
    MPI_Test(&started->request, &flag, MPI_STATUS_IGNORE); /* progress, which must not nest */
}

static void starts_inside(void)
{
    MPI_Comm comm;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (int kind = 0; kind < WATCH_KINDS; kind++) {
        started_t started = {.request = MPI_REQUEST_NULL};
        watch_options_t inner = {.count = 900, .salt = 3, .pieces = 2}, outer = inner;

        watch_init(&started.watch, WATCH_ALLGATHER, comm, &inner);
        outer.hook = start_another;
        outer.hook_arg = &started;
        watch_one((watch_kind_t) kind, MPI_COMM_WORLD, &outer, "start inside, outer");
        MPI_Wait(&started.request, MPI_STATUS_IGNORE);
        watch_check(&started.watch, "start inside, inner");
        watch_free(&started.watch);
    }
    MPI_Comm_free(&comm);
}

/* A callback that waits for an operation none of whose callbacks is pending. */
static void wait_for_other(void *arg, int call)
{
    if (call == 1) {
        MPI_Wait(arg, MPI_STATUS_IGNORE);
    }
}

static void waits_inside(void)
{
    watch_options_t inner = {.count = 50, .salt = 4}, outer = {.count = 900, .pieces = 2};

    outer.hook = wait_for_other;
    for (int kind = 0; kind < WATCH_KINDS; kind++) {
        MPI_Request request;
        watch_t watch;

        watch_init(&watch, WATCH_REDUCE_SCATTER, MPI_COMM_SELF, &inner);
        watch_start(&watch, &request); /* and calls back: a lone rank has no ring */
        outer.hook_arg = &request;
        watch_one((watch_kind_t) kind, MPI_COMM_WORLD, &outer, "wait inside, outer");
        watch_check(&watch, "wait inside, inner");
        watch_free(&watch);
    }
}

static int count_blocks(const MPIX_Flash_block *block, void *blocks)
{
    (void) block;
    ++*(int *) blocks;
    return MPI_SUCCESS;
}

/*
 * No rank waits in its call until another one has made its own: one of two ranks comes when the other
 * one says that it has. The other ranks of the job may run another program: test_setup's `bystander`.
 */
static void starts_alone(void)
{
    int mine = 7 + world_rank, all[2] = {-1, -1}, token = 0, blocks = 0;
    MPI_Request request;
    MPI_Comm comm;

    MPI_Comm_split(MPI_COMM_WORLD, world_rank < 2 ? 0 : MPI_UNDEFINED, world_rank, &comm);
    if (comm == MPI_COMM_NULL) {
        return;
    }
    if (world_rank == 1) {
        MPI_Recv(&token, 1, MPI_INT, 0, 0, comm, MPI_STATUS_IGNORE);
    }
    MPIX_Iallgather_compute(&mine, 1, MPI_INT, all, 1, MPI_INT, count_blocks, &blocks, NULL, comm,
                            &request);
    if (world_rank == 0 && world_size > 1) {
        MPI_Send(&token, 1, MPI_INT, 1, 0, comm);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check(all[0] == 7 && (all[1] == 8 || world_size == 1), "gathered %d and %d", all[0], all[1]);
    check(blocks >= (world_size > 1 ? 2 : 1), "%d callbacks", blocks);
    MPI_Comm_free(&comm);
}

TEST_PROGRAM(test_extension, MPI_THREAD_SINGLE, {"active", active}, {"small", small},
             {"medium", medium}, {"big", big}, {"blocking", blocking}, {"alignment", alignment},
             {"alone", alone}, {"starts_alone", starts_alone}, {"halves", halves},
             {"two_in_flight", two_in_flight}, {"calls_inside", calls_inside},
             {"tests_inside", tests_inside}, {"waits_inside", waits_inside},
             {"starts_inside", starts_inside}, {"order_of_sums", extension_order_of_sums},
             {"user_operation", extension_user_operation}, {"user_type", extension_user_type},
             {"empty_type", extension_empty_type}, {"bottom", extension_bottom});
