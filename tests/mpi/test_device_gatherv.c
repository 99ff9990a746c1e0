/*
 * test_device_gatherv.c: MPI_Igatherv and MPI_Iscatterv on buffers in the memory of devices, of the host,
 * and of both, of blocks that may go different ways: some are empty, some short, some long.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "device_job.h"
#include "persistent.h"

enum { CANARY = -5, GAP = 3, MOST_RANKS = 16, HOLE = 32 << 20, LAG = 20 };

static const int lengths[] = {1, 1000, 40001};

/* The root has all blocks in the one place, and each rank its own in the other. */
typedef struct call {
    bool gathers;           /* or scatters */
    int length, root, turn; /* of long blocks */
    bool persistent, in_place;
} call_t;

/* The blocks of the root, with elements of nobody's between two. */
typedef struct blocks {
    int counts[MOST_RANKS], displs[MOST_RANKS], elements;
} blocks_t;

static bool is_root(const call_t *call)
{
    return world_rank == call->root;
}

static bool has_own(const call_t *call)
{
    return !call->in_place || !is_root(call);
}

static int count_of(const call_t *call, int rank)
{
    uint32_t drawn = mix((uint32_t) rank, (uint32_t) call->root, (uint32_t) call->turn);

    return drawn % 4 == 0 ? 0 : drawn % 4 == 1 ? 1 + (int) (drawn / 4 % 20) : call->length;
}

static blocks_t blocks_of(const call_t *call)
{
    blocks_t blocks = {.elements = 0};

    for (int rank = 0; rank < world_size; rank++) {
        blocks.displs[rank] = blocks.elements;
        blocks.counts[rank] = count_of(call, rank);
        blocks.elements += blocks.counts[rank] + GAP;
    }
    return blocks;
}

/* The same on all ranks, or another one on each. */
static place_t place_of(int turn)
{
    return (place_t) ((turn + (turn % 2) * world_rank) % PLACES);
}

/* What the root has before and after a round, of the ranks in every `step`th place from `first` on. */
static void fill_all(const call_t *call, const blocks_t *blocks, int round, bool after, int first,
                     int step, int64_t *all)
{
    for (int k = 0; k < blocks->elements; k++) {
        all[k] = CANARY;
    }
    for (int rank = first; rank < world_size; rank += step) {
        bool there = after || !call->gathers || (call->in_place && rank == world_rank);

        for (int k = 0; k < blocks->counts[rank] && there; k++) {
            all[blocks->displs[rank] + k] = contribution(rank, round, k);
        }
    }
}

static void fill_own(const call_t *call, int round, bool after, int64_t *own)
{
    bool there = has_own(call) && (after || call->gathers);

    for (int k = 0; k < count_of(call, world_rank) + 1; k++) {
        own[k] =
            there && k < count_of(call, world_rank) ? contribution(world_rank, round, k) : CANARY;
    }
}

/* A persistent request is made when it is MPI_REQUEST_NULL. */
static void start(const call_t *call, const blocks_t *blocks, void *all, void *own,
                  MPI_Request *request)
{
    const int *counts = is_root(call) ? blocks->counts : NULL;
    const int *displs = is_root(call) ? blocks->displs : NULL;
    int count = count_of(call, world_rank);

    if (!call->persistent && call->gathers) {
        MPI_Igatherv(own, count, MPI_INT64_T, all, counts, displs, MPI_INT64_T, call->root,
                     MPI_COMM_WORLD, request);
    } else if (!call->persistent) {
        MPI_Iscatterv(all, counts, displs, MPI_INT64_T, own, count, MPI_INT64_T, call->root,
                      MPI_COMM_WORLD, request);
    } else if (*request == MPI_REQUEST_NULL && call->gathers) {
        MPI_Gatherv_init(own, count, MPI_INT64_T, all, counts, displs, MPI_INT64_T, call->root,
                         MPI_COMM_WORLD, MPI_INFO_NULL, request);
    } else if (*request == MPI_REQUEST_NULL) {
        MPI_Scatterv_init(all, counts, displs, MPI_INT64_T, own, count, MPI_INT64_T, call->root,
                          MPI_COMM_WORLD, MPI_INFO_NULL, request);
    }
    if (call->persistent) {
        MPI_Start(request);
    }
}

static void check_content(const call_t *call, const buffer_t *buffer, const int64_t *wanted,
                          int elements, const char *name, int round)
{
    int64_t *content = get_memory((size_t) elements * sizeof(int64_t));

    buffer_read(buffer, content);
    check(memcmp(content, wanted, (size_t) elements * sizeof(int64_t)) == 0,
          "%s of blocks of %d, root %d, turn %d, round %d%s%s: %s wrong",
          call->gathers ? "gatherv" : "scatterv", call->length, call->root, call->turn, round,
          call->in_place ? ", in place" : "", call->persistent ? ", persistent" : "", name);
    free(content);
}

/*
 * The root's blocks lie in `pieces` allocations, a block of a rank in the one behind that of the rank
 * before: as the call is told, from the first one on. Nothing may be copied from between two.
 */
typedef struct memory {
    int pieces;
    blocks_t there;
    buffer_t buffers[2], own;
    int64_t *all, *one; /* what is in them, or is to be */
} memory_t;

static memory_t make_memory(const call_t *call, const blocks_t *blocks, int pieces, place_t all,
                            place_t own)
{
    size_t bytes = (size_t) (is_root(call) ? blocks->elements : 1) * sizeof(int64_t);
    size_t own_bytes = (size_t) (count_of(call, world_rank) + 1) * sizeof(int64_t);
    memory_t memory = {.pieces = pieces, .there = *blocks, .own = buffer_make(own, own_bytes)};
    buffer_t hole;

    memory.buffers[0] = buffer_make(all, bytes);
    if (pieces > 1) {
        hole = buffer_make(all, HOLE);
        if (call->turn / 8 % 2 == 1) {
            device_skip_kind(); /* the second piece is not of the first one's */
        }
        memory.buffers[1] = buffer_make(all, bytes);
        check(buffer_free(&hole), "wrote around a buffer");
        for (int rank = 1; rank < world_size; rank += 2) {
            memory.there.displs[rank] +=
                (int) ((int64_t *) memory.buffers[1].data - (int64_t *) memory.buffers[0].data);
        }
    }
    memory.all = get_memory((size_t) blocks->elements * sizeof(int64_t));
    memory.one = get_memory(own_bytes);
    return memory;
}

static void write_memory(const call_t *call, const blocks_t *blocks, memory_t *memory, int round)
{
    for (int piece = 0; piece < memory->pieces && is_root(call); piece++) {
        fill_all(call, blocks, round, false, piece, memory->pieces, memory->all);
        buffer_write(&memory->buffers[piece], memory->all);
    }
    fill_own(call, round, false, memory->one);
    buffer_write(&memory->own, memory->one);
}

static void check_memory(const call_t *call, const blocks_t *blocks, memory_t *memory, int round)
{
    for (int piece = 0; piece < memory->pieces && is_root(call); piece++) {
        fill_all(call, blocks, round, true, piece, memory->pieces, memory->all);
        check_content(call, &memory->buffers[piece], memory->all, blocks->elements,
                      piece == 0 ? "all blocks are" : "all blocks of the second piece are", round);
    }
    fill_own(call, round, true, memory->one);
    check_content(call, &memory->own, memory->one, count_of(call, world_rank) + 1,
                  "the own block is", round);
}

static void free_memory(memory_t *memory)
{
    for (int piece = 0; piece < memory->pieces; piece++) {
        check(buffer_free(&memory->buffers[piece]), "wrote around a buffer");
    }
    check(buffer_free(&memory->own), "wrote around a buffer");
    free(memory->all);
    free(memory->one);
}

static void run(const call_t *call, int pieces, place_t all, place_t own)
{
    blocks_t blocks = blocks_of(call);
    memory_t memory = make_memory(call, &blocks, pieces, all, own);
    MPI_Request request = MPI_REQUEST_NULL;

    for (int round = 0; round < (call->persistent ? 2 : 1); round++) {
        write_memory(call, &blocks, &memory, round);
        start(call, &memory.there, is_root(call) ? memory.buffers[0].data : NULL,
              has_own(call) ? memory.own.data : MPI_IN_PLACE, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        check_memory(call, &blocks, &memory, round);
    }
    if (request != MPI_REQUEST_NULL) {
        MPI_Request_free(&request);
    }
    free_memory(&memory);
}

static void run_all(bool gathers)
{
    for (size_t k = 0; k < LENGTH(lengths); k++) {
        int step = !short_tier ? 1 : k + 1 == LENGTH(lengths) ? 5 : 3;

        for (int turn = (int) k % step; turn < PLACES * PLACES; turn += step) {
            call_t call = {.gathers = gathers,
                           .length = lengths[k],
                           .root = turn % world_size,
                           .turn = turn,
                           .persistent = turn % 4 == 1,
                           .in_place = turn % 3 == 0};

            run(&call, 1, place_of(turn), place_of(turn / PLACES));
        }
    }
    nothing_left();
}

static void gather(void)
{
    run_all(true);
}

static void scatter(void)
{
    run_all(false);
}

/* Short blocks, and between them some that are long enough for flash, or none, in memory that is still
   being written when the call begins. */
static void pieces(void)
{
    device_lag(LAG);
    for (int turn = 0; turn < 32; turn++) {
        call_t call = {.gathers = turn % 2 == 0,
                       .length = lengths[turn < 16],
                       .root = turn % world_size,
                       .turn = turn,
                       .persistent = turn / 2 % 2 == 1,
                       .in_place = turn / 4 % 2 == 1};

        run(&call, 2, IN_DEVICE, IN_DEVICE);
        if (turn % 4 == 1 || turn % 16 == 15) {
            device_skip_kind();
        }
    }
    device_lag(0);
    nothing_left();
}

/* Each rank's block is an allocation, and they may adjoin: no copy goes over two. */
static void adjoining(bool gathers)
{
    enum { COUNT = 512 }; /* elements: a multiple of 512 bytes, and of a page */
    char *pieces[MOST_RANKS] = {NULL};
    int counts[MOST_RANKS], displs[MOST_RANKS];
    int64_t own[COUNT], all[COUNT];
    MPI_Request request;

    for (int rank = 0; rank < world_size; rank++) {
        pieces[rank] = device_take(sizeof(all));
        counts[rank] = COUNT;
        displs[rank] = (int) ((pieces[rank] - pieces[0]) / (ptrdiff_t) sizeof(int64_t));
        for (int k = 0; k < COUNT; k++) {
            all[k] = gathers ? CANARY : contribution(rank, 0, k);
            own[k] = gathers ? contribution(world_rank, 0, k) : CANARY;
        }
        device_put(pieces[rank], all, sizeof(all));
    }
    if (gathers) {
        MPI_Igatherv(own, COUNT, MPI_INT64_T, pieces[0], counts, displs, MPI_INT64_T, 0,
                     MPI_COMM_WORLD, &request);
    } else {
        MPI_Iscatterv(pieces[0], counts, displs, MPI_INT64_T, own, COUNT, MPI_INT64_T, 0,
                      MPI_COMM_WORLD, &request);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int rank = 0; rank < world_size; rank++) {
        bool there = gathers ? world_rank == 0 : rank == world_rank;

        device_fetch(all, pieces[rank], sizeof(all));
        for (int k = 0; k < COUNT && there; k++) {
            check((gathers ? all[k] : own[k]) == contribution(rank, 0, k),
                  "%s: element %d of rank %d is wrong", gathers ? "gatherv" : "scatterv", k, rank);
        }
        device_give(pieces[rank]);
    }
}

/*
 * Displacements that begin where what is sent ends: host bounces of both buffers, one behind the other,
 * would have one address.
 */
static void one_address(void)
{
    enum { COUNT = 512 };
    int counts[MOST_RANKS], displs[MOST_RANKS];
    int64_t own[COUNT], *all = get_memory((size_t) (world_size + 1) * sizeof(own));
    buffer_t send = buffer_make(IN_DEVICE, sizeof(own));
    buffer_t recv = buffer_make(IN_DEVICE, (size_t) (world_size + 1) * sizeof(own));
    MPI_Request request;

    for (int rank = 0; rank < world_size; rank++) {
        counts[rank] = COUNT;
        displs[rank] = (rank + 1) * COUNT;
    }
    for (int k = 0; k < COUNT; k++) {
        own[k] = contribution(world_rank, 0, k);
    }
    buffer_write(&send, own);
    MPI_Iallgatherv(send.data, COUNT, MPI_INT64_T, recv.data, counts, displs, MPI_INT64_T,
                    MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    buffer_read(&recv, all);
    for (int k = 0; k < world_size * COUNT; k++) {
        check(all[COUNT + k] == contribution(k / COUNT, 0, k % COUNT), "element %d is wrong", k);
    }
    check(buffer_free(&send) && buffer_free(&recv), "wrote around a buffer");
    free(all);
    nothing_left();
}

static void adjoin(void)
{
    adjoining(true);
    adjoining(false);
    nothing_left();
}

DEVICE_PROGRAM(test_device_gatherv, {"adjoin", adjoin}, {"one_address", one_address},
               {"gather", gather}, {"scatter", scatter}, {"pieces", pieces});
