/*
 * coll_flash_addresses.c: addresses of UCX workers that processes have told each other, since they
 * opened UCX after MPI_Init: see coll_flash_setup.h.
 *
 * Shared between threads: `learned` and `all` are written and read by application threads under `mutex`.
 * An address, once it is there, stays as it is until MPI_Finalize.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "job/coll_flash_modex.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef struct address {
    struct address *next; /* of all */
    size_t length;
    char bytes[];
} address_t;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static opal_hash_table_t *learned; /* vpid -> address_t; NULL: none yet */
static address_t *all;             /* of these */

void mca_coll_flash_addresses_fini(void)
{
    address_t *address;

    while ((address = all) != NULL) {
        all = address->next;
        free(address);
    }
    if (learned != NULL) {
        OBJ_RELEASE(learned); /* which also sets it to NULL */
    }
}

/* NULL: it has told none. The mutex is held. */
static address_t *find(opal_process_name_t name)
{
    void *address;

    return learned != NULL &&
                   opal_hash_table_get_value_uint32(learned, name.vpid, &address) == OPAL_SUCCESS
               ? address
               : NULL;
}

/* The mutex is held. */
static bool keep(opal_process_name_t name, address_t *address)
{
    if (learned == NULL) {
        learned = OBJ_NEW(opal_hash_table_t);
        if (learned != NULL && opal_hash_table_init(learned, 64) != OPAL_SUCCESS) {
            OBJ_RELEASE(learned);
        }
    }
    if (learned == NULL ||
        opal_hash_table_set_value_uint32(learned, name.vpid, address) != OPAL_SUCCESS) {
        return false;
    }
    address->next = all;
    all = address;
    return true;
}

bool mca_coll_flash_address_learn(opal_process_name_t name, const void *bytes, size_t length)
{
    address_t *address = malloc(sizeof(*address) + length);
    bool known, kept;

    if (address == NULL) {
        return false;
    }
    address->length = length;
    memcpy(address->bytes, bytes, length);
    pthread_mutex_lock(&mutex);
    known = find(name) != NULL;
    kept = known || keep(name, address);
    pthread_mutex_unlock(&mutex);
    if (known || !kept) {
        free(address);
    }
    return kept;
}

const void *mca_coll_flash_address_of(opal_process_name_t name, const mca_coll_flash_modex_t *modex,
                                      size_t *length)
{
    const address_t *address;

    pthread_mutex_lock(&mutex);
    address = find(name);
    pthread_mutex_unlock(&mutex);
    if (address != NULL) {
        *length = address->length;
        return address->bytes;
    }
    *length = modex->address_bytes;
    return modex->address_bytes > 0 ? modex + 1 : NULL;
}
