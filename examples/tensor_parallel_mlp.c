/*
 * tensor_parallel_mlp.c: Y = GeLU(X V) W, whose weights are spread over the ranks, as in a
 * transformer: each rank has some columns of V, the same rows of W, and some tokens, the rows of X
 * and Y.
 *
 *   mpirun -n 4 --mca coll flash tensor_parallel_mlp
 *
 * All ranks need all rows of X: they are gathered, and each piece is multiplied as it arrives. Each
 * rank then has a part of every row of Y: the parts are added up and scattered, and each piece is
 * computed just before it leaves. There is no time in which a rank only communicates.
 *
 * Copyright (c) 2026 The coll/flash authors. BSD-3-Clause, see LICENSE.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <mpix_flash.h>

enum { TOKENS = 48, INNER = 80, WIDTH = 96 }; /* of each rank, of each rank, of X and Y */

typedef struct mlp {
    double *v;      /* WIDTH x INNER: this rank's columns */
    double *w;      /* INNER x WIDTH: this rank's rows */
    double *hidden; /* all tokens x INNER: GeLU(X V) */
} mlp_t;

/* Any numbers will do; each rank makes those it needs. */
static double x_of(int token, int column)
{
    return sin(token + 0.1 * column);
}

static double v_of(int row, int column)
{
    return cos(0.3 * row + column) / WIDTH;
}

static double w_of(int row, int column)
{
    return sin(row - 0.7 * column) / INNER;
}

static double gelu(double z)
{
    return 0.5 * z * (1 + erf(z / sqrt(2)));
}

/* C = A B, of row-major matrices without gaps: what a real program has BLAS for. */
static void multiply(int m, int n, int k, const double *a, const double *b, double *c)
{
    for (int i = 0; i < m; i++) {
        for (int j = 0; j < n; j++) {
            c[i * n + j] = 0;
            for (int l = 0; l < k; l++) {
                c[i * n + j] += a[i * k + l] * b[l * n + j];
            }
        }
    }
}

static double *matrix(int rows, int columns)
{
    double *made = malloc((size_t) rows * (size_t) columns * sizeof(*made));

    if (made == NULL) {
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return made;
}

/* Where a piece's rows are among all: pieces are whole rows, as the hints say. */
static int first_row(const MPIX_Flash_block *block)
{
    return (int) ((block->displ + block->offset) / WIDTH);
}

static int consume_x(const MPIX_Flash_block *block, void *arg)
{
    const mlp_t *mlp = arg;
    int rows = (int) (block->count / WIDTH);
    double *hidden = mlp->hidden + first_row(block) * INNER;

    multiply(rows, INNER, WIDTH, block->data, mlp->v, hidden);
    for (int k = 0; k < rows * INNER; k++) {
        hidden[k] = gelu(hidden[k]);
    }
    return MPI_SUCCESS;
}

static int produce_y(const MPIX_Flash_block *block, void *arg)
{
    const mlp_t *mlp = arg;

    multiply((int) (block->count / WIDTH), WIDTH, INNER, mlp->hidden + first_row(block) * INNER,
             mlp->w, block->data);
    return MPI_SUCCESS;
}

/* One element of Y, by a rank that needs nobody. */
static double y_of(int token, int column, int inner)
{
    double sum = 0;

    for (int h = 0; h < inner; h++) {
        double z = 0;

        for (int k = 0; k < WIDTH; k++) {
            z += x_of(token, k) * v_of(k, h);
        }
        sum += gelu(z) * w_of(h, column);
    }
    return sum;
}

static double worst_error(const double *y, int rank, int size)
{
    double worst = 0;

    for (int row = 0; row < TOKENS; row += 7) {
        for (int column = 0; column < WIDTH; column += 5) {
            double expected = y_of(rank * TOKENS + row, column, size * INNER);

            worst = fmax(worst, fabs(y[row * WIDTH + column] - expected));
        }
    }
    return worst;
}

int main(int argc, char **argv)
{
    MPIX_Flash_hints hints = MPIX_FLASH_HINTS_INIT;
    double *x, *all_x, *y, error;
    int rank, size, served;
    mlp_t mlp;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    x = matrix(TOKENS, WIDTH);
    y = matrix(TOKENS, WIDTH);
    all_x = matrix(size * TOKENS, WIDTH);
    mlp = (mlp_t){matrix(WIDTH, INNER), matrix(INNER, WIDTH), matrix(size * TOKENS, INNER)};
    for (int k = 0; k < TOKENS * WIDTH; k++) {
        x[k] = x_of(rank * TOKENS + k / WIDTH, k % WIDTH);
    }
    for (int k = 0; k < WIDTH * INNER; k++) {
        mlp.v[k] = v_of(k / INNER, rank * INNER + k % INNER);
        mlp.w[k] = w_of(rank * INNER + k / WIDTH, k % WIDTH);
    }

    hints.pieces = 4;
    hints.row = WIDTH;
    MPIX_Allgather_compute(x, TOKENS * WIDTH, MPI_DOUBLE, all_x, TOKENS * WIDTH, MPI_DOUBLE,
                           consume_x, &mlp, &hints, MPI_COMM_WORLD);
    MPIX_Reduce_scatter_block_compute(produce_y, &mlp, &hints, y, TOKENS * WIDTH, MPI_DOUBLE,
                                      MPI_SUM, MPI_COMM_WORLD);

    error = worst_error(y, rank, size);
    MPI_Allreduce(MPI_IN_PLACE, &error, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    MPIX_Flash_active(MPI_COMM_WORLD, &served);
    if (rank == 0) {
        printf("%d ranks, %s: error %.1e\n", size, served ? "by flash" : "without flash", error);
    }
    free(x), free(y), free(all_x), free(mlp.v), free(mlp.w), free(mlp.hidden);
    MPI_Finalize();
    return error < 1e-12 ? EXIT_SUCCESS : EXIT_FAILURE;
}
