/*
 * coll_flash_neighbours.c: the processes that a communicator's operations exchange messages with.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "ring/coll_flash_ring.h"

static int find_neighbour(mca_coll_flash_module_t *module, uint32_t ahead, bool exchanges,
                          flash_peer_t **peer)
{
    int rank = (int) flash_ring_rank(&module->ring, ahead);
    opal_process_name_t name = ompi_group_get_proc_name(module->comm->c_local_group, rank);

    flash_peer_t *twin = mca_coll_flash_peer_of(name);
    int rc = MPI_ERR_NO_MEM;

    *peer = twin != NULL && exchanges ? mca_coll_flash_peer_to_exchange(twin) : twin;
    if (*peer != NULL) {
        rc = mca_coll_flash_peer_connect(name, *peer);
    }
    if (rc == MPI_SUCCESS && *peer != twin) {
        mca_coll_flash_fabric_tell(*peer);
    }
    return rc;
}

/*
 * What the first operation of a communicator needs. What is sent to the left of a ring is UCX's
 * own replies, pings behind these, and the news that that rank is given up. For its replies UCX would
 * make an endpoint by itself; one of its own it destroys when that process dies, and stumbles over
 * messages of it that it finds later.
 */
static int find_neighbours(mca_coll_flash_module_t *module)
{
    flash_peer_t *right;
    int rc;

    if (module->right == NULL) {
        rc = find_neighbour(module, module->ring.nranks - 1, false, &module->left);
        if (rc == MPI_SUCCESS) {
            rc = find_neighbour(module, 1, false, &right);
        }
        if (rc != MPI_SUCCESS) {
            return rc;
        }
        module->right = right;
    }
    return MPI_SUCCESS;
}

/*
 * Whoever cannot be connected to is lost: the operation goes on with the rest, who would wait, and
 * ends with an error that names that rank.
 */
static flash_peer_t *find_or_lose(mca_coll_flash_module_t *module, uint32_t ahead)
{
    flash_peer_t *peer;

    if (find_neighbour(module, ahead, true, &peer) != MPI_SUCCESS && peer != NULL) {
        mca_coll_flash_peer_lose(peer);
    }
    return peer;
}

/*
 * The rank that stands so many places to the right, and as many fewer than all to the left. Once found
 * it stays so, and is not written again: operations may be under way, which read no peer that they do
 * not exchange with.
 */
static int find_pair(mca_coll_flash_module_t *module, uint32_t distance)
{
    flash_pair_t *pair = &module->pairs[distance - 1];

    if (pair->right == NULL) {
        flash_peer_t *peer = find_or_lose(module, distance);

        if (peer == NULL) {
            return MPI_ERR_NO_MEM;
        }
        module->pairs[module->ring.nranks - distance - 1].left = peer;
        pair->right = peer;
    }
    return MPI_SUCCESS;
}

/* Whether this rank takes a step with the one that stands so many places to the right. */
static bool takes_step(uint32_t ranks, flash_kind_t kind, flash_part_t part, uint32_t distance)
{
    if (part.taken == NULL) {
        return true;
    }
    if (flash_schedule_has_root(kind)) {
        return flash_steps_has(
            part.taken, part.from_root > 0 ? 0 : flash_schedule_roots_step(kind, ranks, distance));
    }
    return flash_steps_has(part.taken, flash_schedule_exchange_step(distance, true)) ||
           flash_steps_has(part.taken, flash_schedule_exchange_step(ranks - distance, false));
}

/* Whether this rank exchanges with it: of a kind with a root, with the root alone, unless it is that. */
static bool needs_pair(uint32_t ranks, flash_kind_t kind, flash_part_t part, uint32_t distance)
{
    bool others = flash_schedule_has_root(kind) && part.from_root > 0;

    return (!others || distance == ranks - part.from_root) &&
           takes_step(ranks, kind, part, distance);
}

/* Of all others, but for those with which nothing is exchanged. */
static int find_pairs(mca_coll_flash_module_t *module, flash_kind_t kind, flash_part_t part)
{
    uint32_t ranks = module->ring.nranks;
    int rc = MPI_SUCCESS;

    mca_coll_flash_pairs_tag(module);
    for (uint32_t distance = 1; distance < ranks && rc == MPI_SUCCESS; distance++) {
        if (needs_pair(ranks, kind, part, distance)) {
            rc = find_pair(module, distance);
        }
    }
    return rc;
}

int mca_coll_flash_ring_prepare(mca_coll_flash_module_t *module, flash_kind_t kind,
                                flash_part_t part)
{
    int rc =
        flash_schedule_exchanges(kind) ? find_pairs(module, kind, part) : find_neighbours(module);

    if (rc == MPI_SUCCESS) {
        mca_coll_flash_poll();
        mca_coll_flash_job_start();
    }
    return rc;
}
