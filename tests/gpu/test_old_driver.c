/*
 * test_old_driver.c: what the plugin says where there is no driver, and where it is too old.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../unit/tap.h"
#include "flash_gpu.h"

static void *load(const char *format)
{
    const char *build = getenv("top_builddir");
    char path[PATH_MAX];
    void *library;

    snprintf(path, sizeof(path), format, build == NULL ? "../.." : build);
    library = dlopen(path, RTLD_NOW);
    if (library == NULL) {
        printf("Bail out! %s\n", dlerror());
        exit(EXIT_FAILURE);
    }
    return library;
}

static flash_gpu_plugin_fn *ask;
static const char *reason;

/* Whether there is no table, and why. */
static bool is_refused(void)
{
    reason = "";
    return ask(&reason) == NULL;
}

static bool says(const char *what)
{
    return strstr(reason, what) != NULL;
}

int main(void)
{
    *(void **) &ask = dlsym(load("%s/cuda/.libs/flash_cuda.so"), FLASH_GPU_SYMBOL);
    if (ask == NULL) {
        printf("Bail out! the plugin\n");
        return EXIT_FAILURE;
    }
    ok(is_refused() && says("not loaded CUDA's driver"), "no driver");
    load("%s/tests/gpu/old/.libs/libcuda.so.1");
    ok(is_refused() && says("of CUDA 11.8"), "an old one: which");
    ok(says("it has no cuCtxGetId"), "what it lacks");
    ok(says("CUDA 12.0 (525.60) or later"), "and which one has it");
    return tap_done();
}
