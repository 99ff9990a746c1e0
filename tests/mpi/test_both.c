/*
 * test_both.c: the calls with two callbacks: an allreduce and an all-to-all that produce and
 * consume.
 *
 * FLASH_TEST_ACTIVE in the environment: the communicators are not flash's.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include <mpix_flash.h>

#include "aftermath.h"
#include "mpitest.h"

/* What is chosen of an operation. */
typedef struct shape {
    bool reduces; /* an allreduce; else an all-to-all */
    int count;    /* of the vector, or of a block */
    int pieces, row;
    bool unequal;                   /* blocks */
    bool produces, consumes;        /* an allreduce always produces */
    bool pends;                     /* pieces are completed before their callback returns */
    bool late;                      /* or by another thread, the latest first */
    int fail_produce, fail_consume; /* which call fails on rank 0, from 1 on; 0: none */
} shape_t;

typedef struct run {
    shape_t shape;
    MPI_Comm comm;
    int rank, size;
    int *sendcounts, *recvcounts, *sdispls, *rdispls;
    int64_t *send, *recv;
    unsigned char *produced, *consumed; /* how often, by place in the vector or the buffers */
    size_t to_produce, to_consume;      /* elements */
    int produce_calls, consume_calls;
    bool own_produced, own_consumed, wrong;
    int64_t salt;          /* of the values: no two runs have the same */
    pthread_mutex_t mutex; /* orders the next three */
    MPIX_Flash_handle late[64];
    int nlate;
    bool over; /* no more of these will come */
} run_t;

/* An error class that no library returns here. */
enum { FAILED = MPI_ERR_KEYVAL };

/* What a rank contributes to an element: to the vector's, or to a block of another rank's. */
static int64_t value(const run_t *run, int from, int to, MPI_Count index)
{
    return run->salt + from * INT64_C(1000003) + (run->shape.reduces ? 0 : to * INT64_C(10007)) +
           index;
}

static int64_t result(const run_t *run, int from, MPI_Count index)
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

/* ------------------------------------------------------------------ callbacks */

/* Completes what is pending, the latest first. */
static void *complete_late(void *arg)
{
    run_t *run = arg;
    bool over = false;

    while (!over) {
        usleep(200);
        pthread_mutex_lock(&run->mutex);
        over = run->over;
        while (run->nlate > 0) {
            MPIX_Flash_handle handle = run->late[--run->nlate];

            pthread_mutex_unlock(&run->mutex);
            MPIX_Flash_complete(handle, MPI_SUCCESS);
            pthread_mutex_lock(&run->mutex);
        }
        pthread_mutex_unlock(&run->mutex);
    }
    return NULL;
}

static int end_piece(run_t *run, const MPIX_Flash_block *block, int error)
{
    if (run->shape.late) {
        pthread_mutex_lock(&run->mutex);
        run->late[run->nlate++] = block->handle;
        pthread_mutex_unlock(&run->mutex);
        return MPIX_FLASH_PENDING;
    }
    if (!run->shape.pends) {
        return error;
    }
    check(MPIX_Flash_complete(block->handle, error) == MPI_SUCCESS, "a piece is not pending");
    return MPIX_FLASH_PENDING;
}

/* Notes the elements of a piece, each of which is to come once. */
static void note(run_t *run, unsigned char *seen, size_t first, const MPIX_Flash_block *block)
{
    for (MPI_Count k = 0; k < block->count; k++) {
        run->wrong |= seen[first + (size_t) (block->offset + k)]++ > 0;
    }
    run->wrong |= block->count < 1 || block->piece < 0 || block->piece >= block->pieces ||
                  block->datatype != MPI_INT64_T || block->on_stream != 0;
}

/* The own block is the last. */
static int produce(const MPIX_Flash_block *block, void *arg)
{
    run_t *run = arg;
    int64_t *data = block->data;
    MPI_Count base = run->shape.reduces ? block->displ + block->offset : block->offset;

    run->wrong |= run->consume_calls > 0 || (run->own_produced && block->rank != run->rank);
    run->own_produced |= block->rank == run->rank;
    run->wrong |=
        !run->shape.reduces && (block->displ != run->sdispls[block->rank] ||
                                data != run->send + run->sdispls[block->rank] + block->offset);
    note(run, run->produced, (size_t) block->displ, block);
    for (MPI_Count k = 0; k < block->count; k++) {
        data[k] = value(run, run->rank, block->rank, base + k);
    }
    return end_piece(run, block,
                     ++run->produce_calls == run->shape.fail_produce && world_rank == 0
                         ? (int) FAILED
                         : MPI_SUCCESS);
}

/* The own block is the first. */
static int consume(const MPIX_Flash_block *block, void *arg)
{
    run_t *run = arg;
    const int64_t *data = block->data;
    MPI_Count base = run->shape.reduces ? block->displ + block->offset : block->offset;
    size_t own = run->shape.reduces ? 1 : (size_t) run->recvcounts[run->rank];
    bool in_send = !run->shape.reduces && block->rank == run->rank &&
                   data == run->send + run->sdispls[run->rank] + block->offset;

    run->wrong |= block->rank != run->rank && own > 0 && !run->own_consumed && !run->shape.reduces;
    run->own_consumed |= block->rank == run->rank;
    run->wrong |= !in_send && data != run->recv + block->displ + block->offset;
    note(run, run->consumed, (size_t) block->displ, block);
    for (MPI_Count k = 0; k < block->count; k++) {
        run->wrong |= data[k] != result(run, block->rank, base + k);
    }
    return end_piece(run, block,
                     ++run->consume_calls == run->shape.fail_consume && world_rank == 0
                         ? (int) FAILED
                         : MPI_SUCCESS);
}

/* -------------------------------------------------------------------- running */

/* What a rank sends to another. */
static int count_between(const shape_t *shape, int from, int to)
{
    return !shape->unequal            ? shape->count
           : (2 * from + to) % 3 == 2 ? 0
                                      : shape->count + (from + 3 * to) % 5;
}

static void make_blocks(run_t *run)
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

static void make(run_t *run, const shape_t *shape, MPI_Comm comm)
{
    static int64_t turn;

    *run = (run_t){.shape = *shape, .comm = comm, .salt = ++turn * INT64_C(1000000007)};
    MPI_Comm_rank(comm, &run->rank);
    MPI_Comm_size(comm, &run->size);
    pthread_mutex_init(&run->mutex, NULL);
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

static void release(run_t *run)
{
    free(run->sendcounts);
    free(run->recvcounts);
    free(run->sdispls);
    free(run->rdispls);
    free(run->send);
    free(run->recv);
    free(run->produced);
    free(run->consumed);
    pthread_mutex_destroy(&run->mutex);
}

static int start(run_t *run, MPI_Request *request)
{
    const shape_t *shape = &run->shape;
    MPIX_Flash_compute_fn *make_it = shape->produces || shape->reduces ? produce : NULL;
    MPIX_Flash_compute_fn *use_it = shape->consumes ? consume : NULL;
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

static void check_vector(const run_t *run)
{
    for (int k = 0; k < run->shape.count; k++) {
        if (run->recv[k] != result(run, 0, k)) {
            check(false, "allreduce: element %d of %d", k, run->shape.count);
            return;
        }
    }
}

static void check_blocks(const run_t *run)
{
    for (int rank = 0; rank < run->size; rank++) {
        for (int k = 0; k < run->recvcounts[rank]; k++) {
            if (run->recv[run->rdispls[rank] + k] != result(run, rank, k)) {
                check(false, "all-to-all: element %d from rank %d", k, rank);
                return;
            }
        }
    }
}

static void check_run(const run_t *run)
{
    const shape_t *shape = &run->shape;
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

static void one(const shape_t *shape, MPI_Comm comm)
{
    MPI_Request request;
    pthread_t thread;
    run_t run;

    make(&run, shape, comm);
    if (shape->late) {
        pthread_create(&thread, NULL, complete_late, &run);
    }
    check_class(start(&run, &request), MPI_SUCCESS, "a start");
    check_class(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_SUCCESS, "an operation");
    if (shape->late) {
        pthread_mutex_lock(&run.mutex);
        run.over = true;
        pthread_mutex_unlock(&run.mutex);
        pthread_join(thread, NULL);
    }
    check_run(&run);
    release(&run);
}

/* ----------------------------------------------------------------------- cases */

/* Which callbacks there are, and how they end. */
static shape_t shape_of(bool reduces, int count, int form)
{
    return (shape_t){.reduces = reduces,
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

    for (size_t c = 0; c < LENGTH(counts); c++) {
        for (size_t p = 0; p < LENGTH(pieces); p++) {
            /* Many ranks on few cores take long: they have a part of the forms each time. */
            for (int form = world_size > 4 ? (int) (c + p) % 3 : 0;
                 form<8; form += world_size> 4 ? 3 : 1) {
                shape_t shape = shape_of(reduces, counts[c], form);

                shape.pieces = pieces[p];
                one(&shape, MPI_COMM_WORLD);
            }
        }
    }
    for (int form = 0; form < 4; form++) {
        shape_t shape = shape_of(reduces, 3000 * form, form);

        shape.pieces = 5;
        shape.late = true;
        one(&shape, MPI_COMM_WORLD);
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
            shape_t shape = shape_of((turn + form) % 2 == 0, 500 * form + 1, form);

            shape.pieces = 2;
            one(&shape, comm);
        }
        MPI_Comm_free(&comm);
    }
}

/* Several at a time, of both kinds, beside an ordinary collective; the last is waited for first. */
static void together(void)
{
    enum { RUNS = 8 };
    MPI_Request requests[RUNS + 1];
    run_t runs[RUNS];
    int own = world_rank + 1, sum = 0;

    for (int k = 0; k < RUNS; k++) {
        shape_t shape = shape_of(k % 3 == 0, 3001 * k, k);

        shape.pieces = 1 + k % 3;
        make(&runs[k], &shape, MPI_COMM_WORLD);
        check_class(start(&runs[k], &requests[k]), MPI_SUCCESS, "a start");
    }
    MPI_Iallreduce(&own, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[RUNS]);
    for (int k = RUNS; k >= 0; k--) {
        check_class(MPI_Wait(&requests[k], MPI_STATUS_IGNORE), MPI_SUCCESS, "one of several");
    }
    check(sum == world_size * (world_size + 1) / 2, "an allreduce beside them: %d", sum);
    for (int k = 0; k < RUNS; k++) {
        check_run(&runs[k]);
        release(&runs[k]);
    }
}

static int blocking_calls(run_t *run, const MPIX_Flash_hints *hints)
{
    const shape_t *shape = &run->shape;

    if (shape->reduces) {
        return MPIX_Allreduce_compute(produce, run, consume, run, hints, run->recv, shape->count,
                                      MPI_INT64_T, MPI_SUM, run->comm);
    }
    return shape->unequal
               ? MPIX_Alltoallv_compute(run->send, run->sendcounts, run->sdispls, MPI_INT64_T,
                                        run->recv, run->recvcounts, run->rdispls, MPI_INT64_T,
                                        produce, run, consume, run, hints, run->comm)
               : MPIX_Alltoall_compute(run->send, shape->count, MPI_INT64_T, run->recv,
                                       shape->count, MPI_INT64_T, produce, run, consume, run, hints,
                                       run->comm);
}

static void blocking(void)
{
    for (int form = 0; form < 4; form++) {
        shape_t shape = {.reduces = form >= 2,
                         .count = 5000,
                         .unequal = form == 1,
                         .produces = true,
                         .consumes = true};
        run_t run;

        make(&run, &shape, MPI_COMM_WORLD);
        check_class(blocking_calls(&run, NULL), MPI_SUCCESS, "a blocking call");
        check_run(&run);
        release(&run);
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
        shape_t shape = {.reduces = form % 4 >= 2,
                         .count = 3000,
                         .pieces = 3,
                         .produces = true,
                         .consumes = true,
                         .pends = form >= 16,
                         .fail_produce = consumer ? 0 : call,
                         .fail_consume = consumer ? call : 0};
        MPI_Request request;
        run_t run;
        int class;

        make(&run, &shape, comm);
        check_class(start(&run, &request), MPI_SUCCESS, "a start");
        MPI_Error_class(MPI_Wait(&request, MPI_STATUS_IGNORE), &class);
        if (world_rank == 0) {
            check(class == FAILED, "rank 0's callback %d fails with %d", call, class);
        } else if (!consumer && (call < all || shape.reduces)) {
            check(class == MPI_ERR_OTHER, "a producer fails on rank 0, here with %d", class);
        } else if (!consumer && getenv("FLASH_TEST_ACTIVE") != NULL) {
            check(class == MPI_ERR_OTHER, "rank 0 reports no failure, here %d", class);
        } else {
            check(class == MPI_SUCCESS, "a consumer fails on rank 0, here with %d", class);
        }
        release(&run);
        next_works(comm, "after a callback failed");
    }
    MPI_Comm_free(&comm);
}

static void add_or_scale(void *in, void *inout, int *count, MPI_Datatype *type)
{
    int64_t *a = in, *b = inout;

    (void) type;
    for (int k = 0; k < *count; k++) {
        b[k] += a[k];
    }
}

/* Writes ones, of whatever type has eight bytes. */
static int produce_ones(const MPIX_Flash_block *block, void *arg)
{
    for (MPI_Count k = 0; k < block->count; k++) {
        if (block->datatype == MPI_DOUBLE) {
            ((double *) block->data)[k] = 1.0 / (1 + world_rank + (double) k);
        } else {
            ((int64_t *) block->data)[k] = 1;
        }
    }
    (void) arg;
    return MPI_SUCCESS;
}

static int look(const MPIX_Flash_block *block, void *arg)
{
    *(int *) arg += (int) block->count;
    return MPI_SUCCESS;
}

/* Operations that take the ring and those that do not; floating point has the same bits everywhere.
 */
static void operations(void)
{
    enum { COUNT = 1013 };
    int64_t *sums = get_memory(COUNT * sizeof(*sums));
    double *reals = get_memory(COUNT * sizeof(*reals)), *first = get_memory(COUNT * sizeof(*first));

    for (int commutes = 0; commutes <= 1; commutes++) {
        MPI_Op op;

        MPI_Op_create(add_or_scale, commutes, &op);
        check_class(MPIX_Allreduce_compute(produce_ones, NULL, NULL, NULL, NULL, sums, COUNT,
                                           MPI_INT64_T, op, MPI_COMM_WORLD),
                    MPI_SUCCESS, "a user's operation");
        for (int k = 0; k < COUNT; k++) {
            check(sums[k] == world_size, "a user's operation: element %d", k);
        }
        MPI_Op_free(&op);
    }
    check_class(MPIX_Allreduce_compute(produce_ones, NULL, NULL, NULL, NULL, reals, COUNT,
                                       MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD),
                MPI_SUCCESS, "a sum of reals");
    memcpy(first, reals, COUNT * sizeof(*first));
    MPI_Bcast(first, COUNT, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    check(memcmp(first, reals, COUNT * sizeof(*first)) == 0, "ranks have different bits");
    free(sums);
    free(reals);
    free(first);
}

/* Elements of three numbers. */
static int produce_threes(const MPIX_Flash_block *block, void *type)
{
    for (MPI_Count k = 0; k < 3 * block->count; k++) {
        ((int64_t *) block->data)[k] = block->datatype == (MPI_Datatype) type ? 3 : 0;
    }
    return MPI_SUCCESS;
}

/* Two types of one size, and of whole elements. */
static void types(void)
{
    MPI_Datatype three, other;
    int64_t *send = get_memory((size_t) world_size * 12 * sizeof(*send));
    int64_t *recv = get_memory((size_t) world_size * 12 * sizeof(*recv));
    MPI_Comm comm = make_counted_comm();
    MPI_Request request;
    int seen = 0;

    MPI_Type_contiguous(3, MPI_INT64_T, &three);
    MPI_Type_commit(&three);
    MPI_Type_contiguous(24, MPI_BYTE, &other);
    MPI_Type_commit(&other);
    for (int k = 0; k < world_size * 12; k++) {
        send[k] = world_rank * 1000 + k;
    }
    check_class(
        MPIX_Alltoall_compute(send, 4, three, recv, 4, other, NULL, NULL, look, &seen, NULL, comm),
        MPI_SUCCESS, "two types");
    MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, send, 12, MPI_INT64_T, MPI_COMM_WORLD);
    check(memcmp(send, recv, (size_t) world_size * 12 * sizeof(*send)) == 0 &&
              seen == 4 * world_size,
          "an all-to-all of two types");
    check_class(MPIX_Alltoall_compute(send, 4, three, recv, 4, other, produce_threes, three, NULL,
                                      NULL, NULL, comm),
                MPI_SUCCESS, "two types, produced");
    for (int k = 0; k < world_size * 12; k++) {
        check(recv[k] == 3, "a producer of the send buffer's type: element %d", k);
    }
    check_class(MPIX_Ialltoall_compute(send, 12, MPI_INT64_T, recv, 4, three, NULL, NULL, consume,
                                       NULL, NULL, comm, &request),
                MPI_ERR_TYPE, "types of different sizes");
    MPI_Type_free(&three);
    MPI_Type_free(&other);
    MPI_Type_vector(4, 1, 2, MPI_INT64_T, &other);
    MPI_Type_commit(&other);
    check_class(MPIX_Ialltoall_compute(send, 1, other, recv, 1, other, NULL, NULL, consume, NULL,
                                       NULL, comm, &request),
                MPI_ERR_TYPE, "types with gaps");
    MPI_Type_free(&other);
    free(send);
    free(recv);
    MPI_Comm_free(&comm);
}

static void arguments(void)
{
    MPI_Comm comm = make_counted_comm();
    MPIX_Flash_hints hints = MPIX_FLASH_HINTS_INIT;
    MPI_Request request;
    int64_t *all = get_memory((size_t) world_size * sizeof(*all));
    int *ones = get_memory((size_t) world_size * sizeof(*ones));

    for (int rank = 0; rank < world_size; rank++) {
        ones[rank] = 1;
    }
    hints.own = consume;
    check_class(MPIX_Iallreduce_compute(produce_ones, NULL, NULL, NULL, &hints, all, 1, MPI_INT64_T,
                                        MPI_SUM, comm, &request),
                MPI_ERR_ARG, "an allreduce with `own`");
    check_class(MPIX_Iallreduce_compute(NULL, NULL, consume, NULL, NULL, all, 1, MPI_INT64_T,
                                        MPI_SUM, comm, &request),
                MPI_ERR_ARG, "an allreduce that produces nothing");
    check_class(MPIX_Iallreduce_compute(produce_ones, NULL, NULL, NULL, NULL, all, -1, MPI_INT64_T,
                                        MPI_SUM, comm, &request),
                MPI_ERR_COUNT, "an allreduce of a negative count");
    check_class(MPIX_Iallreduce_compute(produce_ones, NULL, NULL, NULL, NULL, all, 1, MPI_INT64_T,
                                        MPI_OP_NULL, comm, &request),
                MPI_ERR_OP, "an allreduce by no operation");
    check_class(MPIX_Ialltoall_compute(all, 1, MPI_INT64_T, all, 1, MPI_INT64_T, NULL, NULL, NULL,
                                       NULL, NULL, comm, &request),
                MPI_ERR_ARG, "an all-to-all without callbacks");
    check_class(MPIX_Ialltoall_compute(all, 1, MPI_INT64_T, all, 1, MPI_INT64_T, produce_ones, NULL,
                                       NULL, NULL, &hints, comm, &request),
                MPI_ERR_ARG, "an all-to-all with `own`");
    check_class(MPIX_Ialltoall_compute(MPI_IN_PLACE, 1, MPI_INT64_T, all, 1, MPI_INT64_T, NULL,
                                       NULL, consume, NULL, NULL, comm, &request),
                MPI_ERR_BUFFER, "an all-to-all in place");
    check_class(MPIX_Ialltoallv_compute(all, ones, NULL, MPI_INT64_T, all, ones, ones, MPI_INT64_T,
                                        produce_ones, NULL, NULL, NULL, NULL, comm, &request),
                MPI_ERR_ARG, "an all-to-all without places");
    free(ones);
    free(all);
    MPI_Comm_free(&comm);
}

/* On rank 0 there is no buffer: all hear of it. */
static void no_buffer(void)
{
    MPI_Comm comm = make_counted_comm();
    int64_t *all = get_memory((size_t) world_size * sizeof(*all));
    int seen = 0;

    for (int reduces = 0; reduces <= 1; reduces++) {
        MPI_Request request;
        int wanted = world_rank == 0 ? MPI_ERR_BUFFER : MPI_ERR_OTHER;
        void *recv = world_rank == 0 ? NULL : all;

        check_class(reduces
                        ? MPIX_Iallreduce_compute(produce_ones, NULL, NULL, NULL, NULL, recv,
                                                  world_size, MPI_INT64_T, MPI_SUM, comm, &request)
                        : MPIX_Ialltoall_compute(all, 1, MPI_INT64_T, recv, 1, MPI_INT64_T, NULL,
                                                 NULL, look, &seen, NULL, comm, &request),
                    MPI_SUCCESS, "a start without a buffer");
        check_class(MPI_Wait(&request, MPI_STATUS_IGNORE), wanted, "an operation without a buffer");
        next_works(comm, "after an operation without a buffer");
    }
    free(all);
    MPI_Comm_free(&comm);
}

static int start_v(const int64_t *send, const int sendcounts[], int64_t *recv,
                   const int recvcounts[], const int displs[], int *seen, MPI_Comm comm,
                   MPI_Request *request)
{
    return MPIX_Ialltoallv_compute(send, sendcounts, displs, MPI_INT64_T, recv, recvcounts, displs,
                                   MPI_INT64_T, NULL, NULL, look, seen, NULL, comm, request);
}

/* Blocks lie before the buffers' addresses; at last rank 0's own does not fit, and all hear of it.
 */
static void places(void)
{
    MPI_Comm comm = make_counted_comm();
    size_t size = (size_t) world_size;
    int64_t *send = get_memory(size * sizeof(*send)), *recv = get_memory(size * sizeof(*recv));
    int *counts = get_memory(size * sizeof(*counts)), *own = get_memory(size * sizeof(*own));
    int *displs = get_memory(size * sizeof(*displs)), seen = 0;
    MPI_Request request;

    for (int rank = 0; rank < world_size; rank++) {
        counts[rank] = own[rank] = 1;
        displs[rank] = rank - world_size;
        send[rank] = 100 * world_rank + rank;
        recv[rank] = -1;
    }
    check_class(start_v(send + size, counts, recv + size, counts, displs, &seen, comm, &request),
                MPI_SUCCESS, "a start with places below 0");
    check_class(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_SUCCESS, "places below 0");
    for (int rank = 0; rank < world_size; rank++) {
        check(recv[rank] == 100 * rank + world_rank, "element of rank %d: %d", rank,
              (int) recv[rank]);
    }
    own[world_rank] = world_rank == 0 ? 0 : 1;
    check_class(start_v(send + size, own, recv + size, counts, displs, &seen, comm, &request),
                MPI_SUCCESS, "a start with an own block that does not fit");
    check_class(MPI_Wait(&request, MPI_STATUS_IGNORE),
                world_rank == 0 ? MPI_ERR_TRUNCATE : MPI_ERR_OTHER,
                "an own block that does not fit");
    next_works(comm, "after an own block that did not fit");
    free(send);
    free(recv);
    free(counts);
    free(own);
    free(displs);
    MPI_Comm_free(&comm);
}

int main(int argc, char **argv)
{
    static const test_case_t cases[] = {
        {"allreduce", allreduce},   {"alltoall", alltoall}, {"communicators", communicators},
        {"together", together},     {"blocking", blocking}, {"fails", fails},
        {"operations", operations}, {"types", types},       {"arguments", arguments},
        {"no_buffer", no_buffer},   {"places", places}};

    return run_cases(argc, argv, MPI_THREAD_SINGLE, cases, LENGTH(cases));
}
