/*
 * coll_flash_module.c: one communicator: whether flash serves it, taking over, giving back.
 *
 * A communicator's part of the tags. UCX matches by tag alone, and flash's worker has one tag
 * space for all communicators, so that a message must name its communicator, uniquely at its
 * receiver. Open MPI's number of the communicator does that, until it is used again after
 * MPI_Comm_free; a message of a failed operation could then meet the wrong receiver. So the tag
 * also holds a generation: how many communicators of that number this *pair of neighbours* has
 * had in that direction. Both ends count the same communicators in the same order, so that they
 * agree without exchanging a word, which a non-blocking call could not wait for.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "shm/coll_flash_board.h"

#include <pthread.h>

/*
 * comm id | generation | all-to-all | sequence | step, segment, marks (flash_engine.h)
 *
 * An all-to-all's messages, and a direct reduce-scatter's, come from ranks of which a ring knows
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

/*
 * While a communicator is made there is no error that all ranks would hear of: one that went
 * without flash alone would leave the others waiting in each ring.
 */
_Noreturn static void no_memory(ompi_communicator_t *comm)
{
    FLASH_HELP("no-memory-for-communicator", opal_process_info.nodename, (int) getpid());
    ompi_mpi_abort(comm, MPI_ERR_NO_MEM);
    abort();
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
            no_memory(comm);
        }
    }
    if (opal_hash_table_get_value_uint64(generations, key, &count) != OPAL_SUCCESS) {
        count = NULL;
    }
    count = (void *) ((uintptr_t) count + 1);
    counted = opal_hash_table_set_value_uint64(generations, key, count) == OPAL_SUCCESS;
    pthread_mutex_unlock(&generations_mutex);
    if (!counted) {
        no_memory(comm);
    }
    return (uintptr_t) count & ((1u << GENERATION_BITS) - 1);
}

void mca_coll_flash_modules_fini(void)
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

/*
 * Counted by all ranks in this communicator's first operation of that kind: as ordered among the
 * communicators of its number as their making is. The next neighbours are the ring's.
 */
void mca_coll_flash_module_pair(mca_coll_flash_module_t *module)
{
    const flash_ring_t *ring = &module->ring;
    ompi_group_t *group = module->comm->c_local_group;

    if (module->pairs != NULL) {
        return;
    }
    module->pairs = calloc(ring->nranks - 1, sizeof(*module->pairs));
    if (module->pairs == NULL) {
        no_memory(module->comm);
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

static void module_construct(mca_coll_flash_module_t *module)
{
    module->comm = NULL;
    memset(&module->previous, 0, sizeof(module->previous));
    module->sequence = module->persistent_sequence = 0;
    memset(module->taken, 0, sizeof(module->taken));
    OBJ_CONSTRUCT(&module->waiting, opal_list_t);
    module->ring = (flash_ring_t){.ranks = NULL};
    module->board = NULL;
    module->board_active = false;
    module->board_sequence = 0;
    module->left = module->right = NULL;
    module->pairs = NULL;
    atomic_init(&module->told_blame, FLASH_NOT_TOLD);
}

static void release(mca_coll_base_module_t *module)
{
    if (module != NULL) {
        OBJ_RELEASE(module);
    }
}

static void module_destruct(mca_coll_flash_module_t *module)
{
    mca_coll_flash_board_forget(module);
    OBJ_DESTRUCT(&module->waiting);
    free((void *) module->ring.ranks);
    free(module->pairs);
    release(module->previous.iallgather_module);
    release(module->previous.iallgatherv_module);
    release(module->previous.ireduce_scatter_module);
    release(module->previous.ireduce_scatter_block_module);
    release(module->previous.allgather_init_module);
    release(module->previous.allgatherv_init_module);
    release(module->previous.reduce_scatter_init_module);
    release(module->previous.reduce_scatter_block_init_module);
}

OBJ_CLASS_INSTANCE(mca_coll_flash_module_t, mca_coll_base_module_t, module_construct,
                   module_destruct);

/* What flash passes on must have somewhere to go. */
static bool has_previous(const mca_coll_base_comm_coll_t *coll)
{
    return coll->coll_iallgather != NULL && coll->coll_iallgatherv != NULL &&
           coll->coll_ireduce_scatter != NULL && coll->coll_ireduce_scatter_block != NULL &&
           coll->coll_allgather_init != NULL && coll->coll_allgatherv_init != NULL &&
           coll->coll_reduce_scatter_init != NULL && coll->coll_reduce_scatter_block_init != NULL;
}

/* With MPI_COMM_WORLD, the first, the job's processes agree on all that depends on all of them. */
static int join_ring(mca_coll_flash_module_t *module, ompi_communicator_t *comm, bool passes_on)
{
    ompi_group_t *group = comm->c_local_group;
    int left, right, rc = OMPI_SUCCESS;

    if (comm == MPI_COMM_WORLD) {
        rc = mca_coll_flash_job_meet(comm);
        rc = rc == OMPI_SUCCESS ? mca_coll_flash_ring_agree(comm) : rc;
    }
    if (rc == OMPI_ERR_OUT_OF_RESOURCE ||
        (rc == OMPI_SUCCESS && !mca_coll_flash_ring_form(comm, &module->ring))) {
        no_memory(comm);
    }
    if (rc != OMPI_SUCCESS) {
        return rc;
    }
    module->on_node = mca_coll_flash_ring_on_one_node(comm);
    left = (int) flash_ring_rank(&module->ring, module->ring.nranks - 1);
    right = (int) flash_ring_rank(&module->ring, 1);
    if (comm == MPI_COMM_WORLD) {
        rc = mca_coll_flash_job_agree(comm, right, passes_on);
    }
    if (rc == OMPI_SUCCESS) {
        module->recv_tag = comm_tag(comm, ompi_group_get_proc_name(group, left).vpid, true);
        module->send_tag = comm_tag(comm, ompi_group_get_proc_name(group, right).vpid, false);
    }
    return rc;
}

static int module_enable(mca_coll_base_module_t *base, ompi_communicator_t *comm)
{
    mca_coll_flash_module_t *module = (mca_coll_flash_module_t *) base;
    uint32_t comm_id = flash_compat_comm_id(comm);
    bool passes_on = has_previous(comm->c_coll);
    int rc;

    if (!passes_on) {
        FLASH_VERBOSE(1,
                      "coll:flash: does not serve communicator %u: no other component has the "
                      "operations that flash passes on",
                      comm_id);
        if (comm != MPI_COMM_WORLD) {
            return OMPI_ERR_NOT_AVAILABLE;
        }
    }
    rc = join_ring(module, comm, passes_on); /* in the first, others may wait for this rank */
    if (rc != OMPI_SUCCESS) {
        return rc;
    }
    if (mca_coll_flash_read_settings(comm, &module->settings) != OPAL_SUCCESS) {
        no_memory(comm);
    }
    if (module->on_node && !mca_coll_flash_board_of(comm, &module->board)) {
        no_memory(comm);
    }
    module->comm = comm;
    FLASH_TAKE_OVER(module, comm, iallgather);
    FLASH_TAKE_OVER(module, comm, iallgatherv);
    FLASH_TAKE_OVER(module, comm, ireduce_scatter);
    FLASH_TAKE_OVER(module, comm, ireduce_scatter_block);
    FLASH_TAKE_OVER(module, comm, allgather_init);
    FLASH_TAKE_OVER(module, comm, allgatherv_init);
    FLASH_TAKE_OVER(module, comm, reduce_scatter_init);
    FLASH_TAKE_OVER(module, comm, reduce_scatter_block_init);
    FLASH_VERBOSE(1, "coll:flash: serves communicator %u (%s), %d ranks, %s", comm_id, comm->c_name,
                  ompi_comm_size(comm),
                  module->board != NULL ? "with a board"
                  : module->on_node     ? "on one node, without a board"
                                        : "on several nodes");
    return OMPI_SUCCESS;
}

/* Endpoints and tags are counted by the job's ranks: spawned and connected jobs are passed on. */
static bool one_job(ompi_communicator_t *comm)
{
    ompi_group_t *group = comm->c_local_group;
    opal_jobid_t job = ompi_group_get_proc_name(group, 0).jobid;

    for (int rank = 1; rank < ompi_comm_size(comm); rank++) {
        if (ompi_group_get_proc_name(group, rank).jobid != job) {
            return false;
        }
    }
    return true;
}

/*
 * Why flash does not serve the communicator, or NULL. Everything asked here has the same answer on
 * all ranks, but for the priority, which the agreement looks after: a rank whose priority is too
 * low takes part in it, where the others wait for it, and makes it fail. Nothing can be asked of a
 * rank that has not got the component at all: see coll_flash_release.c.
 */
static const char *obstacle(ompi_communicator_t *comm)
{
    if (comm != MPI_COMM_WORLD && mca_coll_flash_params.priority <= FLASH_TOO_LOW_PRIORITY) {
        return "coll_flash_priority is too low";
    }
    if (OMPI_COMM_IS_INTER(comm)) {
        return "an inter-communicator";
    }
    if (ompi_comm_size(comm) < 2) {
        return "one rank";
    }
    if (!mca_coll_flash_job_usable()) {
        return "flash does not serve this job";
    }
    if (flash_compat_comm_id(comm) >> COMM_BITS != 0) {
        return "its number has no place in a tag";
    }
    return one_job(comm) ? flash_compat_obstacle(comm) : "processes of several jobs";
}

mca_coll_base_module_t *mca_coll_flash_comm_query(ompi_communicator_t *comm, int *priority)
{
    mca_coll_flash_module_t *module;
    const char *why = obstacle(comm);

    if (why != NULL) {
        FLASH_VERBOSE(1, "coll:flash: does not serve communicator %u: %s",
                      flash_compat_comm_id(comm), why);
        return NULL;
    }
    *priority = mca_coll_flash_params.priority;
    if (*priority <= FLASH_TOO_LOW_PRIORITY) {
        *priority = FLASH_DEFAULT_PRIORITY; /* for the agreement, see above */
    }
    module = OBJ_NEW(mca_coll_flash_module_t);
    if (module == NULL) {
        no_memory(comm);
    }
    module->super.coll_module_enable = module_enable;
    module->super.coll_module_disable = FLASH_DISABLE;
    return &module->super;
}

mca_coll_flash_module_t *mca_coll_flash_module_of(ompi_communicator_t *comm)
{
    mca_coll_base_avail_coll_t *available;

    if (comm->c_coll == NULL || comm->c_coll->module_list == NULL) {
        return NULL;
    }
    OPAL_LIST_FOREACH(available, comm->c_coll->module_list, mca_coll_base_avail_coll_t)
    {
        if (available->ac_module->coll_module_enable == module_enable) {
            return (mca_coll_flash_module_t *) available->ac_module;
        }
    }
    return NULL;
}
