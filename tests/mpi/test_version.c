/*
 * test_version.c: a program that runs with the Open MPI it was built for, and says of it what
 * FLASH_TEST_LIBRARY says. With flash's library or without, as it is linked; FLASH_TEST_CALLS=0:
 * without calls to it. Two ranks make an inter-communicator: flash has left no message that Open MPI
 * takes for its own.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "keep_libraries.h"
#include "mpix_flash.h"

#pragma weak MPIX_Flash_active

/* In front of the library's own. */
int PMPI_Get_library_version(char *version, int *length)
{
    const char *text = getenv("FLASH_TEST_LIBRARY");

    if (text == NULL) {
        return MPI_Get_library_version(version, length);
    }
    strcpy(version, text);
    *length = (int) strlen(text);
    return MPI_SUCCESS;
}

/*
 * By messages between two ranks of MPI_COMM_WORLD, of Open MPI's own tags. Rank 0 must hear from the other
 * one, which numbers are free there.
 */
static int join(int rank)
{
    enum { TAKEN = 4 };
    int other = -1;
    MPI_Comm inter, taken[TAKEN];

    for (int k = 0; rank == 1 && k < TAKEN; k++) {
        MPI_Comm_dup(MPI_COMM_SELF, &taken[k]);
    }
    MPI_Intercomm_create(MPI_COMM_SELF, 0, MPI_COMM_WORLD, 1 - rank, 7, &inter);
    MPI_Sendrecv(&rank, 1, MPI_INT, 0, 8, &other, 1, MPI_INT, 0, 8, inter, MPI_STATUS_IGNORE);
    MPI_Comm_free(&inter);
    for (int k = 0; rank == 1 && k < TAKEN; k++) {
        MPI_Comm_free(&taken[k]);
    }
    return other == 1 - rank;
}

int main(int argc, char **argv)
{
    int rank, size, active = 0, right = 1, *all;
    MPI_Request request;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    all = calloc((size_t) size, sizeof(*all));
    MPI_Iallgather(&rank, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int k = 0; k < size; k++) {
        right &= all[k] == k;
    }
    right &= size != 2 || join(rank);
    if (MPIX_Flash_active != NULL && getenv("FLASH_TEST_CALLS") == NULL) {
        MPIX_Flash_active(MPI_COMM_WORLD, &active);
    }
    printf("rank %d: %s, flash is %s\n", rank, right ? "right" : "wrong",
           active ? "active" : "not active");
    free(all);
    MPI_Finalize();
    return right ? EXIT_SUCCESS : EXIT_FAILURE;
}
