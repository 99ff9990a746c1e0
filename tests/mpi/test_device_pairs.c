/*
 * test_device_pairs.c: MPI_Ialltoallv on buffers in the memory of devices, of the host, and of both,
 * of blocks that may go different ways: some are empty, some short, some long.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "aftermath.h"
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

/* ------------------------------------------ blocks in two allocations, far apart */

/* Blocks of odd ranks are in the other piece, at the same places as they would be in one. */
typedef struct spread {
    side_t there;        /* as the call is told: from the first piece on */
    buffer_t pieces[2];  /* each as long as the whole side */
    int64_t *content[2]; /* what is in them, or is to be */
} spread_t;

enum { HOLE = 32 << 20, LAG = 20 };

/* `mixed`: the second piece is not of the first one's kind. */
static spread_t spread_make(const side_t *side, bool mixed)
{
    size_t bytes = (size_t) side->elements * sizeof(int64_t);
    spread_t spread = {.there = *side, .pieces[0] = buffer_make(IN_DEVICE, bytes)};
    buffer_t hole = buffer_make(IN_DEVICE, HOLE); /* nothing may be copied from there */
    int64_t *begin = spread.pieces[0].data;

    if (mixed) {
        device_skip_kind();
    }
    spread.pieces[1] = buffer_make(IN_DEVICE, bytes);
    device_skip_kind(); /* those of both sides are of the same one */
    check(buffer_free(&hole), "wrote around a buffer");
    for (int rank = 1; rank < world_size; rank += 2) {
        spread.there.displs[rank] += (int) ((int64_t *) spread.pieces[1].data - begin);
    }
    for (int piece = 0; piece < 2; piece++) {
        spread.content[piece] = get_memory(bytes);
    }
    return spread;
}

/* As fill(), with canaries where the blocks of the other piece would be. */
static void spread_fill(spread_t *spread, const side_t *side, int round, bool leaves, bool nothing)
{
    for (int piece = 0; piece < 2; piece++) {
        side_t part = *side;

        for (int rank = 0; rank < world_size; rank++) {
            part.counts[rank] = rank % 2 == piece ? side->counts[rank] : 0;
        }
        fill(&part, round, leaves, nothing, spread->content[piece]);
    }
}

static void spread_write(const spread_t *spread)
{
    for (int piece = 0; piece < 2; piece++) {
        buffer_write(&spread->pieces[piece], spread->content[piece]);
    }
}

static void spread_check(const call_t *call, const side_t *side, const spread_t *spread, int round)
{
    int64_t *content = get_memory((size_t) side->elements * sizeof(int64_t));

    for (int piece = 0; piece < 2; piece++) {
        check_content(call, &spread->pieces[piece], side, content, spread->content[piece],
                      piece == 0 ? "first piece of a" : "second piece of a", round);
    }
    free(content);
}

static void spread_free(spread_t *spread)
{
    for (int piece = 0; piece < 2; piece++) {
        check(buffer_free(&spread->pieces[piece]), "wrote around a buffer");
        free(spread->content[piece]);
    }
}

static void run_spread(const call_t *call)
{
    side_t from = side_of(call, true), to = side_of(call, false);
    bool mixed = call->turn % 4 >= 2 && call->in_place;
    spread_t sent = spread_make(&from, mixed), received = spread_make(&to, mixed);
    MPI_Request request = MPI_REQUEST_NULL;

    for (int round = 0; round < (call->persistent ? 2 : 1); round++) {
        spread_fill(&sent, &from, round, true, false);
        spread_write(&sent);
        spread_fill(&received, &to, round, true, !call->in_place);
        spread_write(&received);
        start(call, &sent.there, sent.pieces[0].data, &received.there, received.pieces[0].data,
              &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        spread_fill(&received, &to, round, false, false);
        spread_check(call, &from, &sent, round);
        spread_check(call, &to, &received, round);
    }
    if (request != MPI_REQUEST_NULL) {
        MPI_Request_free(&request);
    }
    spread_free(&sent);
    spread_free(&received);
}

/* Short blocks, and between them some that are long enough for flash, in memory that is still being
   written when the call begins. */
static void run_pieces(bool in_place)
{
    enum { TURNS = 8 };
    int first = in_place ? TURNS : 0;

    device_lag(LAG);
    for (int turn = first; turn < first + TURNS; turn++) {
        call_t call = {
            .length = lengths[1], .turn = turn, .persistent = turn % 2 == 1, .in_place = in_place};

        run_spread(&call);
        if (turn % 4 == 1) {
            device_skip_kind();
        }
    }
    device_lag(0);
    nothing_left();
}

static void pieces(void)
{
    run_pieces(false);
}

static void pieces_in_place(void)
{
    run_pieces(true);
}

/* A communicator's first call, of short blocks alone, which have gaps: none of them is flash's, whatever
   the communicator's set-up has come to. */
static void first(void)
{
    int counts[MOST_RANKS], displs[MOST_RANKS], pairs[MOST_RANKS], places[MOST_RANKS];
    buffer_t memory = buffer_make(IN_DEVICE, (size_t) world_size * 4 * sizeof(int));
    int sent[4 * MOST_RANKS], received[2 * MOST_RANKS];
    MPI_Datatype vector, strided;
    MPI_Request request;
    MPI_Comm comm;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Type_vector(2, 1, 2, MPI_INT, &vector);
    MPI_Type_create_resized(vector, 0, 4 * sizeof(int), &strided);
    MPI_Type_free(&vector);
    MPI_Type_commit(&strided);
    for (int k = 0; k < 4 * world_size; k++) {
        sent[k] = 100 * world_rank + k;
    }
    buffer_write(&memory, sent);
    for (int rank = 0; rank < world_size; rank++) {
        counts[rank] = 1;
        displs[rank] = rank;
        pairs[rank] = 2;
        places[rank] = 2 * rank;
    }
    MPI_Ialltoallv(memory.data, counts, displs, strided, received, pairs, places, MPI_INT, comm,
                   &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int k = 0; k < 2 * world_size; k++) {
        check(received[k] == 100 * (k / 2) + 4 * world_rank + 2 * (k % 2),
              "the first call, element %d: %d", k, received[k]);
    }
    check(buffer_free(&memory), "wrote around a buffer");
    MPI_Type_free(&strided);
    MPI_Comm_free(&comm);
    nothing_left();
}

/*
 * The driver fails at one of its calls, on all ranks, since none tells the others: no block is long, and
 * Open MPI's call gets all of them. One error of each call, and the next one is in step.
 */
static void copies_fail(void)
{
    static const struct {
        const char *name;
        unsigned long nth; /* the second copy is the one back */
    } failures[] = {{"copy", 1},
                    {"cuMemcpyAsync", 1},
                    {"cuStreamSynchronize", 1},
                    {"copy", 2},
                    {"cuMemcpyAsync", 2}};
    MPI_Comm comm = make_counted_comm();
    size_t bytes = (size_t) world_size * sizeof(int64_t);
    buffer_t send = buffer_make(IN_DEVICE, bytes), recv = buffer_make(IN_DEVICE, bytes);
    int64_t content[MOST_RANKS];
    int counts[MOST_RANKS], displs[MOST_RANKS];

    for (int rank = 0; rank < world_size; rank++) {
        counts[rank] = 1;
        displs[rank] = rank;
        content[rank] = 100 * world_rank + rank;
    }
    buffer_write(&send, content);
    for (size_t k = 0; k < LENGTH(failures); k++) {
        MPI_Request request = MPI_REQUEST_NULL;
        int error;

        device_fail(failures[k].name, failures[k].nth);
        error = MPI_Ialltoallv(send.data, counts, displs, MPI_INT64_T, recv.data, counts, displs,
                               MPI_INT64_T, comm, &request);
        if (error == MPI_SUCCESS) {
            error = MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
        device_fail(NULL, 0);
        check_class(error, MPI_ERR_OTHER, failures[k].name);
        check_class(MPI_Ialltoallv(send.data, counts, displs, MPI_INT64_T, recv.data, counts,
                                   displs, MPI_INT64_T, comm, &request),
                    MPI_SUCCESS, "the next call");
        check_class(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_SUCCESS, "its end");
        buffer_read(&recv, content);
        for (int rank = 0; rank < world_size; rank++) {
            check(content[rank] == 100 * rank + world_rank, "after %s: the block of %d is wrong",
                  failures[k].name, rank);
        }
        next_works(comm, failures[k].name);
    }
    check(buffer_free(&send) && buffer_free(&recv), "wrote around a buffer");
    nothing_left();
    MPI_Comm_free(&comm);
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

DEVICE_PROGRAM(test_device_pairs, {"apart", apart}, {"in_place", in_place}, {"pieces", pieces},
               {"pieces_in_place", pieces_in_place}, {"first", first},
               {"copies_fail", copies_fail});
