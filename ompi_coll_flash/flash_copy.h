/*
 * flash_copy.h: copying data of any length and place at the speed of memory.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef FLASH_COPY_H
#define FLASH_COPY_H

#include <stddef.h>

/* memcpy(): the two do not overlap; NULL is fine for no bytes. Any thread. */
void flash_copy(void *to, const void *from, size_t bytes);

#endif /* FLASH_COPY_H */
