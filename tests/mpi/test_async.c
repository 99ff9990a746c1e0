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

#include "mpitest.h"
#include "pvars.h"

enum { COUNT = 2 * 1024 * 1024 / sizeof(int64_t) };

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

/* Only reads memory, and sleeps: without end, if nothing arrives without MPI calls. */
static void await(const int64_t *recv, int blocks, int64_t none)
{
    while (!has_arrived(recv, blocks, none)) {
        sleep_ms(1);
    }
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
            await(recv, world_size, 0);
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
            await(recv, 1, -1);
        }
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        check(recv[0] == wanted && recv[COUNT - 1] == wanted, "the sum is wrong");
    }
    free(send);
    free(recv);
}

/*
 * Others are far ahead, and have sent what they may: rank 0 comes when they have said so.
 * test_engine_ring has how much that is.
 */
static void wait_or_be_late(MPI_Request *request)
{
    enum { TESTS = 100 };
    int flag;

    if (world_rank == 0) {
        for (int rank = 1; rank < world_size; rank++) {
            MPI_Recv(NULL, 0, MPI_INT, rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
        return;
    }
    for (int k = 0; k < TESTS; k++) {
        MPI_Test(request, &flag, MPI_STATUS_IGNORE);
        check(!flag, "complete without rank 0");
        sleep_ms(1);
    }
    MPI_Send(NULL, 0, MPI_INT, 0, 1, MPI_COMM_WORLD);
}

static void late(void)
{
    enum { BLOCK = 8 << 20 };
    char *send = get_memory(BLOCK), *recv = get_memory((size_t) world_size * BLOCK);
    MPI_Request request;

    memset(send, world_rank + 1, BLOCK);
    for (int round = 0; round < 2; round++) { /* the first one connects */
        memset(recv, 0, (size_t) world_size * BLOCK);
        MPI_Barrier(MPI_COMM_WORLD);
        if (world_rank == 0) {
            wait_or_be_late(NULL);
        }
        MPI_Iallgather(send, BLOCK, MPI_BYTE, recv, BLOCK, MPI_BYTE, MPI_COMM_WORLD, &request);
        if (world_rank != 0) {
            wait_or_be_late(&request);
        }
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

/* Field `number` of a line of /proc/PID/stat, counted from the state, behind the name; or "". */
static void field_of(const char *line, int number, char *field, size_t size)
{
    const char *from = strrchr(line, ')');

    field[0] = '\0';
    for (; from != NULL && number >= 0; number--) {
        from = strchr(from + 1, ' ');
    }
    if (from != NULL) {
        snprintf(field, size, "%.*s", (int) strcspn(from + 1, " \n"), from + 1);
    }
}

/* What the kernel says of a thread. */
typedef struct thread_state {
    char state[8], user[24], system[24]; /* a letter, and how much processor time it has had */
} thread_state_t;

enum { STATE = 0, USER_TIME = 11, SYSTEM_TIME = 12 };

static bool read_line(const char *thread, const char *file_name, char *line, int size)
{
    char path[64];
    FILE *file;
    bool found;

    snprintf(path, sizeof(path), "/proc/self/task/%.20s/%s", thread, file_name);
    file = fopen(path, "r");
    if (file == NULL) {
        return false;
    }
    found = fgets(line, size, file) != NULL;
    fclose(file);
    return found;
}

/* Of this process' thread called "flash-progress": false if it has none. */
static bool find_thread(thread_state_t *state)
{
    DIR *tasks = opendir("/proc/self/task");
    const struct dirent *entry;
    bool found = false;

    while (!found && tasks != NULL && (entry = readdir(tasks)) != NULL) {
        char name[32], line[512];

        found = read_line(entry->d_name, "comm", name, sizeof(name)) &&
                strcmp(name, "flash-progress\n") == 0 &&
                read_line(entry->d_name, "stat", line, sizeof(line));
        if (found) {
            field_of(line, STATE, state->state, sizeof(state->state));
            field_of(line, USER_TIME, state->user, sizeof(state->user));
            field_of(line, SYSTEM_TIME, state->system, sizeof(state->system));
        }
    }
    if (tasks != NULL) {
        closedir(tasks);
    }
    return found;
}

static bool same_state(const thread_state_t *one, const thread_state_t *other)
{
    return strcmp(one->state, "S") == 0 && strcmp(other->state, "S") == 0 &&
           strcmp(one->user, other->user) == 0 && strcmp(one->system, other->system) == 0;
}

/*
 * Nothing is in flight: there comes a second in which the thread sleeps: it does not wake up, and
 * has no processor time at all, by its own clock and by the kernel's. With one that looks now and
 * then, or looks all the time, none comes, and the test has no end.
 */
static void await_idle(void)
{
    MPI_T_pvar_handle wakeups =
        pvar_of("coll_flash_wakeups", MPI_T_PVAR_CLASS_COUNTER, MPI_UNSIGNED_LONG_LONG);
    MPI_T_pvar_handle seconds =
        pvar_of("coll_flash_thread_seconds", MPI_T_PVAR_CLASS_TIMER, MPI_DOUBLE);
    thread_state_t before = {.state = "S"}, after = before;
    bool found = find_thread(&before), idle;

    check(found == expect_thread(), "%s progress thread", found ? "a" : "no");
    do {
        unsigned long long wakeups_before = pvar_count(wakeups);
        double seconds_before = pvar_seconds(seconds);

        find_thread(&before);
        sleep_ms(1000);
        find_thread(&after);
        idle = pvar_count(wakeups) == wakeups_before && pvar_seconds(seconds) == seconds_before &&
               same_state(&before, &after);
    } while (!idle);
    pvar_free(&wakeups);
    pvar_free(&seconds);
}

/*
 * Rank 0 is late, and all others have computations: their threads sleep meanwhile, and look now and
 * then. One that polls would take most of that time.
 */
static void await_late_rank(void)
{
    enum { LATE_MS = 500 };
    MPI_T_pvar_handle seconds =
        pvar_of("coll_flash_thread_seconds", MPI_T_PVAR_CLASS_TIMER, MPI_DOUBLE);
    size_t elements = (size_t) world_size * COUNT;
    int64_t *send = get_memory(COUNT * sizeof(int64_t));
    int64_t *recv = get_memory(elements * sizeof(int64_t));
    MPI_Request request;

    memset(send, 1, COUNT * sizeof(int64_t));
    for (int round = 0; round < 2; round++) { /* the first one connects */
        double before, used;

        MPI_Barrier(MPI_COMM_WORLD);
        if (world_rank == 0) {
            sleep_ms(LATE_MS);
        }
        before = pvar_seconds(seconds);
        MPI_Iallgather(send, COUNT, MPI_INT64_T, recv, COUNT, MPI_INT64_T, MPI_COMM_WORLD,
                       &request);
        if (world_rank != 0) {
            sleep_ms(LATE_MS);
        }
        used = pvar_seconds(seconds) - before;
        check(round == 0 || used < 1e-3 * LATE_MS / 2, "the thread takes %g s", used);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    free(send);
    free(recv);
    pvar_free(&seconds);
}

static void waits(void)
{
    pvars_with(await_late_rank);
}

static void idle(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
    pvars_with(await_idle);
}

TEST_PROGRAM(test_async, MPI_THREAD_SINGLE, {"allgather", allgather},
             {"reduce_scatter", reduce_scatter}, {"late", late}, {"waits", waits}, {"idle", idle});
