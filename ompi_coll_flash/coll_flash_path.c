/*
 * coll_flash_path.c: which way a call takes, chosen by what is equal on all ranks; telling and
 * counting it.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "coll_flash.h"

size_t mca_coll_flash_bytes(flash_count_t count, flash_counts_t counts, MPI_Datatype type,
                            ompi_communicator_t *comm)
{
    size_t size, elements = 0;
    int nranks = ompi_comm_size(comm);

    ompi_datatype_type_size(type, &size);
    if (counts == NULL) {
        return (size_t) nranks * (size_t) count * size;
    }
    for (int rank = 0; rank < nranks; rank++) {
        elements += (size_t) counts[rank];
    }
    return elements * size;
}

void mca_coll_flash_tell_path(const char *name, size_t bytes, ompi_communicator_t *comm,
                              const char *otherwise, const char *obstacle)
{
    uint32_t comm_id = flash_compat_comm_id(comm);

    if (obstacle == NULL) {
        mca_coll_flash_count(true);
        FLASH_VERBOSE(2, "coll:flash: %s of %zu bytes on communicator %u: ring", name, bytes,
                      comm_id);
    } else {
        FLASH_VERBOSE(2, "coll:flash: %s of %zu bytes on communicator %u: %s (%s)", name, bytes,
                      comm_id, otherwise, obstacle);
    }
}

/* NULL if it is not. The parameters' help texts say why there are two limits, and two of each. */
static const char *too_small(flash_kind_t kind, size_t bytes, const mca_coll_flash_module_t *module)
{
    static const char *const reasons[][2] = {
        [FLASH_ALLGATHER] = {"below twice min_bytes", "blocks below twice step_bytes"},
        [FLASH_REDUCE_SCATTER] = {"below min_bytes", "blocks below step_bytes"}};
    const mca_coll_flash_settings_t *settings = &module->settings;
    size_t worth = kind == FLASH_ALLGATHER ? bytes / 2 : bytes;

    if (worth < settings->min_bytes) {
        return reasons[kind][0];
    }
    if (settings->min_bytes > 0 &&
        worth / (size_t) ompi_comm_size(module->comm) < settings->step_bytes) {
        return reasons[kind][1];
    }
    return NULL;
}

bool mca_coll_flash_takes_ring(const char *name, flash_kind_t kind, size_t bytes,
                               const mca_coll_flash_module_t *module, const char *obstacle)
{
    if (obstacle == NULL) {
        obstacle = too_small(kind, bytes, module);
    }
    if (obstacle == NULL && module->on_node && mca_coll_flash_params.on_node == FLASH_ON_NODE_NO) {
        obstacle = "on one node, see on_node";
    }
    mca_coll_flash_tell_path(name, bytes, module->comm, "passed on", obstacle);
    if (obstacle != NULL) {
        mca_coll_flash_count(false);
    }
    return obstacle == NULL;
}
