/*
 * coll_flash_fabric.c: whether Open MPI's own messages reach other nodes by a faster fabric than
 * flash's.
 *
 * flash's messages go by what UCX finds. Where UCX does not know the fabric (Slingshot, EFA,
 * Omni-Path), that is TCP on some Ethernet, while Open MPI's messages go by libfabric or PSM2: a
 * program is better off without flash. Each rank whose next rank is on another node compares the
 * ways to that rank. There are two classes: TCP, and what is faster. What Open MPI uses and flash
 * does not know counts as faster: a mistake then costs a job flash, and not its fabric.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "job/coll_flash_job.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "job/coll_flash_ucx.h"

enum { NAME_MAX_BYTES = 128 };

/* libfabric names a provider with what is stacked on it: "tcp;ofi_rxm". */
static bool is_one_of(const char *word, const char *const *known)
{
    size_t length = strcspn(word, ",;");

    while (*known != NULL && (strlen(*known) != length || strncmp(word, *known, length) != 0)) {
        known++;
    }
    return *known != NULL;
}

/* Whether a list of words, with commas, has others than those. */
static bool has_others(const char *list, const char *const *known)
{
    while (*list != '\0' && is_one_of(list, known)) {
        list += strcspn(list, ",");
        list += *list == ',';
    }
    return *list != '\0';
}

/*
 * Whether libfabric is told to go by TCP, and by nothing else. Unless it is told, Open MPI excludes
 * those providers. Which one is in use, Open MPI does not tell.
 */
static bool provider_is_tcp(void)
{
    static const char *const slow[] = {"tcp", "sockets", "udp", "net", "shm", NULL};
    int index = mca_base_var_find("ompi", "mtl", "ofi", "provider_include");
    const char *const *include = NULL;

    return index >= 0 && mca_base_var_get_value(index, &include, NULL, NULL) == OPAL_SUCCESS &&
           include != NULL && *include != NULL && (*include)[0] != '\0' &&
           !has_others(*include, slow);
}

/* By a library of the fabric's. */
static bool mtl_is_faster(char name[NAME_MAX_BYTES])
{
    const char *mtl = flash_compat_mtl();

    snprintf(name, NAME_MAX_BYTES, "mtl %s", mtl);
    return strcmp(mtl, "ofi") != 0 || !provider_is_tcp();
}

/* By components for each kind of network. */
static bool btls_are_faster(ompi_proc_t *neighbour, char name[NAME_MAX_BYTES])
{
    static const char *const slow[] = {"tcp", "self", "sm", "vader", "smcuda", NULL};
    char btls[NAME_MAX_BYTES - 8];

    flash_compat_btls(neighbour, btls, sizeof(btls));
    snprintf(name, NAME_MAX_BYTES, "btl %s", btls);
    return has_others(btls, slow);
}

/* PMLs that stand before the one that sends, whose name is not to be had then. */
static bool stands_before_another(const char *pml)
{
    return strcmp(pml, "monitoring") == 0 || strcmp(pml, "v") == 0;
}

/* With pml ucx, Open MPI goes by UCX as well. */
static bool own_is_faster(ompi_proc_t *neighbour, char name[NAME_MAX_BYTES])
{
    const char *pml = mca_pml_base_selected_component.pmlm_version.mca_component_name;
    bool before = stands_before_another(pml);

    if (strcmp(pml, "ob1") == 0 || (before && flash_compat_has_btls())) {
        return btls_are_faster(neighbour, name);
    }
    if (strcmp(pml, "cm") == 0 || (before && strcmp(flash_compat_mtl(), "none") != 0)) {
        return mtl_is_faster(name);
    }
    snprintf(name, NAME_MAX_BYTES, "pml %s", pml);
    return !before && strcmp(pml, "ucx") != 0;
}

/*
 * Whether buffers of this node's ranks may lie in a GPU's memory, whose copies to and from the host
 * overlap with messages as long as a block has several segments.
 */
static bool has_gpu(void)
{
    return access("/dev/nvidiactl", F_OK) == 0 || access("/dev/dxg", F_OK) == 0;
}

mca_coll_flash_fabric_t mca_coll_flash_fabric_look(ompi_communicator_t *comm, int next)
{
    ompi_proc_t *neighbour = ompi_comm_peer_lookup(comm, next);
    flash_progress_t *progress = mca_coll_flash_job_progress();
    char own[NAME_MAX_BYTES];
    flash_ucx_ways_t ways;
    flash_peer_t *peer;
    bool faster;

    if (neighbour == NULL || OPAL_PROC_ON_LOCAL_NODE(neighbour->super.proc_flags)) {
        return (mca_coll_flash_fabric_t){.suits = true, .rdma = true};
    }
    peer = mca_coll_flash_peer_of(neighbour->super.proc_name);
    flash_progress_lock(progress);
    mca_coll_flash_ucx()->ways(peer, &ways);
    flash_progress_unlock(progress);
    faster = own_is_faster(neighbour, own);
    FLASH_VERBOSE(1, "coll:flash: UCX reaches other nodes by %s, Open MPI by %s",
                  ways.names[0] == '\0' ? "what it does not tell" : ways.names, own);
    return (mca_coll_flash_fabric_t){.suits = !faster || !ways.tcp || ways.faster ||
                                              mca_coll_flash_params.any_fabric,
                                     .rdma = ways.faster && !has_gpu()};
}

/* Within a node there is nothing to tell. */
void mca_coll_flash_fabric_tell(const flash_peer_t *peer)
{
    static atomic_bool told; /* by one of the application's threads, or by two: relaxed */
    flash_progress_t *progress = mca_coll_flash_job_progress();
    flash_ucx_ways_t ways;

    if (atomic_load_explicit(&told, memory_order_relaxed)) {
        return;
    }
    flash_progress_lock(progress);
    mca_coll_flash_ucx()->ways(peer, &ways);
    flash_progress_unlock(progress);
    if (ways.names[0] != '\0') {
        atomic_store_explicit(&told, true, memory_order_relaxed);
        FLASH_VERBOSE(1, "coll:flash: exchanges with all ranks reach other nodes by %s",
                      ways.names);
    }
}
