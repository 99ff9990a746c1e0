/*
 * test_outside.c: calls of the extension before MPI_Init or after MPI_Finalize: they end the
 * program, with a message that names the call, as MPI's own do.
 *
 *   test_outside before|after CALL
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <stdio.h>
#include <string.h>

#include <mpix_flash.h>

#include "keep_libraries.h"

static int own, all[64];
static const int one = 1, zero;
static MPI_Request request;

static int compute(const MPIX_Flash_block *block, void *arg)
{
    (void) block;
    (void) arg;
    return MPI_SUCCESS;
}

/* The arguments that a call has in common with its non-blocking form. */
#define GATHER        &own, 1, MPI_INT, all, 1, MPI_INT, compute, NULL, NULL, MPI_COMM_WORLD
#define GATHERV       &own, 1, MPI_INT, all, &one, &zero, MPI_INT, compute, NULL, NULL, MPI_COMM_WORLD
#define SCATTER       compute, NULL, NULL, all, &one, MPI_INT, MPI_SUM, MPI_COMM_WORLD
#define SCATTERB      compute, NULL, NULL, all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD
#define TWO_CALLBACKS compute, NULL, compute, NULL, NULL
#define REDUCE        TWO_CALLBACKS, all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD
#define TOALL         NULL, 1, MPI_INT, all, 1, MPI_INT, TWO_CALLBACKS, MPI_COMM_WORLD
#define TOALLV        NULL, &one, &zero, MPI_INT, all, &one, &zero, MPI_INT, TWO_CALLBACKS, MPI_COMM_WORLD

/* CALL(function, arguments...): makes it, if that is what the command line names. */
#define CALL(function, ...)             \
    if (strcmp(name, #function) == 0) { \
        function(__VA_ARGS__);          \
    }

/* Likewise for a call and its non-blocking form. */
#define FORMS(blocking, nonblocking, ...) \
    CALL(blocking, __VA_ARGS__)           \
    CALL(nonblocking, __VA_ARGS__, &request)

static void call(const char *name)
{
    CALL(MPIX_Flash_active, MPI_COMM_WORLD, all)
    FORMS(MPIX_Allgather_compute, MPIX_Iallgather_compute, GATHER)
    FORMS(MPIX_Allgatherv_compute, MPIX_Iallgatherv_compute, GATHERV)
    FORMS(MPIX_Allreduce_compute, MPIX_Iallreduce_compute, REDUCE)
    FORMS(MPIX_Alltoall_compute, MPIX_Ialltoall_compute, TOALL)
    FORMS(MPIX_Alltoallv_compute, MPIX_Ialltoallv_compute, TOALLV)
    FORMS(MPIX_Reduce_scatter_compute, MPIX_Ireduce_scatter_compute, SCATTER)
    FORMS(MPIX_Reduce_scatter_block_compute, MPIX_Ireduce_scatter_block_compute, SCATTERB)
    printf("%s came back, or is none\n", name);
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
    return 1;
}
