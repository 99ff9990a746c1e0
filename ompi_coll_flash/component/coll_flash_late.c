/*
 * coll_flash_late.c: whether this process opens UCX in MPI_Init, or with the first call that needs it.
 *
 * A program that is linked with libmpix_flash makes calls of <mpix_flash.h>, which do not wait for the
 * other ranks if MPI_Init has set everything up. Other programs may never make a call that flash
 * serves: MPI_Init is to cost them no more than without flash.
 *
 * Then a communicator's first calls may be held, see calls/coll_flash_held.c. That takes one thread at a
 * time in MPI, and libnbc below flash. And UCX must not write over the C library's functions while other
 * threads of the program are in them, as it does on hosts with devices for which it registers memory,
 * unless the PML has had that done in MPI_Init. Without these, UCX is opened in MPI_Init; one rank without them, or
 * linked with libmpix_flash, makes all do so (coll_flash_agree.c). Where coll_flash_setup says otherwise,
 * non-blocking calls that would be held fall back.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "component/coll_flash_component.h"

#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

#include "job/coll_flash_ucx.h"
#include "ompi/runtime/mpiruntime.h"

typedef struct order {
    const char *library; /* this one's path */
    bool linked;         /* it stands before the component */
} order_t;

static bool is_component(const char *path)
{
    const char *name = strrchr(path, '/');

    return name != NULL && strcmp(name, "/mca_coll_flash.so") == 0;
}

/* The dynamic linker lists objects in the order in which they were loaded. 1 ends the list. */
static int look(struct dl_phdr_info *info, size_t size, void *arg)
{
    order_t *order = arg;

    (void) size;
    order->linked = strcmp(info->dlpi_name, order->library) == 0;
    return order->linked || is_component(info->dlpi_name);
}

/*
 * Whether the program has loaded the library, by being linked with it or otherwise: Open MPI loads the
 * component, and the library behind it.
 */
static bool is_linked(void)
{
    order_t order = {.linked = false};
    Dl_info own;

    if (dladdr((const void *) (uintptr_t) is_linked, &own) == 0) {
        return true;
    }
    order.library = own.dli_fname;
    (void) dl_iterate_phdr(look, &order);
    return order.linked;
}

/* Whether a component other than libnbc may have non-blocking collectives, with an order of its own. */
static bool has_others(void)
{
    static const char *const others[] = {"hcoll", "ucc", "portals4"};
    mca_base_component_list_item_t *item;
    bool found = false;

    OPAL_LIST_FOREACH(item, &ompi_coll_base_framework.framework_components,
                      mca_base_component_list_item_t)
    {
        for (size_t k = 0; k < sizeof(others) / sizeof(others[0]); k++) {
            found |= strcmp(item->cli_component->mca_component_name, others[k]) == 0;
        }
    }
    return found;
}

/*
 * Whether the dynamic linker finds libraries by names that hold in the folder alone in which the program
 * was started: the program may go to another one before it opens UCX.
 */
static bool has_relative_path(void)
{
    const char *path = getenv("LD_LIBRARY_PATH");

    for (; path != NULL && *path != '\0'; path += strcspn(path, ":;")) {
        path += strspn(path, ":;");
        if (*path != '/' && *path != '\0') {
            return true;
        }
    }
    return false;
}

/* Whether Open MPI has loaded UCX, and may be about to open it: the PML is not selected yet. */
static bool has_ucx(void)
{
    void *library = dlopen("libucm.so.0", RTLD_NOW | RTLD_NOLOAD);

    if (library != NULL) {
        (void) dlclose(library);
    }
    return library != NULL;
}

static bool late; /* written when the component is opened */

void mca_coll_flash_decide_late(void)
{
    switch (mca_coll_flash_params.setup) {
    case FLASH_SETUP_INIT:
        late = false;
        break;
    case FLASH_SETUP_CALL:
        late = true;
        break;
    default:
        late = !ompi_mpi_thread_multiple && !mca_coll_flash_ucx_outlives() && !is_linked() &&
               !has_others() && !has_relative_path() &&
               (!mca_coll_flash_ucx_writes_code() || has_ucx());
    }
}

bool mca_coll_flash_is_late(void)
{
    return late;
}

/* The name of the component that has the module. */
static const char *name_of(const ompi_communicator_t *comm, const mca_coll_base_module_t *module)
{
    mca_coll_base_avail_coll_t *available;

    OPAL_LIST_FOREACH(available, comm->c_coll->module_list, mca_coll_base_avail_coll_t)
    {
        if (available->ac_module == module) {
            return available->ac_component_name;
        }
    }
    return "";
}

bool mca_coll_flash_opens_quietly(void)
{
    const char *pml = mca_pml_base_selected_component.pmlm_version.mca_component_name;

    return !mca_coll_flash_ucx_writes_code() || strcmp(pml, "ucx") == 0;
}

/* Before flash takes over: whose non-blocking collectives they are. */
bool mca_coll_flash_is_above_libnbc(ompi_communicator_t *comm)
{
    const mca_coll_base_comm_coll_t *coll = comm->c_coll;
    const mca_coll_base_module_t *module = coll->coll_ibarrier_module;

    bool all = strcmp(name_of(comm, module), "libnbc") == 0;

#define HAS(name) all = all && coll->coll_##name##_module == module;
    FLASH_EACH_NON_BLOCKING(HAS)
#undef HAS
    return all;
}
