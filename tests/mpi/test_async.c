/*
 * test_async.c: data moves without any MPI call, by flash's progress thread, which sleeps when
 * there is nothing to do.
 *
 * FLASH_TEST_THREAD=0 in the environment: there is to be no such thread.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <dirent.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "mpitest.h"

enum { COUNT = 2 * 1024 * 1024 / sizeof(int64_t), PATIENCE = 30 };

static bool expect_thread(void)
{
    const char *value = getenv("FLASH_TEST_THREAD");

    return world_size > 1 && (value == NULL || strcmp(value, "0") != 0);
}

static void sleep_ms(long ms)
{
    struct timespec pause = {ms / 1000, ms % 1000 * 1000000};

    nanosleep(&pause, NULL);
}

/* The last elements of each block arrive last. */
LOOKS_AHEAD static bool has_arrived(const int64_t *recv, int blocks, int64_t none)
{
    for (int block = 0; block < blocks; block++) {
        if (((const volatile int64_t *) recv)[(size_t) (block + 1) * COUNT - 1] == none) {
            return false;
        }
    }
    return true;
}

/* Only reads memory, and sleeps. */
static bool arrives(const int64_t *recv, int blocks, int64_t none)
{
    time_t deadline = time(NULL) + PATIENCE;

    while (!has_arrived(recv, blocks, none) && time(NULL) < deadline) {
        sleep_ms(1);
    }
    return has_arrived(recv, blocks, none);
}

static void allgather(void)
{
    size_t elements = (size_t) world_size * COUNT;
    int64_t *send = get_memory(COUNT * sizeof(int64_t));
    int64_t *recv = get_memory(elements * sizeof(int64_t));
    MPI_Request request;

    for (size_t k = 0; k < COUNT; k++) {
        send[k] = world_rank + 1;
    }
    for (int round = 0; round < 3; round++) {
        memset(recv, 0, elements * sizeof(int64_t));
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Iallgather(send, COUNT, MPI_INT64_T, recv, COUNT, MPI_INT64_T, MPI_COMM_WORLD,
                       &request);
        if (expect_thread()) {
            check(arrives(recv, world_size, 0), "no block arrives without MPI calls");
        }
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        for (size_t k = 0; k < elements; k++) {
            if (!check(recv[k] == (int64_t) (k / COUNT) + 1, "element %zu is wrong", k)) {
                break;
            }
        }
    }
    free(send);
    free(recv);
}

static void reduce_scatter(void)
{
    size_t elements = (size_t) world_size * COUNT;
    int64_t *send = get_memory(elements * sizeof(int64_t));
    int64_t *recv = get_memory(COUNT * sizeof(int64_t));
    int64_t wanted = (int64_t) world_size * (world_size + 1) / 2;
    MPI_Request request;

    for (size_t k = 0; k < elements; k++) {
        send[k] = world_rank + 1;
    }
    for (int round = 0; round < 3; round++) {
        for (size_t k = 0; k < COUNT; k++) {
            recv[k] = -1;
        }
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Ireduce_scatter_block(send, recv, COUNT, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD,
                                  &request);
        if (expect_thread()) {
            check(arrives(recv, 1, -1), "no sum arrives without MPI calls");
        }
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        check(recv[0] == wanted && recv[COUNT - 1] == wanted, "the sum is wrong");
    }
    free(send);
    free(recv);
}

/* Of this process, in bytes. */
static size_t memory_used(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    size_t pages = 0;

    check(file != NULL && fscanf(file, "%*u %zu", &pages) == 1, "no /proc/self/statm");
    if (file != NULL) {
        fclose(file);
    }
    return pages * (size_t) sysconf(_SC_PAGESIZE);
}

/* Others are far ahead, and send what they may: at who is late, much less than all piles up. */
static void late(void)
{
    enum { BLOCK = 8 << 20 };
    char *send = get_memory(BLOCK), *recv = get_memory((size_t) world_size * BLOCK);
    MPI_Request request;
    size_t before, after;

    memset(send, world_rank + 1, BLOCK);
    for (int round = 0; round < 2; round++) { /* the first one connects */
        memset(recv, 0, (size_t) world_size * BLOCK);
        MPI_Barrier(MPI_COMM_WORLD);
        before = memory_used();
        if (world_rank == 0) {
            sleep_ms(1000);
        }
        after = memory_used();
        check(round == 0 || world_rank != 0 || after < before + BLOCK, "%zu KiB have piled up",
              (after - before) / 1024);
        MPI_Iallgather(send, BLOCK, MPI_BYTE, recv, BLOCK, MPI_BYTE, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        for (int rank = 0; rank < world_size; rank++) {
            check(recv[(size_t) rank * BLOCK] == rank + 1 &&
                      recv[(size_t) (rank + 1) * BLOCK - 1] == rank + 1,
                  "block %d is wrong", rank);
        }
    }
    free(send);
    free(recv);
}

/* The clock ticks that threads called "flash-progress" have used; -1 if there is none. */
static long thread_ticks(void)
{
    DIR *tasks = opendir("/proc/self/task");
    struct dirent *entry;
    long ticks = -1;

    while (tasks != NULL && (entry = readdir(tasks)) != NULL) {
        char path[64];
        long user, system;
        FILE *file;

        snprintf(path, sizeof(path), "/proc/self/task/%.20s/stat", entry->d_name);
        file = fopen(path, "r");
        if (file == NULL) {
            continue;
        }
        if (fscanf(file, "%*d (flash-progress) %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %ld %ld",
                   &user, &system) == 2) {
            ticks = (ticks < 0 ? 0 : ticks) + user + system;
        }
        fclose(file);
    }
    if (tasks != NULL) {
        closedir(tasks);
    }
    return ticks;
}

/* After the operations above, with nothing in flight. A tick may be counted for the last of them.
 */
static void idle(void)
{
    long before, after;

    MPI_Barrier(MPI_COMM_WORLD);
    sleep_ms(500);
    before = thread_ticks();
    sleep_ms(2000);
    after = thread_ticks();
    check((before >= 0) == expect_thread(), "%s progress thread", before >= 0 ? "a" : "no");
    check(after - before <= 1, "the idle progress thread used %ld ticks in 2 s", after - before);
}

TEST_PROGRAM(test_async, MPI_THREAD_SINGLE, {"allgather", allgather},
             {"reduce_scatter", reduce_scatter}, {"late", late}, {"idle", idle});
