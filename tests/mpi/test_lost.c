/*
 * test_lost.c: a rank that dies, or is late, in the middle of operations. What the survivors see is
 * printed, a line each, for the script to count: MPI_Finalize is not to be had without the dead.
 *
 *   test_lost MODE CALL [CALLBACK]
 *                         dies: rank 1 dies in an operation; blocks: as it writes a message into
 *                         the memory of another one; absent: before it takes part in any;
 *                         late: it comes FLASH_TEST_LINGER seconds after each of the others has
 *                         said what FLASH_TEST_UNTIL holds, or seconds after them; beside: it dies,
 *                         and then rank 2 is late for a communicator of the others; apart: its
 *                         blocks are half as long as rank 0's. CALL: see below. CALLBACK: in that
 *                         one of its operation it dies, counted from 1, instead of somewhere
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "keep_libraries.h"
#include "lost_callbacks.h"
#include "lost_calls.h"
#include "lost_late.h"
#include "lost_victim.h"
#include "mid_send.h"
#include "mpitest.h"

enum { ROUNDS = 6, VICTIMS_ROUND = 3, LATE_BESIDE = 2 };

static int dies_in; /* which of its callbacks kills the victim; 0: none */
static bool holds;  /* the callbacks of this round leave their first piece pending */
/* Of rank 0, where the other one's request is Open MPI's own, and has no end. */
static int first_pid;

/* The process ends when rank 0, which is told, has done so. */
static int wait_for_first(MPI_Request *request)
{
    int done = 0, error = MPI_SUCCESS;
    char state;

    while (!done) {
        error = MPI_Test(request, &done, MPI_STATUS_IGNORE);
        state = lost_state_of(first_pid);
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
    return holds ? lost_wait_holding(request) : MPI_Wait(request, MPI_STATUS_IGNORE);
}

/* One operation; what came of it. Success with wrong data is what must never be. */
static int go_round(const lost_call_t *call, bool dying)
{
    MPI_Request request = MPI_REQUEST_NULL;
    int error;

    memset(lost_recv, 0xff, (size_t) world_size * lost_count * sizeof(*lost_recv));
    lost_callbacks_begin(holds, dying ? dies_in : 0);
    error = call->post(&request);
    if (dying && dies_in == 0) {
        usleep(300); /* somewhere in the ring */
        raise(SIGKILL);
    }
    if (error == MPI_SUCCESS) {
        error = wait_for(&request);
    }
    lost_keep_request(request);
    if (error == MPI_SUCCESS && !lost_is_right(call)) {
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

static int go_rounds(const lost_call_t *call, const char *mode)
{
    bool late = strcmp(mode, "late") == 0, dies = strcmp(mode, "dies") == 0;
    int error = MPI_SUCCESS, files = 0;

    if (strcmp(mode, "absent") == 0) {
        lost_see_victim_die();
    }
    for (int round = 0; round < ROUNDS && error == MPI_SUCCESS; round++) {
        bool mine = world_rank == LOST_VICTIM && round == VICTIMS_ROUND;

        if (late && round == VICTIMS_ROUND) {
            files = lost_open_files();
        }
        if (mine && late) {
            lost_come_late();
        }
        if (mine && strcmp(mode, "blocks") == 0) {
            die_mid_send();
        }
        /*
         * A persistent request is gone where it has failed (Open MPI frees it), and a rank to which
         * all came in time would wait for its next round: the victim of such is dead before the
         * round, and nobody's succeeds.
         */
        if (dies && round == VICTIMS_ROUND && call->lasts) {
            lost_see_victim_die();
        }
        holds = call->holds && round == VICTIMS_ROUND;
        error = go_round(call, mine && dies);
        if (late && round == VICTIMS_ROUND && error == MPI_SUCCESS) {
            check(lost_open_files() <= files, "what waiting has opened stays: %d files, %d before",
                  lost_open_files(), files);
        }
    }
    holds = false;
    return error;
}

/* For whom the dead one has no part in. */
static int go_beside(const lost_call_t *call)
{
    MPI_Request request;
    MPI_Comm others;
    int ranks, error;

    MPI_Comm_split(MPI_COMM_WORLD, world_rank == LOST_VICTIM, world_rank, &others);
    MPI_Comm_size(others, &ranks);
    error = go_round(call, false);
    lost_see_victim_die();
    if (error != MPI_SUCCESS) {
        return error;
    }
    if (world_rank == LATE_BESIDE) {
        sleep(LOST_LATE_SECONDS);
    }
    memset(lost_recv, 0xff, (size_t) ranks * lost_count * sizeof(*lost_recv));
    MPI_Iallgather(lost_send, lost_count, MPI_INT64_T, lost_recv, lost_count, MPI_INT64_T, others,
                   &request);
    error = MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int k = 0; k < ranks * lost_count && error == MPI_SUCCESS; k++) {
        int rank = k / lost_count;

        if (lost_recv[k] != rank + 1 + (rank >= LOST_VICTIM)) {
            printf("rank %d: wrong data called right\n", world_rank);
            break;
        }
    }
    return error;
}

static void say_threads(void)
{
    int level;

    MPI_Query_thread(&level);
    if (level == MPI_THREAD_MULTIPLE) {
        printf("rank %d: MPI_THREAD_MULTIPLE\n", world_rank);
    }
}

int main(int argc, char **argv)
{
    const lost_call_t *call = argc > 2 ? lost_find_call(argv[2]) : NULL;
    bool beside, one_dies;
    int error;

    if (call == NULL) {
        return 2;
    }
    /* It is a file, of which the dead would take the last lines along. */
    setvbuf(stdout, NULL, _IOLBF, 0);
    dies_in = argc > 3 ? atoi(argv[3]) : 0;
    if (strcmp(argv[1], "absent") == 0) {
        lost_guard_victim();
    }
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world_size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    say_threads();
    lost_make_buffers();
    if (strcmp(argv[1], "apart") == 0) {
        first_pid = strcmp(argv[2], "gather") == 0 ? (int) getpid() : 0;
        MPI_Bcast(&first_pid, 1, MPI_INT, 0, MPI_COMM_WORLD);
        if (world_rank != 0) {
            lost_halve_blocks();
        }
    }
    beside = strcmp(argv[1], "beside") == 0;
    one_dies = strcmp(argv[1], "late") != 0 && strcmp(argv[1], "apart") != 0;
    error = beside ? go_beside(call) : go_rounds(call, argv[1]);
    say_outcome("at last", error);
    if (!beside && error != MPI_SUCCESS) {
        say_outcome("once more", go_round(call, false));
        lost_release();
        _exit(0);
    }
    /* MPI_Finalize waits for the dead rank, even if all rounds of this one succeeded. */
    if (one_dies) {
        _exit(0);
    }
    lost_free_buffers();
    MPI_Finalize();
    return 0;
}
