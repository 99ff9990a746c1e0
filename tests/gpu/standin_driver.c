/*
 * standin_driver.c: in the place of CUDA's driver, where there is none: as much of its interface as
 * the tests need. Its "device" memory is mapped without access: the host that touches it dies.
 *
 * Written from the documentation of the CUDA Driver API. Not for threads.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

enum { SUCCESS = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2 };
enum { MEMORY_TYPE = 2, IS_MANAGED = 8 };
enum { TYPE_DEVICE = 2 };
enum { MOST = 64 };

static struct {
    char *begin;
    size_t size;
    bool managed;
} allocations[MOST];

static int allocate(unsigned long long *address, size_t size, bool managed)
{
    int access = managed ? PROT_READ | PROT_WRITE : PROT_NONE;

    for (int k = 0; k < MOST; k++) {
        if (allocations[k].begin == NULL) {
            char *begin = mmap(NULL, size, access, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

            if (begin == MAP_FAILED) {
                return OUT_OF_MEMORY;
            }
            allocations[k].begin = begin;
            allocations[k].size = size;
            allocations[k].managed = managed;
            *address = (uintptr_t) begin;
            return SUCCESS;
        }
    }
    return OUT_OF_MEMORY;
}

static int find(unsigned long long address)
{
    for (int k = 0; k < MOST; k++) {
        uintptr_t begin = (uintptr_t) allocations[k].begin;

        if (begin != 0 && address >= begin && address < begin + allocations[k].size) {
            return k;
        }
    }
    return -1;
}

int cuMemAlloc_v2(unsigned long long *address, size_t size)
{
    return allocate(address, size, false);
}

int cuMemAllocManaged(unsigned long long *address, size_t size, unsigned flags)
{
    (void) flags;
    return allocate(address, size, true);
}

int cuMemFree_v2(unsigned long long address)
{
    int k = find(address);

    if (k < 0) {
        return INVALID_VALUE;
    }
    munmap(allocations[k].begin, allocations[k].size);
    allocations[k].begin = NULL;
    return SUCCESS;
}

int cuPointerGetAttribute(void *answer, int attribute, unsigned long long address)
{
    int k = find(address);

    if (k < 0 || (attribute != MEMORY_TYPE && attribute != IS_MANAGED)) {
        return INVALID_VALUE;
    }
    *(unsigned *) answer = attribute == MEMORY_TYPE ? TYPE_DEVICE : allocations[k].managed;
    return SUCCESS;
}
