/*
 * flash_process.c: see flash_process.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "job/flash_process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "engine/flash_transport.h"

/* What is at the address of the number, or -1 and errno. */
static ssize_t read_number(const flash_process_t *process, uint64_t *found)
{
    struct iovec here = {.iov_base = found, .iov_len = sizeof(*found)};
    struct iovec there = {.iov_base = (void *) (uintptr_t) process->at, .iov_len = sizeof(*found)};

    return process_vm_readv(process->pid, &here, 1, &there, 1, 0);
}

/* Unknown is yes. Of a thread without memory its size in pages is 0. */
static bool thread_has_memory(pid_t pid, const char *thread)
{
    char path[64], size[2] = "";
    int file;
    ssize_t length;

    snprintf(path, sizeof(path), "/proc/%d/task/%.20s/statm", (int) pid, thread);
    file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return errno != ENOENT && errno != ESRCH;
    }
    length = read(file, size, sizeof(size));
    close(file);
    return length != (ssize_t) sizeof(size) || memcmp(size, "0 ", sizeof(size)) != 0;
}

/*
 * A process that has ended keeps its pid until its parent has waited for it, but no thread of it
 * has memory. The first thread alone tells nothing: it may end, by pthread_exit(), before the
 * others.
 */
static bool has_memory(pid_t pid)
{
    char path[32];
    const struct dirent *entry;
    DIR *threads;
    bool found = false;

    snprintf(path, sizeof(path), "/proc/%d/task", (int) pid);
    threads = opendir(path);
    if (threads == NULL) {
        return true;
    }
    while (!found && (entry = readdir(threads)) != NULL) {
        found = entry->d_name[0] != '.' && thread_has_memory(pid, entry->d_name);
    }
    closedir(threads);
    return found;
}

/* 0: not to be had. Field 22 of its line, of which the second, in parentheses, may be anything. */
static uint64_t began(pid_t pid)
{
    enum { FIELDS_BEHIND_NAME = 20 };
    char path[32], line[512];
    const char *at;
    ssize_t length;
    int file;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int) pid);
    file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return 0;
    }
    length = read(file, line, sizeof(line) - 1);
    close(file);
    line[length > 0 ? length : 0] = '\0';
    at = strrchr(line, ')');
    for (int field = 0; at != NULL && field < FIELDS_BEHIND_NAME; field++) {
        at = strchr(at + 1, ' ');
    }
    return at == NULL ? 0 : strtoull(at, NULL, 10);
}

bool flash_process_meet(flash_process_t *process)
{
    uint64_t then = began(process->pid);
    bool readable = flash_process_may_be_read(process);

    process->began = readable ? then : 0;
    return readable;
}

bool flash_process_is_gone(const flash_process_t *process)
{
    uint64_t found;

    if (kill(process->pid, 0) != 0 && errno == ESRCH) {
        return true;
    }
    if (process->number != 0 && read_number(process, &found) == (ssize_t) sizeof(found)) {
        if (found == process->number) {
            return false;
        }
        /* Another process; or this one, which has closed what had the number, and uses its memory
           again. */
        if (process->began == 0 || began(process->pid) != process->began) {
            return true;
        }
    }
    /* Twice: a thread that ended while they were listed may have left another one behind. */
    return !has_memory(process->pid) && !has_memory(process->pid);
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
