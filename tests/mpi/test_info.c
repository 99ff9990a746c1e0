/*
 * test_info.c: info keys of a communicator.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <stdatomic.h>
#include <time.h>

#include <mpix_flash.h>

#include "aftermath.h"
#include "extension.h"
#include "mpitest.h"
#include "persistent.h"

static MPI_Info make_info(const char *key, const char *value)
{
    MPI_Info info;

    MPI_Info_create(&info);
    MPI_Info_set(info, key, value);
    return info;
}

static MPI_Comm dup_with(const char *key, const char *value)
{
    MPI_Info info = make_info(key, value);
    MPI_Comm comm;

    MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &comm);
    MPI_Info_free(&info);
    return comm;
}

static void set(MPI_Comm comm, const char *key, const char *value)
{
    MPI_Info info = make_info(key, value);

    check_class(MPI_Comm_set_info(comm, info), MPI_SUCCESS, "MPI_Comm_set_info");
    MPI_Info_free(&info);
}

/* ---------------------------------------------------------------------- pieces */

static int note_pieces(const MPIX_Flash_block *block, void *most)
{
    if (block->pieces > *(int *) most) {
        *(int *) most = block->pieces;
    }
    return MPI_SUCCESS;
}

/* How many pieces a block has, with such a hint. */
static int pieces_of(MPI_Comm comm, int hint)
{
    enum { COUNT = 100 };
    MPIX_Flash_hints hints = MPIX_FLASH_HINTS_INIT;
    int send[COUNT] = {0}, most = 0;
    int *recv = get_memory((size_t) world_size * sizeof(send));

    hints.pieces = hint;
    check_class(MPIX_Allgather_compute(send, COUNT, MPI_INT, recv, COUNT, MPI_INT, note_pieces,
                                       &most, &hints, comm),
                MPI_SUCCESS, "an allgather");
    free(recv);
    return most;
}

static void pieces(void)
{
    MPI_Comm comm = dup_with("mpix_flash_pieces", "4"), other;
    MPI_Request request;

    check(pieces_of(comm, 0) == 4, "4 pieces: %d", pieces_of(comm, 0));
    check(pieces_of(comm, 2) == 2, "a hint: %d pieces", pieces_of(comm, 2));
    check(pieces_of(MPI_COMM_WORLD, 0) == 1, "another communicator has pieces, too");
    set(comm, "mpix_flash_pieces", "7");
    check(pieces_of(comm, 0) == 7, "changed to 7 pieces: %d", pieces_of(comm, 0));
    MPI_Comm_dup(MPI_COMM_WORLD, &other);
    check(pieces_of(other, 0) == 1, "a duplicate of another one has pieces");
    MPI_Comm_free(&other);
    MPI_Comm_idup(comm, &other, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check(pieces_of(other, 0) == 1, "a duplicate made without keys: %d pieces",
          pieces_of(other, 0));
    MPI_Comm_free(&other);
    MPI_Comm_free(&comm);
}

/* What cannot be changes nothing. */
static void ignored(void)
{
    static const char *const bad[] = {"many", "0", "-1", "5x", "4097", "99999999999999999999999"};
    MPI_Comm comm = dup_with("mpix_flash_pieces", "3");

    for (size_t k = 0; k < LENGTH(bad); k++) {
        set(comm, "mpix_flash_pieces", bad[k]);
        check(pieces_of(comm, 0) == 3, "\"%s\": %d pieces", bad[k], pieces_of(comm, 0));
    }
    MPI_Comm_free(&comm);
}

/* -------------------------------------------------------------------- segments */

static int gather_large(MPI_Comm comm)
{
    enum { BYTES = 100000 };
    unsigned char *send = get_memory(BYTES), *recv = get_memory((size_t) world_size * BYTES);
    MPI_Request request;
    int error;

    fill_pattern(send, BYTES, world_rank, 5);
    MPI_Iallgather(send, BYTES, MPI_BYTE, recv, BYTES, MPI_BYTE, comm, &request);
    error = MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int rank = 0; rank < world_size && error == MPI_SUCCESS; rank++) {
        for (size_t k = 0; k < BYTES; k++) {
            if (recv[(size_t) rank * BYTES + k] != pattern(rank, k, 5)) {
                check(false, "byte %zu of rank %d", k, rank);
                break;
            }
        }
    }
    free(send);
    free(recv);
    return error;
}

/* Segments that differ by rank, against the rules, are found to differ: so the key is heard. */
static void notice(MPI_Comm comm, const char *one, const char *others)
{
    int wrong;

    set(comm, "mpix_flash_segment_bytes", world_rank == 0 ? one : others);
    wrong = gather_large(comm) != MPI_SUCCESS;
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    check(world_size == 1 || wrong, "segments of %s bytes and %s, and nobody notices", one, others);
}

static void segments(void)
{
    MPI_Comm comm = make_counted_comm();

    set(comm, "mpix_flash_segment_bytes", "4096");
    check_class(gather_large(comm), MPI_SUCCESS, "equal segments");
    notice(comm, "8192", "4096");
    set(comm, "mpix_flash_segment_bytes", "1000");
    check_class(gather_large(comm), MPI_SUCCESS, "equal segments again");
    notice(comm, "0", "1000");
    set(comm, "mpix_flash_segment_bytes", "0");
    check_class(gather_large(comm), MPI_SUCCESS, "flash's own segments again");
    next_works(comm, "after segments that differed");
    MPI_Comm_free(&comm);
}

/* Ranks start a persistent request before the keys change, and after: its segments stay. */
static void persistent(void)
{
    enum { COUNT = 30000 };
    MPI_Comm comm = make_counted_comm();
    int *send = get_memory(COUNT * sizeof(*send));
    int *recv = get_memory((size_t) world_size * COUNT * sizeof(*recv));
    MPI_Request request;

    MPI_Allgather_init(send, COUNT, MPI_INT, recv, COUNT, MPI_INT, comm, MPI_INFO_NULL, &request);
    for (int turn = 0; turn < 4; turn++) {
        bool early = (world_rank + turn) % 2 == 0;

        for (int k = 0; k < COUNT; k++) {
            send[k] = world_rank * 7 + turn * 1000 + k;
        }
        if (early) {
            MPI_Start(&request);
        }
        set(comm, "mpix_flash_segment_bytes", turn % 2 == 0 ? "4096" : "5000");
        if (!early) {
            MPI_Start(&request);
        }
        check_class(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_SUCCESS, "a persistent allgather");
        for (int k = 0; k < world_size * COUNT; k++) {
            check(recv[k] == k / COUNT * 7 + turn * 1000 + k % COUNT, "turn %d: element %d", turn,
                  k);
        }
    }
    MPI_Request_free(&request);
    free(send);
    free(recv);
    MPI_Comm_free(&comm);
}

/* For a script that counts messages. */
static void too_short(void)
{
    MPI_Comm comm = dup_with("mpix_flash_segment_bytes", "63");

    next_works(comm, "with segments that cannot be");
    MPI_Comm_free(&comm);
}

/* ----------------------------------------------------------- whose thread it is */

static void count_call(void *calls, int call)
{
    (void) call;
    atomic_fetch_add_explicit((atomic_int *) calls, 1, memory_order_release);
}

/* Without an MPI call of this rank's. */
static void await_calls(const atomic_int *calls, int expected)
{
    const struct timespec pause = {.tv_nsec = 1000000};

    while (atomic_load_explicit(calls, memory_order_acquire) < expected) {
        nanosleep(&pause, NULL);
    }
}

/* All callbacks of a call, while the application stays out of MPI. */
static void all_outside(watch_kind_t kind, MPI_Comm comm)
{
    atomic_int calls = 0;
    watch_options_t options = {.count = 100000,
                               .unequal = true,
                               .pieces = 3,
                               .on_callback_thread = true,
                               .hook = count_call,
                               .hook_arg = &calls};
    MPI_Request request;
    watch_t watch;

    watch_init(&watch, kind, comm, &options);
    check_class(watch_start(&watch, &request), MPI_SUCCESS, "the call");
    if (watch.on_callback_thread) {
        await_calls(&calls, watch_expected_calls(&watch));
    }
    check_class(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_SUCCESS, "MPI_Wait");
    watch_check(&watch, "while the application stays out of MPI");
    watch_free(&watch);
}

/* Each rank's own affair: of two neighbours one has the key, then the other. */
static void callback_thread(void)
{
    MPI_Comm comm = dup_with("mpix_flash_callback_thread", "true");

    for (int kind = 0; kind < WATCH_KINDS; kind++) {
        all_outside((watch_kind_t) kind, comm);
    }
    for (int turn = 0; turn < 4; turn++) {
        bool on_callback_thread = (world_rank + turn) % 2 == 0;
        watch_options_t options = {
            .count = 1000, .pieces = turn, .on_callback_thread = on_callback_thread};

        set(comm, "mpix_flash_callback_thread", on_callback_thread ? "true" : "false");
        for (int kind = 0; kind < WATCH_KINDS; kind++) {
            watch_one((watch_kind_t) kind, comm, &options, "with the key or without");
        }
    }
    MPI_Comm_free(&comm);
}

/* For a script that counts messages. */
static void no_answer(void)
{
    MPI_Comm comm = dup_with("mpix_flash_callback_thread", "perhaps");

    next_works(comm, "with an answer that is none");
    MPI_Comm_free(&comm);
}

/*
 * For a script that reads what is told of the paths. Of three ranks, all blocks together are not
 * below 4 bytes, but each is.
 */
static void path(void)
{
    static const char *const turns[][2] = {{"mpix_flash_algorithm", "ring"},
                                           {"mpix_flash_algorithm", "auto"},
                                           {"mpix_flash_algorithm", "ring"},
                                           {"mpix_flash_algorithm", "auto"}};
    MPI_Comm comm = dup_with("mpix_flash_algorithm", "auto");
    int *recv = get_memory((size_t) world_size * sizeof(*recv));

    for (size_t turn = 0; turn < LENGTH(turns); turn++) {
        MPI_Request request;

        set(comm, turns[turn][0], turns[turn][1]);
        MPI_Iallgather(&world_rank, 1, MPI_INT, recv, 1, MPI_INT, comm, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        for (int rank = 0; rank < world_size; rank++) {
            check(recv[rank] == rank, "rank %d: %d", rank, recv[rank]);
        }
    }
    free(recv);
    MPI_Comm_free(&comm);
}

TEST_PROGRAM(test_info, MPI_THREAD_SINGLE, {"pieces", pieces}, {"ignored", ignored},
             {"segments", segments}, {"persistent", persistent}, {"too_short", too_short},
             {"callback_thread", callback_thread}, {"no_answer", no_answer}, {"path", path});
