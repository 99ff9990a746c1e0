/*
 * victim.c: for kill.sh. Runs flash's operations without end; with an argument the last
 * rank makes a file of that name and kills itself, while the others wait for it.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include <mpi.h>

#include "keep_libraries.h"

enum { COUNT = 1 << 18 };

int main(int argc, char **argv)
{
    static char send[COUNT], recv[16 * COUNT];
    MPI_Request request;
    int rank, size;

    alarm(3000); /* whatever the test does wrong, nothing is left for long */
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int round = 0;; round++) {
        if (round == 20 && argc > 1 && rank == size - 1) {
            fclose(fopen(argv[1], "w"));
            raise(SIGKILL);
        }
        MPI_Iallgather(send, COUNT, MPI_BYTE, recv, COUNT, MPI_BYTE, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        if (round == 10 && rank == 0) {
            printf("running\n");
            fflush(stdout);
        }
    }
}
