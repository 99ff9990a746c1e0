/*
 * test_life.c: what happens around flash's operations in a process' life: threads older than MPI,
 * children made by fork(), MPI_Finalize with the last operation barely over, sudden ends.
 *
 * The first argument may name one of the last two, which take all of a process: `finalize`,
 * `abort`, `exit`.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <mpix_flash.h>

#include "mpitest.h"

enum { BLOCK = 1 << 20, ELEMENTS = BLOCK / sizeof(int64_t) };

static void sleep_ms(long ms)
{
    struct timespec pause = {ms / 1000, ms % 1000 * 1000000};

    nanosleep(&pause, NULL);
}

/* An allgather and a reduce-scatter under way. */
typedef struct pair {
    unsigned char *send, *recv;
    int64_t *operands, *sums;
    unsigned salt;
    MPI_Request requests[2];
} pair_t;

static void begin(pair_t *pair, unsigned salt)
{
    size_t size = (size_t) world_size;

    pair->salt = salt;
    pair->send = get_memory(BLOCK);
    pair->recv = get_memory(size * BLOCK);
    pair->operands = get_memory(size * BLOCK);
    pair->sums = get_memory(BLOCK);
    fill_pattern(pair->send, BLOCK, world_rank, salt);
    for (size_t k = 0; k < size * ELEMENTS; k++) {
        pair->operands[k] = world_rank + (int64_t) (k * salt);
    }
    MPI_Iallgather(pair->send, BLOCK, MPI_BYTE, pair->recv, BLOCK, MPI_BYTE, MPI_COMM_WORLD,
                   &pair->requests[0]);
    MPI_Ireduce_scatter_block(pair->operands, pair->sums, ELEMENTS, MPI_INT64_T, MPI_SUM,
                              MPI_COMM_WORLD, &pair->requests[1]);
}

/* Waits, and returns whether the results are right. */
static bool end(pair_t *pair)
{
    int64_t ranks = world_size, base = ranks * (ranks - 1) / 2;
    bool right = true;

    MPI_Waitall(2, pair->requests, MPI_STATUSES_IGNORE);
    for (int rank = 0; rank < world_size; rank++) {
        right &= is_pattern(pair->recv + (size_t) rank * BLOCK, 0, BLOCK, rank, pair->salt);
    }
    for (size_t k = 0; k < ELEMENTS; k++) {
        size_t index = (size_t) world_rank * ELEMENTS + k;

        right &= pair->sums[k] == base + ranks * (int64_t) (index * pair->salt);
    }
    free(pair->send);
    free(pair->recv);
    free(pair->operands);
    free(pair->sums);
    return right;
}

/* ---------------------------------------------------------------------- children */

/* Of a child: what comes of it, seen by its parent. */
static int child_status(pid_t child)
{
    int status = -1;

    check(waitpid(child, &status, 0) == child, "no child to wait for");
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Children come and go, or stay for a while, during operations. They only end. */
static void fork_children(void)
{
    for (unsigned round = 1; round <= 10; round++) {
        pid_t at_once, later;
        pair_t pair;

        begin(&pair, round);
        at_once = fork();
        if (at_once == 0) {
            _exit(3);
        }
        later = fork();
        if (later == 0) {
            sleep_ms(100);
            _exit(4);
        }
        check(at_once > 0 && later > 0, "fork() fails");
        if (round % 2 == 0) {
            check(child_status(at_once) == 3, "the first child ends in another way");
        }
        check(end(&pair), "wrong result in round %u", round);
        if (round % 2 == 1) {
            check(child_status(at_once) == 3, "the first child ends in another way");
        }
        check(child_status(later) == 4, "the second child ends in another way");
    }
}

/* Another program, as system() or popen() start it. */
static void run_programs(void)
{
    for (unsigned round = 1; round <= 5; round++) {
        pair_t pair;

        begin(&pair, round);
        check(system("exit 5") == 5 << 8, "system() fails");
        check(end(&pair), "wrong result in round %u", round);
    }
}

/* ---------------------------------------------------------- threads before MPI_Init */

static atomic_bool stop_thread;
static atomic_uint turns;
static pthread_t old_thread;

/* Takes and gives back memory all the time, small and large. */
static void *old_thread_main(void *arg)
{
    while (!atomic_load(&stop_thread)) {
        size_t size = atomic_fetch_add(&turns, 1) % 2 == 0 ? 100 : 1 << 22;
        volatile char *memory = malloc(size);

        if (memory != NULL) {
            memory[size - 1] = 1;
        }
        free((void *) memory);
        sleep_ms(1);
    }
    return arg;
}

/* The thread began before MPI_Init, and ends between operations. */
static void thread_before_init(void)
{
    unsigned before = atomic_load(&turns);
    void *returned = NULL;

    for (unsigned round = 1; round <= 20; round++) {
        pair_t pair;

        if (round == 15) {
            while (atomic_load(&turns) == before) {
                sched_yield(); /* it may not have had a core so far */
            }
            atomic_store(&stop_thread, true);
            pthread_join(old_thread, &returned);
        }
        begin(&pair, round);
        check(end(&pair), "wrong result in round %u", round);
    }
    check(returned == &stop_thread, "the thread ends in another way");
}

/* -------------------------------------------------------------------- MPI_Finalize */

static void expect_or_exit(bool right, const char *what)
{
    if (!right) {
        fprintf(stderr, "rank %d: %s\n", world_rank, what);
        _exit(1);
    }
}

/* Called by MPI_Finalize, before all else: MPI still works. */
static int last_operation(MPI_Comm comm, int key, void *value, void *extra)
{
    pair_t pair;

    (void) comm;
    (void) key;
    (void) value;
    (void) extra;
    begin(&pair, 77);
    expect_or_exit(end(&pair), "an operation within MPI_Finalize gives a wrong result");
    return MPI_SUCCESS;
}

static void within_finalize(void)
{
    int key;

    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, last_operation, &key, NULL);
    MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
    MPI_Comm_free_keyval(&key);
}

static int slow_on_one_rank(const MPIX_Flash_block *block, void *arg)
{
    (void) block;
    (void) arg;
    if (world_rank == world_size - 1) {
        sleep_ms(20);
    }
    return MPI_SUCCESS;
}

static void start_alone(int *argc, char ***argv)
{
    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world_size);
}

/* Nothing between the last operation and MPI_Finalize; the last rank is late. */
static int finalize(int argc, char **argv)
{
    unsigned char *send, *recv;
    pair_t pairs[4];

    start_alone(&argc, &argv);
    send = get_memory(BLOCK);
    recv = get_memory((size_t) world_size * BLOCK);
    fill_pattern(send, BLOCK, world_rank, 9);
    for (unsigned k = 0; k < LENGTH(pairs); k++) {
        begin(&pairs[k], k + 1);
    }
    for (unsigned k = 0; k < LENGTH(pairs); k++) {
        expect_or_exit(end(&pairs[k]), "wrong result");
    }
    MPIX_Allgather_compute(send, BLOCK, MPI_BYTE, recv, BLOCK, MPI_BYTE, slow_on_one_rank, NULL,
                           NULL, MPI_COMM_WORLD);
    MPI_Finalize();
    for (int rank = 0; rank < world_size; rank++) {
        expect_or_exit(is_pattern(recv + (size_t) rank * BLOCK, 0, BLOCK, rank, 9),
                       "wrong result of the last operation");
    }
    free(send);
    free(recv);
    return 0;
}

/* --------------------------------------------------------------------- sudden ends */

static int abort_in_callback(const MPIX_Flash_block *block, void *arg)
{
    if (block->rank != world_rank && world_rank == *(int *) arg) {
        MPI_Abort(MPI_COMM_WORLD, 7);
    }
    return MPI_SUCCESS;
}

/* In the middle of operations, of which there would be no end. */
static int end_suddenly(int argc, char **argv, bool by_abort)
{
    unsigned char *send, *recv;
    int last;

    alarm(100); /* whatever goes wrong, nothing is left for long */
    start_alone(&argc, &argv);
    send = get_memory(BLOCK);
    recv = get_memory((size_t) world_size * BLOCK);
    for (int round = 0;; round++) {
        MPI_Request request;

        MPI_Iallgather(send, BLOCK, MPI_BYTE, recv, BLOCK, MPI_BYTE, MPI_COMM_WORLD, &request);
        if (round == 5 && !by_abort && world_rank == world_size - 1) {
            exit(9);
        }
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        last = round == 5 && by_abort ? world_size - 1 : -1;
        MPIX_Allgather_compute(send, BLOCK, MPI_BYTE, recv, BLOCK, MPI_BYTE, abort_in_callback,
                               &last, NULL, MPI_COMM_WORLD);
    }
}

static void start_old_thread(void)
{
    pthread_create(&old_thread, NULL, old_thread_main, &stop_thread);
}

TEST_PROGRAM_WITH(test_life, MPI_THREAD_SINGLE, start_old_thread, NULL, {"fork", fork_children},
                  {"programs", run_programs}, {"thread_before_init", thread_before_init},
                  {"within_finalize", within_finalize});

int main(int argc, char **argv)
{
    const char *kind = argc > 1 ? argv[1] : "";

    if (strcmp(kind, "finalize") == 0) {
        return finalize(argc, argv);
    }
    if (strcmp(kind, "abort") == 0 || strcmp(kind, "exit") == 0) {
        return end_suddenly(argc, argv, strcmp(kind, "abort") == 0);
    }
    return run_program(&test_life, argv + 1);
}
