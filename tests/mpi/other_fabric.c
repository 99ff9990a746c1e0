/*
 * other_fabric.c: a library that is loaded before Open MPI's into a rank, which then seems to be on
 * another fabric.
 *
 *   FLASH_TEST_PML=NAME   Open MPI seems to have selected that PML.
 *   FLASH_TEST_MTL=NAME   Open MPI seems to have selected that MTL.
 *   FLASH_TEST_RDMA=yes   The host seems to have devices of RDMA; what is changed of UCX's defaults
 *                         is printed.
 *
 * Messages go as before.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "ompi_config.h"

#include <dirent.h>
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ompi/mca/mtl/base/base.h"
#include "ompi/mca/pml/base/base.h"

typedef int select_fn(bool progress_threads, bool threads);
typedef DIR *opendir_fn(const char *name);
typedef int modify_fn(void *config, const char *name, const char *value);

int ucp_config_modify(void *config, const char *name, const char *value);

static void *real(const char *library, const char *function)
{
    return dlsym(library == NULL ? RTLD_NEXT : dlopen(library, RTLD_LAZY | RTLD_NOLOAD), function);
}

static void rename_to(char *name, const char *variable)
{
    const char *other = getenv(variable);

    if (other != NULL) {
        snprintf(name, MCA_BASE_MAX_COMPONENT_NAME_LEN, "%s", other);
    }
}

/* The selected PML's component is a copy, in which nothing else is looked up by its name. */
int mca_pml_base_select(bool progress_threads, bool threads)
{
    static mca_mtl_base_component_t mtl;
    select_fn *select = (select_fn *) (uintptr_t) real(NULL, "mca_pml_base_select");
    int rc = select(progress_threads, threads);

    rename_to(mca_pml_base_selected_component.pmlm_version.mca_component_name, "FLASH_TEST_PML");
    if (getenv("FLASH_TEST_MTL") != NULL) {
        rename_to(mtl.mtl_version.mca_component_name, "FLASH_TEST_MTL");
        ompi_mtl_base_selected_component = &mtl;
    }
    return rc;
}

DIR *opendir(const char *name)
{
    opendir_fn *open_folder = (opendir_fn *) (uintptr_t) real(NULL, "opendir");
    bool there = getenv("FLASH_TEST_RDMA") != NULL && strcmp(name, "/sys/class/infiniband") == 0;

    return open_folder(there ? "/sys/class/net" : name);
}

int ucp_config_modify(void *config, const char *name, const char *value)
{
    modify_fn *modify = (modify_fn *) (uintptr_t) real("libucp.so.0", "ucp_config_modify");

    if (getenv("FLASH_TEST_RDMA") != NULL) {
        fprintf(stderr, "FLASH_TEST_RDMA: %s=%s\n", name, value);
    }
    return modify(config, name, value);
}
