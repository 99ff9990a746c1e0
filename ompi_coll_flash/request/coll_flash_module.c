/*
 * coll_flash_module.c: what flash has of a communicator that it serves.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "request/coll_flash_algorithm.h"

#include <stdlib.h>
#include <string.h>

_Noreturn void mca_coll_flash_no_memory(ompi_communicator_t *comm)
{
    FLASH_HELP("no-memory-for-communicator", opal_process_info.nodename, (int) getpid());
    ompi_mpi_abort(comm, MPI_ERR_NO_MEM);
    abort();
}

static void module_construct(mca_coll_flash_module_t *module)
{
    module->comm = NULL;
    module->above_libnbc = module->late = module->holds = module->rdma = false;
    module->address_bytes = 0;
    for (int kind = 0; kind < FLASH_SETUPS; kind++) {
        atomic_init(&module->setups[kind], FLASH_SETUP_NONE);
    }
    memset(&module->previous, 0, sizeof(module->previous));
    memset(module->ring_from, 0, sizeof(module->ring_from));
    module->sequence = 0;
    memset(module->taken, 0, sizeof(module->taken));
    memset(module->persistent_free, 0xff, sizeof(module->persistent_free));
    memset(module->persistent_returned, 0, sizeof(module->persistent_returned));
    OBJ_CONSTRUCT(&module->waiting, opal_list_t);
    flash_flow_init(&module->flow);
    module->ring = (flash_ring_t){.ranks = NULL};
    module->shm = NULL;
    module->shm_active = false;
    module->shm_sequence = 0;
    module->left = module->right = NULL;
    module->pairs = NULL;
    atomic_init(&module->told_failed_rank, FLASH_NOT_TOLD);
}

static void release(mca_coll_base_module_t *module)
{
    if (module != NULL) {
        OBJ_RELEASE(module);
    }
}

static void module_destruct(mca_coll_flash_module_t *module)
{
    mca_coll_flash_algorithms_forget(module);
    OBJ_DESTRUCT(&module->waiting);
    free((void *) module->ring.ranks);
    free(module->pairs);
#define RELEASE(name) release(module->previous.name##_module);
    FLASH_EACH_FUNCTION(RELEASE)
#undef RELEASE
}

OBJ_CLASS_INSTANCE(mca_coll_flash_module_t, mca_coll_base_module_t, module_construct,
                   module_destruct);

mca_coll_flash_module_t *mca_coll_flash_module_of(ompi_communicator_t *comm)
{
    mca_coll_base_avail_coll_t *available;

    if (comm->c_coll == NULL || comm->c_coll->module_list == NULL) {
        return NULL;
    }
    OPAL_LIST_FOREACH(available, comm->c_coll->module_list, mca_coll_base_avail_coll_t)
    {
        if (available->ac_module->super.obj_class == OBJ_CLASS(mca_coll_flash_module_t)) {
            return (mca_coll_flash_module_t *) available->ac_module;
        }
    }
    return NULL;
}

mca_coll_flash_settings_t mca_coll_flash_settings_of_parameters(void)
{
    const mca_coll_flash_params_t *params = &mca_coll_flash_params;

    return (mca_coll_flash_settings_t){.algorithm = (size_t) params->algorithm,
                                       .blocking = (size_t) params->blocking,
                                       .on_node = params->on_node == FLASH_ON_NODE_YES,
                                       .shm_use = (size_t) params->shm,
                                       .segment_bytes = params->segment_bytes,
                                       .segment_window = params->segment_window,
                                       .max_sends = params->max_sends,
                                       .pinned_bytes = params->pinned_bytes,
                                       .pieces = 1,
                                       .callback_thread = params->callback_thread};
}

mca_coll_flash_settings_t
mca_coll_flash_blocking_settings(const mca_coll_flash_settings_t *settings)
{
    mca_coll_flash_settings_t blocking = *settings;

    if (settings->blocking == FLASH_BLOCKING_AUTO && settings->algorithm != FLASH_FALLBACK) {
        blocking.algorithm = FLASH_AUTO;
    }
    return blocking;
}
