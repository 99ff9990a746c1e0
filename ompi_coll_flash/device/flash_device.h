/*
 * flash_device.h: whether memory is a device's, so that the host must not touch it.
 *
 * Knows no MPI, and CUDA by its driver's interface alone: nothing links it, and a process that has
 * not loaded it has no such memory. Any thread may call this.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef FLASH_DEVICE_H
#define FLASH_DEVICE_H

#include <stdbool.h>

/* Whether the process may have such memory; takes next to no time. */
bool flash_device_any(void);
/* Managed memory, which the host may touch, and pinned memory are not a device's. */
bool flash_device_owns(const void *address);
/*
 * Whether a process that has devices would die from touching it, though no device owns it. Takes a
 * call of the system; false where that is forbidden.
 */
bool flash_device_gone(const void *address);

#endif /* FLASH_DEVICE_H */
