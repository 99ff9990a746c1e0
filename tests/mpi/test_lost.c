/*
 * test_lost.c: a rank that dies, or is late, in the middle of operations. What the survivors see is
 * printed, a line each, for the script to count: MPI_Finalize is not to be had without the dead.
 *
 *   test_lost MODE CALL [CALLBACK]
 *                         dies: rank 1 dies in an operation; jams: as it writes a message into the
 *                         memory of another one; absent: before it takes part in any;
 *                         late: it comes FLASH_TEST_LINGER seconds after each of the others has said
 *                         what FLASH_TEST_UNTIL holds, or seconds after them; beside: it dies, and then rank 2 is
 *                         late for a communicator of the others; apart: its blocks are half as
 *                         long as rank 0's. CALL: see below. CALLBACK: in that one of its operation
 *                         it dies, counted from 1, instead of somewhere
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <mpix_flash.h>

#include "mid_send.h"
#include "mpitest.h"
#include "persistent.h"

enum {
    COUNT = 400000,
    ROUNDS = 6,
    VICTIM = 1,
    VICTIMS_ROUND = 3,
    LATE_SECONDS = 6,
    LATE_BESIDE = 2
};
enum { MORE = 8, MORE_COUNT = 100 };
enum { HOLD_SECONDS = 2 }; /* longer than it takes to find out that a rank has died */

static int64_t *send, *recv;
static int *counts, *displs;
static int count = COUNT; /* of the forms with equal blocks */
static MPI_Request more[MORE];
static int64_t *more_recv[MORE];

/* ------------------------------------------------------------------- the calls */

static int gather(MPI_Request *request)
{
    return MPI_Iallgather(send, count, MPI_INT64_T, recv, count, MPI_INT64_T, MPI_COMM_WORLD,
                          request);
}

/* Behind some more, shorter ones, which end before it does: or with it, if somebody is late. */
static int gather_many(MPI_Request *request)
{
    int error = MPI_Waitall(MORE, more, MPI_STATUSES_IGNORE);

    for (int k = 0; k < MORE && error == MPI_SUCCESS; k++) {
        error = MPI_Iallgather(send, MORE_COUNT, MPI_INT64_T, more_recv[k], MORE_COUNT, MPI_INT64_T,
                               MPI_COMM_WORLD, &more[k]);
    }
    return error != MPI_SUCCESS ? error : gather(request);
}

static int gatherv(MPI_Request *request)
{
    return MPI_Iallgatherv(send, COUNT, MPI_INT64_T, recv, counts, displs, MPI_INT64_T,
                           MPI_COMM_WORLD, request);
}

static int reduce(MPI_Request *request)
{
    return MPI_Ireduce_scatter_block(send, recv, count, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD,
                                     request);
}

static int reducev(MPI_Request *request)
{
    return MPI_Ireduce_scatter(send, recv, counts, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD, request);
}

/* A request that lasts, until it ends with an error: Open MPI frees it then. */
static MPI_Request persistent;

static int start_again(int error, MPI_Request *request)
{
    *request = persistent;
    return error != MPI_SUCCESS ? error : MPI_Start(request);
}

static int gather_init(MPI_Request *request)
{
    int error = MPI_SUCCESS;

    if (persistent == MPI_REQUEST_NULL) {
        error = MPI_Allgather_init(send, COUNT, MPI_INT64_T, recv, COUNT, MPI_INT64_T,
                                   MPI_COMM_WORLD, MPI_INFO_NULL, &persistent);
    }
    return start_again(error, request);
}

static int reduce_init(MPI_Request *request)
{
    int error = MPI_SUCCESS;

    if (persistent == MPI_REQUEST_NULL) {
        error = MPI_Reduce_scatter_block_init(send, recv, COUNT, MPI_INT64_T, MPI_SUM,
                                              MPI_COMM_WORLD, MPI_INFO_NULL, &persistent);
    }
    return start_again(error, request);
}

/* ---------------------------------------------------------------- with callbacks */

static bool holds; /* the callbacks of this round leave their first piece pending */
static bool held;
static MPIX_Flash_handle handle; /* of that */
static int dies_in;              /* which of its callbacks kills the victim; 0: none */
static int callbacks_left;       /* of the victim, before that one is done; 0: no end */

static int now_or_later(const MPIX_Flash_block *block)
{
    if (callbacks_left > 0 && --callbacks_left == 0) {
        raise(SIGKILL);
    }
    if (!holds || held) {
        return MPI_SUCCESS;
    }
    held = true;
    handle = block->handle;
    return MPIX_FLASH_PENDING;
}

static int consume(const MPIX_Flash_block *block, void *arg)
{
    (void) arg;
    return now_or_later(block);
}

static int produce(const MPIX_Flash_block *block, void *arg)
{
    int64_t *data = block->data;

    (void) arg;
    for (MPI_Count k = 0; k < block->count; k++) {
        data[k] = world_rank + 1;
    }
    return now_or_later(block);
}

static int gather_compute(MPI_Request *request)
{
    return MPIX_Iallgather_compute(send, COUNT, MPI_INT64_T, recv, COUNT, MPI_INT64_T, consume,
                                   NULL, NULL, MPI_COMM_WORLD, request);
}

static int reduce_compute(MPI_Request *request)
{
    return MPIX_Ireduce_scatter_block_compute(produce, NULL, NULL, recv, COUNT, MPI_INT64_T,
                                              MPI_SUM, MPI_COMM_WORLD, request);
}

/* Until the piece is let go, the operation cannot end. */
static int wait_holding(MPI_Request *request)
{
    time_t end = time(NULL) + HOLD_SECONDS;
    int flag = 0, error = MPI_SUCCESS;

    while (!flag && error == MPI_SUCCESS && time(NULL) < end) {
        error = MPI_Test(request, &flag, MPI_STATUS_IGNORE);
    }
    if (held) {
        if (flag || error != MPI_SUCCESS) {
            printf("rank %d: an operation ended with a piece pending\n", world_rank);
        }
        MPIX_Flash_complete(handle, MPI_SUCCESS);
    }
    return error != MPI_SUCCESS ? error : MPI_Wait(request, MPI_STATUS_IGNORE);
}

/* ------------------------------------------------------------------- the rounds */

static const struct call {
    const char *name;
    int (*post)(MPI_Request *request);
    bool gathers, holds;
} calls[] = {{"gather", gather, true, false},
             {"gather_many", gather_many, true, false},
             {"reduce", reduce, false, false},
             {"gatherv", gatherv, true, false},
             {"reducev", reducev, false, false},
             {"gather_init", gather_init, true, false},
             {"reduce_init", reduce_init, false, false},
             {"gather_compute", gather_compute, true, false},
             {"reduce_compute", reduce_compute, false, false},
             {"gather_pending", gather_compute, true, true},
             {"reduce_pending", reduce_compute, false, true}};

static bool is_right(const struct call *call)
{
    int64_t sum = (int64_t) world_size * (world_size + 1) / 2;

    for (int k = 0; k < (call->gathers ? world_size * COUNT : COUNT); k++) {
        if (recv[k] != (call->gathers ? k / COUNT + 1 : sum)) {
            return false;
        }
    }
    return true;
}

/* --------------------------------------------------------------------- a death */

/* The state of a process as the kernel has it: 'Z' has ended, and nobody has waited for it. 0: none. */
static char state_of(int pid)
{
    char path[32], line[256] = "", *end;
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    file = fopen(path, "r");
    if (file == NULL) {
        return 0;
    }
    if (fgets(line, sizeof(line), file) == NULL) {
        line[0] = '\0';
    }
    fclose(file);
    end = strrchr(line, ')'); /* behind the name, which may hold anything */
    return (char) (end == NULL ? 0 : end[2]);
}

static int guardian; /* the victim's parent, if it is to wait for release() */

static int of_environment(const char *name)
{
    const char *value = getenv(name);

    return value == NULL ? 0 : atoi(value);
}

/*
 * From here on the victim is a child of the process that mpirun has started. That one leaves the victim
 * dead and not waited for, until each other rank has released it, or mpirun is gone. mpirun itself would
 * wait for it at once.
 */
static void guard_victim(void)
{
    static const struct timespec pause = {.tv_nsec = 100000000};
    int releases_left = of_environment("OMPI_COMM_WORLD_SIZE") - 1;
    pid_t child, mpirun = getppid();
    siginfo_t info;
    sigset_t releases;

    if (of_environment("OMPI_COMM_WORLD_RANK") != VICTIM) {
        return;
    }
    sigemptyset(&releases);
    sigaddset(&releases, SIGRTMIN);
    sigprocmask(SIG_BLOCK, &releases, NULL); /* each is queued */
    guardian = (int) getpid();
    child = fork();
    if (child == 0) {
        sigprocmask(SIG_UNBLOCK, &releases, NULL);
        return;
    }
    waitid(P_PID, (id_t) child, &info, WEXITED | WNOWAIT);
    while (releases_left > 0 && getppid() == mpirun) {
        releases_left -= sigtimedwait(&releases, NULL, &pause) == SIGRTMIN;
    }
    raise(SIGKILL);
}

static void release(void)
{
    if (guardian > 0) {
        kill(guardian, SIGRTMIN);
    }
}

/* The victim dies when all others have come here, and they go on when it is dead. */
static void see_victim_die(void)
{
    static const struct timespec pause = {.tv_nsec = 1000000};
    int pids[2] = {(int) getpid(), guardian};

    if (world_rank == VICTIM) {
        for (int rank = 0; rank < world_size; rank++) {
            if (rank != VICTIM) {
                MPI_Send(pids, 2, MPI_INT, rank, 0, MPI_COMM_WORLD);
            }
        }
        for (int rank = 0; rank < world_size; rank++) {
            if (rank != VICTIM) {
                MPI_Recv(NULL, 0, MPI_INT, rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            }
        }
        raise(SIGKILL);
    }
    MPI_Recv(pids, 2, MPI_INT, VICTIM, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    guardian = pids[1];
    MPI_Send(NULL, 0, MPI_INT, VICTIM, 0, MPI_COMM_WORLD);
    for (char state = 'R'; state != 0 && state != 'Z' && state != 'X'; state = state_of(pids[0])) {
        nanosleep(&pause, NULL);
    }
}

/*
 * A persistent request is gone where it has failed (Open MPI frees it), and a rank to which all
 * came in time would wait for its next round: the victim of such is dead before the round, and
 * nobody's succeeds.
 */
static bool dies_before(const struct call *call)
{
    return call->post == gather_init || call->post == reduce_init;
}

/* One operation; what came of it. Success with wrong data is what must never be. */
static int
    first_pid; /* of rank 0, where the other one's request is Open MPI's own, and has no end */

/* The process ends when rank 0, which is told, has done so. */
static int wait_for_first(MPI_Request *request)
{
    int done = 0, error = MPI_SUCCESS;
    char state;

    while (!done) {
        error = MPI_Test(request, &done, MPI_STATUS_IGNORE);
        state = state_of(first_pid);
        if (!done && (state == 0 || state == 'Z')) {
            _exit(0);
        }
    }
    return error;
}

static int wait_for(MPI_Request *request)
{
    if (first_pid != 0 && world_rank != 0) {
        return wait_for_first(request);
    }
    return holds ? wait_holding(request) : MPI_Wait(request, MPI_STATUS_IGNORE);
}

static int go_round(const struct call *call, bool dying)
{
    MPI_Request request = MPI_REQUEST_NULL;
    int error;

    memset(recv, 0xff, (size_t) world_size * COUNT * sizeof(*recv));
    held = false;
    callbacks_left = dying ? dies_in : 0;
    error = call->post(&request);
    if (dying && dies_in == 0) {
        usleep(300); /* somewhere in the ring */
        raise(SIGKILL);
    }
    if (error == MPI_SUCCESS) {
        error = wait_for(&request);
    }
    persistent = request;
    if (error == MPI_SUCCESS && !is_right(call)) {
        printf("rank %d: wrong data called right\n", world_rank);
    }
    return error;
}

static void say_outcome(const char *when, int error)
{
    int class;

    MPI_Error_class(error, &class);
    printf("rank %d, pid %d: %s: %s\n", world_rank, (int) getpid(), when,
           class == MPI_SUCCESS     ? "success"
           : class == MPI_ERR_OTHER ? "MPI_ERR_OTHER"
                                    : "another error");
    fflush(stdout);
}

static bool has_line(const char *path, const char *text)
{
    FILE *file = fopen(path, "r");
    char line[1024];
    bool found = false;

    while (file != NULL && !found && fgets(line, sizeof(line), file) != NULL) {
        found = strstr(line, text) != NULL;
    }
    if (file != NULL) {
        fclose(file);
    }
    return found;
}

/* In the files that the runner gives each rank: RANK.out and RANK.err, in one folder. */
static bool has_said(int rank, const char *text)
{
    char path[PATH_MAX + 32];
    ssize_t length = readlink("/proc/self/fd/2", path, PATH_MAX);
    char *name;

    path[length < 0 ? 0 : length] = '\0';
    name = strrchr(path, '/');
    if (name == NULL) {
        MPI_Abort(MPI_COMM_WORLD, 1);
        return false;
    }
    sprintf(name, "/%d.err", rank);
    if (has_line(path, text)) {
        return true;
    }
    sprintf(name, "/%d.out", rank);
    return has_line(path, text);
}

static void come_late(void)
{
    static const struct timespec pause = {.tv_nsec = 10000000};
    const char *text = getenv("FLASH_TEST_UNTIL"), *linger = getenv("FLASH_TEST_LINGER");

    if (text == NULL) {
        sleep(LATE_SECONDS);
        return;
    }
    for (int rank = 0; rank < world_size; rank++) {
        while (rank != world_rank && !has_said(rank, text)) {
            nanosleep(&pause, NULL);
        }
    }
    sleep(linger == NULL ? 0 : (unsigned) atoi(linger));
}

static int go_rounds(const struct call *call, const char *mode)
{
    bool late = strcmp(mode, "late") == 0, dies = strcmp(mode, "dies") == 0;
    int error = MPI_SUCCESS;

    if (strcmp(mode, "absent") == 0) {
        see_victim_die();
    }
    for (int round = 0; round < ROUNDS && error == MPI_SUCCESS; round++) {
        bool mine = world_rank == VICTIM && round == VICTIMS_ROUND;

        if (mine && late) {
            come_late();
        }
        if (mine && strcmp(mode, "jams") == 0) {
            die_mid_send();
        }
        if (dies && round == VICTIMS_ROUND && dies_before(call)) {
            see_victim_die();
        }
        holds = call->holds && round == VICTIMS_ROUND;
        error = go_round(call, mine && dies);
    }
    holds = false;
    return error;
}

/* For whom the dead one has no part in. */
static int go_beside(const struct call *call)
{
    MPI_Request request;
    MPI_Comm others;
    int ranks, error;

    MPI_Comm_split(MPI_COMM_WORLD, world_rank == VICTIM, world_rank, &others);
    MPI_Comm_size(others, &ranks);
    error = go_round(call, false);
    see_victim_die();
    if (error != MPI_SUCCESS) {
        return error;
    }
    if (world_rank == LATE_BESIDE) {
        sleep(LATE_SECONDS);
    }
    memset(recv, 0xff, (size_t) ranks * COUNT * sizeof(*recv));
    MPI_Iallgather(send, COUNT, MPI_INT64_T, recv, COUNT, MPI_INT64_T, others, &request);
    error = MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int k = 0; k < ranks * COUNT && error == MPI_SUCCESS; k++) {
        int rank = k / COUNT;

        if (recv[k] != rank + 1 + (rank >= VICTIM)) {
            printf("rank %d: wrong data called right\n", world_rank);
            break;
        }
    }
    return error;
}

static void make_buffers(void)
{
    send = get_memory((size_t) world_size * COUNT * sizeof(*send));
    recv = get_memory((size_t) world_size * COUNT * sizeof(*recv));
    for (int k = 0; k < MORE; k++) {
        more[k] = MPI_REQUEST_NULL;
        more_recv[k] = get_memory((size_t) world_size * MORE_COUNT * sizeof(*more_recv[k]));
    }
    counts = get_memory((size_t) world_size * sizeof(*counts));
    displs = get_memory((size_t) world_size * sizeof(*displs));
    for (int k = 0; k < world_size * COUNT; k++) {
        send[k] = world_rank + 1;
    }
    for (int rank = 0; rank < world_size; rank++) {
        counts[rank] = COUNT;
        displs[rank] = rank * COUNT;
    }
}

static void say_threads(void)
{
    int level;

    MPI_Query_thread(&level);
    if (level == MPI_THREAD_MULTIPLE) {
        printf("rank %d: MPI_THREAD_MULTIPLE\n", world_rank);
    }
}

static const struct call *find_call(const char *name)
{
    for (size_t k = 0; k < LENGTH(calls); k++) {
        if (strcmp(calls[k].name, name) == 0) {
            return &calls[k];
        }
    }
    return NULL;
}

int main(int argc, char **argv)
{
    const struct call *call = argc > 2 ? find_call(argv[2]) : NULL;
    bool beside;
    int error;

    if (call == NULL) {
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF,
            0); /* a file, of which the dead would take the last lines along */
    dies_in = argc > 3 ? atoi(argv[3]) : 0;
    persistent = MPI_REQUEST_NULL;
    if (strcmp(argv[1], "absent") == 0) {
        guard_victim();
    }
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world_size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    say_threads();
    make_buffers();
    if (strcmp(argv[1], "apart") == 0) {
        first_pid = strcmp(argv[2], "gather") == 0 ? (int) getpid() : 0;
        MPI_Bcast(&first_pid, 1, MPI_INT, 0, MPI_COMM_WORLD);
        count /= world_rank == 0 ? 1 : 2;
    }
    beside = strcmp(argv[1], "beside") == 0;
    error = beside ? go_beside(call) : go_rounds(call, argv[1]);
    say_outcome("at last", error);
    if (beside) {
        _exit(0); /* MPI_Finalize waits for the dead */
    }
    if (error != MPI_SUCCESS) {
        say_outcome("once more", go_round(call, false));
        release();
        _exit(0);
    }
    if (persistent != MPI_REQUEST_NULL) {
        MPI_Request_free(&persistent);
    }
    MPI_Waitall(MORE, more, MPI_STATUSES_IGNORE);
    for (int k = 0; k < MORE; k++) {
        free(more_recv[k]);
    }
    free(send);
    free(recv);
    free(counts);
    free(displs);
    MPI_Finalize();
    return 0;
}
