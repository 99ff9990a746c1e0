/*
 * test_persistent_ids.c: flash has 8192 operation ids for the persistent requests of a communicator.
 * That many may be there at a time, and any number one after another.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "mpitest.h"
#include "persistent.h"
#include "pvars.h"

enum { IDS = 8192 };

static MPI_T_pvar_handle rings, fallbacks;

static MPI_T_pvar_handle counter(const char *name)
{
    return pvar_of(name, MPI_T_PVAR_CLASS_COUNTER, MPI_UNSIGNED_LONG_LONG);
}

static void open_counters(void)
{
    rings = counter("coll_flash_ring_calls");
    fallbacks = counter("coll_flash_fallbacks_persistent");
}

/* What has been made since the counters were opened. */
static void close_counters(unsigned ring, unsigned fallback, const char *what)
{
    unsigned long long now[] = {pvar_count(rings), pvar_count(fallbacks)};

    check(now[0] == ring && now[1] == fallback,
          "%s: %llu requests by the ring instead of %u, %llu by the fallback instead of %u", what,
          now[0], ring, now[1], fallback);
    pvar_free(&rings);
    pvar_free(&fallbacks);
}

/* Several requests, what they send, and where they receive; each has numbers of its own to send. */
typedef struct batch {
    int count, first;
    MPI_Request *requests;
    int *send, *recv;
} batch_t;

static int number(const batch_t *batch, int k, int rank)
{
    return 1000 * (batch->first + k) + rank;
}

static void batch_check(const batch_t *batch, int from, int to, const char *what)
{
    for (int k = from; k < to; k++) {
        for (int rank = 0; rank < world_size; rank++) {
            int is = batch->recv[k * world_size + rank];

            check(is == number(batch, k, rank), "%s: request %d, rank %d: %d instead of %d", what,
                  k, rank, is, number(batch, k, rank));
        }
    }
}

static batch_t batch_make(int count, MPI_Comm comm)
{
    static int made;
    batch_t batch = {.count = count,
                     .first = made,
                     .requests = get_memory((size_t) count * sizeof(MPI_Request)),
                     .send = get_memory((size_t) count * sizeof(int)),
                     .recv = get_memory((size_t) (count * world_size) * sizeof(int))};

    made += count;
    for (int k = 0; k < count; k++) {
        batch.send[k] = number(&batch, k, world_rank);
        MPI_Allgather_init(&batch.send[k], 1, MPI_INT, batch.recv + k * world_size, 1, MPI_INT,
                           comm, MPI_INFO_NULL, &batch.requests[k]);
    }
    return batch;
}

/* Of another one, which owns all. */
static batch_t batch_part(const batch_t *batch, int from, int count)
{
    return (batch_t){.count = count,
                     .first = batch->first + from,
                     .requests = batch->requests + from,
                     .send = batch->send + from,
                     .recv = batch->recv + from * world_size};
}

/* From one end, or on every other rank from the other one. */
static void batch_start(batch_t *batch)
{
    memset(batch->recv, 0xff, (size_t) (batch->count * world_size) * sizeof(int));
    for (int k = 0; k < batch->count; k++) {
        MPI_Start(&batch->requests[world_rank % 2 == 0 ? k : batch->count - 1 - k]);
    }
}

static void batch_wait(batch_t *batch, const char *what)
{
    MPI_Waitall(batch->count, batch->requests, MPI_STATUSES_IGNORE);
    batch_check(batch, 0, batch->count, what);
}

static void batch_run(batch_t *batch, const char *what)
{
    batch_start(batch);
    batch_wait(batch, what);
}

/* Every `step`th, in orders of the ranks' own; a request that is freed counts no more. */
static void batch_free_some(batch_t *batch, int step)
{
    for (int k = 0; k < batch->count; k++) {
        int which = world_rank % 2 == 0 ? k : batch->count - 1 - k;

        if (which % step == 0 && batch->requests[which] != MPI_REQUEST_NULL) {
            MPI_Request_free(&batch->requests[which]);
        }
    }
}

static void batch_free(batch_t *batch)
{
    batch_free_some(batch, 1);
    free(batch->recv);
    free(batch->send);
    free(batch->requests);
}

/* Begun from both ends. */
static void opposite(void)
{
    MPI_Comm comm;
    batch_t batch;

    if (world_size != 2) { /* it takes long, and two have no middle */
        return;
    }
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    batch = batch_make(IDS, comm);
    batch_run(&batch, "begun from both ends");
    batch_free(&batch);
    MPI_Comm_free(&comm);
}

/* More requests than there are ids, one after another, every one of which, or some, are started. */
static void one_after_another(void)
{
    enum { REQUESTS = 20000 };
    int every = world_size > 2 ? 16 : 4;
    MPI_Comm comm;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    open_counters();
    for (int k = 0; k < REQUESTS; k++) {
        batch_t one = batch_make(1, comm);

        if (k % every == 0) {
            batch_run(&one, "one after another");
        }
        batch_free(&one);
    }
    close_counters(REQUESTS, 0, "one after another");
    MPI_Comm_free(&comm);
}

/* As many as there are ids, and some more, which fall back. */
static void beyond(void)
{
    enum { MORE = 3 };
    MPI_Comm comm;
    batch_t all, more;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    open_counters();
    all = batch_make(IDS, comm);
    more = batch_make(MORE, comm);
    close_counters(IDS, MORE, "beyond the ids");
    for (int round = 0; round < 2; round++) {
        /* The fallback has one order of starts for all ranks. */
        MPI_Startall(MORE, more.requests);
        MPI_Start(&all.requests[world_rank % 2 == 0 ? 0 : IDS - 1]);
        MPI_Start(&all.requests[world_rank % 2 == 0 ? IDS - 1 : 0]);
        MPI_Waitall(MORE, more.requests, MPI_STATUSES_IGNORE);
        MPI_Waitall(IDS, all.requests, MPI_STATUSES_IGNORE);
        batch_check(&more, 0, MORE, "beyond the ids");
        batch_check(&all, 0, 1, "the first id");
        batch_check(&all, IDS - 1, IDS, "the last id");
    }
    batch_free(&all);
    open_counters();
    all = batch_make(MORE, comm);
    close_counters(MORE, 0, "after all have been freed");
    batch_run(&all, "after all have been freed");
    batch_free(&all);
    batch_free(&more);
    MPI_Comm_free(&comm);
}

/*
 * Some requests stay, with ids between those of others, which ranks free in different orders; the
 * last rank frees more than the others do. Those that stay on all ranks, and the new ones, are
 * started together; and so are the new ones and others that are made when the old ones are freed.
 */
static void between(void)
{
    enum { STEP = 7, LATER = 1000 };
    bool frees_more = world_rank == world_size - 1;
    MPI_Comm comm;
    batch_t old, new, newer, part;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    old = batch_make(IDS, comm);
    batch_free_some(&old, STEP);
    if (frees_more) { /* ids that are not free on the other ranks */
        batch_free_some(&old, 2);
    }
    open_counters();
    new = batch_make(LATER, comm);
    close_counters(LATER, 0, "between others");
    for (int k = 1; k < LATER; k += 2) {
        if (k % STEP != 0) {
            MPI_Start(&old.requests[k]);
        }
    }
    batch_run(&new, "between others");
    for (int k = 1; k < LATER; k += 2) {
        if (k % STEP != 0) {
            MPI_Wait(&old.requests[k], MPI_STATUS_IGNORE);
            batch_check(&old, k, k + 1, "others");
        }
    }
    batch_free(&old);
    newer = batch_make(IDS - LATER, comm);
    /* Had ids been free that the last rank alone had given back, these would have them again. */
    part = batch_part(&newer, IDS / 2 - LATER, LATER);
    batch_start(world_rank % 2 == 0 ? &new : &part);
    batch_start(world_rank % 2 == 0 ? &part : &new);
    batch_wait(&new, "beside newer ones");
    batch_wait(&part, "beside older ones");
    batch_free(&newer);
    batch_free(&new);
    MPI_Comm_free(&comm);
}

/* A tool reads counters within MPI, hence with each case. */
#define WITH_COUNTERS(name)       \
    static void name##_case(void) \
    {                             \
        pvars_with(name);         \
    }
WITH_COUNTERS(one_after_another)
WITH_COUNTERS(beyond)
WITH_COUNTERS(between)

TEST_PROGRAM(test_persistent_ids, MPI_THREAD_SINGLE, {"opposite", opposite},
             {"one_after_another", one_after_another_case}, {"beyond", beyond_case},
             {"between", between_case});
