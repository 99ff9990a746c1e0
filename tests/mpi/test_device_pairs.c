/*
 * test_device_pairs.c: MPI_Ialltoallv on buffers in the memory of devices, of the host, and of both,
 * of blocks that may go different ways: some are empty, some short, some long.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "device_job.h"
#include "persistent.h"

enum { CANARY = -5, GAP = 3, MOST_RANKS = 16 };

static const int lengths[] = {1, 1000, 40001};

typedef struct call {
    int length, turn; /* of long blocks */
    bool persistent, in_place;
} call_t;

/* The blocks of a side, with elements of nobody's between two. */
typedef struct side {
    int counts[MOST_RANKS], displs[MOST_RANKS], elements;
} side_t;

/* In place, as many come as go. */
static int count_of(const call_t *call, int from, int to)
{
    int low = call->in_place && to < from ? to : from, high = low == from ? to : from;
    uint32_t drawn = mix((uint32_t) low, (uint32_t) high, (uint32_t) call->turn);

    return drawn % 4 == 0 ? 0 : drawn % 4 == 1 ? 1 + (int) (drawn / 4 % 20) : call->length;
}

static side_t side_of(const call_t *call, bool leaves)
{
    side_t side = {.elements = 0};

    for (int rank = 0; rank < world_size; rank++) {
        side.displs[rank] = side.elements;
        side.counts[rank] =
            leaves ? count_of(call, world_rank, rank) : count_of(call, rank, world_rank);
        side.elements += side.counts[rank] + GAP;
    }
    return side;
}

/* The same on all ranks, or another one on each. */
static place_t place_of(int turn)
{
    return (place_t) ((turn + (turn % 2) * world_rank) % PLACES);
}

/* What goes, or what has come; nothing: canaries alone. */
static void fill(const side_t *side, int round, bool leaves, bool nothing, int64_t *elements)
{
    for (int k = 0; k < side->elements; k++) {
        elements[k] = CANARY;
    }
    for (int rank = 0; rank < world_size && !nothing; rank++) {
        int pair = leaves ? 100 * world_rank + rank : 100 * rank + world_rank;

        for (int k = 0; k < side->counts[rank]; k++) {
            elements[side->displs[rank] + k] = contribution(pair, round, k);
        }
    }
}

/* A persistent request is made when it is MPI_REQUEST_NULL. */
static void start(const call_t *call, const side_t *from, void *send, const side_t *to, void *recv,
                  MPI_Request *request)
{
    send = call->in_place ? MPI_IN_PLACE : send;
    if (!call->persistent) {
        MPI_Ialltoallv(send, from->counts, from->displs, MPI_INT64_T, recv, to->counts, to->displs,
                       MPI_INT64_T, MPI_COMM_WORLD, request);
        return;
    }
    if (*request == MPI_REQUEST_NULL) {
        MPI_Alltoallv_init(send, from->counts, from->displs, MPI_INT64_T, recv, to->counts,
                           to->displs, MPI_INT64_T, MPI_COMM_WORLD, MPI_INFO_NULL, request);
    }
    MPI_Start(request);
}

static void check_content(const call_t *call, const buffer_t *buffer, const side_t *side,
                          int64_t *content, const int64_t *wanted, const char *name, int round)
{
    buffer_read(buffer, content);
    check(memcmp(content, wanted, (size_t) side->elements * sizeof(int64_t)) == 0,
          "blocks of %d, turn %d, round %d%s%s: the %s buffer is wrong", call->length, call->turn,
          round, call->in_place ? ", in place" : "", call->persistent ? ", persistent" : "", name);
}

static void run(const call_t *call)
{
    side_t from = side_of(call, true), to = side_of(call, false);
    size_t send_bytes = (size_t) from.elements * sizeof(int64_t);
    size_t recv_bytes = (size_t) to.elements * sizeof(int64_t);
    int64_t *send = get_memory(send_bytes), *recv = get_memory(recv_bytes);
    int64_t *content = get_memory(send_bytes + recv_bytes);
    buffer_t send_buffer = buffer_make(place_of(call->turn), send_bytes);
    buffer_t recv_buffer = buffer_make(place_of(call->turn / PLACES), recv_bytes);
    MPI_Request request = MPI_REQUEST_NULL;

    for (int round = 0; round < (call->persistent ? 2 : 1); round++) {
        fill(&from, round, true, false, send);
        fill(&to, round, true, !call->in_place, recv);
        buffer_write(&send_buffer, send);
        buffer_write(&recv_buffer, recv);
        start(call, &from, send_buffer.data, &to, recv_buffer.data, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        fill(&to, round, false, false, recv);
        check_content(call, &send_buffer, &from, content, send, "send", round);
        check_content(call, &recv_buffer, &to, content, recv, "receive", round);
    }
    if (request != MPI_REQUEST_NULL) {
        MPI_Request_free(&request);
    }
    check(buffer_free(&send_buffer) && buffer_free(&recv_buffer), "wrote around a buffer");
    free(send);
    free(recv);
    free(content);
}

/* `in_place`: by flash alone, see may_be_in_place() in test_alltoallv.c. */
static void run_all(bool in_place)
{
    for (size_t k = 0; k < LENGTH(lengths); k++) {
        int step = !short_tier ? 1 : k + 1 == LENGTH(lengths) ? 5 : 3;

        for (int turn = (int) k % step; turn < PLACES * PLACES; turn += step) {
            call_t call = {.length = lengths[k],
                           .turn = turn,
                           .persistent = turn % 4 == 1,
                           .in_place = in_place};

            run(&call);
        }
    }
    nothing_left();
}

static void apart(void)
{
    run_all(false);
}

static void in_place(void)
{
    run_all(true);
}

DEVICE_PROGRAM(test_device_pairs, {"apart", apart}, {"in_place", in_place});
