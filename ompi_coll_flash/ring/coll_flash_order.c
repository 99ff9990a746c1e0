/*
 * coll_flash_order.c: in which order a communicator's ranks stand in its ring.
 *
 * Each block travels over each edge of the ring but one. An edge between two nodes takes the
 * network, and edges between the same two nodes share their links: a ring should enter and leave
 * each node once, and within a node each package, NUMA node and cache, however the ranks were
 * mapped.
 *
 * In MPI_Init each process tells all others where it is, by the lowest ranks that are there with
 * it. Every process sorts all of them, and from then on any communicator's ring is its ranks by
 * their standing: the same on all of its ranks, without a word between them.
 *
 * `standings` is written in MPI_Init and MPI_Finalize only.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "ring/coll_flash_ring.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The lowest ranks of MPI_COMM_WORLD that share these with a process, from the widest on. */
enum { NODE, PACKAGE, NUMA, CACHE, WHERES };

typedef struct seat {
    uint32_t where[WHERES];
    uint32_t rank;
    uint32_t by_rank; /* this rank wants the order of ranks */
} seat_t;

_Static_assert(sizeof(seat_t) == FLASH_SEAT_WORDS * sizeof(uint32_t), "a seat is words");

/* By rank of MPI_COMM_WORLD; equal for those that share all of it. NULL: no order but by number. */
static uint32_t *standings;
/* By rank of MPI_COMM_WORLD: the lowest rank of its node. */
static uint32_t *nodes;

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

static uint32_t *stand(seat_t *seats, size_t count)
{
    uint32_t *standing = malloc(count * sizeof(*standing)), at = 0;

    if (standing != NULL) {
        qsort(seats, count, sizeof(*seats), compare_seats);
        for (size_t k = 0; k < count; k++) {
            at += k > 0 && compare_seats(&seats[k - 1], &seats[k]) != 0;
            standing[seats[k].rank] = at;
        }
    }
    return standing;
}

void mca_coll_flash_ring_fill_seat(ompi_communicator_t *world, uint32_t *seats)
{
    seat_t own = own_seat(world);

    memcpy(seats + (size_t) ompi_comm_rank(world) * FLASH_SEAT_WORDS, &own, sizeof(own));
}

bool mca_coll_flash_ring_learn_seats(ompi_communicator_t *world, uint32_t *all)
{
    size_t count = (size_t) ompi_comm_size(world);
    seat_t *seats = (seat_t *) all;
    bool by_rank = false;

    nodes = malloc(count * sizeof(*nodes));
    if (nodes == NULL) {
        return false;
    }
    for (size_t k = 0; k < count; k++) {
        by_rank |= seats[k].by_rank != 0; /* one that wants it makes all do so */
        nodes[seats[k].rank] = seats[k].where[NODE];
    }
    standings = by_rank ? NULL : stand(seats, count);
    FLASH_VERBOSE(1, "coll:flash: rings go by %s", by_rank ? "the order of ranks" : "the machine");
    return by_rank || standings != NULL;
}

void mca_coll_flash_ring_fini(void)
{
    free(standings);
    free(nodes);
    standings = nodes = NULL;
}

/* --------------------------------------------------------- one communicator */

static uint32_t world_rank(ompi_communicator_t *comm, uint32_t rank)
{
    return ompi_group_get_proc_name(comm->c_local_group, (int) rank).vpid;
}

bool mca_coll_flash_ring_on_one_node(ompi_communicator_t *comm)
{
    uint32_t count = (uint32_t) ompi_comm_size(comm), rank = 0;

    while (rank < count && nodes[world_rank(comm, rank)] == nodes[world_rank(comm, 0)]) {
        rank++;
    }
    return rank == count;
}

typedef struct member {
    uint32_t standing, rank;
} member_t;

static int compare_members(const void *a, const void *b)
{
    const member_t *left = a, *right = b;

    if (left->standing != right->standing) {
        return left->standing < right->standing ? -1 : 1;
    }
    return left->rank < right->rank ? -1 : left->rank > right->rank;
}

static bool sort_members(ompi_communicator_t *comm, uint32_t *ranks, uint32_t count)
{
    member_t *members = malloc(count * sizeof(*members));

    for (uint32_t rank = 0; rank < count && members != NULL; rank++) {
        members[rank] = (member_t){.standing = standings[world_rank(comm, rank)], .rank = rank};
    }
    if (members == NULL) {
        return false;
    }
    qsort(members, count, sizeof(*members), compare_members);
    for (uint32_t place = 0; place < count; place++) {
        ranks[place] = members[place].rank;
    }
    free(members);
    return true;
}

/* What the order is, as far as it fits on a line. */
static void tell(const ompi_communicator_t *comm, const uint32_t *ranks, uint32_t count)
{
    char line[80];
    size_t at = 0;

    for (uint32_t place = 0; place < count && at < sizeof(line) - 12; place++) {
        at += (size_t) snprintf(line + at, sizeof(line) - at, " %u", ranks[place]);
    }
    FLASH_VERBOSE(1, "coll:flash: communicator %u goes by the machine, in the order%s%s",
                  flash_compat_comm_id(comm), line, at < sizeof(line) - 12 ? "" : " ...");
}

bool mca_coll_flash_ring_form(ompi_communicator_t *comm, flash_ring_t *ring)
{
    uint32_t rank = (uint32_t) ompi_comm_rank(comm), count = (uint32_t) ompi_comm_size(comm);
    uint32_t *ranks, differ = 0;

    *ring = (flash_ring_t){.nranks = count, .place = rank};
    if (standings == NULL) {
        return true;
    }
    ranks = malloc(count * sizeof(*ranks));
    if (ranks == NULL || !sort_members(comm, ranks, count)) {
        free(ranks);
        return false;
    }
    for (uint32_t place = 0; place < count; place++) {
        differ += ranks[place] != place;
        ring->place = ranks[place] == rank ? place : ring->place;
    }
    if (differ == 0) {
        free(ranks);
        return true;
    }
    ring->ranks = ranks;
    if (rank == 0) {
        tell(comm, ranks, count);
    }
    return true;
}
