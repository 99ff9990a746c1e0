/*
 * test_keys.c: which way calls take on a communicator whose info keys say so. See mpix_flash.h.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "mpitest.h"
#include "persistent.h"
#include "pvars.h"

enum { BLOCK = 4096, SMALL = 64, LONG = 64 << 10 }; /* bytes */

/* ---------------------------------------------------------------- whether blocks are read */

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

/* Whether each rank's memory can be read by its left neighbour. */
static bool memory_is_readable(void)
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

/* ------------------------------------------------------------------------- calls */

typedef enum way { RING, PAIRWISE, SHM, RECDBL, PASSED_ON, WAYS } way_t;

static const char *const names[WAYS] = {[RING] = "coll_flash_ring_calls",
                                        [PAIRWISE] = "coll_flash_pairwise_calls",
                                        [SHM] = "coll_flash_shm_calls",
                                        [RECDBL] = "coll_flash_recdbl_calls",
                                        [PASSED_ON] = "coll_flash_fallback_calls"};
static MPI_T_pvar_handle counters[WAYS];

static void open_counters(void)
{
    for (size_t way = 0; way < WAYS; way++) {
        counters[way] = pvar_of(names[way], MPI_T_PVAR_CLASS_COUNTER, MPI_UNSIGNED_LONG_LONG);
    }
}

static void close_counters(void)
{
    for (size_t way = 0; way < WAYS; way++) {
        pvar_free(&counters[way]);
    }
}

static void count(unsigned long long counts[WAYS])
{
    for (size_t way = 0; way < WAYS; way++) {
        counts[way] = pvar_count(counters[way]);
    }
}

typedef enum kind { GATHER, REDUCE } kind_t;

/* Element `k` of what a rank contributes. */
static int element(int rank, int k)
{
    return rank * 1000 + k;
}

static void gather(MPI_Comm comm, int bytes)
{
    int elements = bytes / (int) sizeof(int);
    int *send = get_memory((size_t) bytes), *recv = get_memory((size_t) (world_size * bytes));
    bool good = true;
    MPI_Request request;

    for (int k = 0; k < elements; k++) {
        send[k] = element(world_rank, k);
    }
    MPI_Iallgather(send, elements, MPI_INT, recv, elements, MPI_INT, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int k = 0; k < world_size * elements; k++) {
        good &= recv[k] == element(k / elements, k % elements);
    }
    check(good, "an allgather is wrong");
    free(send);
    free(recv);
}

static void reduce(MPI_Comm comm, int bytes)
{
    int elements = bytes / (int) sizeof(int), ranks = world_size * (world_size - 1) / 2;
    int *send = get_memory((size_t) (world_size * bytes)), *recv = get_memory((size_t) bytes);
    bool good = true;
    MPI_Request request;

    for (int k = 0; k < world_size * elements; k++) {
        send[k] = element(world_rank, k);
    }
    MPI_Ireduce_scatter_block(send, recv, elements, MPI_INT, MPI_SUM, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int k = 0; k < elements; k++) {
        good &= recv[k] == ranks * 1000 + world_size * (world_rank * elements + k);
    }
    check(good, "a reduce-scatter is wrong");
    free(send);
    free(recv);
}

/* The way that a call of that many bytes a block takes; WAYS: not one. */
static way_t way_of(MPI_Comm comm, kind_t kind, int bytes)
{
    unsigned long long before[WAYS], after[WAYS];
    way_t taken = WAYS;

    count(before);
    (kind == GATHER ? gather : reduce)(comm, bytes);
    count(after);
    for (size_t way = 0; way < WAYS; way++) {
        if (after[way] == before[way] + 1 && taken == WAYS) {
            taken = (way_t) way;
        } else if (after[way] != before[way]) {
            return WAYS;
        }
    }
    return taken;
}

/* -------------------------------------------------------------------------- keys */

static void set(MPI_Comm comm, const char *name, const char *value)
{
    char key[MPI_MAX_INFO_KEY + 1] = "mpix_flash_";
    MPI_Info info;

    strncat(key, name, sizeof(key) - strlen(key) - 1);
    MPI_Info_create(&info);
    MPI_Info_set(info, key, value);
    check_class(MPI_Comm_set_info(comm, info), MPI_SUCCESS, "MPI_Comm_set_info");
    MPI_Info_free(&info);
}

/* All standard calls fall back; each key says nothing without others. */
static MPI_Comm dup_that_passes_on(void)
{
    static const char *const keys[][2] = {
        {"algorithm", "fallback"}, {"on_node", "true"}, {"shm", "no"}, {"segment_bytes", "65536"}};
    MPI_Comm comm;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (size_t k = 0; k < LENGTH(keys); k++) {
        set(comm, keys[k][0], keys[k][1]);
    }
    return comm;
}

typedef struct turn {
    const char *value;
    way_t way;
} turn_t;

typedef struct example {
    const char *key;
    kind_t kind;
    int ranks;               /* of the job; 0: any number */
    bool reads;              /* where others' memory can be read */
    const char *first[2][2]; /* keys that are set before */
    turn_t turns[8];
} example_t;

/* One behind the other: each value counts from the next call on. */
static const example_t examples[] = {
    {"algorithm", GATHER,
     .turns = {{"ring", RING}, {"fallback", PASSED_ON}, {"recdbl", RECDBL}, {"auto", RING}}},
    {"algorithm", REDUCE,
     .turns = {{"ring", RING},
               {"fallback", PASSED_ON},
               {"recdbl", RECDBL},
               {"pairwise", PAIRWISE},
               {"auto", RING}}},
    /* What it cannot serve is left to the costs. */
    {"algorithm", GATHER, .turns = {{"pairwise", RING}, {"fallback", PASSED_ON}, {"shm", RING}}},
    {"algorithm", GATHER, .first = {{"shm", "auto"}, {"on_node", "false"}},
     .turns = {{"shm", SHM}, {"ring", RING}, {"auto", PASSED_ON}}},
    {"on_node", GATHER, .first = {{"algorithm", "auto"}},
     .turns = {{"false", PASSED_ON}, {"true", RING}, {"false", PASSED_ON}}},
    {"on_node", REDUCE, .first = {{"algorithm", "auto"}},
     .turns = {{"false", PASSED_ON}, {"true", RING}, {"false", PASSED_ON}}},
    {"on_node", GATHER, .first = {{"algorithm", "auto"}},
     .turns = {{"no", PASSED_ON},
               {"yes", RING},
               {"0", PASSED_ON},
               {"1", RING},
               {"off", PASSED_ON},
               {"on", RING}}},
    {"shm", GATHER, .first = {{"algorithm", "shm"}, {"on_node", "false"}},
     .turns = {{"auto", SHM}, {"no", PASSED_ON}, {"copy", SHM}, {"read", SHM}}},
    {"shm", REDUCE, .first = {{"algorithm", "shm"}, {"on_node", "false"}},
     .turns = {{"auto", SHM}, {"no", PASSED_ON}, {"copy", SHM}, {"read", SHM}}}};

static void try_example(const example_t *example)
{
    MPI_Comm comm = dup_that_passes_on();

    for (size_t k = 0; k < 2 && example->first[k][0] != NULL; k++) {
        set(comm, example->first[k][0], example->first[k][1]);
    }
    for (const turn_t *turn = example->turns; turn->value != NULL; turn++) {
        way_t taken;

        set(comm, example->key, turn->value);
        taken = way_of(comm, example->kind, BLOCK);
        check(taken == turn->way, "%s %s: %s instead of %s", example->key, turn->value,
              taken < WAYS ? names[taken] : "not one way", names[turn->way]);
    }
    check(way_of(MPI_COMM_WORLD, example->kind, BLOCK) == PASSED_ON,
          "%s: another communicator has the key, too", example->key);
    MPI_Comm_free(&comm);
}

static void try_examples(void)
{
    bool readable = memory_is_readable();

    open_counters();
    for (size_t k = 0; k < LENGTH(examples); k++) {
        const example_t *example = &examples[k];

        if ((example->ranks == 0 || example->ranks == world_size) &&
            (readable || !example->reads)) {
            try_example(example);
        }
    }
    close_counters();
}

static void ways(void)
{
    pvars_with(try_examples);
}

/* --------------------------------------------------------------- what MPI_Init has prepared */

static unsigned reads_with(MPI_Comm comm, const char *shm, int bytes)
{
    unsigned before = atomic_load(&reads), found;

    set(comm, "shm", shm);
    gather(comm, bytes);
    found = atomic_load(&reads) - before;
    MPI_Allreduce(MPI_IN_PLACE, &found, 1, MPI_UNSIGNED, MPI_SUM, MPI_COMM_WORLD);
    return found;
}

/* Which blocks are read where they are. */
static void read_blocks(void)
{
    MPI_Comm comm = dup_that_passes_on();

    set(comm, "algorithm", "shm");
    if (memory_is_readable()) {
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
    MPI_Comm comm = dup_that_passes_on();

    open_counters();
    set(comm, "algorithm", "shm");
    check(reads_with(comm, "read", BLOCK) == 0, "blocks are read, against the parameter");
    check(way_of(comm, GATHER, BLOCK) == SHM, "the key of shared memory is not heard");
    close_counters();
    MPI_Comm_free(&comm);
}

static void limits(void)
{
    pvars_with(exceed_limits);
}

/* ------------------------------------------------------------------- algorithms */

static atomic_bool foreign; /* this rank has added to another one's block */

/* In block b all elements are b. By a ring, of three ranks and more, the sums go from rank to rank. */
static void look(void *in, void *inout, int *length, MPI_Datatype *type)
{
    const int *from = in;
    int *to = inout;

    (void) type;
    for (int k = 0; k < *length; k++) {
        if (from[k] != world_rank) {
            atomic_store_explicit(&foreign, true, memory_order_relaxed);
        }
        to[k] = from[k];
    }
}

enum { ELEMENTS = 1024 };

typedef struct reduction {
    int *send, recv[ELEMENTS];
    MPI_Op op;
} reduction_t;

static void reduction_init(reduction_t *reduction)
{
    MPI_Op_create(look, true, &reduction->op);
    reduction->send = get_memory((size_t) world_size * sizeof(reduction->recv));
    for (int k = 0; k < world_size * ELEMENTS; k++) {
        reduction->send[k] = k / ELEMENTS;
    }
}

static void reduction_free(reduction_t *reduction)
{
    MPI_Op_free(&reduction->op);
    free(reduction->send);
}

/* Waits for it. Whether it went by a ring: whether a rank has added to another one's block. */
static bool goes_by_ring(reduction_t *reduction, MPI_Request *request)
{
    int found;

    MPI_Wait(request, MPI_STATUS_IGNORE);
    if (*request != MPI_REQUEST_NULL) {
        see_request(*request);
    }
    for (int k = 0; k < ELEMENTS; k++) {
        if (!check(reduction->recv[k] == world_rank, "element %d is wrong", k)) {
            break;
        }
    }
    found = atomic_exchange(&foreign, false);
    MPI_Allreduce(MPI_IN_PLACE, &found, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    return found != 0;
}

static void pairwise(void)
{
    static const char *const values[] = {"ring", "pairwise", "ring", "pairwise"};
    MPI_Comm comm = dup_that_passes_on();
    reduction_t reduction;
    MPI_Request request;

    reduction_init(&reduction);
    for (size_t k = 0; k < LENGTH(values); k++) {
        bool ring = strcmp(values[k], "ring") == 0 && world_size > 2;

        set(comm, "algorithm", values[k]);
        MPI_Ireduce_scatter_block(reduction.send, reduction.recv, ELEMENTS, MPI_INT, reduction.op,
                                  comm, &request);
        check(goes_by_ring(&reduction, &request) == ring, "algorithm %s is not heard", values[k]);
    }
    reduction_free(&reduction);
    MPI_Comm_free(&comm);
}

/* A request made with the first algorithm, and started when the other one holds. */
static void keeps_algorithm(MPI_Comm comm, const char *first, const char *other)
{
    bool ring = strcmp(first, "ring") == 0 && world_size > 2;
    reduction_t reduction;
    MPI_Request request;

    reduction_init(&reduction);
    set(comm, "algorithm", first);
    MPI_Reduce_scatter_block_init(reduction.send, reduction.recv, ELEMENTS, MPI_INT, reduction.op,
                                  comm, MPI_INFO_NULL, &request);
    set(comm, "algorithm", other);
    for (int turn = 0; turn < 2; turn++) {
        MPI_Start(&request);
        check(goes_by_ring(&reduction, &request) == ring, "made with algorithm %s, and not kept",
              first);
    }
    MPI_Request_free(&request);
    reduction_free(&reduction);
}

/*
 * A ring of segments of 64 bytes, of ranks that start it before the keys change, and after. With others, it
 * would be passed on, or its segments would not fit together.
 */
static void keep_ring(MPI_Comm comm)
{
    static const char *const others[][2] = {
        {"segment_bytes", "5000"}, {"algorithm", "fallback"}, {"on_node", "false"}};
    int *send = get_memory(BLOCK), *recv = get_memory((size_t) world_size * BLOCK);
    int elements = BLOCK / (int) sizeof(int);
    unsigned long long before[WAYS], after[WAYS];
    MPI_Request request;

    set(comm, "segment_bytes", "64");
    count(before);
    MPI_Allgather_init(send, elements, MPI_INT, recv, elements, MPI_INT, comm, MPI_INFO_NULL,
                       &request);
    for (size_t turn = 0; turn < LENGTH(others); turn++) {
        bool early = ((size_t) world_rank + turn) % 2 == 0, good = true;

        for (int k = 0; k < elements; k++) {
            send[k] = element(world_rank, k) + (int) turn;
        }
        if (early) {
            MPI_Start(&request);
        }
        set(comm, others[turn][0], others[turn][1]);
        if (!early) {
            MPI_Start(&request);
        }
        check_class(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_SUCCESS, "a persistent allgather");
        see_request(request);
        for (int k = 0; k < world_size * elements; k++) {
            good &= recv[k] == element(k / elements, k % elements) + (int) turn;
        }
        check(good, "%s has changed: a persistent allgather is wrong", others[turn][0]);
    }
    count(after);
    check(after[RING] == before[RING] + 1 && after[PASSED_ON] == before[PASSED_ON],
          "%llu rings, %llu calls passed on", after[RING] - before[RING],
          after[PASSED_ON] - before[PASSED_ON]);
    check(way_of(comm, GATHER, BLOCK) == PASSED_ON, "the keys do not hold for other calls");
    MPI_Request_free(&request);
    free(send);
    free(recv);
}

static void keep_all(void)
{
    MPI_Comm comm = dup_that_passes_on();

    open_counters();
    keeps_algorithm(comm, "ring", "pairwise");
    keeps_algorithm(comm, "pairwise", "ring");
    set(comm, "algorithm", "ring");
    keep_ring(comm);
    close_counters();
    MPI_Comm_free(&comm);
}

static void persistent(void)
{
    pvars_with(keep_all);
}

TEST_PROGRAM(test_keys, MPI_THREAD_SINGLE, {"ways", ways}, {"reads", read_blocks},
             {"pairwise", pairwise}, {"persistent", persistent}, {"limits", limits});
