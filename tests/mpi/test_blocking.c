/*
 * test_blocking.c: MPI's blocking calls by flash: what is counted, in which order calls come, errors,
 * info keys, and what Open MPI calls itself. Their results on all types and operations: blocking.sh.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <unistd.h>

#include "aftermath.h"
#include "blocking_call.h"
#include "mpitest.h"
#include "pvars.h"

/* -------------------------------------------------------------------- counters */

static const char *const counter_names[] = {"coll_flash_ring_calls", "coll_flash_ring_bytes",
                                            "coll_flash_fallback_calls", "coll_flash_recdbl_calls"};
enum { CALLS, BYTES, FALLBACKS, DOUBLINGS, COUNTERS = LENGTH(counter_names) };

static void open_counters(MPI_T_pvar_handle counters[COUNTERS])
{
    for (int k = 0; k < COUNTERS; k++) {
        counters[k] = pvar_of(counter_names[k], MPI_T_PVAR_CLASS_COUNTER, MPI_UNSIGNED_LONG_LONG);
    }
}

static void close_counters(MPI_T_pvar_handle counters[COUNTERS])
{
    for (int k = 0; k < COUNTERS; k++) {
        pvar_free(&counters[k]);
    }
}

/* A call of that kind: as many rings are counted, no fallback, and no recursive doubling. */
static void count_call(int kind, MPI_Comm comm, bool rings)
{
    unsigned long long bytes = (unsigned long long) world_size * COUNT * sizeof(int64_t);
    MPI_T_pvar_handle counters[COUNTERS];

    open_counters(counters);
    blocking_once(kind, comm);
    check(pvar_count(counters[CALLS]) == rings, "%s: %llu rings", blocking_names[kind],
          pvar_count(counters[CALLS]));
    check(pvar_count(counters[BYTES]) == rings * bytes, "%s: %llu bytes by rings",
          blocking_names[kind], pvar_count(counters[BYTES]));
    check(pvar_count(counters[FALLBACKS]) == 0, "%s: %llu fallbacks", blocking_names[kind],
          pvar_count(counters[FALLBACKS]));
    check(pvar_count(counters[DOUBLINGS]) == 0, "%s by recursive doubling", blocking_names[kind]);
    close_counters(counters);
}

/* One of each kind. */
static void count_calls(MPI_Comm comm, bool rings)
{
    for (int kind = 0; kind < KINDS; kind++) {
        count_call(kind, comm, rings);
    }
}

static void count_served(void)
{
    count_calls(MPI_COMM_WORLD, true);
}

/* For `coll_flash_blocking yes` with the ring, and costs by which it is least. */
static void served(void)
{
    pvars_with(count_served);
}

static void count_passed_on(void)
{
    count_calls(MPI_COMM_WORLD, false);
}

static void passed_on(void)
{
    pvars_with(count_passed_on);
}

static void set_key(MPI_Comm comm, const char *name, const char *value)
{
    MPI_Info info;

    MPI_Info_create(&info);
    MPI_Info_set(info, name, value);
    MPI_Comm_set_info(comm, info);
    MPI_Info_free(&info);
}

/*
 * The algorithm is the ring, and blocking calls have no costs. Values that mean nothing change
 * nothing.
 */
static void count_by_key(void)
{
    static const struct {
        const char *value;
        bool rings;
    } turns[] = {{"yes", true},   {"auto", false}, {"yes", true},
                 {"never", true}, {"no", false},   {"yes", true}};
    MPI_Comm comm;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    set_key(comm, "mpix_flash_algorithm", "ring");
    for (size_t k = 0; k < LENGTH(turns); k++) {
        set_key(comm, "mpix_flash_blocking", turns[k].value);
        count_calls(comm, turns[k].rings);
    }
    /* No all-to-all is pairwise, and none has costs here. */
    set_key(comm, "mpix_flash_algorithm", "pairwise");
    count_call(BLOCKING_ALLTOALLV, comm, false);
    set_key(comm, "mpix_flash_algorithm", "ring");
    count_call(BLOCKING_ALLTOALLV, comm, true);
    set_key(comm, "mpix_flash_algorithm", "fallback");
    count_calls(comm, false);
    MPI_Comm_free(&comm);
}

static void key(void)
{
    pvars_with(count_by_key);
}

/* ----------------------------------------------------------------------- order */

/* Blocking calls among non-blocking ones of the same communicator, which end later or sooner. */
static void among_others(void)
{
    enum { ROUNDS = 10 };
    MPI_Comm comm;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Request requests[2];
        call_t gather, reduce;

        blocking_make(&gather, 0, comm);
        blocking_make(&reduce, KINDS - 1, comm);
        MPI_Iallgather(gather.send, COUNT, MPI_INT64_T, gather.recv, COUNT, MPI_INT64_T, comm,
                       &requests[0]);
        for (int kind = 0; kind < KINDS; kind++) {
            blocking_once(kind, comm);
        }
        MPI_Iallreduce(reduce.send, reduce.recv, reduce.ranks * COUNT, MPI_INT64_T, MPI_SUM, comm,
                       &requests[1]);
        blocking_once(round % KINDS, comm);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        blocking_check(&gather);
        blocking_check(&reduce);
        blocking_free(&gather);
        blocking_free(&reduce);
    }
    MPI_Comm_free(&comm);
}

/* Open MPI agrees on the number of a communicator while others call. */
static void beside_idup(void)
{
    enum { ROUNDS = 10 };
    MPI_Comm comm, made;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Request request;
        int flag;

        MPI_Comm_idup(comm, &made, &request);
        for (int k = 0; k < 10 * (world_rank % 3); k++) {
            MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
        }
        blocking_once(round % KINDS, comm);
        blocking_once(KINDS - 1, comm);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        blocking_once(0, made);
        MPI_Comm_free(&made);
    }
    MPI_Comm_free(&comm);
}

/* ---------------------------------------------------------------------- errors */

/*
 * One rank sends another number of elements than its block has: all ranks' calls fail, each calls the
 * error handler once, and the next calls work. A communicator whose errors are returned, too.
 */
static void refused(void)
{
    for (int round = 0; round < 4; round++) {
        MPI_Comm comm = make_counted_comm();
        int wrong = round % world_size;
        call_t call;

        blocking_make(&call, round % 2, comm);
        handler_calls = 0;
        check_class(blocking_run(&call, world_rank == wrong ? COUNT + 1 : COUNT),
                    world_rank == wrong ? MPI_ERR_TRUNCATE : MPI_ERR_OTHER,
                    blocking_names[call.kind]);
        check(handler_calls == 1, "%s: %d calls of the handler", blocking_names[call.kind],
              handler_calls);
        check(handler_comm == comm, "%s: the handler of another communicator",
              blocking_names[call.kind]);
        handler_calls = 0;
        for (int kind = 0; kind < KINDS; kind++) {
            blocking_once(kind, comm);
        }
        next_works(comm, "after a blocking call that was refused");
        MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
        check_class(blocking_run(&call, world_rank == wrong ? COUNT - 1 : COUNT),
                    world_rank == wrong ? MPI_ERR_TRUNCATE : MPI_ERR_OTHER,
                    blocking_names[call.kind]);
        blocking_once(round, comm);
        blocking_free(&call);
        MPI_Comm_free(&comm);
    }
}

/* A communicator that is freed behind a call that failed gives its number back. */
static void refused_often(void)
{
    enum { MANY = 50 };
    call_t call;

    for (int round = 0; round < MANY + 20; round++) {
        MPI_Comm comm = make_counted_comm();
        int handle = (int) MPI_Comm_c2f(comm);

        blocking_make(&call, 0, comm);
        if (check(handle < MANY, "round %d: communicator number %d", round, handle)) {
            check(blocking_run(&call, world_rank == 0 ? COUNT + 1 : COUNT) != MPI_SUCCESS,
                  "round %d works", round);
        }
        blocking_free(&call);
        MPI_Comm_free(&comm);
    }
    handler_calls = 0;
}

/* ------------------------------------------------------------ what Open MPI calls */

static void communicators(void)
{
    MPI_Comm half, node, copy;
    MPI_Group group;

    MPI_Comm_split(MPI_COMM_WORLD, world_rank % 2, -world_rank, &half);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, world_rank, MPI_INFO_NULL, &node);
    MPI_Comm_group(MPI_COMM_WORLD, &group);
    MPI_Comm_create(MPI_COMM_WORLD, group, &copy);
    for (int kind = 0; kind < KINDS; kind++) {
        blocking_once(kind, half);
        blocking_once(kind, node);
        blocking_once(kind, copy);
    }
    MPI_Group_free(&group);
    MPI_Comm_free(&copy);
    MPI_Comm_free(&node);
    MPI_Comm_free(&half);
}

static void window(void)
{
    int *memory = get_memory((size_t) world_size * sizeof(int));
    MPI_Win win;

    memset(memory, -1, (size_t) world_size * sizeof(int));
    MPI_Win_create(memory, (MPI_Aint) ((size_t) world_size * sizeof(int)), sizeof(int),
                   MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_fence(0, win);
    for (int rank = 0; rank < world_size; rank++) {
        MPI_Put(&world_rank, 1, MPI_INT, rank, world_rank, 1, MPI_INT, win);
    }
    MPI_Win_fence(0, win);
    for (int rank = 0; rank < world_size; rank++) {
        check(memory[rank] == rank, "a window: %d of rank %d", memory[rank], rank);
    }
    MPI_Win_free(&win);
    free(memory);
}

static void file(void)
{
    enum { PART = 5000 };
    unsigned char *block = get_memory(PART), *all = get_memory((size_t) world_size * PART);
    char path[] = "/tmp/flash_blocking.XXXXXX";
    int descriptor = world_rank == 0 ? mkstemp(path) : -1;
    MPI_File opened;

    MPI_Bcast(path, (int) sizeof(path), MPI_CHAR, 0, MPI_COMM_WORLD);
    check_class(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR, MPI_INFO_NULL, &opened),
                MPI_SUCCESS, "MPI_File_open");
    fill_pattern(block, PART, world_rank, 7);
    MPI_File_write_at_all(opened, (MPI_Offset) world_rank * PART, block, PART, MPI_BYTE,
                          MPI_STATUS_IGNORE);
    MPI_File_sync(opened);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_read_at_all(opened, 0, all, world_size * PART, MPI_BYTE, MPI_STATUS_IGNORE);
    for (int rank = 0; rank < world_size; rank++) {
        check(is_pattern(all + (size_t) rank * PART, 0, PART, rank, 7), "a file: rank %d's part",
              rank);
    }
    MPI_File_close(&opened);
    if (world_rank == 0) {
        close(descriptor);
        unlink(path);
    }
    free(block);
    free(all);
}

/* ------------------------------------------------------- what flash does not serve */

/* Each group gets the other's. */
/*
 * All but the last rank: on two hosts of two ranks, hosts have unequal numbers of them, and HAN of Open
 * MPI 4.1 hands its calls to the communicator's functions.
 */
static void but_one(void)
{
    int last = world_rank == world_size - 1, mine = world_rank, sum = -1, told, found[64];
    MPI_Comm part;

    MPI_Comm_split(MPI_COMM_WORLD, last ? MPI_UNDEFINED : 0, 0, &part);
    if (last) {
        return;
    }
    for (int root = 0; root < world_size - 1; root++) {
        told = world_rank == root ? 1000 + root : -1;
        MPI_Bcast(&told, 1, MPI_INT, root, part);
        check(told == 1000 + root, "MPI_Bcast from rank %d: %d", root, told);
        MPI_Allgather(&mine, 1, MPI_INT, found, 1, MPI_INT, part);
        check(found[root] == root, "MPI_Allgather: %d of rank %d", found[root], root);
        MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, part);
        check(sum == (world_size - 1) * (world_size - 2) / 2, "MPI_Allreduce: %d", sum);
    }
    MPI_Comm_free(&part);
}

static void between_groups(void)
{
    int theirs, mine = world_rank, sum = -1, wanted = 0, found[64];
    MPI_Comm half, both;

    if (world_size < 2) {
        return;
    }
    MPI_Comm_split(MPI_COMM_WORLD, world_rank % 2, 0, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - world_rank % 2, 7, &both);
    MPI_Comm_remote_size(both, &theirs);
    MPI_Allgather(&mine, 1, MPI_INT, found, 1, MPI_INT, both);
    MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, both);
    for (int rank = 0; rank < theirs; rank++) {
        wanted += 2 * rank + 1 - world_rank % 2;
        check(found[rank] == 2 * rank + 1 - world_rank % 2, "MPI_Allgather between groups");
    }
    check(sum == wanted, "MPI_Allreduce between groups: %d, not %d", sum, wanted);
    MPI_Comm_free(&both);
    MPI_Comm_free(&half);
}

static void alone(void)
{
    for (int kind = 0; kind < KINDS; kind++) {
        call_t call;

        blocking_make(&call, kind, MPI_COMM_SELF);
        check_class(blocking_run(&call, COUNT), MPI_SUCCESS, blocking_names[kind]);
        blocking_check(&call);
        blocking_free(&call);
    }
}

TEST_PROGRAM(test_blocking, MPI_THREAD_SINGLE, {"served", served}, {"passed_on", passed_on},
             {"key", key}, {"among_others", among_others}, {"beside_idup", beside_idup},
             {"refused", refused}, {"refused_often", refused_often},
             {"communicators", communicators}, {"window", window}, {"file", file},
             {"between_groups", between_groups}, {"but_one", but_one}, {"alone", alone});
