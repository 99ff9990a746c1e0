/*
 * flash_copy.h: copying data, without the places in memory at which memcpy() is slow.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef FLASH_COPY_H
#define FLASH_COPY_H

#include <stddef.h>

/* Bytes: what decides is an address modulo this, whatever the kernel's pages are. */
#define FLASH_PAGE 4096

/* memcpy(): the two do not overlap; NULL is fine for no bytes. Any thread. */
void flash_copy(void *to, const void *from, size_t bytes);

#endif /* FLASH_COPY_H */
