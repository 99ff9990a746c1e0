/*
 * plugin.c: see plugin.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "plugin.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

static void end(const char *why)
{
    printf("Bail out! %s\n", why);
    exit(EXIT_FAILURE);
}

void *plugin_load_library(const char *path)
{
    const char *build = getenv("top_builddir");
    char whole[PATH_MAX];
    void *library;

    snprintf(whole, sizeof(whole), "%s/%s", build == NULL ? "../.." : build, path);
    library = dlopen(whole, RTLD_NOW);
    if (library == NULL) {
        end(dlerror());
    }
    return library;
}

flash_gpu_plugin_fn *plugin_load(void)
{
    flash_gpu_plugin_fn *ask = NULL;

    *(void **) &ask = dlsym(plugin_load_library("cuda/.libs/flash_cuda.so"), FLASH_GPU_SYMBOL);
    if (ask == NULL) {
        end("the plugin is of another version of flash");
    }
    return ask;
}
