/*
 * starting_calls.c: a program that makes one call, or none, whose first exchanges starting.sh counts.
 *
 *   starting_calls none|ring|exchange
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <stdlib.h>
#include <string.h>

#include <mpi.h>

#include "keep_libraries.h"

int main(int argc, char **argv)
{
    MPI_Request request = MPI_REQUEST_NULL;
    int rank, size, *sent, *received, good = argc == 2;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    sent = calloc((size_t) size, sizeof(int));
    received = calloc((size_t) size, sizeof(int));
    if (sent == NULL || received == NULL) {
        MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    }
    for (int k = 0; k < size; k++) {
        sent[k] = rank + 1;
        received[k] = k + 1;
    }
    if (good && strcmp(argv[1], "none") != 0) {
        memset(received, 0, (size_t) size * sizeof(int));
    }
    if (good && strcmp(argv[1], "ring") == 0) {
        MPI_Iallgather(sent, 1, MPI_INT, received, 1, MPI_INT, MPI_COMM_WORLD, &request);
    } else if (good && strcmp(argv[1], "exchange") == 0) {
        MPI_Ialltoall(sent, 1, MPI_INT, received, 1, MPI_INT, MPI_COMM_WORLD, &request);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int k = 0; k < size; k++) {
        good &= received[k] == k + 1;
    }
    free(sent);
    free(received);
    MPI_Finalize();
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
