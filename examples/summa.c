/*
 * summa.c: C = A B, of matrices that lie in blocks on a square grid of ranks, by SUMMA.
 *
 *   mpirun -n 4 --mca coll flash summa
 *
 * A rank's block of C is the sum of products of the blocks of A in its row of the grid with the
 * blocks of B in its column. Both are gathered: B's first, without a computation of its own; then
 * A's, each block of which is multiplied as it arrives, by the block of B that belongs to it.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <mpix_flash.h>

enum { N = 72 }; /* a block is N x N */

typedef struct summa {
    const double *b; /* the column's blocks, from the top */
    double *c;
} summa_t;

static double a_of(int row, int column)
{
    return sin(row + 0.5 * column);
}

static double b_of(int row, int column)
{
    return cos(0.2 * row - column);
}

static double *matrix(int blocks)
{
    double *made = calloc((size_t) blocks * N * N, sizeof(*made));

    if (made == NULL) {
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return made;
}

/* Some rows of A's block k times B's block k: what a real program has BLAS for. */
static int multiply(const MPIX_Flash_block *block, void *arg)
{
    const summa_t *summa = arg;
    const double *a = block->data, *b = summa->b + (size_t) block->rank * N * N;
    int first = (int) (block->offset / N), rows = (int) (block->count / N);

    for (int i = 0; i < rows; i++) {
        for (int k = 0; k < N; k++) {
            for (int j = 0; j < N; j++) {
                summa->c[(first + i) * N + j] += a[i * N + k] * b[k * N + j];
            }
        }
    }
    return MPI_SUCCESS;
}

/* Of a sample of this rank's elements. */
static double worst_error(const double *c, int row, int column, int side)
{
    double worst = 0;

    for (int i = 0; i < N; i += 5) {
        for (int j = 0; j < N; j += 7) {
            double sum = 0;

            for (int k = 0; k < side * N; k++) {
                sum += a_of(row * N + i, k) * b_of(k, column * N + j);
            }
            worst = fmax(worst, fabs(c[i * N + j] - sum));
        }
    }
    return worst;
}

static int side_of(int ranks)
{
    int side = (int) lround(sqrt(ranks));

    if (side * side != ranks) {
        fprintf(stderr, "summa: %d ranks are no square: run it on 1, 4, 9 or 16\n", ranks);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    return side;
}

int main(int argc, char **argv)
{
    MPIX_Flash_hints hints = MPIX_FLASH_HINTS_INIT;
    double *a, *b, *row_a, *column_b, error;
    int rank, size, side, row, column, served;
    MPI_Comm row_comm, column_comm;
    MPI_Request request;
    summa_t summa;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    side = side_of(size);
    row = rank / side;
    column = rank % side;
    MPI_Comm_split(MPI_COMM_WORLD, row, column, &row_comm);
    MPI_Comm_split(MPI_COMM_WORLD, column, row, &column_comm);
    a = matrix(1);
    b = matrix(1);
    row_a = matrix(side);
    column_b = matrix(side);
    summa = (summa_t){column_b, matrix(1)};
    for (int k = 0; k < N * N; k++) {
        a[k] = a_of(row * N + k / N, column * N + k % N);
        b[k] = b_of(row * N + k / N, column * N + k % N);
    }

    MPI_Iallgather(b, N * N, MPI_DOUBLE, column_b, N * N, MPI_DOUBLE, column_comm, &request);
    /* A program that has something else to compute does so here. */
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    hints.pieces = 3;
    hints.row = N;
    MPIX_Allgather_compute(a, N * N, MPI_DOUBLE, row_a, N * N, MPI_DOUBLE, multiply, &summa, &hints,
                           row_comm);

    error = worst_error(summa.c, row, column, side);
    MPI_Allreduce(MPI_IN_PLACE, &error, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    MPIX_Flash_active(row_comm, &served);
    if (rank == 0) {
        printf("%d x %d ranks, %s: error %.1e\n", side, side, served ? "by flash" : "without flash",
               error);
    }
    free(a), free(b), free(row_a), free(column_b), free(summa.c);
    MPI_Comm_free(&row_comm);
    MPI_Comm_free(&column_comm);
    MPI_Finalize();
    return error < 1e-9 ? EXIT_SUCCESS : EXIT_FAILURE;
}
