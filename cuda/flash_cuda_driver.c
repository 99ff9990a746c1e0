/*
 * flash_cuda_driver.c: see flash_cuda_driver.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "flash_cuda_driver.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>

#define STRING(name)   #name
#define EXPANDED(name) STRING(name)

/* A function's name in the driver, and its place in the table. */
static const struct {
    const char *name;
    size_t offset;
} functions[] = {
#define FUNCTION(name) {EXPANDED(name), offsetof(flash_cuda_driver_t, p_##name)},
    FLASH_CUDA_FUNCTIONS(FUNCTION)
#undef FUNCTION
};

/* Which CUDA a driver is of, as it says itself: thousands, and tens of the second number. */
static int version_of(void *library)
{
    int (*ask)(int *version);
    int version = 0;

    *(void **) &ask = dlsym(library, "cuDriverGetVersion");
    return ask != NULL && ask(&version) == 0 ? version : 0;
}

static const char *tell_missing(void *library, const char *function)
{
    static char text[192];
    int version = version_of(library);

    snprintf(text, sizeof(text),
             "CUDA's driver (of CUDA %d.%d) is too old: it has no %s. flash needs that of "
             "CUDA " FLASH_CUDA_LEAST " or later",
             version / 1000, version % 1000 / 10, function);
    return text;
}

bool flash_cuda_driver_find(flash_cuda_driver_t *driver, const char **reason)
{
    void *library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);

    if (library == NULL) {
        *reason = "the process has not loaded CUDA's driver, libcuda.so.1";
        return false;
    }
    for (size_t k = 0; k < sizeof(functions) / sizeof(functions[0]); k++) {
        void *found = dlsym(library, functions[k].name);

        if (found == NULL) {
            *reason = tell_missing(library, functions[k].name);
            dlclose(library);
            return false;
        }
        *(void **) ((char *) driver + functions[k].offset) = found;
    }
    return true;
}
