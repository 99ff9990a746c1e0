/*
 * table.c: see table.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <stdlib.h>

#include "table.h"

/* Where the key is, or would be. The room is a power of two, and never full. */
static table_entry_t *find(const table_t *table, fingerprint_t key)
{
    size_t k = key.half[0] & (table->room - 1);

    while (table->entries[k].used && (table->entries[k].key.half[0] != key.half[0] ||
                                      table->entries[k].key.half[1] != key.half[1])) {
        k = (k + 1) & (table->room - 1);
    }
    return &table->entries[k];
}

static void grow(table_t *table)
{
    table_t larger = {.count = table->count, .room = table->room == 0 ? 1024 : 2 * table->room};

    larger.entries = calloc(larger.room, sizeof(*larger.entries));
    if (larger.entries == NULL) {
        abort();
    }
    for (size_t k = 0; k < table->room; k++) {
        if (table->entries[k].used) {
            *find(&larger, table->entries[k].key) = table->entries[k];
        }
    }
    free(table->entries);
    *table = larger;
}

uint64_t table_put(table_t *table, fingerprint_t key, uint64_t value)
{
    table_entry_t *entry;

    if (2 * table->count >= table->room) {
        grow(table);
    }
    entry = find(table, key);
    if (!entry->used) {
        *entry = (table_entry_t){.key = key, .value = value, .used = true};
        table->count++;
    }
    return entry->value;
}

void table_clear(table_t *table)
{
    free(table->entries);
    *table = (table_t){0};
}
