/*
 * mid_send.c: see mid_send.h. Without <string.h>, whose memcpy() may be another one.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "mid_send.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>

void *memmove(void *to, const void *from, size_t bytes);
char *strstr(const char *text, const char *part);

static atomic_bool armed; /* relaxed: whoever copies next */

void die_mid_send(void)
{
    atomic_store_explicit(&armed, true, memory_order_relaxed);
}

static bool is_transport(const void *code)
{
    Dl_info library;

    return dladdr(code, &library) != 0 && strstr(library.dli_fname, "libuct") != NULL;
}

/* Not restrict: memmove() would be this one. */
void *memcpy(void *to, const void *from, size_t bytes)
{
    if (atomic_load_explicit(&armed, memory_order_relaxed) &&
        is_transport(__builtin_return_address(0))) {
        raise(SIGKILL);
    }
    return memmove(to, from, bytes);
}
