/*
 * coll_flash_late.c: whether this process opens UCX in MPI_Init, or with the first call that needs it.
 *
 * A program that is linked with libmpix_flash makes calls of <mpix_flash.h>, which do not wait for the
 * other ranks if MPI_Init has set everything up. Other programs may never make a call that flash
 * serves: MPI_Init is to cost them no more than without flash.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "component/coll_flash_component.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>

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

bool mca_coll_flash_is_late(void)
{
    switch (mca_coll_flash_params.setup) {
    case FLASH_SETUP_INIT:
        return false;
    case FLASH_SETUP_CALL:
        return true;
    default:
        return !is_linked();
    }
}
