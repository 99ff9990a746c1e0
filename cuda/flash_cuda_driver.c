/*
 * flash_cuda_driver.c: see flash_cuda_driver.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "flash_cuda_driver.h"

#include <dlfcn.h>
#include <stddef.h>

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

bool flash_cuda_driver_find(flash_cuda_driver_t *driver)
{
    void *library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);

    if (library == NULL) {
        return false;
    }
    for (size_t k = 0; k < sizeof(functions) / sizeof(functions[0]); k++) {
        void *found = dlsym(library, functions[k].name);

        if (found == NULL) {
            dlclose(library);
            return false;
        }
        *(void **) ((char *) driver + functions[k].offset) = found;
    }
    return true;
}
