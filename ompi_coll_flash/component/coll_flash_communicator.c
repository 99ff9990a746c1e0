/*
 * coll_flash_communicator.c: one communicator: whether flash serves it, taking over, giving back.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "component/coll_flash_component.h"

#include "calls/coll_flash_calls.h"
#include "ring/coll_flash_ring.h"
#include "shm/coll_flash_shm.h"

/* What falls back must have somewhere to go. */
static bool has_previous(const mca_coll_base_comm_coll_t *coll)
{
    bool all = true;

#define HAS(name) all = all && coll->coll_##name != NULL;
    FLASH_EACH_FUNCTION(HAS)
#undef HAS
    return all;
}

/* With MPI_COMM_WORLD, the first, the job's processes agree on all that depends on all of them. */
static int join_ring(mca_coll_flash_module_t *module, bool passes_on)
{
    ompi_communicator_t *comm = module->comm;
    int rc = OMPI_SUCCESS;

    if (comm == MPI_COMM_WORLD) {
        rc = mca_coll_flash_agree(module, passes_on);
    } else if (!mca_coll_flash_ring_form(comm, &module->ring)) {
        rc = OMPI_ERR_OUT_OF_RESOURCE;
    }
    if (rc == OMPI_ERR_OUT_OF_RESOURCE) {
        mca_coll_flash_no_memory(comm);
    }
    if (rc == OMPI_SUCCESS) {
        module->on_node = mca_coll_flash_ring_on_one_node(comm);
        mca_coll_flash_ring_tag(module, comm);
    }
    return rc;
}

/* By MPI_Init, or later by the communicator's calls. */
static void set_up(mca_coll_flash_module_t *module)
{
    module->late = mca_coll_flash_params.late;
    /* Of what has changed in this process since the agreement the other ranks do not know. */
    module->above_libnbc = mca_coll_flash_is_above_libnbc(module->comm);
    module->holds = mca_coll_flash_params.holds && module->above_libnbc;
    module->rdma = mca_coll_flash_params.rdma;
    for (int kind = 0; kind < FLASH_SETUPS; kind++) {
        atomic_init(&module->setups[kind], module->late ? FLASH_SETUP_NONE : FLASH_SETUP_READY);
    }
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
                      "operations that fall back",
                      comm_id);
        if (comm != MPI_COMM_WORLD) {
            return OMPI_ERR_NOT_AVAILABLE;
        }
    }
    module->comm = comm;
    rc = join_ring(module, passes_on); /* in the first, others may wait for this rank */
    if (rc != OMPI_SUCCESS) {
        return rc;
    }
    if (mca_coll_flash_read_settings(comm, &module->settings) != OPAL_SUCCESS) {
        mca_coll_flash_no_memory(comm);
    }
    if (module->on_node && !mca_coll_flash_shm_of(comm, &module->shm)) {
        mca_coll_flash_no_memory(comm);
    }
    set_up(module);
#define TAKE_OVER(name) FLASH_TAKE_OVER(module, comm, name);
    FLASH_EACH_FUNCTION(TAKE_OVER)
#undef TAKE_OVER
    FLASH_VERBOSE(1, "coll:flash: serves communicator %u (%s), %d ranks, %s", comm_id, comm->c_name,
                  ompi_comm_size(comm),
                  module->shm != NULL ? "with shared memory"
                  : module->on_node   ? "on one node, without shared memory"
                                      : "on several nodes");
    return OMPI_SUCCESS;
}

/* Endpoints and tags are counted by the job's ranks: spawned and connected jobs are not served. */
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
    if (!mca_coll_flash_is_usable()) {
        return "flash does not serve this job";
    }
    if (!mca_coll_flash_tags_fit(comm)) {
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
        mca_coll_flash_no_memory(comm);
    }
    module->super.coll_module_enable = module_enable;
    module->super.coll_module_disable = FLASH_DISABLE;
    return &module->super;
}
