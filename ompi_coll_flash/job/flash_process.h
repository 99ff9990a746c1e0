/*
 * flash_process.h: another process of this node: whether it is there, and its memory. Knows no MPI.
 *
 * Any thread may call these.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef FLASH_PROCESS_H
#define FLASH_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A process that has a number which no other process has at that address. */
typedef struct flash_process {
    pid_t pid;
    const uint64_t *at;
    uint64_t number; /* 0: not known */
    uint64_t began;  /* when, as the kernel counts; 0: not known */
} flash_process_t;

/*
 * Finds out when the process began, if its number is there now: later it may have no use for it.
 * Returns flash_process_may_be_read().
 */
bool flash_process_meet(flash_process_t *process);

/*
 * Whether the process runs no more, be it waited for or not. False if another process has got its
 * pid since, and that one's memory cannot be read, or the number is not known. A process that has
 * given the number's memory to something else is there if it has been met.
 */
bool flash_process_is_gone(const flash_process_t *process);

/*
 * Copies `bytes` of its memory at `from` to `to` (process_vm_readv(2)), 1 GiB at most. The kernel
 * asks for what lets a debugger attach: the same user, and whatever the system demands beyond.
 * FLASH_OK: all of them were its own. FLASH_ERR_LOST: it has ended, another process may have its
 * number. FLASH_ERR_UNREADABLE: it may not be read, or there is no memory at one of the two places,
 * or one that processors reach and the kernel does not (of a device, say).
 */
int flash_process_read(const flash_process_t *process, void *to, const void *from, size_t bytes);

/* Whether its memory can be read: that number. */
bool flash_process_may_be_read(const flash_process_t *process);

#endif /* FLASH_PROCESS_H */
