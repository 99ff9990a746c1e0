/*
 * test_growth.c: thousands of communicators, datatypes and operations made, used and freed while
 * an operation is under way leave nothing behind: their handles are used again, and the memory in
 * use stays what it was.
 *
 * FLASH_TEST_ACTIVE=0 in the environment: the communicators are not flash's. The extension alone is
 * used then: Open MPI's own operations do not survive what they use.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <malloc.h>

#include <mpix_flash.h>

#include "mpitest.h"
#include "persistent.h"

/*
 * Until WARM, free lists, caches and connections grow as they please. The rounds after that are in
 * SLICES, of which half may grow by more than MOST_GROWTH a round: a free list takes its next step,
 * however long, in one or two of them, and what each round loses is lost in all.
 */
enum { WARM = 1000, SLICES = 8, MOST_GROWTH = 100 };

static int rounds(void)
{
    return short_tier ? 1600 : 5000;
}

enum { BLOCK = 20 }; /* pairs of int */

/* --------------------------------------------------------- what must not grow */

typedef struct marks {
    size_t memory[SLICES + 1];              /* in use after the warm-up, and after each slice */
    MPI_Fint comm, type, op;                /* the highest handles until then */
    MPI_Fint last_comm, last_type, last_op; /* since */
} marks_t;

/* Of the process, as its allocator counts; 0 where that is not the C library's. */
static size_t memory_in_use(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !__GLIBC_PREREQ(2, 33)
    return 0;
#else
    struct mallinfo2 info = mallinfo2();

    return info.uordblks + info.hblkhd;
#endif
}

static void raise_mark(MPI_Fint *mark, MPI_Fint handle)
{
    *mark = handle > *mark ? handle : *mark;
}

/* At the end of a round, with the handles of what it made. */
static void note(marks_t *marks, int round, MPI_Fint comm, MPI_Fint type, MPI_Fint op)
{
    bool warm = round < WARM;
    int slice = (rounds() - WARM) / SLICES, behind = round + 1 - WARM;

    raise_mark(warm ? &marks->comm : &marks->last_comm, comm);
    raise_mark(warm ? &marks->type : &marks->last_type, type);
    raise_mark(warm ? &marks->op : &marks->last_op, op);
    if (behind >= 0 && behind % slice == 0) {
        marks->memory[behind / slice] = memory_in_use();
    }
}

static int compare(const void *left, const void *right)
{
    long a = *(const long *) left, b = *(const long *) right;

    return (a > b) - (a < b);
}

/* Of the slices: the median, the greater one of two. */
static long usual_growth(const marks_t *marks)
{
    long growth[SLICES];

    for (int k = 0; k < SLICES; k++) {
        growth[k] = (long) marks->memory[k + 1] - (long) marks->memory[k];
    }
    qsort(growth, SLICES, sizeof(growth[0]), compare);
    return growth[SLICES / 2];
}

static void check_marks(const marks_t *marks)
{
    long growth = usual_growth(marks), most = MOST_GROWTH * (rounds() - WARM) / SLICES;

    check(marks->last_comm <= marks->comm, "communicators up to %d, and %d later", marks->comm,
          marks->last_comm);
    check(marks->last_type <= marks->type, "datatypes up to %d, and %d later", marks->type,
          marks->last_type);
    check(marks->last_op <= marks->op, "operations up to %d, and %d later", marks->op,
          marks->last_op);
    check(growth <= most, "%ld bytes more in use after %d rounds, more than %ld", growth,
          (rounds() - WARM) / SLICES, most);
}

/* ------------------------------------------------------------------- one round */

/* Sums of pairs: the first modulo 1009. */
static void add_pairs(void *in, void *inout, int *length, MPI_Datatype *type)
{
    (void) type;
    for (int k = 0; k < 2 * *length; k++) {
        ((int *) inout)[k] = (((int *) in)[k] + ((int *) inout)[k]) % 1009;
    }
}

typedef struct use {
    MPI_Comm comm;
    MPI_Datatype pair;
    MPI_Op op;
    MPI_Request request;
    int rank, size, round;
    int fails; /* what callbacks return */
    int *send, *recv;
} use_t;

static int contribution(const use_t *use, int rank, int element)
{
    return (use->round + 10 * rank + element) % 1009;
}

static int produce(const MPIX_Flash_block *block, void *arg)
{
    const use_t *use = arg;
    int first = 2 * (BLOCK * block->rank + (int) block->offset);

    for (int k = 0; k < 2 * (int) block->count; k++) {
        ((int *) block->data)[k] = contribution(use, use->rank, first + k);
    }
    return use->fails;
}

static int consume(const MPIX_Flash_block *block, void *arg)
{
    (void) block;
    return ((use_t *) arg)->fails;
}

/* The ways to have an operation under way. */
enum { PLAIN_GATHER, PLAIN_REDUCE, COMPUTE_GATHER, COMPUTE_REDUCE, LASTING_GATHER, LASTING_REDUCE };
enum { WAYS = LASTING_REDUCE + 1 };

static int way_of_round(int round)
{
    const char *value = getenv("FLASH_TEST_ACTIVE");
    bool active = value == NULL || strcmp(value, "0") != 0;

    int ways = passes_others_on() ? LASTING_GATHER : WAYS; /* as above */

    return active ? round % ways : COMPUTE_GATHER + round % 2;
}

static bool gathers(int way)
{
    return way == PLAIN_GATHER || way == COMPUTE_GATHER || way == LASTING_GATHER;
}

static void start(use_t *use, int way)
{
    switch (way) {
    case PLAIN_GATHER:
        MPI_Iallgather(use->send, BLOCK, use->pair, use->recv, BLOCK, use->pair, use->comm,
                       &use->request);
        break;
    case PLAIN_REDUCE:
        MPI_Ireduce_scatter_block(use->send, use->recv, BLOCK, use->pair, use->op, use->comm,
                                  &use->request);
        break;
    case COMPUTE_GATHER:
        MPIX_Iallgather_compute(use->send, BLOCK, use->pair, use->recv, BLOCK, use->pair, consume,
                                use, NULL, use->comm, &use->request);
        break;
    case COMPUTE_REDUCE:
        MPIX_Ireduce_scatter_block_compute(produce, use, NULL, use->recv, BLOCK, use->pair, use->op,
                                           use->comm, &use->request);
        break;
    case LASTING_GATHER:
        MPI_Allgather_init(use->send, BLOCK, use->pair, use->recv, BLOCK, use->pair, use->comm,
                           MPI_INFO_NULL, &use->request);
        break;
    default:
        MPI_Reduce_scatter_block_init(use->send, use->recv, BLOCK, use->pair, use->op, use->comm,
                                      MPI_INFO_NULL, &use->request);
    }
    if (way >= LASTING_GATHER) {
        MPI_Start(&use->request);
    }
}

/* Waits, and frees what is persistent. */
static void finish(use_t *use, int way)
{
    int error = MPI_Wait(&use->request, MPI_STATUS_IGNORE);

    check_class(error, use->fails, "MPI_Wait");
    if (way >= LASTING_GATHER) {
        MPI_Request_free(&use->request);
    }
}

static void check_result(const use_t *use, int way)
{
    for (int k = 0; k < 2 * BLOCK * (gathers(way) ? use->size : 1); k++) {
        int wanted = 0;

        for (int rank = 0; rank < use->size; rank++) {
            wanted += contribution(use, rank, 2 * BLOCK * use->rank + k);
        }
        wanted = gathers(way) ? contribution(use, k / (2 * BLOCK), k % (2 * BLOCK)) : wanted % 1009;
        if (!check(use->recv[k] == wanted, "round %d, way %d: element %d is %d, not %d", use->round,
                   way, k, use->recv[k], wanted)) {
            return;
        }
    }
}

static void fill(use_t *use)
{
    MPI_Comm_rank(use->comm, &use->rank);
    MPI_Comm_size(use->comm, &use->size);
    for (int k = 0; k < 2 * BLOCK * use->size; k++) {
        use->send[k] = contribution(use, use->rank, k);
    }
}

static void make_type_and_op(use_t *use)
{
    MPI_Type_contiguous(2, MPI_INT, &use->pair);
    MPI_Type_commit(&use->pair);
    MPI_Op_create(add_pairs, 1, &use->op);
}

static use_t make_use(MPI_Comm comm)
{
    size_t bytes = (size_t) (2 * BLOCK * world_size) * sizeof(int);

    return (use_t){.comm = comm, .send = get_memory(bytes), .recv = get_memory(bytes)};
}

static void free_use(use_t *use)
{
    free(use->send);
    free(use->recv);
}

/* ------------------------------------------------------------------- the cases */

/* All three are freed while an operation with them is under way. */
static void one_of_many(use_t *use, marks_t *marks, int way)
{
    MPI_Fint comm, type, op;

    if (use->round % 2 == 0) {
        MPI_Comm_dup(MPI_COMM_WORLD, &use->comm);
    } else {
        MPI_Comm_split(MPI_COMM_WORLD, use->round % 5 == 0 ? world_rank / 2 : 0, -world_rank,
                       &use->comm);
    }
    MPI_Comm_set_errhandler(use->comm, counting_handler());
    make_type_and_op(use);
    comm = MPI_Comm_c2f(use->comm);
    type = MPI_Type_c2f(use->pair);
    op = MPI_Op_c2f(use->op);
    fill(use);
    start(use, way);
    MPI_Comm_free(&use->comm);
    MPI_Type_free(&use->pair);
    MPI_Op_free(&use->op);
    finish(use, way);
    if (use->fails == MPI_SUCCESS) {
        check_result(use, way);
    }
    note(marks, use->round, comm, type, op);
}

static void communicators(void)
{
    use_t use = make_use(MPI_COMM_NULL);
    marks_t marks = {.comm = 0};

    for (use.round = 0; use.round < rounds(); use.round++) {
        one_of_many(&use, &marks, way_of_round(use.round));
    }
    check_marks(&marks);
    free_use(&use);
}

/* With callbacks that fail on all ranks, so that all requests end with their error. */
static void failures(void)
{
    use_t use = make_use(MPI_COMM_NULL);
    marks_t marks = {.comm = 0};

    use.fails = MPI_ERR_ARG;
    for (use.round = 0; use.round < rounds(); use.round++) {
        one_of_many(&use, &marks, COMPUTE_GATHER + use.round % 2);
    }
    check_marks(&marks);
    free_use(&use);
}

/* On one communicator, where types and operations have nothing else to go away with. */
static void types_and_operations(void)
{
    use_t use = make_use(MPI_COMM_WORLD);
    marks_t marks = {.comm = 0};

    for (use.round = 0; use.round < rounds(); use.round++) {
        int way = way_of_round(use.round);
        MPI_Fint type, op;

        make_type_and_op(&use);
        type = MPI_Type_c2f(use.pair);
        op = MPI_Op_c2f(use.op);
        fill(&use);
        start(&use, way);
        MPI_Type_free(&use.pair);
        MPI_Op_free(&use.op);
        finish(&use, way);
        check_result(&use, way);
        note(&marks, use.round, 0, type, op);
    }
    check_marks(&marks);
    free_use(&use);
}

TEST_PROGRAM(test_growth, MPI_THREAD_SINGLE, {"communicators", communicators},
             {"types_and_operations", types_and_operations}, {"failures", failures});
