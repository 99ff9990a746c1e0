/*
 * flash_process.c: see flash_process.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "flash_process.h"

#include <errno.h>
#include <signal.h>
#include <sys/uio.h>

#include "flash_transport.h"

/* What is at the address of the number, or -1 and errno. */
static ssize_t read_number(const flash_process_t *process, uint64_t *found)
{
    struct iovec here = {.iov_base = found, .iov_len = sizeof(*found)};
    struct iovec there = {.iov_base = (void *) (uintptr_t) process->at, .iov_len = sizeof(*found)};

    return process_vm_readv(process->pid, &here, 1, &there, 1, 0);
}

/* Until somebody has waited for it, a process that has ended has its number, and no memory. */
bool flash_process_is_gone(const flash_process_t *process)
{
    uint64_t found;
    ssize_t length;

    if (kill(process->pid, 0) != 0 && errno == ESRCH) {
        return true;
    }
    length = read_number(process, &found);
    return length < 0 ? errno == ESRCH
                      : length == (ssize_t) sizeof(found) && found != process->number;
}

static int cause(const flash_process_t *process)
{
    return flash_process_is_gone(process) ? FLASH_ERR_LOST : FLASH_ERR_UNREADABLE;
}

/* One call finds one process: that which has the number is that which has the rest. */
int flash_process_read(const flash_process_t *process, void *to, const void *from, size_t bytes)
{
    uint64_t found = 0;
    struct iovec here[] = {{.iov_base = to, .iov_len = bytes},
                           {.iov_base = &found, .iov_len = sizeof(found)}};
    struct iovec there[] = {
        {.iov_base = (void *) (uintptr_t) from, .iov_len = bytes},
        {.iov_base = (void *) (uintptr_t) process->at, .iov_len = sizeof(found)}};

    if (process_vm_readv(process->pid, here, 2, there, 2, 0) == (ssize_t) (bytes + sizeof(found)) &&
        found == process->number) {
        return FLASH_OK;
    }
    return cause(process);
}

bool flash_process_may_be_read(const flash_process_t *process)
{
    uint64_t found;

    return read_number(process, &found) == (ssize_t) sizeof(found) && found == process->number;
}
