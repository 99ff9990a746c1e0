/*
 * pmix_fails.c: a library that is loaded before PMIx's into a rank, for which PMIx does not tell
 * the releases of flash that other processes have. FLASH_TEST_PMIX: "STATUS" for those of all, or
 * "STATUS RANK" for that one's; "STATUS size": instead, it does not tell how many ranks the job has, but once,
 * to Open MPI.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES_OF_NAMESPACE = 256 }; /* in a pmix_proc_t, in front of its rank */

typedef int get_fn(const void *process, const char *key, const void *info, size_t count,
                   void **value);

int PMIx_Get(const void *process, const char *key, const void *info, size_t count, void **value);

/* PMIx_Get is called by one thread in MPI_Init. */
static int size_fails(const char *told, const char *key)
{
    static int calls;

    return strcmp(key, "pmix.job.size") == 0 && ++calls > 1 ? atoi(told) : 0;
}

static int fails(const void *process, const char *key)
{
    const char *told = getenv("FLASH_TEST_PMIX");
    unsigned which = UINT32_MAX;
    uint32_t rank;
    int status;

    if (told != NULL && key != NULL && strstr(told, "size") != NULL) {
        return size_fails(told, key);
    }
    if (told == NULL || process == NULL || key == NULL || strcmp(key, "coll_flash_release") != 0 ||
        sscanf(told, "%d %u", &status, &which) < 1) {
        return 0;
    }
    memcpy(&rank, (const char *) process + BYTES_OF_NAMESPACE, sizeof(rank));
    return which == UINT32_MAX || which == rank ? status : 0;
}

int PMIx_Get(const void *process, const char *key, const void *info, size_t count, void **value)
{
    int status = fails(process, key);
    void *library = dlopen("libpmix.so.2", RTLD_LAZY | RTLD_NOLOAD);
    get_fn *real = (get_fn *) (uintptr_t) dlsym(library, "PMIx_Get");

    if (status != 0) {
        fprintf(stderr, "FLASH_TEST_PMIX: %s is not told\n", key);
    }
    return status != 0 ? status : real(process, key, info, count, value);
}
