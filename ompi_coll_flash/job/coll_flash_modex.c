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
static void name_key(char key[MODEX_KEY_MAX], const char *what)
{
    snprintf(key, MODEX_KEY_MAX, "coll_flash%s of %s", what, mca_coll_flash_release());
}

#define PLACE_KEY " place"
#define MODEX_KEY ""

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

static void publish_place(mca_coll_flash_shm_memory_t shm)
{
    mca_coll_flash_place_t place;
    char key[MODEX_KEY_MAX];
    int rc;

    memset(&place, 0, sizeof(place)); /* with what lies between its fields */
    flash_affinity_binding(place.binding);
    place.pid = (int32_t) getpid();
    place.pid_space = pid_space();
    place.shm = shm;
    name_key(key, PLACE_KEY);
    FLASH_MODEX_SEND(rc, FLASH_MODEX_NODE, key, &place, sizeof(place));
    (void) rc; /* there is no shared memory then, and no progress thread is bound */
}

void mca_coll_flash_modex_publish(flash_transport_t *transport, mca_coll_flash_shm_memory_t shm)
{
    size_t address_bytes = 0, size;
    const void *address = NULL;
    mca_coll_flash_modex_t *modex;
    char key[MODEX_KEY_MAX];
    int rc;

    publish_place(shm);
    if (transport != NULL) {
        address = mca_coll_flash_ucx()->address(transport, &address_bytes);
    }
    size = sizeof(*modex) + address_bytes;
    modex = calloc(1, size);
    if (modex == NULL) {
        return; /* peers find no modex record, and the agreement fails */
    }
    modex->networks = mca_coll_flash_networks_find();
    modex->address_bytes = (uint32_t) address_bytes;
    if (address_bytes > 0) {
        memcpy(modex + 1, address, address_bytes);
    }
    name_key(key, MODEX_KEY);
    has_address = address_bytes > 0;
    FLASH_MODEX_SEND(rc, FLASH_MODEX_JOB, key, modex, size);
    (void) rc; /* likewise */
    free(modex);
}

/* To be freed; NULL: nothing was published. */
static void *fetch(opal_process_name_t name, const char *what, size_t *size)
{
    char key[MODEX_KEY_MAX];
    void *data = NULL;
    int rc;

    name_key(key, what);
    FLASH_MODEX_RECV(rc, key, &name, &data, size);
    return rc == OPAL_SUCCESS ? data : NULL;
}

mca_coll_flash_modex_t *mca_coll_flash_modex_fetch(opal_process_name_t name)
{
    size_t size = 0;
    mca_coll_flash_modex_t *modex = fetch(name, MODEX_KEY, &size);

    if (modex != NULL && (size < sizeof(*modex) || size - sizeof(*modex) != modex->address_bytes)) {
        free(modex);
        return NULL;
    }
    return modex;
}

mca_coll_flash_place_t *mca_coll_flash_place_fetch(opal_process_name_t name)
{
    size_t size = 0;
    mca_coll_flash_place_t *place = fetch(name, PLACE_KEY, &size);

    if (place != NULL && size != sizeof(*place)) {
        free(place);
        return NULL;
    }
    return place;
}

bool mca_coll_flash_place_is_near(const mca_coll_flash_place_t *place)
{
    return place != NULL && place->pid_space != 0 && place->pid_space == pid_space();
}

flash_process_t mca_coll_flash_place_process(const mca_coll_flash_place_t *place)
{
    return (flash_process_t){.pid = (pid_t) place->pid,
                             .at = (const uint64_t *) (uintptr_t) place->shm.address,
                             .number = place->shm.inode};
}
