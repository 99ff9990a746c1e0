/*
 * table.h: what an exploration remembers: 128-bit fingerprints, each with a number.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef TABLE_H
#define TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "prng.h"

/* Of a sequence of numbers: two that differ have, but for a chance of about 2^-128, others. */
typedef struct fingerprint {
    uint64_t half[2];
} fingerprint_t;

static inline void fingerprint_add(fingerprint_t *print, uint64_t number)
{
    uint64_t a = (print->half[0] ^ number) * UINT64_C(0xbf58476d1ce4e5b9);
    uint64_t b = (print->half[1] + number + 1) * UINT64_C(0x94d049bb133111eb);

    print->half[0] = a ^ a >> 32;
    print->half[1] = b ^ b >> 29;
}

/* Of a set, whose members have no order: the sum of theirs. */
static inline void fingerprint_add_to_set(fingerprint_t *set, fingerprint_t member)
{
    set->half[0] += member.half[0];
    set->half[1] += member.half[1];
}

typedef struct table_entry {
    fingerprint_t key;
    uint64_t value;
    bool used;
} table_entry_t;

/* All zeros: an empty one. */
typedef struct table {
    table_entry_t *entries;
    size_t count, room;
} table_t;

/* The number that is kept with `key`: `value` from now on if there was none. */
uint64_t table_put(table_t *table, fingerprint_t key, uint64_t value);
void table_clear(table_t *table);

#endif /* TABLE_H */
