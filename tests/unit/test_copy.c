/*
 * test_copy.c: every byte is copied, and none beside them, for all places of source and target in
 * their pages that matter, and lengths about those from which on it may go backwards.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <string.h>

#include "engine/flash_copy.h"
#include "tap.h"

enum { PAGE = 4096, MOST = 3 * PAGE, ROOM = MOST + 2 * PAGE };

static _Alignas(PAGE) unsigned char source[ROOM], target[ROOM];

static bool copies(size_t from, size_t to, size_t bytes)
{
    memset(target, 0xee, sizeof(target));
    flash_copy(target + to, source + from, bytes);
    for (size_t i = 0; i < ROOM; i++) {
        bool inside = i >= to && i < to + bytes;

        if (target[i] != (inside ? source[from + i - to] : 0xee)) {
            return false;
        }
    }
    return true;
}

static bool copies_all(size_t from, size_t bytes)
{
    static const size_t places[] = {0, 1, 8, 16, 31, 32, 63, 64, 65, 2048, PAGE - 16, PAGE - 1};
    bool good = true;

    for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
        good &= copies(from, (from + places[i]) % PAGE, bytes);
    }
    return good;
}

int main(void)
{
    static const size_t lengths[] = {0,    1,    255,  256,  257,      2047,     2048,
                                     2049, 2303, 2304, 4096, PAGE + 1, 2 * PAGE, MOST};

    for (size_t i = 0; i < ROOM; i++) {
        source[i] = (unsigned char) (i * 7 + i / 251); /* no period that a mistake could have */
    }
    for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
        bool good = true;

        for (size_t from = 0; from < PAGE; from += 509) {
            good &= copies_all(from, lengths[i]);
        }
        ok(good, "%zu bytes", lengths[i]);
    }
    flash_copy(NULL, NULL, 0); /* a sanitizer would complain */
    return tap_done();
}
