/*
 * test_outside.c: calls of the extension before MPI_Init or after MPI_Finalize: they end the program,
 * with a message that names the call, as MPI's own do.
 *
 *   test_outside before|after CALL
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <stdio.h>
#include <string.h>

#include <mpix_flash.h>

static int compute(const MPIX_Flash_block *block, void *arg)
{
    (void) block;
    (void) arg;
    return MPI_SUCCESS;
}

static void call(const char *name)
{
    const int one = 1, zero = 0;
    int number = 0, all[64] = {0};
    MPI_Request request;
    MPI_Comm world = MPI_COMM_WORLD;

    if (strcmp(name, "active") == 0) {
        MPIX_Flash_active(world, &number);
    } else if (strcmp(name, "allgather") == 0) {
        MPIX_Allgather_compute(&number, 1, MPI_INT, all, 1, MPI_INT, compute, NULL, NULL, world);
    } else if (strcmp(name, "iallgatherv") == 0) {
        MPIX_Iallgatherv_compute(&number, 1, MPI_INT, all, &one, &zero, MPI_INT, compute, NULL,
                                 NULL, world, &request);
    } else if (strcmp(name, "ireduce_scatter") == 0) {
        MPIX_Ireduce_scatter_compute(compute, NULL, NULL, all, &one, MPI_INT, MPI_SUM, world,
                                     &request);
    } else if (strcmp(name, "ireduce_scatter_block") == 0) {
        MPIX_Ireduce_scatter_block_compute(compute, NULL, NULL, all, 1, MPI_INT, MPI_SUM, world,
                                           &request);
    } else if (strcmp(name, "iallreduce") == 0) {
        MPIX_Iallreduce_compute(compute, NULL, compute, NULL, NULL, all, 1, MPI_INT, MPI_SUM, world,
                                &request);
    } else if (strcmp(name, "ialltoall") == 0) {
        MPIX_Ialltoall_compute(NULL, 1, MPI_INT, all, 1, MPI_INT, compute, NULL, compute, NULL,
                               NULL, world, &request);
    } else if (strcmp(name, "ialltoallv") == 0) {
        MPIX_Ialltoallv_compute(NULL, &one, &zero, MPI_INT, all, &one, &zero, MPI_INT, compute,
                                NULL, compute, NULL, NULL, world, &request);
    }
    printf("%s came back\n", name);
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        return 2;
    }
    if (strcmp(argv[1], "after") == 0) {
        MPI_Init(&argc, &argv);
        MPI_Finalize();
    }
    call(argv[2]);
    return 0;
}
