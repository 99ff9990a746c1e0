/*
 * fft_transpose.c: the Fourier transform of a square matrix whose rows are shared out to the ranks.
 *
 *   mpirun -n 4 --mca coll flash fft_transpose
 *
 * Rows are transformed, the matrix is transposed, which sends a part of each row to each rank, and
 * its rows, once columns, are transformed. The rows go in a few groups: while one is on its way,
 * the next is transformed; and each block is put into its place as it arrives.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <complex.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <mpix_flash.h>

enum { N = 256, GROUPS = 4 }; /* a power of 2; groups of a rank's rows */

static const double TURN = 6.28318530717958647692;

/* One group's exchange. */
typedef struct group {
    double complex *send, *recv; /* for and from each rank, as rows of the transposed matrix */
    double complex *transposed;
    int first, rows; /* of each rank's rows */
    int share;       /* rows of a rank in all */
    MPI_Request request;
} group_t;

static double complex *numbers(int count)
{
    double complex *made = calloc((size_t) count, sizeof(*made));

    if (made == NULL) {
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return made;
}

/* Two waves and a peak: what their transforms are, is known. */
static double complex given(int row, int column)
{
    double complex waves = cexp(I * TURN * (3 * row + 5 * column) / N) +
                           0.5 * cexp(I * TURN * (200 * row + 9 * column) / N);

    return waves + (row == 1 && column == 2 ? 100 : 0);
}

static double complex expected(int row, int column)
{
    double complex waves = (row == 3 && column == 5) + 0.5 * (row == 200 && column == 9);

    return waves * N * N + 100 * cexp(-I * TURN * (row + 2 * column) / N);
}

/* In place, of N numbers: Cooley and Tukey's. A real program has a library for this. */
static void transform(double complex *x)
{
    for (int i = 1, j = 0; i < N; i++) {
        int bit = N / 2;

        for (; j & bit; bit /= 2) {
            j ^= bit;
        }
        j |= bit;
        if (i < j) {
            double complex swapped = x[i];

            x[i] = x[j];
            x[j] = swapped;
        }
    }
    for (int length = 2; length <= N; length *= 2) {
        for (int begin = 0; begin < N; begin += length) {
            for (int k = 0; k < length / 2; k++) {
                double complex *low = x + begin + k, *high = low + length / 2;
                double complex turned = *high * cexp(-I * TURN * k / length);

                *high = *low - turned;
                *low += turned;
            }
        }
    }
}

/* What has come from a rank: its rows' parts, as parts of this rank's columns. */
static int put(const MPIX_Flash_block *block, void *arg)
{
    const group_t *group = arg;
    const double complex *from = block->data;

    for (MPI_Count k = 0; k < block->count; k++) {
        int column = (int) ((block->offset + k) / group->rows);
        int row = (int) ((block->offset + k) % group->rows);

        group->transposed[column * N + block->rank * group->share + group->first + row] = from[k];
    }
    return MPI_SUCCESS;
}

static void send_group(group_t *group, double complex *rows, int ranks)
{
    int count = group->rows * group->share;

    for (int i = 0; i < group->rows; i++) {
        double complex *row = rows + (group->first + i) * N;

        transform(row);
        for (int k = 0; k < N; k++) {
            group->send[k / group->share * count + k % group->share * group->rows + i] = row[k];
        }
    }
    group->recv = numbers(count * ranks);
    MPIX_Ialltoall_compute(group->send, count, MPI_C_DOUBLE_COMPLEX, group->recv, count,
                           MPI_C_DOUBLE_COMPLEX, NULL, NULL, put, group, NULL, MPI_COMM_WORLD,
                           &group->request);
}

static double complex *transform_all(double complex *rows, int share, int ranks)
{
    group_t groups[GROUPS];
    double complex *transposed = numbers(share * N);

    for (int g = 0; g < GROUPS; g++) {
        groups[g] = (group_t){.send = numbers(share / GROUPS * N),
                              .transposed = transposed,
                              .first = g * share / GROUPS,
                              .rows = share / GROUPS,
                              .share = share};
        send_group(&groups[g], rows, ranks);
    }
    for (int g = 0; g < GROUPS; g++) {
        MPI_Wait(&groups[g].request, MPI_STATUS_IGNORE);
        free(groups[g].send);
        free(groups[g].recv);
    }
    for (int column = 0; column < share; column++) {
        transform(transposed + column * N);
    }
    return transposed;
}

int main(int argc, char **argv)
{
    double complex *rows, *transposed;
    int rank, size, share, served;
    double error = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (N % (size * GROUPS) != 0) {
        fprintf(stderr, "fft_transpose: run it on 1, 2, 4, 8 ... %d ranks\n", N / GROUPS);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    share = N / size;
    rows = numbers(share * N);
    for (int k = 0; k < share * N; k++) {
        rows[k] = given(rank * share + k / N, k % N);
    }
    transposed = transform_all(rows, share, size);
    for (int k = 0; k < share * N; k++) {
        double complex right = expected(k % N, rank * share + k / N);

        error = fmax(error, cabs(transposed[k] - right) / ((double) N * N));
    }
    MPI_Allreduce(MPI_IN_PLACE, &error, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    MPIX_Flash_active(MPI_COMM_WORLD, &served);
    if (rank == 0) {
        printf("%d ranks, %s: error %.1e\n", size, served ? "by flash" : "without flash", error);
    }
    free(rows);
    free(transposed);
    MPI_Finalize();
    return error < 1e-12 ? EXIT_SUCCESS : EXIT_FAILURE;
}
