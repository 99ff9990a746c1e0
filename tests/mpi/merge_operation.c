/*
 * merge_operation.c: see merge_operation.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "merge_operation.h"

#include "choice.h"
#include "mpitest.h"

MPI_Op merge_in_order;

/* Element `index`, of all ranks' blocks together, as `rank` contributes it. */
static int64_t value(const run_t *run, int rank, MPI_Count index)
{
    return run->salt + rank * INT64_C(1000003) + index * INT64_C(11);
}

static int64_t sum_of(const run_t *run, MPI_Count index)
{
    int64_t sum = 0;

    for (int rank = 0; rank < world_size; rank++) {
        sum += value(run, rank, index);
    }
    return sum;
}

/* The block in which a result lies, of the elements in front of it in the order of ranks. */
static int owner_of(const run_t *run, MPI_Count index, MPI_Count *within)
{
    int rank = 0;

    for (*within = index; *within >= run->counts[rank]; rank++) {
        *within -= run->counts[rank];
    }
    return rank;
}

/* What a call's result is in the element that comes `index`-th in the order of ranks. */
static int64_t result(const run_t *run, MPI_Count index)
{
    MPI_Count within;
    int owner;

    if (run->shape.call == REDUCE_SCATTER || run->shape.call == ALLREDUCE) {
        return sum_of(run, index);
    }
    owner = owner_of(run, index, &within);
    if (run->shape.call == ALLTOALL) {
        index += (world_rank - owner) * run->shape.count; /* what `owner` has for this rank */
    }
    return value(run, owner, index);
}

/* How many elements come before a block, in the order of ranks. */
static MPI_Count before(const run_t *run, int rank)
{
    MPI_Count sum = 0;

    while (rank-- > 0) {
        sum += run->counts[rank];
    }
    return sum;
}

/* Looks at what all callbacks are given. The first element's number, in the order of ranks. */
static MPI_Count look(run_t *run, const MPIX_Flash_block *block, bool consumes)
{
    bool merged = run->merged[consumes];
    int ranks = merged ? world_size : 1;
    MPI_Count first = before(run, block->rank) + block->offset;

    run->wrong |=
        block->ranks != ranks || block->count < 1 || block->datatype != MPI_INT64_T ||
        (merged && (block->rank != 0 || block->piece != 0 || block->pieces != 1 ||
                    block->offset != 0 || block->count != run->all || block->displ != 0)) ||
        (!merged && block->pieces > 1 && block->count == run->counts[block->rank]);
    run->calls[consumes]++;
    run->seen[consumes] += block->count;
    return first;
}

static int end(run_t *run, const MPIX_Flash_block *block)
{
    int error = run->shape.fails && world_rank == 0 ? (int) FAILED : MPI_SUCCESS;

    return end_piece(block, error, run->shape.pends, run->shape.late ? &run->late : NULL);
}

static int produce(const MPIX_Flash_block *block, void *arg)
{
    run_t *run = arg;
    MPI_Count first = look(run, block, false);
    int64_t *data = block->data;

    run->wrong |= run->calls[1] > 0;
    for (MPI_Count k = 0; k < block->count; k++) {
        data[k] = value(run, world_rank, first + k);
    }
    return end(run, block);
}

static int consume(const MPIX_Flash_block *block, void *arg)
{
    run_t *run = arg;
    MPI_Count first = look(run, block, true);
    const int64_t *data = block->data;

    for (MPI_Count k = 0; k < block->count; k++) {
        run->wrong |= data[k] != result(run, first + k);
    }
    return end(run, block);
}

/* An allgather's own block is written, a reduce-scatter's doubled. */
static int finish_own(const MPIX_Flash_block *block, void *arg)
{
    run_t *run = arg;
    int64_t *data = block->data;

    run->own_calls++;
    run->wrong |= block->ranks != 1 || block->rank != world_rank;
    for (MPI_Count k = 0; k < block->count; k++) {
        data[k] = run->shape.call == REDUCE_SCATTER
                      ? 2 * data[k]
                      : value(run, world_rank, before(run, world_rank) + block->offset + k);
    }
    return MPI_SUCCESS;
}

/* -------------------------------------------------------------------- running */

bool merge_pays(call_t call, size_t bytes)
{
    const char *algorithm = getenv("OMPI_MCA_coll_flash_algorithm");

    if (algorithm != NULL && strcmp(algorithm, "auto") != 0) {
        return strcmp(algorithm, "fallback") == 0;
    }
    return !choice_ring_leads(call == ALLGATHER ? "allgather" : "reduce_scatter", bytes,
                              world_size);
}

bool merge_is_served(const run_t *run)
{
    return getenv("FLASH_TEST_ACTIVE") == NULL && world_size > 1 && !run->shape.in_order;
}

/*
 * One block is in order, whatever the others' places are; and the last one may end in a broken row.
 */
static bool in_a_row(const run_t *run)
{
    int filled = 0, row = run->shape.row > 1 ? run->shape.row : 1, all = 0;

    for (int rank = 0; rank < world_size; rank++) {
        if (run->counts[rank] > 0 && all % row != 0) {
            return false;
        }
        all += run->counts[rank];
        filled += run->counts[rank] > 0;
    }
    return run->shape.layout != BACKWARDS || filled < 2;
}

static bool expects_merged(const run_t *run, bool consumes)
{
    const shape_t *shape = &run->shape;
    bool plain =
        !merge_is_served(run) || (shape->call <= REDUCE_SCATTER &&
                                  merge_pays(shape->call, (size_t) run->all * sizeof(int64_t)));
    bool produced = shape->call != ALLGATHER, consumed = shape->call != REDUCE_SCATTER;

    return plain && world_size > 1 && (consumes ? consumed : produced) && in_a_row(run);
}

static void set_blocks(run_t *run)
{
    const shape_t *shape = &run->shape;

    for (int rank = 0; rank < world_size; rank++) {
        run->counts[rank] = shape->layout == EQUAL || rank % 3 != 1 ? shape->count : 0;
        if (shape->layout != EQUAL && rank % 3 == 2) {
            run->counts[rank] += rank;
        }
        run->all += run->counts[rank];
    }
    for (int rank = 0, next = 0; rank < world_size; next += run->counts[rank++]) {
        run->displs[rank] = shape->layout == BACKWARDS ? run->all - next - run->counts[rank] : next;
    }
}

void merge_make(run_t *run, const shape_t *shape)
{
    static int64_t turn;
    size_t bytes;

    *run = (run_t){.shape = *shape, .salt = ++turn * INT64_C(1000000007)};
    run->counts = get_memory((size_t) world_size * sizeof(*run->counts));
    run->displs = get_memory((size_t) world_size * sizeof(*run->displs));
    set_blocks(run);
    bytes = (size_t) (run->all + 1) * sizeof(*run->send);
    run->send = get_memory(bytes);
    run->recv = get_memory(bytes);
    memset(run->recv, 0xa5, bytes);
    memset(run->send, 0x5a, bytes);
    for (int k = 0; k < run->counts[world_rank] && !shape->owns && shape->call == ALLGATHER; k++) {
        int64_t *own = shape->in_place ? run->recv + run->displs[world_rank] : run->send;

        own[k] = value(run, world_rank, before(run, world_rank) + k);
    }
    for (int consumes = 0; consumes < 2; consumes++) {
        run->merged[consumes] = expects_merged(run, consumes);
    }
}

void merge_free(run_t *run)
{
    free(run->counts);
    free(run->displs);
    free(run->send);
    free(run->recv);
}

int merge_start_gather(run_t *run, const MPIX_Flash_hints *hints, MPI_Comm comm,
                       MPI_Request *request)
{
    const void *send = run->shape.in_place ? MPI_IN_PLACE : run->send;
    int own = run->counts[world_rank];

    return run->shape.layout == EQUAL
               ? MPIX_Iallgather_compute(send, own, MPI_INT64_T, run->recv, own, MPI_INT64_T,
                                         consume, run, hints, comm, request)
               : MPIX_Iallgatherv_compute(send, own, MPI_INT64_T, run->recv, run->counts,
                                          run->displs, MPI_INT64_T, consume, run, hints, comm,
                                          request);
}

static int start_scatter(run_t *run, const MPIX_Flash_hints *hints, MPI_Comm comm,
                         MPI_Request *request)
{
    MPI_Op op = run->shape.in_order ? merge_in_order : MPI_SUM;

    return run->shape.layout == EQUAL
               ? MPIX_Ireduce_scatter_block_compute(produce, run, hints, run->recv,
                                                    run->shape.count, MPI_INT64_T, op, comm,
                                                    request)
               : MPIX_Ireduce_scatter_compute(produce, run, hints, run->recv, run->counts,
                                              MPI_INT64_T, op, comm, request);
}

int merge_start(run_t *run, MPI_Comm comm, MPI_Request *request)
{
    MPIX_Flash_hints hints = MPIX_FLASH_HINTS_INIT;
    int count = run->shape.count;

    hints.merge = 1;
    hints.pieces = 3;
    hints.row = run->shape.row;
    hints.own = run->shape.owns ? finish_own : NULL;
    hints.own_arg = run;
    switch (run->shape.call) {
    case ALLGATHER:
        return merge_start_gather(run, &hints, comm, request);
    case REDUCE_SCATTER:
        return start_scatter(run, &hints, comm, request);
    case ALLREDUCE:
        return MPIX_Iallreduce_compute(produce, run, consume, run, &hints, run->recv, run->all,
                                       MPI_INT64_T, MPI_SUM, comm, request);
    default:
        return MPIX_Ialltoall_compute(run->send, count, MPI_INT64_T, run->recv, count, MPI_INT64_T,
                                      produce, run, consume, run, &hints, comm, request);
    }
}

static void check_buffers(const run_t *run)
{
    bool scatters = run->shape.call == REDUCE_SCATTER;
    MPI_Count first = scatters ? before(run, world_rank) : 0, within;
    int count = scatters ? run->counts[world_rank] : run->all;

    for (int k = 0; k < count; k++) {
        int owner = owner_of(run, first + k, &within);
        int64_t has = scatters ? run->recv[k] : run->recv[run->displs[owner] + within];
        int64_t wanted = (scatters && run->shape.owns ? 2 : 1) * result(run, first + k);

        if (!check(has == wanted, "call %d: element %d", run->shape.call, k)) {
            return;
        }
    }
}

void merge_check_calls(const run_t *run)
{
    const shape_t *shape = &run->shape;
    bool some = world_rank < world_size && run->counts[world_rank] > 0;

    check(!run->wrong, "call %d, layout %d, count %d: a callback with other arguments or data",
          shape->call, shape->layout, shape->count);
    for (int consumes = 0; consumes < 2; consumes++) {
        bool called = shape->call != (consumes ? REDUCE_SCATTER : ALLGATHER);

        check(run->seen[consumes] == (called ? run->all : 0), "call %d: %ld of %d elements seen",
              shape->call, (long) run->seen[consumes], run->all);
        check(!run->merged[consumes] || run->calls[consumes] == (run->all > 0),
              "call %d: %d callbacks, not one", shape->call, run->calls[consumes]);
    }
    check(run->own_calls > 0 || !shape->owns || !some, "the own block's callback was not called");
}

void merge_one(const shape_t *shape)
{
    MPI_Request request;
    run_t run;

    merge_make(&run, shape);
    late_start(&run.late);
    check_class(merge_start(&run, MPI_COMM_WORLD, &request), MPI_SUCCESS, "a start");
    check_class(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_SUCCESS, "an operation");
    late_stop(&run.late);
    merge_check_calls(&run);
    check_buffers(&run);
    merge_free(&run);
}
