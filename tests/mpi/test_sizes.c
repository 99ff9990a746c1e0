/*
 * test_sizes.c: ranks that disagree about sizes. Every rank's request completes, those that can see
 * it report it, no result is wrong without an error, nothing is written past the end of a block,
 * and the communicator stays usable.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <stdio.h>

#include <mpix_flash.h>

#include "aftermath.h"
#include "mpitest.h"
#include "persistent.h"

/* Elements before, between and behind blocks. */
enum { GUARD = 8 };
static const int64_t CANARY = 0x5a5a5a5a5a5a5a5a;

/* ------------------------------------------------------------------- the calls */

typedef enum kind { ALLGATHER, ALLGATHERV, REDUCE_SCATTER_BLOCK, REDUCE_SCATTER, KINDS } kind_t;
typedef enum form { PLAIN, PERSISTENT, COMPUTE, FORMS } form_t;
static const char *const kind_names[] = {"allgather", "allgatherv", "reduce-scatter-block",
                                         "reduce-scatter"};
static const char *const form_names[] = {"plain", "persistent", "with callbacks"};

/* A call as this rank sees it. */
typedef struct call {
    kind_t kind;
    form_t form;
    MPI_Comm comm;
    MPI_Request request;
    int *counts, *displs; /* displs: in recv for allgathers, in send for reduce-scatters */
    int64_t *send, *recv; /* recv: GUARD elements before its buffer */
    int length;           /* of recv */
} call_t;

static bool gathers(const call_t *call)
{
    return call->kind == ALLGATHER || call->kind == ALLGATHERV;
}

/* What a rank contributes to an element of a block, which for an allgather is its own. */
static int64_t contribution(int rank, int block, int element)
{
    return 1000003 * (int64_t) rank + 1009 * (int64_t) block + element;
}

static int produce(const MPIX_Flash_block *block, void *arg)
{
    int64_t *data = block->data;

    (void) arg;
    for (int k = 0; k < (int) block->count; k++) {
        data[k] = contribution(world_rank, block->rank, (int) block->offset + k);
    }
    return MPI_SUCCESS;
}

static int consume(const MPIX_Flash_block *block, void *arg)
{
    (void) block;
    (void) arg;
    return MPI_SUCCESS;
}

static int make_plain(call_t *c, int64_t *recv, int own)
{
    switch (c->kind) {
    case ALLGATHER:
        return MPI_Iallgather(c->send, own, MPI_INT64_T, recv, own, MPI_INT64_T, c->comm,
                              &c->request);
    case ALLGATHERV:
        return MPI_Iallgatherv(c->send, own, MPI_INT64_T, recv, c->counts, c->displs, MPI_INT64_T,
                               c->comm, &c->request);
    case REDUCE_SCATTER_BLOCK:
        return MPI_Ireduce_scatter_block(c->send, recv, own, MPI_INT64_T, MPI_SUM, c->comm,
                                         &c->request);
    default:
        return MPI_Ireduce_scatter(c->send, recv, c->counts, MPI_INT64_T, MPI_SUM, c->comm,
                                   &c->request);
    }
}

static int make_persistent(call_t *c, int64_t *recv, int own)
{
    switch (c->kind) {
    case ALLGATHER:
        return MPI_Allgather_init(c->send, own, MPI_INT64_T, recv, own, MPI_INT64_T, c->comm,
                                  MPI_INFO_NULL, &c->request);
    case ALLGATHERV:
        return MPI_Allgatherv_init(c->send, own, MPI_INT64_T, recv, c->counts, c->displs,
                                   MPI_INT64_T, c->comm, MPI_INFO_NULL, &c->request);
    case REDUCE_SCATTER_BLOCK:
        return MPI_Reduce_scatter_block_init(c->send, recv, own, MPI_INT64_T, MPI_SUM, c->comm,
                                             MPI_INFO_NULL, &c->request);
    default:
        return MPI_Reduce_scatter_init(c->send, recv, c->counts, MPI_INT64_T, MPI_SUM, c->comm,
                                       MPI_INFO_NULL, &c->request);
    }
}

static int make_compute(call_t *c, int64_t *recv, int own)
{
    switch (c->kind) {
    case ALLGATHER:
        return MPIX_Iallgather_compute(c->send, own, MPI_INT64_T, recv, own, MPI_INT64_T, consume,
                                       NULL, NULL, c->comm, &c->request);
    case ALLGATHERV:
        return MPIX_Iallgatherv_compute(c->send, own, MPI_INT64_T, recv, c->counts, c->displs,
                                        MPI_INT64_T, consume, NULL, NULL, c->comm, &c->request);
    case REDUCE_SCATTER_BLOCK:
        return MPIX_Ireduce_scatter_block_compute(produce, NULL, NULL, recv, own, MPI_INT64_T,
                                                  MPI_SUM, c->comm, &c->request);
    default:
        return MPIX_Ireduce_scatter_compute(produce, NULL, NULL, recv, c->counts, MPI_INT64_T,
                                            MPI_SUM, c->comm, &c->request);
    }
}

/* ----------------------------------------------------------------- the buffers */

static void place_blocks(call_t *call)
{
    int gap = call->kind == ALLGATHERV ? GUARD : 0, next = 0;

    for (int block = 0; block < world_size; block++) {
        call->displs[block] = next;
        next += call->counts[block] + gap;
    }
    call->length = GUARD + (gathers(call) ? next : call->counts[world_rank]) + GUARD;
}

static void fill_send(call_t *call)
{
    if (gathers(call)) {
        for (int k = 0; k < call->counts[world_rank]; k++) {
            call->send[k] = contribution(world_rank, world_rank, k);
        }
        return;
    }
    for (int block = 0; block < world_size; block++) {
        for (int k = 0; k < call->counts[block]; k++) {
            call->send[call->displs[block] + k] = contribution(world_rank, block, k);
        }
    }
}

static void fill_recv(call_t *call)
{
    for (int k = 0; k < call->length; k++) {
        call->recv[k] = CANARY;
    }
}

/* Rank 0 takes the blocks, or only that of rank 1, for `odd` elements long, all others for `count`.
 */
static void make_call(call_t *call, int count, int odd, bool one)
{
    size_t elements = 0;

    call->request = MPI_REQUEST_NULL;
    call->counts = get_memory((size_t) world_size * sizeof(int));
    call->displs = get_memory((size_t) world_size * sizeof(int));
    for (int block = 0; block < world_size; block++) {
        call->counts[block] = world_rank == 0 && (!one || block == 1) ? odd : count;
        elements += (size_t) call->counts[block];
    }
    place_blocks(call);
    call->send = get_memory(elements * sizeof(int64_t));
    call->recv = get_memory((size_t) call->length * sizeof(int64_t));
    fill_send(call);
    fill_recv(call);
}

static void free_call(call_t *call)
{
    free(call->counts);
    free(call->displs);
    free(call->send);
    free(call->recv);
}

/* Whether a block of the receive buffer is right; */
static bool block_is_right(const call_t *call, int block, const int64_t *data)
{
    for (int k = 0; k < call->counts[block]; k++) {
        int64_t wanted = gathers(call) ? contribution(block, block, k) : 0;

        for (int rank = 0; !gathers(call) && rank < world_size; rank++) {
            wanted += contribution(rank, block, k);
        }
        if (data[k] != wanted) {
            return false;
        }
    }
    return true;
}

static bool is_right(const call_t *call)
{
    if (!gathers(call)) {
        return block_is_right(call, world_rank, call->recv + GUARD);
    }
    for (int block = 0; block < world_size; block++) {
        if (!block_is_right(call, block, call->recv + GUARD + call->displs[block])) {
            return false;
        }
    }
    return true;
}

/* From the end of one block to the beginning of the next. */
static bool guards_are_intact(const call_t *call)
{
    int next = 0, first = gathers(call) ? 0 : world_rank;
    int last = gathers(call) ? world_size - 1 : world_rank;
    bool intact = true;

    for (int block = first; block <= last; block++) {
        int begin = GUARD + (gathers(call) ? call->displs[block] : 0);

        while (next < begin) {
            intact &= call->recv[next++] == CANARY;
        }
        next += call->counts[block];
    }
    while (next < call->length) {
        intact &= call->recv[next++] == CANARY;
    }
    return intact;
}

/* ------------------------------------------------------ sizes that disagree */

static int begin(call_t *call)
{
    static int (*const makers[])(call_t *, int64_t *, int) = {make_plain, make_persistent,
                                                              make_compute};

    return makers[call->form](call, call->recv + GUARD, call->counts[world_rank]);
}

static int end(call_t *call)
{
    if (call->form == PERSISTENT) {
        MPI_Start(&call->request);
    }
    return MPI_Wait(&call->request, MPI_STATUS_IGNORE);
}

static void check_outcome(const call_t *call, const char *what, int error)
{
    int class, truncated, somewhere;

    MPI_Error_class(error, &class);
    truncated = class == MPI_ERR_TRUNCATE;
    check(class == MPI_SUCCESS || truncated || class == MPI_ERR_OTHER, "%s: error class %d", what,
          class);
    check(class != MPI_SUCCESS || is_right(call), "%s: wrong data called right", what);
    check(guards_are_intact(call), "%s: wrote outside of a block", what);
    MPI_Allreduce(&truncated, &somewhere, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    check(somewhere, "%s: no rank reports MPI_ERR_TRUNCATE", what);
}

static void check_aftermath(MPI_Comm comm)
{
    MPI_Comm fresh;

    MPI_Comm_dup(comm, &fresh);
    next_works(fresh, "after sizes that disagreed, a new communicator");
    next_works(comm, "after sizes that disagreed, the same communicator");
    MPI_Comm_free(&fresh);
}

static void disagree(kind_t kind, form_t form, int count, int odd, bool one)
{
    call_t call = {.kind = kind, .form = form, .comm = make_counted_comm()};
    char what[128];
    int error;

    snprintf(what, sizeof(what), "%s, %s, of %d and %s%d", kind_names[kind], form_names[form],
             count, one ? "once " : "", odd);
    make_call(&call, count, odd, one);
    error = begin(&call);
    check(error == MPI_SUCCESS, "%s: the call returns %d", what, error);
    check_outcome(&call, what, end(&call));
    if (call.request != MPI_REQUEST_NULL) { /* Open MPI frees those that end with an error */
        MPI_Request_free(&call.request);
    }
    free_call(&call);
    check_aftermath(call.comm);
    MPI_Comm_free(&call.comm);
}

/* Shorter and longer by an element, by a segment or more, in as many segments or not. */
static void disagree_by(form_t form)
{
    static const int pairs[][2] = {{100, 101},      {100, 99},       {100, 5000},
                                   {5000, 100},     {70000, 70001},  {70000, 200000},
                                   {200000, 70000}, {200000, 131072}};

    for (kind_t kind = 0; kind < KINDS; kind++) {
        bool unequal = kind == ALLGATHERV || kind == REDUCE_SCATTER;

        for (size_t k = 0; k < LENGTH(pairs); k++) {
            disagree(kind, form, pairs[k][0], pairs[k][1], false);
            if (unequal) {
                disagree(kind, form, pairs[k][0], pairs[k][1], true);
            }
        }
    }
}

static void plain(void)
{
    disagree_by(PLAIN);
}

static void persistent(void)
{
    disagree_by(PERSISTENT);
}

static void compute(void)
{
    disagree_by(COMPUTE);
}

/* ----------------------------------------------------------------- the own block */

/* A send buffer that does not fit this rank's own block. */
static void own_block(void)
{
    for (int odd = 99; odd <= 101; odd += 2) {
        MPI_Comm comm = make_counted_comm();
        int64_t send[101] = {0};
        int length = 100 * world_size;
        int64_t *recv = get_memory((size_t) (length + GUARD) * sizeof(int64_t));
        MPI_Request request = MPI_REQUEST_NULL;
        int error, class;

        for (int k = length; k < length + GUARD; k++) {
            recv[k] = CANARY;
        }
        error = MPI_Iallgather(send, world_rank == 0 ? odd : 100, MPI_INT64_T, recv, 100,
                               MPI_INT64_T, comm, &request);
        if (error == MPI_SUCCESS) {
            error = MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
        MPI_Error_class(error, &class);
        check(class == (world_rank == 0 ? MPI_ERR_TRUNCATE : MPI_ERR_OTHER),
              "rank 0 sends %d for 100: error class %d", odd, class);
        for (int k = length; k < length + GUARD; k++) {
            check(recv[k] == CANARY, "wrote behind the buffer");
        }
        next_works(comm, "after a send buffer of another size");
        MPI_Comm_free(&comm);
        free(recv);
    }
}

/* Another request's error comes first: one whose error is known from the start is still pending. */
static void known_error(void)
{
    MPI_Comm comms[2] = {make_counted_comm(), make_counted_comm()};
    int64_t send[101] = {0}, *recv[2];
    MPI_Request requests[2];
    int index, class;

    for (int k = 0; k < 2; k++) {
        recv[k] = get_memory((size_t) world_size * 100 * sizeof(int64_t));
    }
    for (int k = 0; k < 2; k++) {
        if (world_rank != 0) {
            MPI_Recv(NULL, 0, MPI_INT, 0, 5 + k, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
        MPI_Iallgather(send, world_rank == 0 ? 101 : 100, MPI_INT64_T, recv[1 - k], 100,
                       MPI_INT64_T, comms[1 - k], &requests[1 - k]);
        if (world_rank != 0) {
            MPI_Wait(&requests[1 - k], MPI_STATUS_IGNORE);
        }
    }
    if (world_rank == 0) {
        /* All have been posted here; the others post the second when the first has failed. */
        for (int k = 0; k < 2; k++) {
            for (int rank = 1; rank < world_size; rank++) {
                MPI_Send(NULL, 0, MPI_INT, rank, 5 + k, MPI_COMM_WORLD);
            }
            MPI_Error_class(MPI_Waitany(2, requests, &index, MPI_STATUS_IGNORE), &class);
            check(class == MPI_ERR_TRUNCATE, "known error: class %d", class);
            check(index == 1 - k, "known error: request %d instead of %d", index, 1 - k);
            check(k == 1 || requests[0] != MPI_REQUEST_NULL, "a pending request is freed");
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    handler_calls = 0;
    for (int k = 0; k < 2; k++) {
        MPI_Comm_free(&comms[k]);
        free(recv[k]);
    }
}

TEST_PROGRAM(test_sizes, MPI_THREAD_SINGLE, {"plain", plain}, {"persistent", persistent},
             {"compute", compute}, {"own_block", own_block}, {"known_error", known_error});
