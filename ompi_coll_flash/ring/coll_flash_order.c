/*
 * coll_flash_order.c: in which order a communicator's ranks stand in its ring.
 *
 * Each block travels over each edge of the ring but one. An edge between two nodes takes the
 * network, and edges between the same two nodes share their links: a ring should enter and leave
 * each node once, and within a node each package, NUMA node and cache, however the ranks were
 * mapped.
 *
 * A communicator's ring is its ranks by the standing of their processes (coll_flash_seats.c): the same
 * on all of its ranks, without a word between them.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "ring/coll_flash_ring.h"

#include <stdio.h>
#include <stdlib.h>

static mca_coll_flash_standing_t standing_of(ompi_communicator_t *comm, uint32_t rank)
{
    return mca_coll_flash_seats_standing(
        ompi_group_get_proc_name(comm->c_local_group, (int) rank).vpid);
}

bool mca_coll_flash_ring_on_one_node(ompi_communicator_t *comm)
{
    uint32_t count = (uint32_t) ompi_comm_size(comm), rank = 0;

    while (rank < count && standing_of(comm, rank).node == standing_of(comm, 0).node) {
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
        members[rank] = (member_t){.standing = standing_of(comm, rank).standing, .rank = rank};
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
    if (mca_coll_flash_seats_by_rank()) {
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
