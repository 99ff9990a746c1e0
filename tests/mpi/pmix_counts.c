/*
 * pmix_counts.c: a library that is loaded before PMIx's into a rank: at the rank's end it tells how often
 * flash has asked PMIx for something of another process, how many bytes it has published, for its
 * node alone and for all, and how often it would have waited for a release that is never published.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { FOR_THE_NODE = 1, BYTES = 27 }; /* PMIX_LOCAL, PMIX_BYTE_OBJECT */

typedef struct value {
    uint16_t type;
    union {
        struct {
            char *bytes;
            size_t size;
        } bytes;
        uint64_t others[4];
    } data;
} value_t;

typedef int get_fn(const void *process, const char *key, const void *info, size_t count,
                   void **value);
typedef int put_fn(uint8_t scope, const char *key, value_t *value);

int PMIx_Get(const void *process, const char *key, const void *info, size_t count, void **value);
int PMIx_Put(uint8_t scope, const char *key, value_t *value);

/* By any thread; nothing is ordered by them. */
static atomic_uint lookups, patient;
static atomic_size_t published[2]; /* for the node, for all */

static void *real(const char *name)
{
    return dlsym(dlopen("libpmix.so.2", RTLD_LAZY | RTLD_NOLOAD), name);
}

static int is_flashs(const char *key)
{
    return key != NULL && strncmp(key, "coll_flash", strlen("coll_flash")) == 0;
}

int PMIx_Get(const void *process, const char *key, const void *info, size_t count, void **value)
{
    get_fn *get = (get_fn *) (uintptr_t) real("PMIx_Get");

    if (is_flashs(key)) {
        atomic_fetch_add_explicit(&lookups, 1, memory_order_relaxed);
    }
    /* A pmix_info_t begins with its key; this one is PMIX_IMMEDIATE. */
    if (key != NULL && strcmp(key, "coll_flash_release") == 0 &&
        (count == 0 || strcmp(info, "pmix.immediate") != 0)) {
        atomic_fetch_add_explicit(&patient, 1, memory_order_relaxed);
    }
    return get(process, key, info, count, value);
}

int PMIx_Put(uint8_t scope, const char *key, value_t *value)
{
    put_fn *put = (put_fn *) (uintptr_t) real("PMIx_Put");

    if (is_flashs(key) && value->type == BYTES) {
        atomic_fetch_add_explicit(&published[scope != FOR_THE_NODE], value->data.bytes.size,
                                  memory_order_relaxed);
    }
    return put(scope, key, value);
}

__attribute__((destructor)) static void tell(void)
{
    size_t node = atomic_load_explicit(&published[0], memory_order_relaxed);

    if (node > 0) { /* a rank, and not what starts one */
        fprintf(stderr,
                "FLASH_TEST_PMIX: %u lookups, %zu bytes for the node, %zu for all, %u patient\n",
                atomic_load_explicit(&lookups, memory_order_relaxed), node,
                atomic_load_explicit(&published[1], memory_order_relaxed),
                atomic_load_explicit(&patient, memory_order_relaxed));
    }
}
