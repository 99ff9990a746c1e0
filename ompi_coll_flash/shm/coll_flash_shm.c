/*
 * coll_flash_shm.c: the memory of shared-memory channels: each process' own, and finding that of
 * others.
 *
 * A process' sides are in a file without a name (memfd_create(2)), which others of the same user
 * open, for reading, by its owner's descriptor: it needs no room in /dev/shm, leaves nothing behind
 * when a job is killed, and takes the memory that is used. Each communicator's number has a side
 * there; coll_flash_shm_calls.c sees to it that a number is not used again too early. Behind the
 * sides of the node's first process lies a table for all of the node (ring/coll_flash_seats.c).
 *
 * Written in MPI_Init and MPI_Finalize only, but for what is said to have a lock.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include "shm/coll_flash_shm.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* Communicators whose number is lower may have one: 16 MiB of addresses for each process. */
#define CHANNELS    64
#define SIDES_BYTES (CHANNELS * sizeof(flash_shm_side_t))

/* What is known of a process of this node. */
typedef struct neighbour {
    uint32_t rank;           /* of MPI_COMM_WORLD */
    flash_shm_side_t *area;  /* its sides, and its table */
    flash_process_t process; /* of this one without the address */
} neighbour_t;

static struct {
    int descriptor; /* -1: none, for that reason */
    int error;
    uint64_t inode; /* of the file: for others to find here */
    size_t bytes;   /* of a file, of which all are alike */
    size_t count;
    neighbour_t *neighbours; /* `count`, by rank; NULL: not met */
    bool may_read;           /* the memory of all of them */
    bool used;
    bool told_unreadable; /* under the lock of the channels */
} node = {.descriptor = -1};

/* Whether a file may be that long: beyond the limit the system would end the process by a signal. */
static bool is_allowed(size_t bytes)
{
    struct rlimit limit;

    errno = EFBIG;
    return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
           bytes <= limit.rlim_cur;
}

/* No side is to lose its memory, by whomever. */
static bool make_area(int descriptor)
{
    return is_allowed(node.bytes) && ftruncate(descriptor, (off_t) node.bytes) == 0 &&
           fcntl(descriptor, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0;
}

static bool wanted(void)
{
    return mca_coll_flash_params.shm != FLASH_SHM_NO && mca_coll_flash_params.priority >= 0 &&
           opal_process_info.num_local_peers > 0;
}

void mca_coll_flash_shm_open(size_t table_bytes)
{
    if (!wanted()) {
        return;
    }
    node.bytes = SIDES_BYTES + table_bytes;
    node.descriptor = memfd_create("coll_flash_shm", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    node.error = errno;
    if (node.descriptor >= 0 && !make_area(node.descriptor)) {
        node.error = errno;
        close(node.descriptor);
        node.descriptor = -1;
    }
}

mca_coll_flash_shm_memory_t mca_coll_flash_shm_memory(void)
{
    mca_coll_flash_shm_memory_t memory = {.descriptor = -1};
    struct stat file;

    if (node.descriptor >= 0 && fstat(node.descriptor, &file) == 0) {
        node.inode = (uint64_t) file.st_ino;
        memory = (mca_coll_flash_shm_memory_t){.descriptor = node.descriptor,
                                               .device = (uint64_t) file.st_dev,
                                               .inode = node.inode,
                                               .address = (uint64_t) (uintptr_t) &node.inode};
    }
    return memory;
}

/* Of the table of the node's first process alone there is use. */
static size_t area_bytes(size_t neighbour)
{
    return neighbour == 0 ? node.bytes : SIDES_BYTES;
}

/* For the next one of the neighbours. */
static flash_shm_side_t *map(int descriptor, int protection)
{
    void *area = mmap(NULL, area_bytes(node.count), protection, MAP_SHARED, descriptor, 0);

    return area == MAP_FAILED ? NULL : area;
}

/* NULL: not to be had, for that reason. */
static flash_shm_side_t *find_area(const mca_coll_flash_place_t *place, const char **reason)
{
    flash_shm_side_t *area = NULL;
    struct stat file;
    char path[64];
    int descriptor;

    if (place == NULL || place->shm.descriptor < 0) {
        *reason = "a process of this node has none";
        return NULL;
    }
    if (!mca_coll_flash_place_is_near(place)) {
        *reason = "processes of this node do not see each other";
        return NULL;
    }
    snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int) place->pid, (int) place->shm.descriptor);
    descriptor = open(path, O_RDONLY | O_CLOEXEC);
    *reason = strerror(errno);
    if (descriptor < 0) {
        return NULL;
    }
    if (fstat(descriptor, &file) == 0 && (uint64_t) file.st_dev == place->shm.device &&
        (uint64_t) file.st_ino == place->shm.inode && (size_t) file.st_size == node.bytes) {
        area = map(descriptor, PROT_READ);
        *reason = strerror(errno);
    } else {
        *reason = "the file is not that one, or not as long as this process' own";
    }
    close(descriptor);
    return area;
}

/* A process of this node. */
static bool meet(neighbour_t *neighbour, const opal_proc_t *proc, const char **reason)
{
    mca_coll_flash_place_t *place = mca_coll_flash_place_fetch(proc->proc_name);

    neighbour->area = find_area(place, reason);
    if (neighbour->area != NULL) {
        neighbour->process = mca_coll_flash_place_process(place);
        if (!flash_process_meet(&neighbour->process) && node.may_read) {
            FLASH_VERBOSE(1, "coll:flash: shared memory without reading: not of process %d",
                          (int) place->pid);
            node.may_read = false;
        }
    }
    free(place);
    return neighbour->area != NULL;
}

/* This process. */
static bool meet_own(neighbour_t *neighbour, const char **reason)
{
    neighbour->process.pid = getpid();
    neighbour->area = map(node.descriptor, PROT_READ | PROT_WRITE);
    *reason = strerror(errno);
    return neighbour->area != NULL;
}

/* A rank's process, if it is one of this node. */
static const opal_proc_t *near_proc(ompi_communicator_t *world, int rank)
{
    /* Does not make the structures of remote processes: those of this node exist. */
    ompi_proc_t *proc = ompi_group_peer_lookup_existing(world->c_local_group, rank);

    return proc != NULL && (rank == ompi_comm_rank(world) ||
                            OPAL_PROC_ON_LOCAL_NODE(proc->super.proc_flags))
               ? &proc->super
               : NULL;
}

static size_t count_near(ompi_communicator_t *world)
{
    size_t count = 0;

    for (int rank = 0; rank < ompi_comm_size(world); rank++) {
        count += near_proc(world, rank) != NULL;
    }
    return count;
}

static bool meet_all(ompi_communicator_t *world, const char **reason)
{
    bool met = true;

    for (int rank = 0; rank < ompi_comm_size(world) && met; rank++) {
        const opal_proc_t *proc = near_proc(world, rank);
        neighbour_t *neighbour = &node.neighbours[node.count];

        if (proc != NULL) {
            neighbour->rank = (uint32_t) rank;
            met = rank == ompi_comm_rank(world) ? meet_own(neighbour, reason)
                                                : meet(neighbour, proc, reason);
            node.count += met;
        }
    }
    return met;
}

bool mca_coll_flash_shm_meet(ompi_communicator_t *world)
{
    const char *reason = strerror(node.error);
    bool met = false;

    node.may_read = mca_coll_flash_params.shm >= FLASH_SHM_AUTO;
    if (!wanted()) {
        return mca_coll_flash_params.shm != FLASH_SHM_NO;
    }
    if (node.descriptor >= 0) {
        node.count = 0;
        node.neighbours = calloc(count_near(world), sizeof(*node.neighbours));
        reason = "out of memory";
        met = node.neighbours != NULL && meet_all(world, &reason);
    }
    if (!met) {
        FLASH_VERBOSE(1, "coll:flash: no shared memory: %s", reason);
    }
    return met;
}

bool mca_coll_flash_shm_may_read(void)
{
    return node.may_read;
}

void *mca_coll_flash_shm_table(size_t bytes)
{
    bool fits = node.count > 0 && node.bytes - SIDES_BYTES >= bytes;

    return fits ? (char *) node.neighbours[0].area + SIDES_BYTES : NULL;
}

bool mca_coll_flash_shm_is_first(void)
{
    return node.count > 0 && node.neighbours[0].process.pid == getpid();
}

static void leave_all(void)
{
    for (size_t k = 0; k < node.count; k++) {
        munmap(node.neighbours[k].area, area_bytes(k));
    }
    free(node.neighbours);
    node.neighbours = NULL;
    node.count = 0;
}

/* Who is to map this process' has done so. */
void mca_coll_flash_shm_agree(bool used)
{
    node.used = used;
    if (node.descriptor >= 0) {
        close(node.descriptor);
        node.descriptor = -1;
    }
    if (!used) {
        leave_all();
    }
}

void mca_coll_flash_shm_close(void)
{
    mca_coll_flash_shm_agree(false);
}

static int compare_rank(const void *rank, const void *neighbour)
{
    uint32_t one = *(const uint32_t *) rank, other = ((const neighbour_t *) neighbour)->rank;

    return one < other ? -1 : one > other;
}

/* Of a rank of this node. */
static const neighbour_t *neighbour_of(uint32_t world_rank)
{
    return bsearch(&world_rank, node.neighbours, node.count, sizeof(*node.neighbours),
                   compare_rank);
}

bool mca_coll_flash_shm_rank_is_gone(uint32_t world_rank)
{
    return flash_process_is_gone(&neighbour_of(world_rank)->process);
}

static uint32_t world_rank_of(const ompi_communicator_t *comm, uint32_t rank)
{
    return ompi_group_get_proc_name(comm->c_local_group, (int) rank).vpid;
}

/* A right that is lost after MPI_Init, for one: it costs a second copy. Said once. */
static void tell_unreadable(uint32_t world_rank)
{
    if (!node.told_unreadable) {
        node.told_unreadable = true;
        FLASH_VERBOSE(
            1,
            "coll:flash: the memory of rank %u of MPI_COMM_WORLD cannot be read: such blocks are "
            "copied through shared memory",
            (unsigned) world_rank);
    }
}

/*
 * `arg`: the communicator, which is kept while operations are under way. Under the lock of the
 * channels.
 */
static int read_rank(void *arg, uint32_t rank, void *to, const void *from, size_t bytes)
{
    uint32_t world_rank = world_rank_of(arg, rank);
    int status = flash_process_read(&neighbour_of(world_rank)->process, to, from, bytes);

    if (status == FLASH_ERR_UNREADABLE) {
        tell_unreadable(world_rank);
    }
    return status;
}

static void find_sides(ompi_communicator_t *comm, flash_shm_side_t **sides)
{
    for (int rank = 0; rank < ompi_comm_size(comm); rank++) {
        sides[rank] =
            neighbour_of(world_rank_of(comm, (uint32_t) rank))->area + flash_compat_comm_id(comm);
    }
}

bool mca_coll_flash_shm_of(ompi_communicator_t *comm, flash_shm_t **shm)
{
    uint32_t ranks = (uint32_t) ompi_comm_size(comm), number = flash_compat_comm_id(comm);
    flash_shm_side_t **sides;

    *shm = NULL;
    if (!node.used || node.neighbours == NULL || number >= CHANNELS) {
        return true;
    }
    sides = malloc(ranks * sizeof(*sides));
    if (sides == NULL) {
        return false;
    }
    find_sides(comm, sides);
    *shm = flash_shm_create(ranks, (uint32_t) ompi_comm_rank(comm), sides);
    free(sides);
    if (*shm != NULL && mca_coll_flash_params.shm_readable) {
        flash_shm_read_by(*shm, read_rank, comm);
    }
    return *shm != NULL;
}
