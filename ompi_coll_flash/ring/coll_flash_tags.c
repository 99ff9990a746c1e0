/*
 * coll_flash_tags.c: a communicator's part of the tags of its messages.
 *
 * UCX matches by tag alone, and flash's worker has one tag
 * space for all communicators, so that a message must name its communicator, uniquely at its
 * receiver. Open MPI's number of the communicator does that, until it is used again after
 * MPI_Comm_free; a message of a failed operation could then meet the wrong receiver. So the tag
 * also holds a generation: how many communicators of that number this *pair of neighbours* has
 * had in that direction. Both ends count the same communicators in the same order, so that they
 * agree without exchanging a word, which a non-blocking call could not wait for.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "ring/coll_flash_ring.h"

#include <pthread.h>
#include <stdlib.h>

/*
 * comm id | generation | all-to-all | sequence | step, segment, marks (flash_engine.h)
 *
 * An all-to-all's messages, and a pairwise reduce-scatter's, come from ranks of which a ring knows
 * nothing, and they may be far ahead: one mark keeps them apart from those of a ring that had the
 * same sequence number.
 */
#define COMM_BITS        16
#define GENERATION_BITS  8
#define ALLTOALL_SHIFT   (FLASH_TAG_SHIFT + FLASH_SEQUENCE_BITS)
#define ALLTOALL         (UINT64_C(1) << ALLTOALL_SHIFT)
#define GENERATION_SHIFT (ALLTOALL_SHIFT + 1)
#define COMM_SHIFT       (GENERATION_SHIFT + GENERATION_BITS)

_Static_assert(COMM_SHIFT + COMM_BITS == 64, "the parts of a tag fill it");

/* Communicators are made by any application thread. */
static pthread_mutex_t generations_mutex = PTHREAD_MUTEX_INITIALIZER;
static opal_hash_table_t *generations; /* (comm id, sender, receiver side) -> count */

bool mca_coll_flash_tags_fit(ompi_communicator_t *comm)
{
    return flash_compat_comm_id(comm) >> COMM_BITS == 0;
}

/* Counts one more communicator of that number between this process and a neighbour. */
static uint64_t next_generation(ompi_communicator_t *comm, uint32_t neighbour, bool incoming)
{
    uint32_t comm_id = flash_compat_comm_id(comm);
    uint64_t key = (uint64_t) neighbour << (COMM_BITS + 1) | (uint64_t) comm_id << 1 | incoming;
    void *count = NULL;
    bool counted = false;

    pthread_mutex_lock(&generations_mutex);
    if (generations == NULL) {
        generations = OBJ_NEW(opal_hash_table_t);
        if (generations == NULL || opal_hash_table_init(generations, 64) != OPAL_SUCCESS) {
            mca_coll_flash_no_memory(comm);
        }
    }
    if (opal_hash_table_get_value_uint64(generations, key, &count) != OPAL_SUCCESS) {
        count = NULL;
    }
    count = (void *) ((uintptr_t) count + 1);
    counted = opal_hash_table_set_value_uint64(generations, key, count) == OPAL_SUCCESS;
    pthread_mutex_unlock(&generations_mutex);
    if (!counted) {
        mca_coll_flash_no_memory(comm);
    }
    return (uintptr_t) count & ((1u << GENERATION_BITS) - 1);
}

void mca_coll_flash_tags_fini(void)
{
    if (generations != NULL) {
        OBJ_RELEASE(generations); /* which also sets it to NULL */
    }
}

static uint64_t comm_tag(ompi_communicator_t *comm, uint32_t neighbour, bool incoming)
{
    return (uint64_t) flash_compat_comm_id(comm) << COMM_SHIFT |
           next_generation(comm, neighbour, incoming) << GENERATION_SHIFT;
}

void mca_coll_flash_ring_tag(mca_coll_flash_module_t *module, ompi_communicator_t *comm)
{
    const flash_ring_t *ring = &module->ring;
    ompi_group_t *group = comm->c_local_group;
    int left = (int) flash_ring_rank(ring, ring->nranks - 1);
    int right = (int) flash_ring_rank(ring, 1);

    module->recv_tag = comm_tag(comm, ompi_group_get_proc_name(group, left).vpid, true);
    module->send_tag = comm_tag(comm, ompi_group_get_proc_name(group, right).vpid, false);
}

/*
 * Counted by all ranks in this communicator's first operation of that kind: as ordered among the
 * communicators of its number as their making is. The next neighbours are the ring's.
 */
void mca_coll_flash_pairs_tag(mca_coll_flash_module_t *module)
{
    const flash_ring_t *ring = &module->ring;
    ompi_group_t *group = module->comm->c_local_group;

    if (module->pairs != NULL) {
        return;
    }
    module->pairs = calloc(ring->nranks - 1, sizeof(*module->pairs));
    if (module->pairs == NULL) {
        mca_coll_flash_no_memory(module->comm);
    }
    module->pairs[0] = (flash_pair_t){.recv_tag = module->recv_tag | ALLTOALL,
                                      .send_tag = module->send_tag | ALLTOALL};
    for (uint32_t distance = 2; distance < ring->nranks; distance++) {
        int left = (int) flash_ring_rank(ring, ring->nranks - distance);
        int right = (int) flash_ring_rank(ring, distance);

        module->pairs[distance - 1] = (flash_pair_t){
            .recv_tag =
                ALLTOALL | comm_tag(module->comm, ompi_group_get_proc_name(group, left).vpid, true),
            .send_tag = ALLTOALL |
                        comm_tag(module->comm, ompi_group_get_proc_name(group, right).vpid, false)};
    }
}
