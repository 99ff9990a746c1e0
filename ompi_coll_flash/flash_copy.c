/*
 * flash_copy.c: memcpy(), but where that is slow by the place of its arguments.
 *
 * A processor tells by the last 12 bits of an address whether a load may want what an earlier store
 * has not written yet. Where the target lies a few bytes behind the source in its page, copying
 * forwards loads what looks like what it has just stored, again and again; `rep movsb`, which the C
 * library takes for 4 KiB and more, is up to twenty times as slow then (AMD Zen 3 and 4; glibc minds
 * it from 2.40 on). Copying backwards never loads behind a store.
 *
 * It is no rare case: blocks are multiples of a page more often than not, and what is copied goes to
 * memory that has a header.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "flash_copy.h"

#include <stdint.h>
#include <string.h>

enum {
    PAGE = 4096,
    NEAR = 64,   /* bytes behind in the page that are slow */
    LINE = 256,  /* what a compiler makes a few vectors of */
    SHORT = 2048 /* not worth asking */
};

static void copy_backwards(char *to, const char *from, size_t bytes)
{
    while (bytes >= LINE) {
        bytes -= LINE;
        memcpy(to + bytes, from + bytes, LINE);
    }
    memcpy(to, from, bytes);
}

void flash_copy(void *to, const void *from, size_t bytes)
{
    size_t behind = ((uintptr_t) to - (uintptr_t) from) % PAGE;

    if (bytes >= SHORT && behind > 0 && behind < NEAR) {
        copy_backwards(to, from, bytes);
    } else if (bytes > 0) {
        memcpy(to, from, bytes);
    }
}
