/*
 * flash_process.c: see flash_process.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "flash_process.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "flash_transport.h"

static int open_handle(pid_t pid)
{
#ifdef SYS_pidfd_open
    return (int) syscall(SYS_pidfd_open, pid, 0); /* closed by exec(2) */
#else
    (void) pid;
    return -1;
#endif
}

flash_process_t flash_process_open(pid_t pid)
{
    return (flash_process_t){.pid = pid, .handle = open_handle(pid)};
}

flash_process_t flash_process_none(void)
{
    return (flash_process_t){.pid = 0, .handle = -1};
}

void flash_process_close(flash_process_t *process)
{
    if (process->handle >= 0) {
        close(process->handle);
    }
    *process = flash_process_none();
}

bool flash_process_is_gone(const flash_process_t *process)
{
    struct pollfd ended = {.fd = process->handle, .events = POLLIN};

    if (process->handle < 0) {
        return process->pid == 0 || (kill(process->pid, 0) != 0 && errno == ESRCH);
    }
    return poll(&ended, 1, 0) > 0;
}

static bool copy(pid_t pid, char *to, const char *from, size_t bytes)
{
    while (bytes > 0) {
        struct iovec here = {.iov_base = to, .iov_len = bytes};
        struct iovec there = {.iov_base = (void *) (uintptr_t) from, .iov_len = bytes};
        ssize_t some = process_vm_readv(pid, &here, 1, &there, 1, 0);

        if (some <= 0) {
            return false;
        }
        to += some;
        from += some;
        bytes -= (size_t) some;
    }
    return true;
}

int flash_process_read(const flash_process_t *process, void *to, const void *from, size_t bytes)
{
    bool copied = copy(process->pid, to, from, bytes);

    if (flash_process_is_gone(process)) {
        return FLASH_ERR_LOST;
    }
    return copied ? FLASH_OK : FLASH_ERR_UNREADABLE;
}

bool flash_process_may_be_read(const flash_process_t *process, const void *at, uint64_t number)
{
    uint64_t found;

    return process->handle >= 0 &&
           flash_process_read(process, &found, at, sizeof(found)) == FLASH_OK && found == number;
}
