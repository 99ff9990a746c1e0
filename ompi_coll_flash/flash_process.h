/*
 * flash_process.h: another process of this node: whether it is there, and its memory. Knows no MPI.
 *
 * Any thread may call these; a flash_process_t does not change between open and close.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#ifndef FLASH_PROCESS_H
#define FLASH_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct flash_process {
    pid_t pid;
    int handle; /* of pidfd_open(2), which means this process alone; -1: the system has none */
} flash_process_t;

/* One that is there. Without a handle, another one that gets its number later is taken for it. */
flash_process_t flash_process_open(pid_t pid);
/* No process: is gone, cannot be read. */
flash_process_t flash_process_none(void);
void flash_process_close(flash_process_t *process);

bool flash_process_is_gone(const flash_process_t *process);

/*
 * Whether its memory can be read, where that number has to be found at that address. The kernel asks
 * for what lets a debugger attach: the same user, and whatever the system demands beyond.
 */
bool flash_process_may_be_read(const flash_process_t *process, const void *at, uint64_t number);

/*
 * Copies `bytes` of its memory at `from` to `to` (process_vm_readv(2)): they were all its own, and the
 * process was there to the end. FLASH_OK; FLASH_ERR_LOST; FLASH_ERR_UNREADABLE: there is no memory at
 * one of the two, or one that processors reach and the kernel does not (of a device, say).
 */
int flash_process_read(const flash_process_t *process, void *to, const void *from, size_t bytes);

#endif /* FLASH_PROCESS_H */
