/*
 * keys_reads.c: cases of test_keys: which blocks are read where they are, and that a key does not
 * go beyond what MPI_Init has prepared.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <stdatomic.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "keys.h"
#include "mpitest.h"
#include "pvars.h"

enum { SMALL = 64, LONG = 64 << 10 }; /* bytes */

static atomic_uint
    reads; /* of blocks: these are read together with a number, see flash_process.c */

/* Stands in for the C library's. */
ssize_t process_vm_readv(pid_t pid, const struct iovec *here, unsigned long count_here,
                         const struct iovec *there, unsigned long count_there, unsigned long flags)
{
    if (count_there == 2 && there[1].iov_len == sizeof(uint64_t)) {
        atomic_fetch_add_explicit(&reads, 1, memory_order_relaxed);
    }
    return syscall(SYS_process_vm_readv, (long) pid, here, count_here, there, count_there, flags);
}

bool keys_memory_is_readable(void)
{
    const struct place {
        int64_t pid, address;
    } mine = {.pid = getpid(), .address = (int64_t) (uintptr_t) &world_rank};
    struct place *all = get_memory((size_t) world_size * sizeof(*all));
    int found = -1, right = (world_rank + 1) % world_size, good;
    struct iovec here = {.iov_base = &found, .iov_len = sizeof(found)}, there = here;

    MPI_Allgather(&mine, sizeof(mine), MPI_BYTE, all, sizeof(mine), MPI_BYTE, MPI_COMM_WORLD);
    there.iov_base = (void *) (uintptr_t) all[right].address;
    good = process_vm_readv((pid_t) all[right].pid, &here, 1, &there, 1, 0) == sizeof(found) &&
           found == right;
    MPI_Allreduce(MPI_IN_PLACE, &good, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    free(all);
    return good;
}

static unsigned reads_with(MPI_Comm comm, const char *shm, int bytes)
{
    unsigned before = atomic_load(&reads), found;

    keys_set(comm, "shm", shm);
    keys_gather(comm, bytes);
    found = atomic_load(&reads) - before;
    MPI_Allreduce(MPI_IN_PLACE, &found, 1, MPI_UNSIGNED, MPI_SUM, MPI_COMM_WORLD);
    return found;
}

/* Which blocks are read where they are. */
void keys_read_blocks(void)
{
    MPI_Comm comm = keys_dup_that_passes_on();

    keys_set(comm, "algorithm", "shm");
    if (keys_memory_is_readable()) {
        check(reads_with(comm, "read", SMALL) > 0, "read: no block is read");
        check(reads_with(comm, "copy", LONG) == 0, "copy: blocks are read");
        check(reads_with(comm, "auto", BLOCK) == 0, "auto: small blocks are read");
        check((reads_with(comm, "auto", LONG) > 0) == (world_size == 2),
              "auto: %d ranks' long blocks are%s read", world_size, world_size == 2 ? " not" : "");
    }
    MPI_Comm_free(&comm);
}

/* The parameter is coll_flash_shm copy. */
static void exceed_limits(void)
{
    MPI_Comm comm = keys_dup_that_passes_on();

    keys_open_counters();
    keys_set(comm, "algorithm", "shm");
    check(reads_with(comm, "read", BLOCK) == 0, "blocks are read, against the parameter");
    check(keys_way_of(comm, GATHER, BLOCK) == SHM, "the key of shared memory is not heard");
    keys_close_counters();
    MPI_Comm_free(&comm);
}

void keys_limits(void)
{
    pvars_with(exceed_limits);
}
