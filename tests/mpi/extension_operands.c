/*
 * extension_operands.c: cases of test_extension: the order of sums, operations and types of the
 * user's own.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "extension_operands.h"

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
void extension_order_of_sums(void)
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
    check(!extension_is_active() || memcmp(&result[9], &wanted, sizeof(float)) == 0,
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
void extension_user_operation(void)
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

void extension_user_type(void)
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

void extension_empty_type(void)
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

void extension_bottom(void)
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
