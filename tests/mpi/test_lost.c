/*
 * test_lost.c: a rank that dies, or is late, in the middle of operations. What the survivors see is
 * printed, a line each, for the script to count: MPI_Finalize is not to be had without the dead.
 *
 *   test_lost dies|late gather|reduce   rank 1 dies, or comes seconds after the others
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "mpitest.h"

enum { COUNT = 400000, ROUNDS = 6, VICTIM = 1, VICTIMS_ROUND = 3, LATE_SECONDS = 6 };

static int64_t *send, *recv;

static MPI_Request post(bool gather, MPI_Comm comm)
{
    MPI_Request request = MPI_REQUEST_NULL;

    if (gather) {
        MPI_Iallgather(send, COUNT, MPI_INT64_T, recv, COUNT, MPI_INT64_T, comm, &request);
    } else {
        MPI_Ireduce_scatter_block(send, recv, COUNT, MPI_INT64_T, MPI_SUM, comm, &request);
    }
    return request;
}

static bool is_right(bool gather)
{
    int64_t sum = (int64_t) world_size * (world_size + 1) / 2;

    for (int k = 0; k < (gather ? world_size * COUNT : COUNT); k++) {
        if (recv[k] != (gather ? k / COUNT + 1 : sum)) {
            return false;
        }
    }
    return true;
}

/* One operation; what came of it. Success with wrong data is what must never be. */
static int go_round(bool gather, MPI_Comm comm, bool dying)
{
    MPI_Request request;
    int error;

    memset(recv, 0xff, (size_t) world_size * COUNT * sizeof(*recv));
    request = post(gather, comm);
    if (dying) {
        usleep(300); /* somewhere in the ring */
        raise(SIGKILL);
    }
    error = MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (error == MPI_SUCCESS && !is_right(gather)) {
        printf("rank %d: wrong data called right\n", world_rank);
    }
    return error;
}

static void say_outcome(const char *when, int error)
{
    int class;

    MPI_Error_class(error, &class);
    printf("rank %d: %s: %s\n", world_rank, when,
           class == MPI_SUCCESS     ? "success"
           : class == MPI_ERR_OTHER ? "MPI_ERR_OTHER"
                                    : "another error");
    fflush(stdout);
}

int main(int argc, char **argv)
{
    bool dies = argc == 3 && strcmp(argv[1], "dies") == 0;
    bool gather = argc == 3 && strcmp(argv[2], "gather") == 0;
    int error = MPI_SUCCESS;

    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world_size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    send = get_memory((size_t) world_size * COUNT * sizeof(*send));
    recv = get_memory((size_t) world_size * COUNT * sizeof(*recv));
    for (int k = 0; k < world_size * COUNT; k++) {
        send[k] = world_rank + 1;
    }
    for (int round = 0; round < ROUNDS && error == MPI_SUCCESS; round++) {
        bool mine = world_rank == VICTIM && round == VICTIMS_ROUND;

        if (mine && !dies) {
            sleep(LATE_SECONDS);
        }
        error = go_round(gather, MPI_COMM_WORLD, mine && dies);
    }
    say_outcome("at last", error);
    if (error != MPI_SUCCESS) {
        say_outcome("once more", go_round(gather, MPI_COMM_WORLD, false));
        _exit(0);
    }
    free(send);
    free(recv);
    MPI_Finalize();
    return 0;
}
