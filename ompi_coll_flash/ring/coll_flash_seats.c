/*
 * coll_flash_seats.c: where the processes of the job are.
 *
 * In MPI_Init each process tells all others its seat: the lowest ranks that share a node, a package and
 * so on with it. All of them sorted are the standings, the same in all processes. One process of a node
 * sorts for all of them, in memory that they share, where they have any: a process' own memory does not
 * grow with the job.
 *
 * Written in MPI_Init and MPI_Finalize only. The node's first process stores `sorted` (release) behind
 * the standings; the others load it (acquire) before they look at these.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "ring/coll_flash_ring.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The lowest ranks of MPI_COMM_WORLD that share these with a process, from the widest on. */
enum { NODE, PACKAGE, NUMA, CACHE, WHERES };

typedef struct seat {
    uint32_t where[WHERES];
    uint32_t rank;
    uint32_t by_rank; /* this rank wants the order of ranks */
} seat_t;

_Static_assert(sizeof(seat_t) == FLASH_SEAT_WORDS * sizeof(uint32_t), "a seat is words");

struct mca_coll_flash_standings {
    atomic_uint sorted;
    mca_coll_flash_standing_t of[]; /* by rank of MPI_COMM_WORLD */
};

/* For so long, about, a process waits for its node's first one. */
#define PATIENCE_SECONDS 1

static mca_coll_flash_standings_t *standings;
static bool is_own;  /* and to be freed */
static bool by_rank; /* all rings go by the order of ranks */

static bool share(int where, const ompi_proc_t *proc)
{
    switch (where) {
    case NODE:
        return OPAL_PROC_ON_LOCAL_NODE(proc->super.proc_flags);
    case PACKAGE:
        return OPAL_PROC_ON_LOCAL_SOCKET(proc->super.proc_flags);
    case NUMA:
        return OPAL_PROC_ON_LOCAL_NUMA(proc->super.proc_flags);
    default:
        return OPAL_PROC_ON_LOCAL_L3CACHE(proc->super.proc_flags);
    }
}

static seat_t own_seat(ompi_communicator_t *world)
{
    seat_t seat = {.rank = (uint32_t) ompi_comm_rank(world),
                   .by_rank = mca_coll_flash_params.ring_order == FLASH_ORDER_RANK};

    for (int where = 0; where < WHERES; where++) {
        seat.where[where] = seat.rank;
    }
    for (uint32_t rank = seat.rank; rank-- > 0;) {
        /* Does not make the structures of remote processes: those of this node exist. */
        ompi_proc_t *proc = ompi_group_peer_lookup_existing(world->c_local_group, (int) rank);

        for (int where = 0; proc != NULL && where < WHERES && share(NODE, proc); where++) {
            seat.where[where] = share(where, proc) ? rank : seat.where[where];
        }
    }
    return seat;
}

static int compare_seats(const void *a, const void *b)
{
    const seat_t *left = a, *right = b;
    int where = 0;

    while (where < WHERES && left->where[where] == right->where[where]) {
        where++;
    }
    return where == WHERES ? 0 : left->where[where] < right->where[where] ? -1 : 1;
}

static void sort(mca_coll_flash_standings_t *into, seat_t *seats, size_t count)
{
    uint32_t at = 0;

    qsort(seats, count, sizeof(*seats), compare_seats);
    for (size_t k = 0; k < count; k++) {
        at += k > 0 && compare_seats(&seats[k - 1], &seats[k]) != 0;
        into->of[seats[k].rank] =
            (mca_coll_flash_standing_t){.node = seats[k].where[NODE], .standing = at};
    }
}

void mca_coll_flash_seats_fill(ompi_communicator_t *world, uint32_t *seats)
{
    seat_t own = own_seat(world);

    memcpy(seats + (size_t) ompi_comm_rank(world) * FLASH_SEAT_WORDS, &own, sizeof(own));
}

size_t mca_coll_flash_seats_bytes(uint32_t ranks)
{
    return sizeof(mca_coll_flash_standings_t) + ranks * sizeof(mca_coll_flash_standing_t);
}

/*
 * Whether the node's first process has sorted: one that is late, or has had an error, is not waited for. It
 * may need messages of this process that have not left.
 */
static bool is_sorted(mca_coll_flash_standings_t *shared)
{
    mca_coll_flash_patience_t patience = {0, 0};
    struct timespec begin, now;

    clock_gettime(CLOCK_MONOTONIC_COARSE, &begin);
    do {
        if (atomic_load_explicit(&shared->sorted, memory_order_acquire) != 0) {
            return true;
        }
        mca_coll_flash_be_patient(&patience);
        clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    } while (now.tv_sec - begin.tv_sec <= PATIENCE_SECONDS);
    return false;
}

bool mca_coll_flash_seats_learn(uint32_t count, uint32_t *all, mca_coll_flash_standings_t *shared,
                                bool first)
{
    seat_t *seats = (seat_t *) all;

    by_rank = false;
    for (uint32_t k = 0; k < count; k++) {
        by_rank |= seats[k].by_rank != 0; /* one that wants it makes all do so */
    }
    is_own = shared == NULL || (!first && !is_sorted(shared));
    standings = is_own ? malloc(mca_coll_flash_seats_bytes(count)) : shared;
    if (standings != NULL && (is_own || first)) {
        sort(standings, seats, count);
        atomic_store_explicit(&standings->sorted, 1, memory_order_release);
    }
    FLASH_VERBOSE(1, "coll:flash: rings go by %s; where processes are is in %s memory",
                  by_rank ? "the order of ranks" : "the machine", is_own ? "own" : "the node's");
    return standings != NULL;
}

void mca_coll_flash_seats_fini(void)
{
    if (is_own) {
        free(standings);
    }
    standings = NULL;
    is_own = false;
}

bool mca_coll_flash_seats_by_rank(void)
{
    return by_rank;
}

mca_coll_flash_standing_t mca_coll_flash_seats_standing(uint32_t world_rank)
{
    return standings->of[world_rank];
}
