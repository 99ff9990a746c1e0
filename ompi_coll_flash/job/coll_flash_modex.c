/*
 * coll_flash_modex.c: see coll_flash_modex.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "job/coll_flash_modex.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "job/coll_flash_ucx.h"

#define MODEX_KEY_MAX 96

/* Of this release alone: another one's record has other fields, and is under another name. */
static void name_key(char key[MODEX_KEY_MAX])
{
    snprintf(key, MODEX_KEY_MAX, "coll_flash of %s", mca_coll_flash_release());
}

static uint64_t pid_space(void)
{
    struct stat space;

    return stat("/proc/self/ns/pid", &space) == 0 ? (uint64_t) space.st_ino : 0;
}

static bool has_address; /* written when the component is opened */

bool mca_coll_flash_modex_has_address(void)
{
    return has_address;
}

void mca_coll_flash_modex_publish(flash_transport_t *transport, mca_coll_flash_shm_memory_t shm)
{
    size_t address_bytes = 0, size;
    const void *address = NULL;
    mca_coll_flash_modex_t *modex;
    char key[MODEX_KEY_MAX];
    int rc;

    if (transport != NULL) {
        address = mca_coll_flash_ucx()->address(transport, &address_bytes);
    }
    size = sizeof(*modex) + address_bytes;
    modex = calloc(1, size);
    if (modex == NULL) {
        return; /* peers find no modex record, and the agreement fails */
    }
    flash_affinity_binding(modex->binding);
    modex->pid = (int32_t) getpid();
    modex->pid_space = pid_space();
    modex->shm = shm;
    modex->networks = mca_coll_flash_networks_find();
    modex->address_bytes = (uint32_t) address_bytes;
    if (address_bytes > 0) {
        memcpy(modex + 1, address, address_bytes);
    }
    name_key(key);
    has_address = address_bytes > 0;
    FLASH_MODEX_SEND(rc, key, modex, size);
    (void) rc; /* likewise */
    free(modex);
}

mca_coll_flash_modex_t *mca_coll_flash_modex_fetch(opal_process_name_t name)
{
    void *data = NULL;
    size_t size = 0;
    mca_coll_flash_modex_t *modex;
    char key[MODEX_KEY_MAX];
    int rc;

    name_key(key);
    FLASH_MODEX_FIND(rc, key, &name, &data, &size);
    if (rc != OPAL_SUCCESS) {
        return NULL;
    }
    modex = data;
    if (size < sizeof(*modex) || size - sizeof(*modex) != modex->address_bytes) {
        free(data);
        return NULL;
    }
    return modex;
}

bool mca_coll_flash_modex_is_near(const mca_coll_flash_modex_t *modex, const opal_proc_t *proc)
{
    return proc != NULL && modex != NULL && OPAL_PROC_ON_LOCAL_NODE(proc->proc_flags) &&
           modex->pid_space != 0 && modex->pid_space == pid_space();
}

flash_process_t mca_coll_flash_modex_process(const mca_coll_flash_modex_t *modex)
{
    return (flash_process_t){.pid = (pid_t) modex->pid,
                             .at = (const uint64_t *) (uintptr_t) modex->shm.address,
                             .number = modex->shm.inode};
}
