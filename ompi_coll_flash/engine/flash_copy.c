/*
 * flash_copy.c: memcpy(), but where that is slow by the place of its arguments.
 *
 * Where the target lies 1 to 31 bytes behind the source in its page, `rep movsb`, which the C
 * library takes from some 2 KiB up to the size of a cache, is up to twenty times as slow as
 * elsewhere: seen on an AMD EPYC of family 25 (Zen 3) with glibc 2.36. Copying from the last lines
 * to the first is not: presumably loads look then like no store before them by the last bits of
 * their addresses.
 *
 * It is no rare case: blocks are multiples of a page more often than not, and what is copied goes
 * to memory that has a header.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "engine/flash_copy.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum {
    NEAR = 32,      /* bytes behind in the page from which on nothing is slow */
    SHORT = 2048,   /* bytes that are copied otherwise by the C library */
    LONG = 1 << 20, /* likewise */
    LINES = 256     /* what a compiler makes a few vectors of */
};

static void copy_backwards(char *to, const char *from, size_t bytes)
{
    while (bytes >= LINES) {
        bytes -= LINES;
        memcpy(to + bytes, from + bytes, LINES);
    }
    memcpy(to, from, bytes);
}

static bool is_slow(const void *to, const void *from, size_t bytes)
{
#ifdef __x86_64__
    size_t behind = ((uintptr_t) to - (uintptr_t) from) % FLASH_PAGE;

    return bytes > SHORT && bytes < LONG && behind > 0 && behind < NEAR;
#else
    (void) to, (void) from, (void) bytes;
    return false;
#endif
}

void flash_copy(void *to, const void *from, size_t bytes)
{
    if (is_slow(to, from, bytes)) {
        copy_backwards(to, from, bytes);
    } else if (bytes > 0) {
        memcpy(to, from, bytes);
    }
}
