/*
 * test_extension.c: the calls of <mpix_flash.h>, with flash's rings or without.
 *
 * FLASH_TEST_ACTIVE=0 in the environment: the communicators are not flash's.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "extension.h"

static bool expect_active(void)
{
    const char *value = getenv("FLASH_TEST_ACTIVE");

    return world_size > 1 && (value == NULL || strcmp(value, "0") != 0);
}

static void active(void)
{
    int flag = -1;

    MPIX_Flash_active(MPI_COMM_WORLD, &flag);
    check(flag == expect_active(), "MPI_COMM_WORLD: active is %d", flag);
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
    check(!misaligned || !expect_active(), "a whole block to produce is not aligned to 64 bytes");
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

/* ------------------------------------------------------------ other operands */

static float rough(int rank, int block)
{
    return (float) mix((uint32_t) rank, (uint32_t) block, 5) / 7e4f;
}

static int produce_rough(const MPIX_Flash_block *block, void *arg)
{
    (void) arg;
    for (int k = 0; k < (int) block->count; k++) {
        ((float *) block->data)[k] = rough(world_rank, block->rank);
    }
    return MPI_SUCCESS;
}

/* The ranks as they stand in the ring, to the left from this one, which is asked for its block
 * last. */
typedef struct course {
    int ranks[64];
    int calls;
} course_t;

static int produce_on_course(const MPIX_Flash_block *block, void *arg)
{
    course_t *course = arg;

    course->ranks[course->calls++] = block->rank;
    return produce_rough(block, NULL);
}

/* The order of additions that the header promises of flash's rings, and their order by request. */
static void order_of_sums(void)
{
    const char *by_rank = getenv("OMPI_MCA_coll_flash_ring_order");
    course_t course = {.calls = 0};
    float result[10], wanted = 0;

    MPIX_Reduce_scatter_block_compute(produce_on_course, &course, NULL, result, 10, MPI_FLOAT,
                                      MPI_SUM, MPI_COMM_WORLD);
    for (int k = course.calls - 2; k >= -1; k--) {
        int rank = k < 0 ? world_rank : course.ranks[k]; /* the right neighbour's first */
        float operand = rough(rank, world_rank);

        wanted = k == course.calls - 2 ? operand : wanted + operand;
    }
    check(course.calls == world_size, "%d calls", course.calls);
    check(!expect_active() || memcmp(&result[9], &wanted, sizeof(float)) == 0,
          "the sum is %.9g, not %.9g", (double) result[9], (double) wanted);
    for (int k = 0; k < course.calls && by_rank != NULL && strcmp(by_rank, "rank") == 0; k++) {
        check(course.ranks[k] == (world_rank + 2 * world_size - 1 - k) % world_size,
              "step %d is for block %d", k, course.ranks[k]);
    }
}

static void add_modulo(void *in, void *inout, int *length, MPI_Datatype *type)
{
    (void) type;
    for (int k = 0; k < *length; k++) {
        ((int *) inout)[k] = (((int *) in)[k] + ((int *) inout)[k]) % 1009;
    }
}

static int produce_ones(const MPIX_Flash_block *block, void *arg)
{
    (void) arg;
    for (int k = 0; k < (int) block->count; k++) {
        ((int *) block->data)[k] = 500 * world_rank + block->rank;
    }
    return MPI_SUCCESS;
}

/* Around the ring, and where MPI is told that the order matters, without. */
static void user_operation(void)
{
    for (int commutes = 0; commutes <= 1; commutes++) {
        int result[100], wanted = 0;
        MPI_Op op;

        MPI_Op_create(add_modulo, commutes, &op);
        MPIX_Reduce_scatter_block_compute(produce_ones, NULL, NULL, result, 100, MPI_INT, op,
                                          MPI_COMM_WORLD);
        for (int rank = 0; rank < world_size; rank++) {
            wanted = (wanted + 500 * rank + world_rank) % 1009;
        }
        check(result[0] % 1009 == wanted && result[99] % 1009 == wanted, "%d is not %d", result[0],
              wanted);
        MPI_Op_free(&op);
    }
}

/* Sent as one type of the user's without gaps, received as another; freed at once. */
static int count_bytes(const MPIX_Flash_block *block, void *arg)
{
    *(size_t *) arg += (size_t) block->count * 12;
    check(is_pattern(block->data, (size_t) block->offset * 12, (size_t) block->count * 12,
                     block->rank, 6),
          "block %d is wrong", block->rank);
    return MPI_SUCCESS;
}

static void user_type(void)
{
    enum { UNITS = 500 };
    unsigned char *send = get_memory(12 * UNITS);
    unsigned char *recv = get_memory((size_t) world_size * 12 * UNITS);
    MPI_Datatype twelve, six;
    MPI_Request request;
    size_t seen = 0;

    MPI_Type_contiguous(3, MPI_INT, &twelve);
    MPI_Type_commit(&twelve);
    MPI_Type_contiguous(6, MPI_INT, &six);
    MPI_Type_commit(&six);
    fill_pattern(send, 12 * UNITS, world_rank, 6);
    MPIX_Iallgather_compute(send, UNITS / 2, six, recv, UNITS, twelve, count_bytes, &seen, NULL,
                            MPI_COMM_WORLD, &request);
    MPI_Type_free(&twelve);
    MPI_Type_free(&six);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check(seen == (size_t) world_size * 12 * UNITS, "callbacks saw %zu bytes", seen);
    free(send);
    free(recv);
}

/* Elements without data: blocks of them are empty. */
static int count_calls(const MPIX_Flash_block *block, void *arg)
{
    (void) block;
    ++*(int *) arg;
    return MPI_SUCCESS;
}

static void add_nothing(void *in, void *inout, int *length, MPI_Datatype *type)
{
    (void) in;
    (void) inout;
    (void) length;
    (void) type;
}

static void empty_type(void)
{
    unsigned char recv[8] = {7, 7, 7, 7, 7, 7, 7, 7};
    MPI_Datatype none, spaced;
    int calls = 0;
    MPI_Op op;

    MPI_Type_contiguous(0, MPI_INT, &none);
    MPI_Type_create_resized(none, 0, 8, &spaced);
    MPI_Type_commit(&spaced);
    MPI_Op_create(add_nothing, 1, &op);
    check_class(MPIX_Allgather_compute(recv, 9, spaced, recv, 9, spaced, count_calls, &calls, NULL,
                                       MPI_COMM_WORLD),
                MPI_SUCCESS, "allgather");
    check_class(MPIX_Reduce_scatter_block_compute(count_calls, &calls, NULL, recv, 9, spaced, op,
                                                  MPI_COMM_WORLD),
                MPI_SUCCESS, "reduce-scatter");
    check(calls == 0, "%d callbacks", calls);
    check(recv[0] == 7 && recv[7] == 7, "the buffer has changed");
    MPI_Op_free(&op);
    MPI_Type_free(&spaced);
    MPI_Type_free(&none);
}

/* MPI_BOTTOM and types that hold addresses: block->data counts from there, too. */
typedef struct bottom {
    int *recv;
    int calls;
} bottom_t;

static int look_up(const MPIX_Flash_block *block, void *arg)
{
    bottom_t *bottom = arg;
    const int *element = &bottom->recv[2 * block->rank];

    check((MPI_Aint) block->data == block->rank * (MPI_Aint) (2 * sizeof(int)), "data is %p",
          block->data);
    check(*element == 100 + block->rank, "block %d is %d", block->rank, *element);
    bottom->calls++;
    return MPI_SUCCESS;
}

static void bottom(void)
{
    bottom_t bottom = {.recv = get_memory(sizeof(int) * 2 * (size_t) world_size)};
    int send = 100 + world_rank;
    MPI_Aint from, to;
    MPI_Datatype at_send, at_recv, every_second;

    MPI_Get_address(&send, &from);
    MPI_Get_address(bottom.recv, &to);
    MPI_Type_create_hindexed_block(1, 1, &from, MPI_INT, &at_send);
    MPI_Type_create_hindexed_block(1, 1, &to, MPI_INT, &at_recv);
    MPI_Type_create_resized(at_recv, 0, 2 * sizeof(int), &every_second);
    MPI_Type_commit(&at_send);
    MPI_Type_commit(&every_second);
    MPIX_Allgather_compute(MPI_BOTTOM, 1, at_send, MPI_BOTTOM, 1, every_second, look_up, &bottom,
                           NULL, MPI_COMM_WORLD);
    check(bottom.calls == world_size, "%d callbacks", bottom.calls);
    MPI_Type_free(&at_send);
    MPI_Type_free(&at_recv);
    MPI_Type_free(&every_second);
    free(bottom.recv);
}

int main(int argc, char **argv)
{
    static const test_case_t cases[] = {{"active", active},
                                        {"small", small},
                                        {"medium", medium},
                                        {"big", big},
                                        {"blocking", blocking},
                                        {"alignment", alignment},
                                        {"alone", alone},
                                        {"halves", halves},
                                        {"two_in_flight", two_in_flight},
                                        {"calls_inside", calls_inside},
                                        {"waits_inside", waits_inside},
                                        {"starts_inside", starts_inside},
                                        {"order_of_sums", order_of_sums},
                                        {"user_operation", user_operation},
                                        {"user_type", user_type},
                                        {"empty_type", empty_type},
                                        {"bottom", bottom}};

    return run_cases(argc, argv, MPI_THREAD_SINGLE, cases, LENGTH(cases));
}
